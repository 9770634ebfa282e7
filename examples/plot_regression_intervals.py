"""
Intervals for predictions
=========================

Where a new observation is expected: wide intervals where there are no rows, and where the noise is large.

``predict_interval`` of ``KernelRidgeRegressor`` is the jackknife+ of Barber, Candès, Ramdas and Tibshirani (2021)
with a local scale: it assumes no distribution of the noise, only that rows are exchangeable.

On the left, rows of a noisy sinc function, of which those between 1 and 6 are missing: intervals are wide where
there are no rows. On the right, noise that grows with x: intervals are wide where the residuals of neighbors are
large. Dashed lines have the width that covers nine tenths of all left-out rows, the same everywhere.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer import KernelRidgeRegressor
from mercer.datasets import make_sinc

X, y = make_sinc(120, random_state=0)
seen = (X[:, 0] < 1) | (X[:, 0] > 6)
gap = KernelRidgeRegressor(random_state=0).fit(X[seen], y[seen])

rng = np.random.default_rng(0)
Z = rng.uniform(0, 3, size=(200, 1))
t = np.sin(2 * Z[:, 0]) + (0.05 + 0.25 * Z[:, 0]) * rng.normal(size=200)
fan = KernelRidgeRegressor(random_state=0).fit(Z, t)


def show(ax, model, X, y, grid):
    mean = model.predict(grid[:, None])
    low, high = model.predict_interval(grid[:, None], coverage=0.9).T
    half = np.quantile(np.abs(y - model.loo_prediction_), 0.9)
    ax.fill_between(grid, low, high, color="#56B4E9", alpha=0.4, lw=0, label="90 % interval")
    ax.plot(grid, mean - half, color="#D55E00", ls="--", lw=1, label="same width everywhere")
    ax.plot(grid, mean + half, color="#D55E00", ls="--", lw=1)
    ax.plot(grid, mean, color="#0072B2", label="prediction")
    ax.scatter(X, y, s=10, color="black", label="rows")
    ax.set(xlabel="x", ylabel="y")


fig, axes = plt.subplots(1, 2, figsize=(11, 4.5), layout="constrained")
show(axes[0], gap, X[seen], y[seen], np.linspace(-12, 12, 400))
show(axes[1], fan, Z, t, np.linspace(0, 3, 400))
axes[0].set_title("no rows between 1 and 6, and beyond 10")
axes[1].set_title("noise that grows with x")
axes[1].legend(loc="lower left")
plt.show()

# %%
# The share of new observations inside the interval, in each third of the line of the second problem, and with the
# same width everywhere:

Z_new = rng.uniform(0, 3, size=(6000, 1))
t_new = np.sin(2 * Z_new[:, 0]) + (0.05 + 0.25 * Z_new[:, 0]) * rng.normal(size=6000)
low, high = fan.predict_interval(Z_new, coverage=0.9).T
half = np.quantile(np.abs(t - fan.loo_prediction_), 0.9)
for third in range(3):
    part = (Z_new[:, 0] >= third) & (Z_new[:, 0] < third + 1)
    local = np.mean((low <= t_new)[part] & (t_new <= high)[part])
    same = np.mean(np.abs(t_new - fan.predict(Z_new))[part] <= half)
    print(f"x from {third} to {third + 1}: covered {local:.2f}, with the same width {same:.2f}")
