"""
Where the linear discriminant fails
===================================

A few outliers ruin the linear discriminant, but do not affect the kernel discriminant.

All rows of class +1 lie above the line x2 = 0 and all of class -1 below it. Five in a hundred rows of each class
lie far away, and they alone determine the means and the scatter on which Fisher's discriminant is based. It then
misclassifies more than 40 % of the rows, whatever the threshold (Devroye, Györfi and Lugosi 1996, Problem 4.9;
Mika 2002, section 3.2.3). A Gaussian kernel depends on neighbors instead, and the outliers are nobody's neighbors.

The picture shows the bulk of the rows and the regions of the predicted classes; the outliers are outside, up to
200,000 units away.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import ListedColormap
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.inspection import DecisionBoundaryDisplay

from mercer import KernelFisherClassifier
from mercer.datasets import make_fisher_worst_case

X, y = make_fisher_worst_case(400, eps=0.1, random_state=0)
bulk = np.abs(X).max(axis=1) < 2
window = np.array([[-1.5, -2.0], [1.5, 2.0]])

models = {
    "LinearDiscriminantAnalysis": LinearDiscriminantAnalysis(),
    "KernelFisherClassifier": KernelFisherClassifier(),
}
fig, axes = plt.subplots(1, 2, figsize=(9, 4.8), layout="constrained", sharey=True)
for ax, (name, model) in zip(axes, models.items()):
    model.fit(X, y)
    DecisionBoundaryDisplay.from_estimator(
        model, window, response_method="predict", plot_method="pcolormesh", eps=0.0,
        cmap=ListedColormap(["#f4b6a2", "#a9cbe6"]), ax=ax,
    )  # fmt: skip
    for label, marker, color in [(1, "o", "#0072B2"), (-1, "^", "#D55E00")]:
        ax.scatter(*X[bulk & (y == label)].T, s=14, marker=marker, color=color, label=f"class {label}")
    ax.set(title=f"{name}: {np.mean(model.predict(X) != y):.0%} errors", xlabel="x1", ylabel="x2")
axes[0].legend()
plt.show()
