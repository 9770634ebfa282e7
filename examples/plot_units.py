"""
Units of features
=================

A kernel compares rows by their distance, so units matter; the default tries three.

The first feature is skewed, like incomes, and the second one is small. A width that suits most rows does not suit
the few that are far away, in the units given or in standard deviations. Normal scores of ranks spread them evenly.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer import KernelFisherClassifier
from mercer.datasets import make_banana
from mercer.kernels import RBF, RankNormal, Standardized


def in_odd_units(Z):
    """The first coordinate as an exponent, the second one divided by ten."""
    return np.column_stack([np.exp(2.0 * Z[:, 0]), Z[:, 1] / 10.0])


Z, y = make_banana(300, random_state=7)
Z_new, truth = make_banana(5000, random_state=1)
X, X_new = in_odd_units(Z), in_odd_units(Z_new)
kernels = {"as they are": RBF(), "standard deviations": Standardized(RBF()), "normal scores": RankNormal(RBF())}
models = {name: KernelFisherClassifier(kernel).fit(X, y) for name, kernel in kernels.items()}

# %%
# Probabilities of the two classes, by the same kernel in three kinds of units. The axis of the first feature is
# logarithmic, so that all rows can be seen.
first = np.geomspace(X[:, 0].min(), X[:, 0].max(), 160)
second = np.linspace(X[:, 1].min(), X[:, 1].max(), 160)
grid = np.stack(np.meshgrid(first, second), axis=-1)
figure, axes = plt.subplots(1, 3, figsize=(11, 3.8), sharey=True, layout="constrained")
for ax, (name, model) in zip(axes, models.items()):
    P = model.predict_proba(grid.reshape(-1, 2))[:, 1].reshape(grid.shape[:2])
    shades = ax.pcolormesh(first, second, P, cmap="RdBu_r", vmin=0.0, vmax=1.0, alpha=0.6, rasterized=True)
    ax.contour(first, second, P, [0.5], colors="k")
    for label, color in ((-1, "C0"), (1, "C3")):
        ax.plot(*X[y == label].T, ".", color=color, ms=4)
    error = 100 * np.mean(model.predict(X_new) != truth)
    ax.set(title=f"{name}: {error:.1f} % errors", xscale="log", xlabel="first feature")
axes[0].set_ylabel("second feature")
figure.colorbar(shades, ax=axes, label="probability of class 1")

# %%
# The default chooses among them, and between a Gaussian and a Laplacian kernel, by leave-one-out.
automatic = KernelFisherClassifier().fit(X, y)
print(f"{type(automatic.kernel_).__name__}: {100 * np.mean(automatic.predict(X_new) != truth):.1f} % errors")
