"""
Several kernels at once
=======================

A row has six views; two of them matter. How much each of six kernels counts can be learned.

Each view has five features and its own Gaussian kernel.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer import KernelFisherClassifier
from mercer.kernels import RBF, WeightedSum

rng = np.random.default_rng(0)
X = rng.normal(size=(2300, 30))
radius = np.linalg.norm(X[:, :5], axis=1) + np.abs(X[:, 5]) + np.abs(X[:, 6])
y = (radius + 0.3 * rng.normal(size=2300) > np.median(radius)).astype(int)
X, new, y, truth = X[:300], X[300:], y[:300], y[300:]
views = {f"view {v + 1}": RBF(gamma=0.2 * np.repeat(np.eye(6)[v], 5)) for v in range(6)}

# %%
# One fit with each kernel alone, one with their sum, and one with weights.
kernels = views | {"equal sum": WeightedSum(views, "equal"), "weighted sum": WeightedSum(views)}
models = {name: KernelFisherClassifier(kernel, random_state=0).fit(X, y) for name, kernel in kernels.items()}
weights = models["weighted sum"].kernel_weights_
errors = {name: 100 * np.mean(model.predict(new) != truth) for name, model in models.items()}

# %%
# Weights of views that say nothing about the class are zero, and the weighted sum is better than the equal one.
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained")
left.barh(list(weights), list(weights.values()), color="C0")
left.axvline(1 / 6, color="k", linewidth=1.0, linestyle=":", label="equal")
left.set(xlabel="weight")
left.invert_yaxis()
left.legend(loc="lower right")
right.barh(list(errors), list(errors.values()), color=["0.7"] * 6 + ["C1", "C0"])
right.axvline(50, color="k", linewidth=1.0, linestyle=":", label="chance")
right.set(xlabel="error on new rows in %")
right.invert_yaxis()
right.legend(loc="upper right")
