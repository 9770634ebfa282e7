"""
A raw table, and which columns matter
=====================================

A data frame with categories, text, dates and gaps goes into a model as it is, and shows which columns matter.

Rents of 1200 flats, as such a table comes: districts with gaps, streets, dates, a heating that is true or false,
and sizes that nobody has measured. :class:`~mercer.KernelRidgeRegressor` finds out by itself that neither the
agent nor the balcony matters, and what the size and the district do.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from mercer import KernelRidgeRegressor

rng = np.random.default_rng(0)
n = 1600
district = rng.choice(["harbor", "hill", "market", "north"], n)
flats = pd.DataFrame(
    {
        "size": rng.gamma(9.0, 8.0, n).round(),
        "district": district,
        "street": [f"{name.title()} Road {number}" for name, number in zip(district, rng.integers(1, 90, n))],
        "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 2000, n), "D"),
        "heated": rng.random(n) < 0.5,
        "agent": rng.choice(["Ames", "Berg", "Cole", "Diaz", "Ende"], n),
        "balcony": rng.gamma(2.0, 2.0, n).round(1),
    }
)
price = pd.Series(district).map({"harbor": 16.0, "hill": 13.0, "market": 12.0, "north": 9.0}).to_numpy()
years = (flats["since"] - pd.Timestamp("2020-01-01")).dt.days.to_numpy() / 365.0
rent = price * flats["size"] ** 0.85 * (1.0 + 0.04 * years) + 40.0 * flats["heated"] + 40.0 * rng.normal(size=n)
# Gaps: of the sizes one in ten, of the districts one in five.
flats.loc[rng.random(n) < 0.1, "size"] = np.nan
flats.loc[rng.random(n) < 0.2, "district"] = None

model = KernelRidgeRegressor().fit(flats[:1200], rent[:1200])
print(model.columns_)
print(f"R² of new rows: {model.score(flats[1200:], rent[1200:]):.3f}")

# %%
# On the left, how much worse rents are predicted if a column comes from another flat, by fits without the flat
# (permutation importance of held-out rows), with standard errors. On the right, the mean prediction over all new
# rows with another size, district and name of the street (partial dependence). Streets tell the district, too.

found = model.importances()
new, sizes = flats[1200:], np.arange(30.0, 131.0, 10.0)
fig, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
order = np.argsort(found.mean)
axes[0].barh(np.array(found.names)[order], found.mean[order], xerr=2.0 * found.error[order], capsize=3)
axes[0].set(xlabel="growth of the squared error, shares of the variance")
for name in ("harbor", "hill", "market", "north"):
    changed = new.assign(district=name, street=new["street"].str.replace(r"^\w+", name.title(), regex=True))
    axes[1].plot(sizes, [model.predict(changed.assign(size=size)).mean() for size in sizes], label=name)
axes[1].set(xlabel="size", ylabel="mean predicted rent")
axes[1].legend(title="district")
