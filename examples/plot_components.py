"""
Components of digits and of a process
=====================================

Directions of one ratio: principal and discriminant, linear and with a kernel; and alarms of a process.

Principal components keep the variance of rows, discriminants what separates classes. Both maximize a ratio of two
quadratic forms, in the space of the rows or in that of a kernel. Below, directions found by 500 digits, and the
others along them.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from mercer import KernelFisherClassifier, KernelPCA

X, y = load_digits(return_X_y=True)
some = y < 5
X, y = X[some] / 16.0, y[some]
train, rest = slice(0, 500), slice(500, None)
models = {
    "PCA": PCA(2),
    "kernel PCA": KernelPCA(2),
    "Fisher": LinearDiscriminantAnalysis(n_components=2, solver="eigen", shrinkage="auto"),
    "kernel Fisher": KernelFisherClassifier(random_state=0),
}
figure, axes = plt.subplots(1, 4, figsize=(13, 3.6), layout="constrained")
for ax, (name, model) in zip(axes, models.items()):
    scores = model.fit(X[train], y[train]).transform(X[rest])
    points = ax.scatter(scores[:, 0], scores[:, 1], c=y[rest], cmap="tab10", vmin=0, vmax=9, s=8)
    ax.set(title=name, xticks=[], yticks=[])
axes[0].set_ylabel("second direction")
figure.supxlabel("first direction")
axes[-1].legend(*points.legend_elements(), title="digit", fontsize=8)

# %%
# A process with six sensors that follow two hidden causes. From row 150 on one sensor drifts. What the components
# leave (SPE) grows, while scores (T²) stay in their usual range. One row in a hundred of the usual process exceeds
# the limits, which come from rows that were left out.
rng = np.random.default_rng(0)
mix = rng.normal(size=(2, 6))


def process(n):
    causes = rng.normal(size=(n, 2))
    return np.tanh(causes @ mix) + 0.1 * rng.normal(size=(n, 6))


model = KernelPCA(0.9, random_state=0).fit(process(600))
new = process(300)
new[150:, 3] += np.linspace(0.0, 1.5, 150)
found, limits = model.statistics(new), model.control_limits(0.01)
figure, axes = plt.subplots(2, 1, figsize=(9, 4.5), sharex=True, layout="constrained")
for ax, values, limit, name in zip(axes, (found.t2, found.spe), (limits.t2, limits.spe), ("T²", "SPE")):
    ax.plot(values, lw=0.9, color="#0072B2")
    ax.plot(np.flatnonzero(values > limit), values[values > limit], ".", color="#D55E00")
    ax.axhline(limit, color="black", lw=0.8, ls="--")
    ax.axvline(150, color="gray", lw=0.8)
    ax.set(ylabel=name, ylim=(0.0, None))
axes[1].set_xlabel("row; from 150 on one sensor drifts")
axes[0].set_title("dashed: limits that one usual row in a hundred exceeds; orange: alarms")
plt.show()
