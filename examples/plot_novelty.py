"""
Novel rows
==========

The smallest ball around rows, with a threshold that holds for new ones.

A one-class support vector machine bounds the share of training rows that are outside. Of new rows, more are. Rows
that are left out show how many more.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.svm import OneClassSVM

from mercer import KernelNoveltyDetector
from mercer.kernels import RBF


def clusters(n, seed):
    rng = np.random.default_rng(seed)
    where = rng.random(n) < 0.5
    return np.where(where[:, None], (-2.0, 0.0), (2.0, 1.0)) + rng.normal(size=(n, 2)) * (0.6, 0.9)


X, new = clusters(200, 0), clusters(20_000, 1)
kernel = RBF(gamma=0.5)
model = KernelNoveltyDetector(kernel, rate=0.05).fit(X)

# %%
# On the left the contour of the ball and the rows that define it. On the right the share of 20,000 new rows that
# is called novel, means of ten draws of 100 rows: with the threshold of the program it is larger than asked for.
rates = np.array([0.01, 0.02, 0.05, 0.1, 0.2])
found = np.zeros((10, len(rates), 2))
for draw in range(10):
    rows = clusters(100, 10 + draw)
    for j, rate in enumerate(rates):
        for k, one in enumerate((KernelNoveltyDetector(kernel, rate=rate), OneClassSVM(gamma=0.5, nu=rate))):
            found[draw, j, k] = np.mean(one.fit(rows).predict(new) < 0)

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
x, y = np.meshgrid(np.linspace(-5, 5, 120), np.linspace(-4, 5, 120))
values = model.decision_function(np.column_stack([x.ravel(), y.ravel()])).reshape(x.shape)
left.contourf(x, y, values, levels=[0.0, np.inf], colors=["C0"], alpha=0.15)
left.contour(x, y, values, levels=[0.0], colors="C0")
left.plot(*X.T, ".", color="0.5", ms=4, label="training rows")
left.plot(*X[model.support_].T, "o", mfc="none", color="C3", ms=7, label="rows that define the ball")
left.set(title="Usual rows are inside", xlabel="first feature", ylabel="second feature")
left.legend(loc="lower left", fontsize=8)
right.plot([0, 0.22], [0, 0.22], color="0.8")
for k, name in enumerate(("KernelNoveltyDetector, rate", "OneClassSVM, nu")):
    right.plot(rates, found[:, :, k].mean(axis=0), f"C{k}o-", label=name)
right.set(title="False alarms", xlabel="share asked for", ylabel="share of new rows called novel")
right.legend(loc="upper left")
plt.show()
