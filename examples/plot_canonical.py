"""
Two views of digits
===================

Kernel canonical correlations: what the left and the right half of an image have in common.

The left half of a digit is one view, the right half another one. Kernel CCA is told which halves belong together,
and nothing of the digits. What the halves share is mostly which digit they are part of, so the digits appear.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from mercer import KernelCCA

X, y = load_digits(return_X_y=True)
some = y < 5
images, y = X[some].reshape(-1, 8, 8) / 16.0, y[some]
left, right = images[:, :, :4].reshape(-1, 32), images[:, :, 4:].reshape(-1, 32)
train, rest = slice(0, 300), slice(300, 700)

model = KernelCCA(n_components=4, random_state=0).fit(left[train], right[train])
linear = KernelCCA(n_components=4, kernel="linear", random_state=0).fit(left[train], right[train])
found = np.array(
    [
        model.correlations_,
        model.held_out_correlations_,
        model.correlations(left[rest], right[rest]),
        linear.correlations(left[rest], right[rest]),
    ]
)

# %%
# Correlations of the training rows are too large; those in folds say what new rows will show.
names = ["training rows", "in folds", "new rows", "linear kernel, new rows"]
colors = ["#999999", "#56B4E9", "#0072B2", "#D55E00"]
figure, ax = plt.subplots(figsize=(7, 3.2), layout="constrained")
for number, (values, name, color) in enumerate(zip(found, names, colors)):
    ax.bar(np.arange(4) + 0.2 * (number - 1.5), values, 0.2, label=name, color=color)
ax.set(
    xticks=range(4),
    xticklabels=["first", "second", "third", "fourth"],
    xlabel="component",
    ylabel="correlation",
    ylim=(0.0, 1.0),
)
ax.legend(ncols=4, fontsize=8, loc="upper center", bbox_to_anchor=(0.5, 1.16), frameon=False)

# %%
# New digits along the first two components: their left halves, and their right halves, each by the functions of
# its own view. A line joins the halves of one image.
one, other = model.transform(left[rest], right[rest])
figure, axes = plt.subplots(1, 3, figsize=(12, 4), sharex=True, sharey=True, layout="constrained")
for ax, scores, title in zip(axes, (one, other), ("left halves", "right halves")):
    points = ax.scatter(scores[:, 0], scores[:, 1], c=y[rest], cmap="tab10", vmin=0, vmax=9, s=10)
    ax.set(title=title, xlabel="first component")
axes[0].legend(*points.legend_elements(), title="digit", fontsize=8)
axes[0].set_ylabel("second component")
for a, b, digit in zip(one[:120], other[:120], y[rest]):
    axes[2].plot([a[0], b[0]], [a[1], b[1]], lw=0.8, color=plt.cm.tab10(digit / 9.0))
axes[2].set(title="from left to right half, 120 digits", xlabel="first component")
plt.show()

# %%
# The shared space finds the other half of an image: for some left halves, the right halves that are nearest to
# them among all new ones, by the angle between their scores.
unit = [scores / np.linalg.norm(scores, axis=1, keepdims=True) for scores in (one, other)]
nearest = np.argsort(-unit[0] @ unit[1].T, axis=1)[:, :5]
shown = [int(np.flatnonzero(y[rest] == digit)[3]) for digit in range(5)]
figure, axes = plt.subplots(5, 7, figsize=(6, 4.6), layout="constrained")
for row, i in zip(axes, shown):
    halves = [images[rest][i], np.hstack([images[rest][i][:, :4], np.zeros((8, 4))])]
    halves += [np.hstack([np.zeros((8, 4)), images[rest][j][:, 4:]]) for j in nearest[i]]
    for ax, half in zip(row, halves):
        ax.imshow(half, cmap="gray_r", vmin=0.0, vmax=1.0)
        ax.set(xticks=[], yticks=[])
for ax, title in zip(axes[0], ["image", "left half", "nearest", "second", "third", "fourth", "fifth"]):
    ax.set_title(title, fontsize=9)
plt.show()
