"""
KFD, sparse KFD and SVM in two features
=======================================

Which rows carry a decision function: all of them, a few anywhere, or those near the boundary.

The kernel Fisher discriminant (KFD) uses every row. Linear sparse KFD, the absolute loss with a penalty on the sum
of absolute coefficients, needs few, and they may lie anywhere. The support vectors of a support vector machine are
the rows inside its margin. Compare Mika (2002), Figs. 2.10 and 5.1, with other rows.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer import KernelMachineClassifier
from mercer.datasets import make_banana
from mercer.kernels import RBF, Linear
from mercer.results import Expansion

X, y = make_banana(120, noise=0.25, random_state=1)
methods = {
    "KFD": {"loss": "squared"},
    "linear sparse KFD": {"loss": "absolute", "penalty": "l1"},
    "SVM": {"loss": "hinge"},
}
kernels = {"linear kernel": Linear(), "Gaussian kernel": RBF(gamma=0.5)}
xx, yy = np.meshgrid(np.linspace(-2.2, 2.9, 120), np.linspace(-1.7, 2.0, 120))
points = np.column_stack([xx.ravel(), yy.ravel()])

# %%
# Solid: f = 0, the boundary. Dashed: f = -1 and f = 1, the targets of the two classes. Circles: rows with a
# coefficient; KFD has one for every row. With the linear kernel two rows are enough to describe a line.

fig, axes = plt.subplots(2, 3, figsize=(11, 6.4), sharex=True, sharey=True, layout="constrained")
for row, (kernel_name, kernel) in zip(axes, kernels.items()):
    for ax, (name, how) in zip(row, methods.items()):
        model = KernelMachineClassifier(kernel, alpha=1.0, **how).fit(X, y)
        f = Expansion(model.kernel_, model.X_fit_, model.dual_coef_, model.intercept_)(points).reshape(xx.shape)
        ax.contourf(xx, yy, f, levels=[-np.inf, 0, np.inf], colors=["#0072B2", "#D55E00"], alpha=0.12)
        ax.contour(
            xx, yy, f, levels=[-1, 0, 1], colors="black", linestyles=["--", "-", "--"], linewidths=[1, 1.8, 1]
        )
        for label, marker, color in ((-1, "+", "#0072B2"), (1, "x", "#D55E00")):
            ax.scatter(*X[y == label].T, marker=marker, color=color, s=28, lw=1.2)
        if len(model.support_) < len(X):
            ax.scatter(*model.X_fit_.T, s=90, facecolors="none", edgecolors="black", lw=1.0)
        ax.set(title=f"{name}, {kernel_name}:\n{len(model.support_)} of {len(X)} rows", xticks=[], yticks=[])
plt.show()
