"""
Which rows become centers
=========================

Four ways to select 16 centers (Nyström landmarks), and the resulting classifiers.

A model with few centers is fast to evaluate, and its accuracy depends on how they are selected. The two classes
are interleaved spirals, dense inside and sparse outside. The kernel is the same for all, and so is the fit:
penalized least squares on the 16 kernel functions, with alpha chosen by leave-one-out.

* ``Uniform`` draws rows at random, most of them where rows are dense.
* ``KMeans`` spreads cluster means evenly over the rows, regardless of their class.
* ``RPCholesky`` draws rows that the previous centers cannot represent, including outlying ones.
* ``ForwardSelection`` uses the labels, and adds the row or cluster mean that lowers the squared error most. Here
  it covers one arm, and leaves the other to the intercept.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.inspection import DecisionBoundaryDisplay

from mercer import KernelFisherClassifier
from mercer.centers import CandidateRows, ForwardSelection, KMeans, RPCholesky, Uniform
from mercer.kernels import RBF


def spirals(n, rng):
    """n rows on two arms, and their classes."""
    label = rng.integers(0, 2, n)
    turn = 0.4 + 2.4 * np.pi * rng.uniform(size=n) ** 1.5
    X = np.column_stack([turn * np.cos(turn + np.pi * label), turn * np.sin(turn + np.pi * label)])
    return X + 0.45 * rng.standard_normal((n, 2)), label


rng = np.random.default_rng(0)
(X, y), new = spirals(6000, rng), spirals(6000, rng)
sample = CandidateRows(X, np.where(y > 0, 1.0, -1.0)[:, None], np.ones(len(y)), y)
kernel = RBF(gamma=0.2)

# %%
# Accuracies are on new rows; the dots are some of the training rows, colored by class.

fig, axes = plt.subplots(2, 2, figsize=(9, 9), layout="constrained", sharex=True, sharey=True)
for ax, selector in zip(axes.flat, [Uniform(), KMeans(), RPCholesky(), ForwardSelection()]):
    centers = selector.select(kernel, sample, 16, np.random.default_rng(0)).rows
    model = KernelFisherClassifier(kernel, centers=centers).fit(X, y)
    DecisionBoundaryDisplay.from_estimator(
        model, X, response_method="predict", plot_method="pcolormesh", cmap="RdBu", alpha=0.25, ax=ax
    )
    ax.scatter(*X[:800].T, c=y[:800], cmap="RdBu", s=4, alpha=0.6)
    ax.scatter(*centers.T, s=70, facecolor="gold", edgecolor="black", lw=1.2)
    ax.set(title=f"{type(selector).__name__}: {model.score(*new):.1%} right", aspect="equal", xlabel="", ylabel="")
plt.show()
