"""
The leave-one-out map
=====================

What ``fit`` compared: the leave-one-out criterion of 15 x 35 pairs of kernel width and penalty.

One decomposition gives the exact leave-one-out outputs of a kernel for every penalty alpha. Fifteen widths of the
kernel make a map of 15 x 35 models, drawn from a single call of ``fit``.

There are 240 rows, and all of them are centers. With more rows the map has fewer columns: it shows the first
comparison of kernels, by fits with 240 random centers and 12 penalties for each width. The search then continues
near its minimum, and alpha is chosen on all rows.

The valley shows a trade-off: a wider kernel (smaller gamma) with a smaller penalty does almost as well, up to a
point.
"""

import matplotlib.pyplot as plt

from mercer import KernelFisherClassifier
from mercer.datasets import make_banana
from mercer.kernels import RBF
from mercer.plots import LooPathDisplay

X, y = make_banana(240, random_state=0)
model = KernelFisherClassifier("rbf").fit(X, y)
narrow = KernelFisherClassifier(RBF(gamma=2.0)).fit(X, y)

# %%
# With a given kernel only alpha is chosen, and the map is a curve over alpha.

fig, (left, right) = plt.subplots(1, 2, figsize=(10, 4.8), layout="constrained")
LooPathDisplay.from_estimator(model, ax=left)
LooPathDisplay.from_estimator(narrow, ax=right)
plt.show()
