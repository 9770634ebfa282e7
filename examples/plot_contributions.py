"""
Which columns matter, and how
=============================

Importance of all columns, the mean prediction over values of two of them, and what each contributes for one row.

The progression of diabetes in 442 patients, one year after ten measurements: :class:`~mercer.KernelRidgeRegressor`
is fitted to the data frame, and asked three questions. *Which* columns matter, for rows that are held out
(permutation importance)? *How* does the prediction change with one of them (partial dependence)? And *why* is
the prediction for this patient above that for another one (Shapley values, which are exact for this kernel)?
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.inspection import PartialDependenceDisplay

from mercer import KernelRidgeRegressor
from mercer.plots import ContributionsDisplay

patients, progression = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
train = np.arange(len(patients)) % 4 > 0
new = patients[~train]

model = KernelRidgeRegressor(columns={"sex": "category"}).fit(patients[train], progression[train])
found = model.importances()
print(model.kernel_)
print(f"R² of new rows: {model.score(new, progression[~train]):.3f}")
print(found)

# %%
# On the left, how much worse patients are predicted by fits without them if a column comes from another patient,
# with two standard errors. Beside it, predictions for new patients if the column had other values: each thin line
# is one of them, the dashed one the mean.

first = [found.names[j] for j in np.argsort(-found.mean)[:2]]
fig, axes = plt.subplots(1, 3, figsize=(10, 3.6), layout="constrained")
order = np.argsort(found.mean)
axes[0].barh(np.array(found.names)[order], found.mean[order], xerr=2.0 * found.error[order], capsize=3)
axes[0].set(xlabel="growth of the squared error")
PartialDependenceDisplay.from_estimator(
    model, new, first, kind="both", subsample=40, random_state=0, grid_resolution=30, ax=axes[1:]
)

# %%
# From the mean of a hundred patients to the prediction for one of them: the new patients with the highest and the
# lowest prediction. Bars sum to the difference exactly.

predicted = model.predict(new)
fig, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
for ax, row in zip(axes, (predicted.argmax(), predicted.argmin())):
    ContributionsDisplay.from_estimator(model, new, row=row, most=6, ax=ax)
contributions = model.contributions(new)
print(f"Largest difference: {np.abs(contributions.outputs - predicted).max():.1e}")
print(contributions)
