"""
Boosting with soft margins
==========================

LPBoost maximizes a margin that a share of the rows may miss.

AdaBoost raises the weight of rows on the wrong side without bound. In LPBoost the share `nu` of the rows may miss
the margin: rows with wrong labels have a bounded weight.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import AdaBoostClassifier
from sklearn.tree import DecisionTreeClassifier

from mercer import LPBoostClassifier
from mercer.datasets import make_waveform

# %%
# Waveforms, of which every tenth training label is wrong. The weak learners are small trees.
X, y = make_waveform(300, random_state=0)
wrong = np.random.default_rng(0).random(300) < 0.1
y = np.where(wrong, y.max() + y.min() - y, y)
new, truth = make_waveform(3000, random_state=1)
tree = DecisionTreeClassifier(max_depth=2)

boosted = LPBoostClassifier(tree, nu=0.4, random_state=0).fit(X, y)
ada = AdaBoostClassifier(tree, n_estimators=300, random_state=0).fit(X, y)

# %%
# Margins :math:`y f(x)` of the training rows, for f scaled so that the weights of the learners sum to one: LPBoost
# lets the rows with wrong labels go, and keeps a larger margin for the others.
sign = np.where(y == boosted.classes_[1], 1.0, -1.0)
margins = {
    f"LPBoost, {len(boosted.ensembles_[0].learners)} trees": sign * boosted.decision_function(X),
    f"AdaBoost, {len(ada.estimators_)} trees": sign
    * sum(
        weight * np.where(tree.predict(X) == boosted.classes_[1], 1.0, -1.0)
        for weight, tree in zip(ada.estimator_weights_, ada.estimators_)
    )
    / ada.estimator_weights_.sum(),
}
shares = (0.1, 0.2, 0.3, 0.4, 0.5)
errors = [
    100.0 * (1.0 - LPBoostClassifier(tree, nu=nu, random_state=0).fit(X, y).score(new, truth)) for nu in shares
]

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
for (name, values), color in zip(margins.items(), ("C0", "C1")):
    left.plot(np.sort(values[~wrong]), np.linspace(0, 1, (~wrong).sum()), color, label=f"{name}: right labels")
    left.plot(np.sort(values[wrong]), np.linspace(0, 1, wrong.sum()), color, ls=":", label="wrong labels")
left.axvline(0.0, color="0.8", lw=1)
left.set(xlabel="margin of training rows", ylabel="share of rows below", title="Margins")
left.legend(fontsize=8, loc="lower right")
right.plot(shares, errors, "C0o-", label="LPBoost")
right.axhline(100.0 * (1.0 - ada.score(new, truth)), color="C1", label="AdaBoost, 300 trees")
right.set(xlabel="nu", ylabel="error on new rows, %", title="New rows", ylim=(0, None))
right.legend()
plt.show()
