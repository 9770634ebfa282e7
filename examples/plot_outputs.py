"""
Outputs of training and of new rows
===================================

What a loss and the weight of the penalty make of the outputs of training rows, and how far new rows follow.

With a small alpha every loss draws training rows to the targets -1 and +1, or beyond the margin, and new rows do
not follow. With a suitable one the squared loss of the kernel Fisher discriminant (KFD) makes each class a bell;
the absolute loss, of robust and of linear sparse KFD, puts some rows on the target exactly; the hinge loss of a
support vector machine (SVM) gathers rows at the margin. Then training and new rows are alike for all of them: it
is alpha that decides, more than the loss. With a large alpha the outputs are alike, and too close together for
their sign to tell the classes apart. Mika (2002), Figs. 5.6 and 5.7, shows means of 100 fits; here two are enough
to see it.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import ks_2samp

from mercer import KernelMachineClassifier
from mercer.datasets import make_ringnorm
from mercer.kernels import RBF
from mercer.results import Expansion

# For each method: loss, penalty, and the alpha with the fewest errors in 5-fold cross-validation of other draws.
methods = {
    "KFD": ("squared", "rkhs", 10.0),
    "robust KFD": ("absolute", "rkhs", 10.0),
    "linear sparse KFD": ("absolute", "l1", 1.0),
    "SVM": ("hinge", "rkhs", 10.0),
}
levels = {"too small": 0.01, "optimal": 1.0, "too large": 10.0}
X_new, y_new = make_ringnorm(2000, random_state=100)
draws = [make_ringnorm(150, random_state=seed) for seed in range(2)]


def outputs(loss, penalty, alpha):
    """Outputs and labels of training rows and of new rows, of all draws."""
    parts = []
    for X, y in draws:
        model = KernelMachineClassifier(RBF(gamma=0.03), loss=loss, penalty=penalty, alpha=alpha).fit(X, y)
        f = Expansion(model.kernel_, model.X_fit_, model.dual_coef_, model.intercept_)
        parts.append((f(X)[:, 0], y, f(X_new)[:, 0], y_new))
    return [np.concatenate(part) for part in zip(*parts)]


# %%
# Areas: training rows. Lines: new rows. KS is the Kolmogorov-Smirnov distance between the two, the mean of both
# classes: 0 if they are alike, 1 if they do not overlap. The error is that of the sign of the output.

fig, axes = plt.subplots(3, 4, figsize=(12, 7.5), sharex=True, layout="constrained")
bins = np.linspace(-2.5, 2.5, 61)
for column, (name, (loss, penalty, alpha)) in zip(axes.T, methods.items()):
    for ax, (level, factor) in zip(column, levels.items()):
        train, y, new, truth = outputs(loss, penalty, factor * alpha)
        distances = []
        for label, color in ((-1, "#0072B2"), (1, "#D55E00")):
            a, b = train[y == label], new[truth == label]
            ax.hist(np.clip(a, -2.5, 2.5), bins, density=True, color=color, alpha=0.4)
            ax.hist(np.clip(b, -2.5, 2.5), bins, density=True, color=color, histtype="step", lw=1.5)
            distances.append(ks_2samp(a, b).statistic)
        error = 100 * np.mean((new > 0) != (truth > 0))
        ax.set(title=f"KS {np.mean(distances):.2f}, error {error:.1f} %", yticks=[], ylim=(0, 4))
        ax.axvline(0, color="black", lw=0.5)
        if ax in axes[:, 0]:
            ax.set_ylabel(f"alpha {level}")
    column[0].set_title(f"{name}\n{column[0].get_title()}")
fig.supxlabel("output f(x)")
plt.show()
