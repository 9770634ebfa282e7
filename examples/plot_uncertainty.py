"""
Probabilities far from the data
===============================

Where no training rows are, probabilities tend to the shares of the classes, and ``novelty`` shows why.

Far from all rows a Gaussian kernel is zero: what is left of the model is its intercept, which is no evidence for
any class. ``predict_proba`` therefore weighs the evidence of a row by how much the training rows say about it.
Left: what the outputs alone would say; it is sure of itself everywhere. Middle: ``predict_proba``, which is sure
only where there are rows. Right: ``novelty``, the logarithm of how much less is known of a row than of nearly all
training rows; above zero (beyond the line) it is time to look at the row, or to refuse an answer.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer import KernelFisherClassifier
from mercer.datasets import make_banana

X, y = make_banana(200, random_state=0)
model = KernelFisherClassifier(random_state=0).fit(X, y)

x1, x2 = np.meshgrid(np.linspace(-5, 6, 120), np.linspace(-5, 5, 120))
grid = np.column_stack([x1.ravel(), x2.ravel()])
outputs_alone = model.rule_.probabilities(model.transform(grid))[:, 1]
moderated = model.predict_proba(grid)[:, 1]
novelty = model.novelty(grid)

fig, axes = plt.subplots(1, 3, figsize=(13, 4.2), layout="constrained", sharey=True)
levels = np.linspace(0.0, 1.0, 11)
for ax, values, title in zip(axes, (outputs_alone, moderated), ("outputs alone", "predict_proba")):
    shades = ax.contourf(x1, x2, values.reshape(x1.shape), levels, cmap="RdBu", alpha=0.8)
    ax.set(title=title, xlabel="$x_1$")
fig.colorbar(shades, ax=axes[:2], label="probability of class +1")
shades = axes[2].contourf(x1, x2, novelty.reshape(x1.shape), 12, cmap="cividis")
axes[2].contour(x1, x2, novelty.reshape(x1.shape), [0.0], colors="white", linewidths=2)
axes[2].set(title="novelty, zero at the line", xlabel="$x_1$")
fig.colorbar(shades, ax=axes[2], label="novelty")
for ax in axes:
    for label, color, marker in ((-1, "#D55E00", "o"), (1, "#0072B2", "^")):
        ax.scatter(*X[y == label].T, s=14, color=color, marker=marker, edgecolor="white", linewidth=0.4)
axes[0].set_ylabel("$x_2$")
plt.show()

# %%
# The largest probability near the rows and far away, beside the share of the larger class:

near = np.abs(grid).max(axis=1) < 2.5
print(f"near: {moderated[near].max():.2f}, far: {np.maximum(moderated, 1 - moderated)[novelty > 4].max():.2f}")
print(f"share of the larger class: {model.priors_.max():.2f}")

# %%
# **Reliability, near and far.** Twenty draws of 100 rows of a law with known probabilities, and new rows that are
# spread three times as wide: of those that get a probability of 0.8, how many belong to the class? Where
# ``novelty`` is above zero, the outputs alone are wrong as often as right, however sure they are.


def draw(n, spread, rng):
    rows = spread * rng.normal(size=(n, 2))
    return rows, rng.random(n) < 1.0 / (1.0 + np.exp(-3.0 * np.sin(1.5 * rows[:, 0])))


def reliability(probability, truth):
    tenth = np.minimum((10 * probability).astype(int), 9)
    count = np.bincount(tenth, minlength=10)
    return [
        np.bincount(tenth, values, minlength=10)[count > 0] / count[count > 0] for values in (probability, truth)
    ]


rng = np.random.default_rng(0)
found = {(name, place): [] for name in ("outputs alone", "predict_proba") for place in ("near", "far")}
for _ in range(20):
    fitted = KernelFisherClassifier(random_state=0).fit(*draw(100, 1.0, rng))
    rows, truth = draw(2000, 3.0, rng)
    answers = {
        "outputs alone": fitted.rule_.probabilities(fitted.transform(rows))[:, 1],
        "predict_proba": fitted.predict_proba(rows)[:, 1],
    }
    far = fitted.novelty(rows) > 0.0
    for name, probability in answers.items():
        for place, chosen in (("near", ~far), ("far", far)):
            found[name, place].append((probability[chosen], truth[chosen]))

fig, axes = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained", sharey=True)
for ax, place in zip(axes, ("near", "far")):
    ax.plot([0, 1], [0, 1], color="gray", linestyle=":")
    for name, color, marker in (("outputs alone", "#D55E00", "o"), ("predict_proba", "#0072B2", "^")):
        probability, truth = map(np.concatenate, zip(*found[name, place]))
        loss = -np.log(np.where(truth, probability, 1.0 - probability)).mean()
        label = f"{name}, log-loss {loss:.2f}"
        ax.plot(*reliability(probability, truth), color=color, marker=marker, label=label)
    ax.set(title=f"{place}: {len(truth)} rows", xlabel="probability")
    ax.legend(loc="upper left")
axes[0].set_ylabel("share of rows that belong to the class")
plt.show()

# %%
# **Labels that are noise.** For few rows some kernel and penalty always seem to predict something. How much of the
# evidence counts is decided by how much likelihood the left-out rows gain by it, and ``nested_score()`` is the
# score of rows predicted by models chosen without them. Twenty draws of 60 rows whose labels are coin tosses:

rng = np.random.default_rng(0)
best, nested, surest = [], [], []
for _ in range(20):
    rows, coins = rng.normal(size=(60, 2)), rng.integers(2, size=60)
    tossed = KernelFisherClassifier(random_state=0).fit(rows, coins)
    best.append(tossed.loo_score_)
    nested.append(tossed.nested_score())
    surest.append(tossed.predict_proba(rng.normal(size=(500, 2))).max(axis=1).mean())

fig, (left, right) = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
bins = np.linspace(0.2, 0.9, 15)
left.hist(best, bins, color="#D55E00", alpha=0.6, label=f"loo_score_, mean {np.mean(best):.2f}")
left.hist(nested, bins, color="#0072B2", alpha=0.6, label=f"nested_score(), mean {np.mean(nested):.2f}")
left.axvline(0.5, color="black", linestyle="--", label="accuracy of any rule on new rows")
left.set(xlabel="accuracy", ylabel="draws")
left.set_ylim(0, 13)
left.legend()
right.hist(surest, np.linspace(0.5, 1.0, 21), color="#0072B2")
right.set(xlabel="mean of the largest probability of new rows", ylabel="draws")
plt.show()
