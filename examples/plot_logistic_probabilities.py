"""
Probabilities by the logistic loss
==================================

A rare class whose probability is known: as the discriminant estimates it, and a second fit with the logistic loss.

Least squares fits the labels -1 and +1 alike wherever they are. Where a class is rare, its outputs are near -1,
whether one row in a hundred belongs to the class or one in ten thousand, and no curve of the outputs tells these
apart. So with the default kernel two classes have a second fit, with the logistic loss, which is taken if held-out
rows gain by it.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.special import expit

from mercer import KernelFisherClassifier


def draw(n, seed):
    """Rows, their probability of the rare class, and whether they belong to it."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    p = expit(6.0 * np.sin(X[:, 0]) + 3.0 * X[:, 1] - 5.0)
    return X, p, rng.uniform(size=n) < p


X, _, y = draw(900, 0)
X_new, p_new, _ = draw(10_000, 1)
models = {how: KernelFisherClassifier(probabilities=how).fit(X, y) for how in ("discriminant", "auto")}
for model in models.values():
    print(model.report_.probabilities or "of the discriminant: no other fit is asked for")


def log_loss(p):
    """The mean log-loss of probabilities of new rows, over all labels that they may have."""
    return -np.mean(p_new * np.log(p) + (1.0 - p_new) * np.log1p(-p))


# %%
# Each point is one of 10,000 new rows, and on the line a prediction is the probability that is known. Scales are
# those of log-odds: one in a hundred is as far from one in ten as 99 % from 90 %. The discriminant gives one in a
# hundred to all rows that hardly ever belong to the class, and 95 % to all that nearly always do.
ticks = [0.001, 0.01, 0.1, 0.5, 0.9, 0.99, 0.999]
figure, axes = plt.subplots(1, 2, figsize=(10, 5), sharex=True, sharey=True, layout="constrained")
for ax, color, (how, model) in zip(axes, ("#D55E00", "#0072B2"), models.items()):
    p = model.predict_proba(X_new)[:, 1]
    ax.plot(p_new, p, ".", color=color, ms=2, alpha=0.3, rasterized=True)
    ax.plot([1e-4, 0.9999], [1e-4, 0.9999], "k--", lw=1)
    ax.set(xscale="logit", yscale="logit", xlim=(3e-4, 0.9997), ylim=(3e-4, 0.9997), xlabel="known probability")
    ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    ax.minorticks_off()
    ax.set_title(f'probabilities="{how}": log-loss {log_loss(p):.3f}')
axes[0].set_ylabel("predicted probability")
figure.suptitle(f"The known probabilities have the log-loss {log_loss(p_new):.3f}")
plt.show()
