"""
Intervals for predictions
=========================

Two measures of how far a new observation may lie from its prediction.

``predict_std`` of ``KernelRidgeRegressor`` is the standard deviation under a Gaussian process with the same
kernel: it grows where there are no rows. ``predict_interval`` is the jackknife+ of Barber, Candès, Ramdas and
Tibshirani (2021): it assumes nothing about the distribution of the noise, only that rows are exchangeable.

The rows are a noisy sinc function, without those between 2 and 5.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer import KernelRidgeRegressor
from mercer.datasets import make_sinc

X, y = make_sinc(120, random_state=0)
seen = (X[:, 0] < 2) | (X[:, 0] > 5)
model = KernelRidgeRegressor().fit(X[seen], y[seen])

grid = np.linspace(-11, 11, 400)[:, None]
mean, std = model.predict(grid), model.predict_std(grid)
low, high = model.predict_interval(grid, coverage=0.9).T
half = 1.645 * std

fig, ax = plt.subplots(figsize=(9, 5), layout="constrained")
x = grid[:, 0]
ax.fill_between(x, low, high, color="#56B4E9", alpha=0.4, lw=0, label="90 % interval (jackknife+)")
ax.plot(x, mean - half, color="#D55E00", ls="--", lw=1, label="mean ± 1.645 std")
ax.plot(x, mean + half, color="#D55E00", ls="--", lw=1)
ax.plot(x, mean, color="#0072B2", label="prediction")
ax.plot(x, np.sinc(x / np.pi), color="black", lw=1, ls=":", label="sin(x)/x")
ax.scatter(X[seen], y[seen], s=12, color="black", label="rows")
ax.axvspan(2, 5, color="0.93", zorder=-1)
ax.text(3.5, ax.get_ylim()[0] + 0.05, "no rows here", ha="center")
ax.set(xlabel="x", ylabel="y")
ax.legend(ncols=2)
plt.show()

# %%
# The share of new observations inside the interval, where there were training rows:

X_new, y_new = make_sinc(5000, random_state=1)
seen = (X_new[:, 0] < 2) | (X_new[:, 0] > 5)
low, high = model.predict_interval(X_new[seen], coverage=0.9).T
print(f"covered: {np.mean((low <= y_new[seen]) & (y_new[seen] <= high)):.3f}")
