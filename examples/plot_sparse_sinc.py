"""
Noisy sinc with few centers
===========================

Three rules for selecting the centers of a regression, on fifty noisy values of sin(x)/x.

The next center is the one with the largest decrease of the objective, the row with the largest residual, or the
choice of orthogonal least squares, whose penalty is on the orthogonal coefficients.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.svm import SVR

from mercer import KernelMachineRegressor, SparseKernelRegressor
from mercer.datasets import make_sinc
from mercer.kernels import RBF

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

# %%
# Sparse KFD for regression: squared errors with a penalty on the sum of absolute coefficients, which makes most of
# them zero. Left, 100 values of the function itself, right, with noise; widths and penalties of Mika (2002), Fig.
# 5.5. In brackets, what support vector regression needs with the same kernel, the same factor of the errors and a
# tolerance of half the noise, 0.01 without noise.

fig, axes = plt.subplots(1, 2, figsize=(10, 4.2), sharey=True, layout="constrained")
rows = np.linspace(-10.0, 10.0, 100)[:, None]
for ax, noise, width, alpha in ((axes[0], 0.0, 4.0, 0.01), (axes[1], 0.2, 3.0, 0.1)):
    values = np.sinc(rows[:, 0] / np.pi) + noise * np.random.default_rng(0).normal(size=100)
    model = KernelMachineRegressor(RBF(gamma=1.0 / width), loss="squared", penalty="l1", alpha=alpha)
    f = model.fit(rows, values).predict(x[:, None])
    svr = SVR(gamma=1.0 / width, C=1.0 / alpha, epsilon=max(noise, 0.02) / 2).fit(rows, values)
    ax.plot(x, clean, color="black", ls=":", lw=1, label="sin(x)/x")
    ax.plot(x, f, color="#0072B2", label="fit")
    ax.scatter(rows, values, s=8, color="black")
    ax.scatter(
        model.X_fit_, values[model.support_], s=70, facecolors="none", edgecolors="#D55E00", label="centers"
    )
    rmse = np.sqrt(np.mean((f - clean) ** 2))
    words = f"noise {noise}: {len(model.support_)} centers, RMSE {rmse:.3f}"
    ax.set(title=f"{words}\n({len(svr.support_)} support vectors)", xlabel="x")
axes[0].legend()
plt.show()
