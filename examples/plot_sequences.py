"""
Words along a path
==================

A hidden Markov model finds words in a sequence of points, by one discriminant of all their states.

Three words are made of three sounds each; a sound is a half of a ring. The classifier of states sees single points
and is often in doubt. The best path through the chains of the words is not: it knows which states follow which.
"""

import matplotlib.pyplot as plt
import numpy as np

from mercer import KernelFisherClassifier
from mercer.datasets import make_words
from mercer.kernels import RBF
from mercer.sequences import HiddenMarkovClassifier

X, y = make_words(90, noise=0.5, random_state=0)
discriminant = KernelFisherClassifier(RBF(gamma=0.5), alpha=0.1, centers=60, random_state=0)
model = HiddenMarkovClassifier(discriminant, n_states=3, n_mixtures=1, random_state=0).fit(X, y)

new, truth = make_words(300, noise=0.5, random_state=1)
print(f"error of single words: {1 - model.score(new, truth):.1%}")

# %%
# A sequence of five words. Shades show how likely each of the nine states is by a single frame; lines are the best
# path, and dashed lines the true ends of the words.

sentence = np.concatenate(new[:5])
said = truth[:5]
found = model.segment(sentence, insertion_penalty=1.0)
print("said:      ", *said)
print("recognized:", *(word for word, _ in found))

log_p = model.emissions(sentence)
P = np.exp(log_p - log_p.max(axis=1, keepdims=True))
P /= P.sum(axis=1, keepdims=True)
names = [f"{word} {state + 1}" for word, n in zip(model.classes_, model.states_) for state in range(n)]
starts = [t for _, t in found] + [len(sentence)]
first = {word: 3 * i for i, word in enumerate(model.classes_)}

fig, ax = plt.subplots(figsize=(9, 4), layout="constrained")
image = ax.imshow(P.T, aspect="auto", cmap="Blues", vmin=0, vmax=1, interpolation="nearest")
for (word, start), end in zip(found, starts[1:]):
    path = first[word] + model.align(sentence[start:end], word)
    ax.plot(np.arange(start, end), path, color="#D55E00", linewidth=2, drawstyle="steps-mid")
    ax.text((start + end) / 2, -0.9, word, ha="center", color="#D55E00", fontweight="bold")
for end in np.cumsum([len(x) for x in new[:4]]):
    ax.axvline(end - 0.5, color="black", linewidth=1, linestyle="--")
ax.set_yticks(range(len(names)), names)
ax.set_xlabel("frame")
fig.colorbar(image, label="scaled likelihood, as a share of the frame")
plt.show()
