"""
Two spirals with ninety centers
===============================

All 194 rows of the two spirals are on the right side with at most 90 centers: Andelić (2007), section 5.1. A
support vector machine takes four fifths of them.
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

fig, axes = plt.subplots(1, 3, figsize=(13, 4.4), layout="constrained")
for ax, m in zip(axes, (30, 60, 90)):
    model = SparseFisherClassifier(max_centers=m, stop=None, random_state=0).fit(X, y)
    ax.contourf(xx, yy, model.predict(rows).reshape(xx.shape), levels=1, cmap="RdBu_r", alpha=0.3)
    ax.scatter(*X.T, c=np.where(y > 0, "#D55E00", "#0072B2"), s=10)
    ax.scatter(*model.X_fit_.T, s=45, facecolors="none", edgecolors="black", lw=0.8)
    wrong = int(np.sum(model.predict(X) != y))
    ax.set(title=f"{len(model.support_)} centers, {wrong} rows wrong", xticks=[], yticks=[], aspect="equal")
plt.show()

# %%
# The support vectors of an SVC that parts them with the same width of the kernel:

svc = SVC(gamma=model.gamma_, C=1e4).fit(X, y)
print(f"{svc.n_support_.sum()} of {len(y)} rows, {np.sum(svc.predict(X) != y)} of them wrong")
