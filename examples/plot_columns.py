"""
A kernel for each column
========================

Each part of a sum of kernels sees its own columns of a data frame, and shows what they contribute.

Wages of 500 people depend on age and hours, which are numbers, and on job and town, which are names.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from mercer import KernelRidgeRegressor
from mercer.gram import combine
from mercer.kernels import RBF, Nominal, OnColumns, Sum

JOBS = {"cook": -3.0, "clerk": -1.0, "smith": 0.5, "nurse": 1.0, "pilot": 6.0}
TOWNS = {"Ash": -0.5, "Birch": 0.0, "Cedar": 1.5}

rng = np.random.default_rng(0)
frame = pd.DataFrame(
    {
        "age": rng.integers(18, 66, 500),
        "hours": rng.integers(20, 51, 500),
        "job": rng.choice(list(JOBS), 500),
        "town": rng.choice(list(TOWNS), 500),
    }
)
truth = {
    "age": 4 * np.sin((frame["age"] - 18) / 48 * np.pi),
    "hours": 0.15 * (frame["hours"] - 36),
    "job": frame["job"].map(JOBS),
    "town": frame["town"].map(TOWNS),
}
wage = 15 + sum(truth.values()) + rng.normal(size=500)

# %%
# Three lines: a kernel for each column, their sum, and the fit. Widths and alpha are chosen by leave-one-out, and
# numbers are divided by their standard deviation, so that their units do not matter.
numbers = [(name, OnColumns(RBF(), [name])) for name in ("age", "hours")]
names = [(name, OnColumns(Nominal(gamma=None), [name])) for name in ("job", "town")]
model = KernelRidgeRegressor(Sum([*numbers, *names]), random_state=0).fit(frame, wage)
print(model.report_)

# %%
# The fitted function is a sum over the parts of the kernel, f(x) = f_age(x) + f_hours(x) + f_job(x) + f_town(x)
# + b, so that each part shows what its columns contribute. A part is known up to a constant, which the others can
# take: shown are differences from the mean. Lines and bars are the fit, crosses what the wages were made from.
figure, axes = plt.subplots(1, 4, figsize=(11, 3.2), sharey=True, layout="constrained", width_ratios=[3, 3, 3, 2])
for axis, (name, part) in zip(axes, model.kernel_.parts):
    share = combine(part, frame, model.X_fit_, model.dual_coef_[:, None]).ravel()
    found = pd.DataFrame({"fit": share - share.mean(), "truth": truth[name] - truth[name].mean()})
    found = found.groupby(frame[name]).mean().sort_values(name if name in ("age", "hours") else "truth")
    draw = axis.plot if name in ("age", "hours") else axis.bar
    draw(found.index, found["fit"], color="C0", alpha=0.6, label="fit")
    axis.plot(found.index, found["truth"], "x", color="k", markersize=4, label="truth")
    axis.axhline(0.0, color="0.7", linewidth=0.8, zorder=0)
    axis.set(xlabel=name)
axes[0].set(ylabel="contribution to the wage")
axes[0].legend()
