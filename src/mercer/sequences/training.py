"""Training of hybrid models: discriminants on an alignment, sequences aligned anew, while held-out ones gain."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax

from mercer.sequences.alignment import States, WordModels
from mercer.sequences.emissions import fit_discriminant
from mercer.types import Array, Indices

# Slopes of log-likelihoods that are tried, as powers of e.
SLOPES = (-8.0, 0.0)


@dataclass(frozen=True)
class Labeled:
    """Sequences (T_i, d), the number of the word of each, and the group with which it is held out."""

    sequences: list[Array]
    word: Indices
    group: Indices

    def part(self, chosen: Indices) -> "Labeled":
        """Some of the sequences."""
        return Labeled([self.sequences[i] for i in chosen], self.word[chosen], self.group[chosen])


@dataclass(frozen=True)
class Trained:
    """Models, the slope of their log-likelihoods, and the mean log-likelihood of held-out sequences by round."""

    models: WordModels
    slope: float
    gains: tuple[float, ...]


# Models of words from sequences with given paths.
Fit = Callable[[Labeled, Sequence[Indices]], WordModels]


def discriminant_fit(new: Callable[[], Any], states: States, context: int) -> Fit:
    """How models are made from paths: a new classifier of all states, and chains."""

    def fit(data: Labeled, paths: Sequence[Indices]) -> WordModels:
        emissions = fit_discriminant(
            new(), data.sequences, paths, data.group, n_states=states.total, context=context
        )
        return WordModels(states, states.chains(paths, data.word), emissions)

    return fit


def train(data: Labeled, first: WordModels, fit: Fit, *, n_rounds: int, held_out: Indices) -> Trained:
    """Models on the first alignment, and on up to ``n_rounds`` new ones while held-out sequences become likelier.

    Without held-out sequences, as many rounds as asked for, and a slope of one. Rounds are compared by models that
    have not seen the held-out sequences; the last fit is one to all sequences, with the best alignment.
    """
    paths = first.align(data.sequences, data.word)
    if len(held_out) == 0:
        models = fit(data, paths)
        for _ in range(n_rounds):
            models = fit(data, models.align(data.sequences, data.word))
        return Trained(models, 1.0, ())
    kept = np.setdiff1d(np.arange(len(data.word)), held_out)
    known, new = data.part(kept), data.part(held_out)
    gains: list[float] = []
    best, slope = paths, 1.0
    for _ in range(n_rounds + 1):
        models = fit(known, [paths[i] for i in kept])
        logs = models.log_likelihoods(new.sequences)
        gains.append(float(np.mean(logs[np.arange(len(new.word)), new.word])))
        if gains[-1] < max(gains):
            break
        best, slope = paths, best_slope(logs, new.word)
        if len(gains) <= n_rounds:
            paths = models.align(data.sequences, data.word)
    return Trained(fit(data, best), slope, tuple(gains))


def calibrated(data: Labeled, fit: Callable[[Labeled], WordModels], *, held_out: Indices) -> Trained:
    """Models of all sequences, with the slope of others that have not seen the held-out ones."""
    if len(held_out) == 0:
        return Trained(fit(data), 1.0, ())
    new = data.part(held_out)
    logs = fit(data.part(np.setdiff1d(np.arange(len(data.word)), held_out))).log_likelihoods(new.sequences)
    gain = float(np.mean(logs[np.arange(len(new.word)), new.word]))
    return Trained(fit(data), best_slope(logs, new.word), (gain,))


def drawn(word: Indices, group: Indices, share: float, rng: np.random.Generator) -> Indices:
    """About this share of the sequences, whole groups at random, so that each word keeps some of its sequences."""
    left, chosen = np.bincount(word), np.zeros(len(word), dtype=bool)
    for g in rng.permutation(np.unique(group)):
        own = np.bincount(word[group == g], minlength=len(left))
        if chosen.sum() + own.sum() <= share * len(word) and (left - own > 0).all():
            left, chosen = left - own, chosen | (group == g)
    return np.flatnonzero(chosen)


def best_slope(logs: Array, word: Indices) -> float:
    """The slope, at most one, of log-likelihoods (n, words) with the least log-loss of their softmax.

    Neighboring frames say the same, and models count them as independent, so that it is below one. As in Platt's
    method, two more sequences are wrong: few held-out sequences without errors do not prove that there are none.
    """
    n, k = logs.shape
    wrong = 2.0 / (n + 2.0)
    target = np.full((n, k), wrong / (k - 1))
    target[np.arange(n), word] = 1.0 - wrong

    def loss(power: float) -> float:
        return -float((target * log_softmax(np.exp(power) * logs, axis=1)).sum())

    return float(np.exp(minimize_scalar(loss, bounds=SLOPES, method="bounded").x))
