"""
Noisy sinc with few centers
===========================

Three rules for selecting the centers of a regression, on fifty noisy values of sin(x)/x.

The next center is the one with the largest decrease of the objective, the row with the largest residual, or the
choice of orthogonal least squares, whose penalty is re-estimated at every step.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer import SparseKernelRegressor
from mercer.datasets import make_sinc

X, y = make_sinc(50, random_state=3)
x = np.linspace(-10, 10, 400)
clean = np.sinc(x / np.pi)

fig, axes = plt.subplots(3, 1, figsize=(8, 9.5), sharex=True, sharey=True, layout="constrained")
for ax, selection in zip(axes, ("gain", "residual", "orthogonal")):
    model = SparseKernelRegressor(selection=selection).fit(X, y)
    f = model.predict(x[:, None])
    ax.plot(x, clean, color="black", ls=":", lw=1, label="sin(x)/x")
    ax.plot(x, f, color="#0072B2", label="fit")
    ax.scatter(X, y, s=10, color="black")
    ax.scatter(model.X_fit_, y[model.support_], s=70, facecolors="none", edgecolors="#D55E00", label="centers")
    rmse = np.sqrt(np.mean((f - clean) ** 2))
    ax.set(title=f'"{selection}": {len(model.support_)} centers, RMSE {rmse:.3f}')
axes[0].legend()
axes[2].set_xlabel("x")
plt.show()
