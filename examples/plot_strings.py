"""
Which substrings matter
=======================

A kernel on strings finds a motif that was planted in DNA, wherever it is.

Half of the strings contain the motif GATTACATTC at a random place, with two of its letters drawn anew. A spectrum
kernel compares strings by the substrings of k letters that they share; leave-one-out chooses k.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer import KernelFisherClassifier
from mercer.centers import ForwardSelection
from mercer.kernels import KmerSpectrum, Mismatch, Normalized, feature_weights

rng = np.random.default_rng(0)
MOTIF, LETTERS = "GATTACATTC", np.array(list("ACGT"))


def strings(n, length=60):
    """Random strings; every second one contains the motif, with two letters drawn anew."""
    table = rng.choice(LETTERS, (n, length))
    for row in table[::2]:
        place = rng.integers(length - len(MOTIF))
        row[place : place + len(MOTIF)] = list(MOTIF)
        row[place + rng.choice(len(MOTIF), 2, replace=False)] = rng.choice(LETTERS, 2)
    return ["".join(row) for row in table], np.arange(n) % 2 == 0


X, y = strings(300)
new, truth = strings(2000)
model = KernelFisherClassifier(KmerSpectrum(k="loo"), random_state=0).fit(X, y)
k = model.kernel_.k
print(f"k = {k}: error {np.mean(model.predict(new) != truth):.1%}, leave-one-out {1 - model.loo_score_:.1%}")
print("three new strings:", *new[:3], sep="\n")

# %%
# The model is a sum over training strings, but it is linear in the counts of substrings: the weight of a substring
# is the sum of the coefficients of the training strings that contain it, times how often they do. On the left, the
# largest weights are those of the pieces of GATTACATTC, although the model was told nothing but labels; on the
# right, scores of new strings.
largest = feature_weights(model.kernel_, model.X_fit_, model.dual_coef_, most=12)
pieces = {MOTIF[i : i + k] for i in range(len(MOTIF) - k + 1)}

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
left.barh(list(largest), list(largest.values()), color=["C3" if name in pieces else "0.6" for name in largest])
left.invert_yaxis()
left.tick_params(axis="y", labelfontfamily="monospace")
left.set(xlabel="weight in the score", title=f"largest weights; red: pieces of {MOTIF}")
score = model.decision_function(new)
bins = np.linspace(score.min(), score.max(), 40)
right.hist(score[~truth], bins, color="0.6", label="random")
right.hist(score[truth], bins, color="C3", alpha=0.7, label=f"with {MOTIF}, two letters drawn anew")
right.set(xlabel="score of new strings", ylabel="strings")
right.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=2, frameon=False)

# %%
# The model above has a coefficient for every training string. Forward selection picks few of them, by the labels:
# strings that are typical for what is to be told apart. All eight contain most letters of the motif.
few = KernelFisherClassifier(Normalized(Mismatch(k=6, mismatches=1)), centers=ForwardSelection(8), random_state=0)
few.fit(X, y)
print(f"eight centers: error {np.mean(few.predict(new) != truth):.1%}")
for coefficient, string in sorted(zip(np.ravel(few.dual_coef_), few.X_fit_), reverse=True):
    shared = max(sum(a == b for a, b in zip(MOTIF, string[i:])) for i in range(len(string) - len(MOTIF) + 1))
    print(f"{coefficient:7.2f} {string} {shared} of {len(MOTIF)} letters of the motif")
