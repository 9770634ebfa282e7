"""
Pairs of classes
================

One discriminant for each pair of classes (one-vs-one), and the coupled probabilities.

``PairwiseClassifier`` fits one discriminant to each pair of classes. A discriminant also returns probabilities for
rows of the third class, on which it was not trained, and these mean little. Coupling finds the probabilities of
the three classes that agree best with all pairs.

Here a ring surrounds a small cloud, and the third class lies to the right. The first three maps show the pairs,
each with its own kernel width; the last one shows the coupled probabilities.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer import KernelFisherClassifier, PairwiseClassifier

COLORS = np.array([[0.75, 0.22, 0.17], [0.13, 0.40, 0.67], [0.95, 0.70, 0.20]])
NAMES = ["cloud", "ring", "right"]


def draw(n, rng):
    """n rows of three classes in the plane."""
    y = rng.integers(3, size=n)
    angle = rng.uniform(0, 2 * np.pi, n)
    ring = 1.5 * np.column_stack([np.cos(angle), np.sin(angle)])
    middle = np.select([y[:, None] == 1, y[:, None] == 2], [ring, [2.6, 0.0]], 0.0)
    return middle + np.array([0.35, 0.25, 0.6])[y, None] * rng.standard_normal((n, 2)), y


rng = np.random.default_rng(0)
(X, y), (X_new, y_new) = draw(300, rng), draw(5000, rng)
model = PairwiseClassifier(KernelFisherClassifier("rbf")).fit(X, y)
print(f"new rows: {model.score(X_new, y_new):.1%} right")

x1, x2 = np.meshgrid(np.linspace(-2.6, 4.6, 180), np.linspace(-2.6, 2.6, 130))
grid = np.column_stack([x1.ravel(), x2.ravel()])


def paint(ax, probability, classes, title):
    """Colors mixed by probability, and the rows of the classes."""
    image = (probability @ COLORS[classes]).reshape(*x1.shape, 3)
    ax.imshow(0.35 + 0.65 * image, origin="lower", extent=(-2.6, 4.6, -2.6, 2.6))
    for c in classes:
        ax.scatter(*X[y == c].T, s=9, color=COLORS[c], edgecolor="black", lw=0.3, label=NAMES[c])
    ax.set(title=title)


fig, axes = plt.subplots(2, 2, figsize=(10, 7.8), layout="constrained", sharex=True, sharey=True)
for ax, (i, j), pair in zip(axes.flat, model.pairs_, model.estimators_):
    title = f"{NAMES[i]} or {NAMES[j]}?  gamma = {pair.kernel_.gamma:.2g}"
    paint(ax, pair.predict_proba(grid), [i, j], title)
title = f"all three: {model.score(X_new, y_new):.0%} of new rows right"
paint(axes[1, 1], model.predict_proba(grid), [0, 1, 2], title)
fig.supxlabel("x1")
fig.supylabel("x2")
fig.legend(*axes[1, 1].get_legend_handles_labels(), loc="outside lower center", ncols=3)
plt.show()
