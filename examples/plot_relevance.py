"""
Which features matter
=====================

A Gaussian kernel sees all features alike, unless it learns which of them matter.

The rows have fifty features; the class depends on three of them only.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer import KernelFisherClassifier
from mercer.datasets import make_clusters
from mercer.plots import RelevanceDisplay

X, y = make_clusters(2600, n_clusters=6, n_features=50, n_informative=3, separation=3.0, random_state=1)
X, y, new, truth = X[:600], y[:600], X[600:], y[600:]
models = {
    "all features alike": KernelFisherClassifier(random_state=0),
    'relevance="diagonal"': KernelFisherClassifier(relevance="diagonal", random_state=0),
}
errors = {name: np.mean(model.fit(X, y).predict(new) != truth) for name, model in models.items()}
model = models['relevance="diagonal"']
print(model.report_)

# %%
# On the left, what was learned: shares of the features in the squared derivatives of the fit, after those of noise
# are subtracted. The gammas of the kernel are proportional to them. On the right, errors on new rows beside what
# leave-one-out promised: each row is predicted under relevances that were learned without it.
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.6), layout="constrained", width_ratios=[3, 2])
RelevanceDisplay.from_estimator(model, most=8, ax=left)
left.set(ylabel="feature (0, 1 and 2 matter)")
place = np.arange(2)
right.bar(place - 0.2, [100 * errors[name] for name in models], width=0.4, color="C0", label="new rows")
promised = [100 * (1 - model.loo_score_) for model in models.values()]
right.bar(place + 0.2, promised, width=0.4, color="C1", label="leave-one-out")
right.set(xticks=place, xticklabels=models, ylabel="error in %")
right.legend()
