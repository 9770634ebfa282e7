"""
Discriminants and principal components of parabolas
===================================================

The direction that separates two classes need not be one of large variance, in feature space neither.

Each class has two noisy parabolas: one class those that open upward and downward, the other those that open to the
left and to the right. With a polynomial kernel of degree two, the kernel Fisher discriminant finds the feature
that tells them apart, the difference of two squares. The first two features of kernel PCA, which does not know the
classes, are the product of the coordinates and the distance from the middle: they describe the rows, and say
nothing of their classes. Compare Mika (2002), Fig. 5.2.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import roc_auc_score

from mercer import KernelFisherClassifier, KernelPCA
from mercer.kernels import Polynomial

rng = np.random.default_rng(0)
n = 160
y = np.repeat([-1, 1], n // 2)
along = rng.uniform(-0.9, 0.9, n)
across = rng.choice([-1.0, 1.0], n) * (0.6 + 0.7 * along**2) + 0.08 * rng.normal(size=n)
X = np.where(y[:, None] > 0, np.column_stack([along, across]), np.column_stack([across, along]))

# %%
# Gray levels and contours: the value of the feature. In the title: the share of pairs of rows, one of each class,
# that the feature puts in the right order; one half is chance.

kernel = Polynomial(degree=2, coef0=0.0)
features = KernelPCA(2, kernel=kernel).fit(X)
fisher = KernelFisherClassifier(kernel).fit(X, y)
found = {
    "kernel Fisher discriminant": lambda rows: fisher.transform(rows)[:, 0],
    "kernel PCA, first feature": lambda rows: features.transform(rows)[:, 0],
    "kernel PCA, second feature": lambda rows: features.transform(rows)[:, 1],
}
grid = np.linspace(-1.6, 1.6, 150)
xx, yy = np.meshgrid(grid, grid)
points = np.column_stack([xx.ravel(), yy.ravel()])
fig, axes = plt.subplots(1, 3, figsize=(11, 4.5), layout="constrained")
for ax, (name, feature) in zip(axes, found.items()):
    values = feature(points).reshape(xx.shape)
    ax.contourf(xx, yy, values, levels=30, cmap="gray", alpha=0.75)
    ax.contour(xx, yy, values, levels=9, colors="black", linestyles="solid", linewidths=0.7)
    for label, marker, color in ((-1, "o", "#56B4E9"), (1, "x", "#D55E00")):
        ax.scatter(*X[y == label].T, marker=marker, color=color, s=22)
    area = roc_auc_score(y, feature(X))
    ax.set(title=f"{name}\nright order: {max(area, 1 - area):.2f}", xticks=[], yticks=[], aspect="equal")
plt.show()
