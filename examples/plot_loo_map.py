"""
The leave-one-out map
=====================

What ``fit`` compared: the leave-one-out criterion of 15 x 35 pairs of kernel width and penalty.

One eigendecomposition of a kernel matrix gives the exact leave-one-out outputs for every penalty alpha.
Fifteen widths of the kernel make a map of 15 x 35 models, drawn from a single call of ``fit``.

The valley shows a trade-off: a wider kernel (smaller gamma) with a smaller penalty does almost as well, up to a
point.
"""

import matplotlib.pyplot as plt

from mercer import KernelFisherClassifier
from mercer.datasets import make_banana
from mercer.kernels import RBF
from mercer.plots import LooPathDisplay

X, y = make_banana(300, random_state=0)
model = KernelFisherClassifier().fit(X, y)
narrow = KernelFisherClassifier(RBF(gamma=2.0)).fit(X, y)

# %%
# With one kernel the map is a curve over alpha.

fig, (left, right) = plt.subplots(1, 2, figsize=(10, 4.8), layout="constrained")
LooPathDisplay.from_estimator(model, ax=left)
LooPathDisplay.from_estimator(narrow, ax=right)
plt.show()
