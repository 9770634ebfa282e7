"""
First steps
===========

Two classes that no line can separate, and a classifier with default settings.

``KernelFisherClassifier`` needs no parameters: the width of the kernel and the penalty are chosen by exact
leave-one-out during the fit. The colors show the probabilities of ``predict_proba``; the black line is where
``predict`` changes from one class to the other.
"""

import matplotlib.pyplot as plt
from sklearn.inspection import DecisionBoundaryDisplay

from mercer import KernelFisherClassifier
from mercer.datasets import make_banana

X, y = make_banana(300, random_state=0)
model = KernelFisherClassifier().fit(X, y)
print(model.report_)

# %%
# The leave-one-out accuracy and the accuracy on new rows. With 300 rows the standard error of the first number is
# 0.017, and since the model was chosen by leave-one-out, it is slightly optimistic.

X_new, y_new = make_banana(5000, random_state=1)
print(f"leave-one-out {model.loo_score_:.3f}, new rows {model.score(X_new, y_new):.3f}")

# %%
# scikit-learn's own display draws the probabilities.

fig, ax = plt.subplots(figsize=(7, 5), layout="constrained")
regions = DecisionBoundaryDisplay.from_estimator(
    model,
    X,
    response_method="predict_proba",
    class_of_interest=1,
    plot_method="pcolormesh",
    cmap="RdBu",
    vmin=0,
    vmax=1,
    alpha=0.7,
    eps=0.2,
    ax=ax,
)
ax.contour(regions.xx0, regions.xx1, regions.response, levels=[0.5], colors="black")
for label, marker, color in [(-1, "^", "#8b1a1a"), (1, "o", "#0b3c6f")]:
    ax.scatter(*X[y == label].T, s=18, marker=marker, color=color, label=f"class {label}")
ax.set(xlabel="feature 1", ylabel="feature 2")
ax.legend(loc="upper right")
fig.colorbar(regions.surface_, ax=ax, label="probability of class 1")
plt.show()
