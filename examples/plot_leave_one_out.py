"""
What training outputs hide
==========================

Training outputs are too optimistic; leave-one-out outputs of the same rows behave like those of new rows.

The output for a training row depends on the label of that row. With a small penalty, training outputs cluster
around the targets -1 and +1, and training accuracy is too high. The classes are two crescents, fitted with the
kernel chosen by leave-one-out and three penalties. Mika (2002), Figures 5.6 and 5.7, compares outputs on training
and test rows in this way; here no test rows are needed.
"""

import matplotlib.pyplot as plt

from mercer import KernelFisherClassifier
from mercer.datasets import make_banana
from mercer.plots import LeaveOneOutDisplay

X, y = make_banana(200, random_state=0)
X_new, y_new = make_banana(5000, random_state=1)
chosen = KernelFisherClassifier().fit(X, y)

# %%
# The lines are training outputs, the areas are leave-one-out outputs.

penalties = {"too small": 1e-5, "chosen": 1.0, "too large": 1e3}
fig, axes = plt.subplots(3, 1, figsize=(8, 9.5), layout="constrained")
for ax, (name, factor) in zip(axes, penalties.items()):
    alpha = factor * chosen.alpha_
    model = KernelFisherClassifier(chosen.kernel_, alpha=alpha).fit(X, y)
    LeaveOneOutDisplay.from_estimator(model, X, y, ax=ax)
    accuracy = model.score(X_new, y_new)
    ax.set_title(f"{name}: alpha = {alpha:.2g}, new rows {accuracy:.1%} right")
plt.show()
