"""
The discriminant projection
===========================

Rows along their discriminant directions: one for two classes, k - 1 for k classes.

``transform`` maps a row to its discriminant variates, and ``DiscriminantDisplay`` draws them, here for rows
that were not used in training. On the left, ringnorm: a small ball of class -1 inside a wide cloud of class
+1, in 20 dimensions. One number separates them. The densities cross near the threshold, where both classes
are equally probable. On the right, ten kinds of scanned digits along the first two of nine variates.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from mercer import KernelFisherClassifier
from mercer.datasets import make_ringnorm
from mercer.plots import DiscriminantDisplay

X, y = make_ringnorm(3000, random_state=0)
rings = KernelFisherClassifier().fit(X[:300], y[:300])

digits, label = load_digits(return_X_y=True)
train, test, label_train, label_test = train_test_split(digits, label, train_size=0.4, random_state=0)
scans = KernelFisherClassifier().fit(train, label_train)
print(f"accuracy on digits: leave-one-out {scans.loo_score_:.3f}, new {scans.score(test, label_test):.3f}")

# %%
# The means of the classes are marked, each with its name beside it.

fig, (left, right) = plt.subplots(1, 2, figsize=(10, 4.8), layout="constrained")
DiscriminantDisplay.from_estimator(rings, X[300:], y[300:], ax=left)
DiscriminantDisplay.from_estimator(scans, test, label_test, ax=right)
plt.show()
