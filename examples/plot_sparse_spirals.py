"""
Two spirals with ninety centers
===============================

A sparse discriminant separates 194 rows with 90 centers; a support vector machine needs more.

At most 90 centers suffice to classify all rows correctly (Andelić 2007, section 5.1). An ``SVC`` with the same
kernel width needs four fifths of the rows as support vectors.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.svm import SVC

from mercer import SparseFisherClassifier
from mercer.datasets import make_two_spirals

X, y = make_two_spirals(194, random_state=0)
grid = np.linspace(-7.5, 7.5, 250)
xx, yy = np.meshgrid(grid, grid)
rows = np.column_stack([xx.ravel(), yy.ravel()])


def draw(ax, model, centers, title):
    """Draw the predicted classes, the rows, and the centers."""
    ax.contourf(xx, yy, model.predict(rows).reshape(xx.shape), levels=1, cmap="RdBu_r", alpha=0.3)
    ax.scatter(*X.T, c=np.where(y > 0, "#D55E00", "#0072B2"), s=10)
    ax.scatter(*centers.T, s=45, facecolors="none", edgecolors="black", lw=0.8)
    wrong = int(np.sum(model.predict(X) != y))
    ax.set(title=f"{title}, {wrong} rows wrong", xticks=[], yticks=[], aspect="equal")


fig, axes = plt.subplots(2, 2, figsize=(9, 9.4), layout="constrained")
for ax, m in zip(axes.flat, (30, 60, 90)):
    model = SparseFisherClassifier(max_centers=m, stop=None, random_state=0).fit(X, y)
    draw(ax, model, model.X_fit_, f"{len(model.support_)} centers")
svc = SVC(gamma=model.gamma_, C=1e4).fit(X, y)
draw(axes[1, 1], svc, svc.support_vectors_, f"SVC: {svc.n_support_.sum()} support vectors")
plt.show()
