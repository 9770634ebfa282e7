"""
How many centers
================

The error by the number of centers, and where the selection stops.

A sparse model selects rows as centers one after another (forward selection), and one triangular factor gives the
fit for every number of centers. When a row is held out, its center is removed as well: the leave-one-out curve
then follows the test error, while the residual sum of squares of the fit only decreases.
"""

# sphinx_gallery_thumbnail_number = 2

import matplotlib.pyplot as plt
import numpy as np

from mercer import KernelFisherClassifier, SparseFisherClassifier
from mercer.datasets import make_banana
from mercer.kernels import RBF

X, y = make_banana(400, random_state=0)
X_new, y_new = make_banana(5000, random_state=1)
model = SparseFisherClassifier(random_state=0).fit(X, y)
whole = SparseFisherClassifier(RBF(gamma=model.gamma_), alpha=model.alpha_, stop=None).fit(X, y)
full = KernelFisherClassifier().fit(X, y)
test = [100 * np.mean(labels != y_new) for labels in whole.staged_predict(X_new)]

fig, (left, right) = plt.subplots(1, 2, figsize=(10, 4.8), layout="constrained")
numbers = np.arange(1, len(whole.center_path_) + 1)
left.plot(numbers, whole.center_path_.loo, color="#D55E00", label="leave-one-out (row and center)")
left.plot(numbers, whole.center_path_.rss / len(y), color="#0072B2", label="fit")
left.set(xscale="log", xlabel="centers", ylabel="mean squared residual")
right.plot(numbers, test, color="black", label="test rows")
right.axhline(100 * np.mean(full.predict(X_new) != y_new), color="0.6", ls=":", label="all 400 rows are centers")
right.set(xscale="log", xlabel="centers", ylabel="error in %", ylim=(9, 30))
for ax in (left, right):
    ax.axvline(len(model.support_), color="#009E73", lw=1, label=f"chosen: {len(model.support_)}")
    ax.legend()
plt.show()

# %%
# The centers are rows where the classes meet, and a few that cover the rest.

fig, ax = plt.subplots(figsize=(6, 5), layout="constrained")
xx, yy = np.meshgrid(np.linspace(-3.2, 3.2, 200), np.linspace(-3.2, 3.2, 200))
P = model.predict_proba(np.column_stack([xx.ravel(), yy.ravel()]))[:, 1].reshape(xx.shape)
ax.contourf(xx, yy, P, levels=np.linspace(0, 1, 11), cmap="RdBu_r", alpha=0.5)
ax.contour(xx, yy, P, levels=[0.5], colors="black", linewidths=1)
ax.scatter(*X.T, c=np.where(y > 0, "#D55E00", "#0072B2"), s=6)
ax.scatter(*model.X_fit_.T, s=60, facecolors="none", edgecolors="black")
ax.set(title=f"{len(model.support_)} of {len(y)} rows are centers")
plt.show()
