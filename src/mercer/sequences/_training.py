"""Training of hybrid models: discriminants on an alignment, sequences aligned again, while held-out ones gain."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, softmax

from mercer._types import Array, Indices
from mercer.sequences._alignment import States, WordModels
from mercer.sequences._emissions import DiscriminantEmissions, fit_discriminant

# Slopes of log-likelihoods that vote.
N_SLOPES = 101


@dataclass(frozen=True)
class LabeledSequences:
    """Sequences (T_i, d), the number of the word of each, and the group with which it is held out."""

    sequences: list[Array]
    word: Indices
    group: Indices

    def part(self, chosen: Indices) -> "LabeledSequences":
        """Some of the sequences."""
        return LabeledSequences([self.sequences[i] for i in chosen], self.word[chosen], self.group[chosen])

    @property
    def priors(self) -> Array:
        """Shares (k,) of the words."""
        return np.bincount(self.word) / len(self.word)


@dataclass(frozen=True)
class TrainedModels:
    """Models, the slope of their log-likelihoods, and the log-loss of held-out sequences by round."""

    models: WordModels
    slope: float
    losses: tuple[float, ...]


# Models of words from sequences with given paths, and from the models of the round before.
Fit = Callable[[LabeledSequences, Sequence[Indices], WordModels | None], WordModels]


def discriminant_fit(new: Callable[[Any], Any], states: States, context: int, seed: int) -> Fit:
    """How models are made from paths: a new classifier of all states, which may know the last, and chains."""

    def fit(data: LabeledSequences, paths: Sequence[Indices], before: WordModels | None) -> WordModels:
        frames = data.sequences, paths, data.group
        known = before.emissions if before is not None else None
        classifier = new(known.classifier if isinstance(known, DiscriminantEmissions) else None)
        emissions = fit_discriminant(classifier, *frames, n_states=states.total, context=context, seed=seed)
        return WordModels(states, states.chains(paths, data.word), emissions)

    return fit


def train(
    data: LabeledSequences,
    first: Callable[[LabeledSequences], WordModels],
    fit: Fit,
    *,
    n_rounds: int,
    held_out: Indices,
) -> TrainedModels:
    """Models on the first alignment, and on up to ``n_rounds`` new ones while held-out words are predicted better.

    Without held-out sequences, as many rounds as asked for, and a slope of one. Nothing that is compared has seen
    the held-out sequences; the last fit is one to all sequences, aligned by the best of these models.
    """
    kept = np.setdiff1d(np.arange(len(data.word)), held_out)
    known, new = data.part(kept), data.part(held_out)
    paths = first(known).align(data.sequences, data.word)
    if len(held_out) == 0:
        return TrainedModels(_all_rounds(data, paths, fit, n_rounds), 1.0, ())
    models: WordModels | None = None
    losses: list[float] = []
    best, slope = paths, 1.0
    for _ in range(n_rounds + 1):
        models = fit(known, [paths[i] for i in kept], models)
        found, loss = best_slope(models.log_likelihoods(new.sequences), new.word, np.log(known.priors))
        losses.append(loss)
        if loss > min(losses):
            break
        best, slope = paths, found
        if len(losses) <= n_rounds:
            paths = models.align(data.sequences, data.word)
    return TrainedModels(fit(data, best, models), slope, tuple(losses))


def _all_rounds(data: LabeledSequences, paths: Sequence[Indices], fit: Fit, n_rounds: int) -> WordModels:
    """Models on the first alignment and on new ones, without a comparison."""
    models = fit(data, paths, None)
    for _ in range(n_rounds):
        models = fit(data, models.align(data.sequences, data.word), models)
    return models


def calibrated(
    data: LabeledSequences, fit: Callable[[LabeledSequences], WordModels], *, held_out: Indices
) -> TrainedModels:
    """Models of all sequences, with the slope of others that have not seen the held-out ones."""
    if len(held_out) == 0:
        return TrainedModels(fit(data), 1.0, ())
    known, new = data.part(np.setdiff1d(np.arange(len(data.word)), held_out)), data.part(held_out)
    slope, loss = best_slope(fit(known).log_likelihoods(new.sequences), new.word, np.log(known.priors))
    return TrainedModels(fit(data), slope, (loss,))


def drawn(word: Indices, group: Indices, share: float, rng: np.random.Generator) -> Indices:
    """About this share of the sequences, whole groups at random, so that each word keeps some of its sequences.

    A group is added if that brings their number nearer to the share. If none does, the smallest that can be held
    out; none if the share is zero.
    """
    n_remaining, n_chosen, chosen = np.bincount(word), 0, []
    groups, sizes = np.unique(group, return_counts=True)
    order, n_wanted = rng.permutation(len(groups)), share * len(word)

    def words_of(g: int) -> Indices:
        return np.bincount(word[group == groups[g]], minlength=len(n_remaining))

    def can_leave(g: int) -> bool:
        return bool((n_remaining > words_of(g)).all())

    for g in order:
        nearer = abs(n_chosen + sizes[g] - n_wanted) < abs(n_chosen - n_wanted)
        if nearer and can_leave(g):
            n_remaining, n_chosen = n_remaining - words_of(g), n_chosen + sizes[g]
            chosen.append(g)
    if share > 0.0 and not chosen:
        by_size = order[np.argsort(sizes[order], kind="stable")]
        chosen = [g for g in by_size if can_leave(g)][:1]
    return np.flatnonzero(np.isin(group, groups[chosen]))


def best_slope(logs: Array, word: Indices, log_prior: Array) -> tuple[float, float]:
    """A slope, at most one, of log-likelihoods (n, words) for the probabilities of words, and their log-loss.

    Neighboring frames are strongly correlated, and models count them as independent, so that it is below one. Few
    sequences without errors leave many slopes possible, the largest most likely. So all of them vote, with weights
    that are their likelihoods: the slope is the one whose probabilities are nearest to the mean of all.
    """
    n, k = logs.shape
    # From a slope at which likelihoods hardly matter, as powers of e.
    low = -np.log(min(float(np.ptp(logs, axis=1).max(initial=1.0)), 1e300)) - 2.0
    powers = np.linspace(low, 0.0, N_SLOPES)

    def log_p(power: float) -> Array:
        return np.asarray(log_softmax(np.exp(power) * logs + log_prior, axis=1))

    def loss(power: float) -> float:
        return -float(log_p(power)[np.arange(n), word].sum())

    mean = np.zeros((n, k))
    for power, share in zip(powers, softmax([-loss(power) for power in powers])):
        mean += share * np.exp(log_p(power))
    found = minimize_scalar(lambda power: -float((mean * log_p(power)).sum()), bounds=(low, 0.0), method="bounded")
    return float(np.exp(found.x)), loss(found.x) / n
