"""
Components that ignore a nuisance
=================================

Digits that are turned and shifted: principal components follow the movement, oriented components follow the digit.

Principal components are large where rows vary most, whatever makes them vary. Oriented components are told what
does not matter, here that a digit may be turned by 15 degrees or shifted by half a pixel. They maximize the
variance over digits relative to what these transformations change (Mika 2002, Fig. 5.4).
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy import ndimage
from sklearn.datasets import load_digits

from mercer import KernelPCA, OrientedKernelPCA

X, y = load_digits(return_X_y=True)
X /= 16.0
train, rest = slice(0, 1000), slice(1000, None)


class Turn:
    def __init__(self, angle):
        self.angle = angle

    def __call__(self, X):
        images = X.reshape(-1, 8, 8)
        return ndimage.rotate(images, self.angle, axes=(1, 2), reshape=False, order=1).reshape(X.shape)


class Shift:
    def __init__(self, columns):
        self.columns = columns

    def __call__(self, X):
        return ndimage.shift(X.reshape(-1, 8, 8), (0, 0, self.columns), order=1).reshape(X.shape)


moves = [Turn(-15), Turn(15), Shift(-0.5), Shift(0.5)]

# %%
# Digits that were not in the fit, each connected with its four copies: turned to the left and to the right, and
# shifted to the left and to the right. The titles show the mean square of what one movement changes in a score, in
# % of the variance of that score over all digits: of the first component and of the second.
models = {"kernel PCA": KernelPCA(2), "oriented kernel PCA": OrientedKernelPCA(2, noise=moves)}
shown = np.concatenate([np.flatnonzero(y[rest] == digit)[:12] for digit in range(5)])
figure, axes = plt.subplots(1, 2, figsize=(11, 5), layout="constrained")
for ax, (name, model) in zip(axes, models.items()):
    scores = model.fit(X[train]).transform(X[rest])
    moved = np.array([model.transform(move(X[rest])) for move in moves])
    first, second = 100.0 * np.square(moved - scores).mean(axis=(0, 1)) / scores.var(axis=0)
    for copy in moved:
        ends = np.stack([scores[shown], copy[shown]])
        for (start, stop), digit in zip(ends.transpose(1, 0, 2), y[rest][shown]):
            ax.plot(*zip(start, stop), color=plt.cm.tab10(digit), lw=0.9, alpha=0.8)
    points = ax.scatter(*scores[shown].T, c=y[rest][shown], cmap="tab10", vmin=0, vmax=9, s=22, zorder=3)
    ax.set(xlabel="first component", ylabel="second component")
    ax.set_title(f"{name}\nmovements: {first:.0f} and {second:.0f} % of the variance")
figure.legend(*points.legend_elements(), title="digit", loc="outside right center")
plt.show()

# %%
# The penalty mu weighs both aims. As it grows, the components become those of kernel PCA. As it shrinks, they
# avoid the movements of the digits in the fit more than those of other digits. With the default, 0.001 of the
# noise variance, the ratio of signal to noise is nearly the same for both.
shares = np.logspace(-6, 1, 15)
found = []
for mu in shares:
    model = OrientedKernelPCA(1, noise=moves, mu=mu, centers=X[train][:300]).fit(X[train])
    scores = model.transform(X[rest])
    noise = sum(np.square(model.transform(move(X[rest])) - scores).mean() for move in moves)
    found.append([model.signal_variance_[0] / model.noise_variance_[0], scores.var() / noise])
figure, ax = plt.subplots(figsize=(6, 3.6), layout="constrained")
ax.loglog(shares, found, label=["digits of the fit", "other digits"])
ax.axvline(0.001, color="gray", lw=0.8, ls="--", label="default")
ax.set(xlabel="mu, in units of the noise variance", ylabel="signal / noise of the first component")
ax.legend()
plt.show()
