"""
Rows, noise and the error of a sparse fit
=========================================

How the error of a sparse regression falls with more rows, and grows with noise.

Order-recursive orthogonal least squares (OROLS) adds the row with the largest residual as the next center, and
estimates its penalty anew at every step; generalized cross-validation chooses the number of centers, leave-one-out
the width. The function is sin(x)/x, the errors are those against the function itself. Compare Andelić (2007),
Figs. 5.2 to 5.4.
"""

# sphinx_gallery_thumbnail_number = 2

import matplotlib.pyplot as plt
import numpy as np

from mercer import SparseKernelRegressor
from mercer.datasets import make_sinc

x = np.linspace(-10.0, 10.0, 500)[:, None]
clean = np.sinc(x[:, 0] / np.pi)
printed = {"selection": "residual", "penalty": "orthogonal", "alpha": "gcv"}
orols = {**printed, "stop": "gcv", "max_centers": 30, "random_state": 0}


def errors(n, noise, kernel, draws=5):
    """RMSE to the function, for several draws of n rows."""
    fits = (
        SparseKernelRegressor(kernel, **orols).fit(*make_sinc(n, noise=noise, random_state=seed))
        for seed in range(draws)
    )
    return [np.sqrt(np.mean((model.predict(x) - clean) ** 2)) for model in fits]


# %%
# One fit. Fifty rows with noise of standard deviation 0.1.

X, y = make_sinc(50, noise=0.1, random_state=0)
model = SparseKernelRegressor(**orols).fit(X, y)
f = model.predict(x)
fig, ax = plt.subplots(figsize=(8, 4), layout="constrained")
ax.plot(x, clean, color="black", ls=":", lw=1, label="sin(x)/x")
ax.plot(x, f, color="#0072B2", label="fit")
ax.scatter(X, y, s=10, color="black", label="rows")
ax.scatter(model.X_fit_, y[model.support_], s=70, facecolors="none", edgecolors="#D55E00", label="centers")
ax.set(title=f"{len(model.support_)} centers, RMSE {np.sqrt(np.mean((f - clean) ** 2)):.3f}", xlabel="x")
ax.legend()
plt.show()

# %%
# Five draws of each number of rows, and of each level of noise with 100 rows, all with the width that is chosen
# for one draw of 100 rows. Dots are draws, lines are their means. The error falls about as one over the root of
# the number of rows; it is about a third of the noise.

kernel = SparseKernelRegressor(**orols).fit(*make_sinc(100, noise=0.1, random_state=0)).kernel_
sizes, noises = [25, 50, 100, 200], [0.05, 0.1, 0.2, 0.3, 0.5]
by_size = np.array([errors(n, 0.1, kernel) for n in sizes])
by_noise = np.array([errors(100, noise, kernel) for noise in noises])
fig, (left, right) = plt.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
for ax, at, found in ((left, sizes, by_size), (right, noises, by_noise)):
    ax.plot(at, found, ".", color="#0072B2", alpha=0.35)
    ax.plot(at, found.mean(axis=1), "o-", color="#D55E00", label="mean")
    ax.set(ylabel="RMSE to sin(x)/x")
start = by_size.mean(axis=1)[1]
left.plot(sizes, start * np.sqrt(50 / np.array(sizes)), color="black", ls=":", label="one over the root of rows")
left.set(xscale="log", yscale="log", xlabel="rows, noise 0.1", xticks=sizes, xticklabels=sizes)
left.set_yticks([0.01, 0.02, 0.05, 0.1, 0.2], ["0.01", "0.02", "0.05", "0.1", "0.2"])
left.minorticks_off()
share = np.mean(by_noise / np.array(noises)[:, None])
right.plot(noises, share * np.array(noises), color="black", ls=":", label=f"{share:.2f} times the noise")
right.set(xlabel="standard deviation of the noise, 100 rows", ylim=(0, None))
left.legend()
right.legend()
plt.show()
