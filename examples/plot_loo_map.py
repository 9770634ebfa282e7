"""
The leave-one-out map
=====================

What ``fit`` compared first: the leave-one-out criterion of 15 x 12 pairs of kernel width and penalty.

For each of fifteen widths of the kernel, one small decomposition gives the exact leave-one-out outputs of fits
with 240 random centers, for every penalty alpha. They make a map of 15 x 12 models, drawn from a single call of
``fit``. The model is then fitted to all rows with the best width, and alpha chosen in finer steps.

The valley shows a trade-off: a wider kernel (smaller gamma) with a smaller penalty does almost as well, up to a
point.
"""

import matplotlib.pyplot as plt

from mercer import KernelFisherClassifier
from mercer.datasets import make_banana
from mercer.kernels import RBF
from mercer.plots import LooPathDisplay

X, y = make_banana(300, random_state=0)
model = KernelFisherClassifier(random_state=0).fit(X, y)
narrow = KernelFisherClassifier(RBF(gamma=2.0)).fit(X, y)

# %%
# With a given kernel only alpha is chosen: a curve over 35 values, by leave-one-out of fits to all rows.

fig, (left, right) = plt.subplots(1, 2, figsize=(10, 4.8), layout="constrained")
LooPathDisplay.from_estimator(model, ax=left)
LooPathDisplay.from_estimator(narrow, ax=right)
plt.show()
