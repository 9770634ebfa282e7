"""
One program, many machines
==========================

Support vector machine, kernel Fisher discriminant and sparse KFD differ in loss and penalty only.

All of them minimize a loss of the outputs plus a penalty on the function. A loss for each side of a margin ignores
rows that are far on the right side; the squared loss draws all outputs of a class to one value. The penalty on the
sum of absolute coefficients makes most of them zero.
"""

# sphinx_gallery_thumbnail_number = 3

import matplotlib.pyplot as plt
import numpy as np

from mercer import KernelFisherClassifier, KernelMachineClassifier
from mercer.datasets import make_waveform

X, y = make_waveform(200, random_state=0)
X_new, y_new = make_waveform(3000, random_state=1)
methods = {
    "support vector machine": {"loss": "hinge"},
    "kernel Fisher discriminant": {"loss": "squared"},
    "sparse KFD": {"loss": "squared", "penalty": "l1"},
    "linear sparse KFD": {"loss": "absolute", "penalty": "l1"},
}
# The width that leave-one-out chooses for the squared loss is that of all of them.
kernel = KernelFisherClassifier(random_state=0).fit(X, y).kernel_
models = {name: KernelMachineClassifier(kernel, **how).fit(X, y) for name, how in methods.items()}

# %%
# Log-odds of training rows, of the same rows when they are left out, and of new rows. The hinge loss puts training
# rows on the margin; the squared and the absolute loss draw a class to one value. Left out, rows are like new
# ones.

fig, axes = plt.subplots(2, 2, figsize=(10, 6), layout="constrained", sharex=True)
bins = np.linspace(-8.0, 6.0, 57)
for ax, (name, model) in zip(axes.flat, models.items()):
    trained, new = model.decision_function(X), model.decision_function(X_new)
    for label, color in ((model.classes_[0], "#0072B2"), (model.classes_[1], "#D55E00")):
        ax.hist(trained[y == label], bins, density=True, color=color, alpha=0.35)
        ax.hist(model.loo_decision_[y == label], bins, density=True, color=color, histtype="step", lw=1.5)
        ax.hist(new[y_new == label], bins, density=True, color=color, histtype="step", lw=1.5, ls=":")
    error = 100 * np.mean(model.predict(X_new) != y_new)
    ax.set(title=f"{name}: {len(model.support_)} centers, error {error:.1f} %", yticks=[])
axes[0, 0].plot([], [], color="0.6", lw=6, alpha=0.6, label="training rows")
axes[0, 0].plot([], [], color="0.3", lw=1.5, label="left out")
axes[0, 0].plot([], [], color="0.3", lw=1.5, ls=":", label="new rows")
axes[0, 0].legend()
for ax in axes[1]:
    ax.set_xlabel("log-odds")
plt.show()

# %%
# The number of centers along alpha, and the left-out criterion by which alpha is chosen: of fits that are not
# worse than the best by half a standard error, the sparsest.

fig, ax = plt.subplots(figsize=(7, 4.5), layout="constrained")
sparse = models["sparse KFD"]
alphas = sparse.tuning_paths_[-1].alphas[0]
centers = [
    len(KernelMachineClassifier(kernel, loss="squared", penalty="l1", alpha=alpha).fit(X, y).support_)
    for alpha in alphas
]
ax.plot(alphas, centers, "o-", color="#0072B2", label="centers")
ax.set(xscale="log", xlabel="alpha", ylabel="centers")
other = ax.twinx()
other.plot(alphas, sparse.tuning_paths_[-1].scores[0], "s-", color="#D55E00", label="left-out Brier score")
other.set(ylabel="left-out Brier score")
ax.axvline(sparse.alpha_, color="#009E73", lw=1, label="chosen")
fig.legend(loc="upper center", bbox_to_anchor=(0.45, 0.97))
plt.show()

# %%
# Wrong labels: a part of the labels is flipped. A label is never far from an output of -1 to 1, and the smoothness
# that leave-one-out chooses protects all losses alike: robust ones are for targets that are far away.

shares = [0.0, 0.1, 0.2, 0.3]
losses = {"squared": "#0072B2", "huber": "#009E73", "absolute": "#CC79A7", "logistic": "#D55E00"}
errors = {loss: [] for loss in losses}
for share in shares:
    found = {loss: [] for loss in losses}
    for draw in range(2):
        rows, labels = make_waveform(80, random_state=10 + draw)
        flipped = np.random.default_rng(draw).random(80) < share
        labels = np.where(flipped, labels.max() + labels.min() - labels, labels)
        for loss in losses:
            model = KernelMachineClassifier(kernel, loss=loss).fit(rows, labels)
            found[loss].append(100 * np.mean(model.predict(X_new) != y_new))
    for loss in losses:
        errors[loss].append(np.mean(found[loss]))

fig, ax = plt.subplots(figsize=(7, 4.5), layout="constrained")
for loss, color in losses.items():
    ax.plot(100 * np.array(shares), errors[loss], "o-", color=color, label=loss)
ax.set(xlabel="wrong labels in %", ylabel="error on new rows in %")
ax.legend(title="loss")
plt.show()
