"""
The same rows, four kernels
===========================

How sums, products and a separate width for each feature change the boundary.

A row is of class 1 if sin(4 x1) + x2 is positive, up to noise: a wave in one feature, a trend in the other.
Kernels are added with ``+``, multiplied with ``*`` and scaled by a number, and a ``gamma`` for each feature
controls how fast the function may vary along it.

* ``Linear()`` captures the trend and misses the wave.
* ``RBF()`` has one width for both features.
* ``RBF(gamma=[4, 0]) * RBF(gamma=[0, 0.2])`` varies fast along x1 and slowly along x2: it equals
  ``RBF(gamma=[4, 0.2])``.
* ``RBF(gamma=[4, 0]) + Linear()`` expresses prior knowledge: a function of x1 plus a trend.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.inspection import DecisionBoundaryDisplay

from mercer import KernelFisherClassifier
from mercer.kernels import RBF, Linear


def draw(n, rng):
    """n rows and their classes."""
    X = rng.uniform(-2, 2, (n, 2))
    return X, np.where(np.sin(4 * X[:, 0]) + X[:, 1] + 0.3 * rng.standard_normal(n) > 0, 1, -1)


rng = np.random.default_rng(0)
(X, y), new = draw(90, rng), draw(5000, rng)
wave = RBF(gamma=[4.0, 0.0])
kernels = {
    "Linear()": Linear(),
    "RBF()": RBF(),
    "RBF([4, 0]) * RBF([0, 0.2])": wave * RBF(gamma=[0.0, 0.2]),
    "RBF([4, 0]) + Linear()": wave + Linear(),
}
grid = np.linspace(-3, 3, 200)
fig, axes = plt.subplots(2, 2, figsize=(9, 8.5), layout="constrained", sharex=True, sharey=True)
for ax, (name, kernel) in zip(axes.flat, kernels.items()):
    model = KernelFisherClassifier(kernel).fit(X, y)
    regions = DecisionBoundaryDisplay.from_estimator(
        model, X, response_method="predict_proba", class_of_interest=1, plot_method="pcolormesh",
        cmap="RdBu", vmin=0, vmax=1, alpha=0.7, ax=ax,
    )  # fmt: skip
    ax.scatter(*X[y > 0].T, s=16, color="#0b3c6f", marker="o", label="class 1")
    ax.scatter(*X[y < 0].T, s=16, color="#8b1a1a", marker="^", label="class -1")
    ax.plot(grid, -np.sin(4 * grid), color="black", ls="--", lw=1.5, label="true boundary")
    ax.set(title=f"{name}\nnew rows: {model.score(*new):.0%} right", xlabel="", ylabel="", ylim=(-3, 3))
fig.supxlabel("x1")
fig.supylabel("x2")
fig.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
fig.colorbar(regions.surface_, ax=axes, label="probability of class 1")
plt.show()
