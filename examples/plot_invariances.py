"""
Known invariances
=================

What a model is told about transformations, it need not learn from rows.

The class of a point is decided by its distance from the origin, and somebody knows that: turning a point changes
nothing. Rows are few, and from one side only.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from mercer import KernelFisherClassifier
from mercer.invariances import shifts


def ring(n, seed):
    """Two classes by their distance from the origin; all rows are to the right of it."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    radius, angle = 1.0 + y + 0.25 * rng.normal(size=n), rng.uniform(-0.8, 0.8, n)
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)]), y


class Turn:
    """Rotation around the origin by some degrees."""

    def __init__(self, degrees):
        self.degrees = degrees

    def __call__(self, X):
        angle = np.deg2rad(self.degrees)
        return X @ np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])


X, y = ring(40, 0)
turns = [Turn(degrees) for degrees in (45, 90, 135, 180, 225, 270, 315)]
models = {
    "rows alone": KernelFisherClassifier(random_state=0),
    "with turned copies": KernelFisherClassifier(invariances=turns, random_state=0),
    "changes by turns penalized": KernelFisherClassifier(
        invariances=[Turn(-40), Turn(-20), Turn(20), Turn(40)], mu=3.0, random_state=0
    ),
}

# %%
# Copies of the rows, turned by multiples of 45 degrees, join the fit and tell it about the other sides, where
# there are no rows; leave-one-out holds a row out with its copies. The penalty only says that turns of the rows by
# up to 40 degrees change nothing: the boundary follows the circle farther, but rows remain the only centers, and
# far from them the answer is undecided. The dashed circle is the best boundary.
grid = np.linspace(-3, 3, 90)
x0, x1 = np.meshgrid(grid, grid)
figure, axes = plt.subplots(1, 3, figsize=(12, 4), layout="constrained", sharey=True)
for axis, (name, model) in zip(axes, models.items()):
    share = model.fit(X, y).predict_proba(np.column_stack([x0.ravel(), x1.ravel()]))[:, 1].reshape(x0.shape)
    picture = axis.contourf(x0, x1, share, levels=np.linspace(0, 1, 11), cmap="RdBu_r", alpha=0.6)
    axis.contour(x0, x1, share, levels=[0.5], colors="k")
    axis.add_patch(plt.Circle((0, 0), 1.5, fill=False, ls="--", color="0.3"))
    for label, color in ((0, "C0"), (1, "C3")):
        axis.plot(*X[y == label].T, "o", color=color, ms=4, mec="w", mew=0.5)
    axis.set(title=name, xlabel="first feature", aspect="equal")
axes[0].set_ylabel("second feature")
figure.colorbar(picture, ax=axes, label="probability of the outer class")

# %%
# Digits may be shifted. With four copies of each row, moved by half a pixel, fewer rows are enough.
images, digit = load_digits(return_X_y=True)
errors = {"rows alone": [], "with shifted copies": []}
sizes = (50, 100, 200)
for n in sizes:
    parts = train_test_split(images / 16.0, digit, train_size=n, random_state=0, stratify=digit)
    train, test, target, truth = parts
    for name, known in zip(errors, (None, shifts(0.5))):
        model = KernelFisherClassifier(invariances=known, random_state=0).fit(train, target)
        errors[name].append(100.0 * (1.0 - model.score(test, truth)))

figure, axis = plt.subplots(figsize=(6, 4), layout="constrained")
for (name, values), color in zip(errors.items(), ("C0", "C3")):
    axis.plot(sizes, values, "o-", color=color, label=name)
axis.set(xlabel="training rows", ylabel="test error in %", title="Digits of 8 x 8 pixels", xticks=sizes)
axis.set_ylim(0, None)
axis.legend()
plt.show()
