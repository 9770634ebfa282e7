"""
A rotating stream
=================

A model that learns row by row with forgetting tracks moving classes (concept drift).

Two crescents make one full turn over 20,000 rows. :class:`~mercer.OnlineFisherClassifier` learns them in blocks of
200 with at most 60 centers, once with equal weight for all rows and once with ``decay=0.997``, which remembers
about the last 300. Each row is predicted before it is learned; ``recent_error_`` is the error rate on the last 500
rows.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.inspection import DecisionBoundaryDisplay

from mercer import OnlineFisherClassifier
from mercer.datasets import make_banana

n, block = 20_000, 200
X, y = make_banana(n, random_state=0)
angle = 2 * np.pi * np.arange(n) / n
cos, sin = np.cos(angle), np.sin(angle)
X = np.column_stack([cos * X[:, 0] - sin * X[:, 1], sin * X[:, 0] + cos * X[:, 1]])

models = {
    "remembers all rows": OnlineFisherClassifier(max_centers=60, window=500),
    "decay=0.997": OnlineFisherClassifier(max_centers=60, window=500, decay=0.997),
}
colors = ["#D55E00", "#0072B2"]
quarters, corners = [n // 4, n // 2, 3 * n // 4], np.array([[-3.5, -3.5], [3.5, 3.5]])

fig, axes = plt.subplot_mosaic(
    [["errors"] * 3, [0, 1, 2]], figsize=(9, 6.5), layout="constrained", height_ratios=[1, 1.2]
)
for color, (name, model) in zip(colors, models.items()):
    ends, errors = range(block, n + 1, block), []
    for end in ends:
        rows = slice(end - block, end)
        model.partial_fit(X[rows], y[rows], classes=[-1, 1])
        errors.append(model.recent_error_)
        if model.decay < 1 and end in quarters:
            ax = axes[quarters.index(end)]
            field = {"response_method": "predict_proba", "plot_method": "pcolormesh", "cmap": "RdBu", "alpha": 0.7}
            DecisionBoundaryDisplay.from_estimator(model, corners, ax=ax, eps=0.0, vmin=0, vmax=1, **field)
            ax.scatter(*X[rows].T, c=y[rows], cmap="RdBu", edgecolors="k", s=14, linewidths=0.3)
            ax.plot(*model.X_fit_.T, "k.", markersize=3)
            ax.set(
                title=f"after {end:,} rows",
                xticks=[],
                yticks=[],
                aspect="equal",
                xlim=(-3.5, 3.5),
                ylim=(-3.5, 3.5),
            )
    label = f"{name}: {100 * model.prequential_error_:.1f} % of all rows wrong"
    axes["errors"].plot(ends, errors, color=color, label=label)
axes["errors"].set(xlabel="rows", ylabel="error of the last 500 rows", ylim=(0, None), xlim=(0, n))
axes["errors"].legend()
plt.show()

# %%
# The lower panels show the model with forgetting after a quarter, half and three quarters of the turn: its
# probabilities, the last 200 rows, and its centers as dots. Every 256 rows, centers that are no longer needed are
# replaced by new rows.
