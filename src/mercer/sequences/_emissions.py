"""Emissions of states: log p(x | state) of frames, by Gaussian mixtures or by a discriminant of all states."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import has_fit_parameter

from mercer._estimators.least_squares.model import LeastSquaresModel
from mercer._estimators.predictions import log_probabilities
from mercer._scores.probabilities.coupling import scaled_likelihoods
from mercer._types import Array, Indices
from mercer.sequences._frames import FrameRows, split, stacked

# From sequences (T_i, d) to log-emissions (T_i, states) of all states, up to a constant of each frame.
Emissions = Callable[[Sequence[Array]], list[Array]]
# Each fold that is held out takes a factorization of its own.
EMISSION_FOLDS = 20
# Frames whose emissions are computed at a time.
BATCH = 20_000
# More frames are never with their neighbors all at once, if the classifier reads rows block by block.
MANY_FRAMES = 100_000


@dataclass(frozen=True)
class Mixtures:
    """Gaussian mixtures with diagonal covariances: weights (k, M), means and variances (k, M, d)."""

    weights: Array
    means: Array
    variances: Array

    def log_components(self, X: Array) -> Array:
        """log of weight times density (T, k, M) of each component, in two products of matrices."""
        k, M, d = self.means.shape
        middle = self.means.mean(axis=(0, 1))
        precision, mean = 1.0 / self.variances.reshape(k * M, d), self.means.reshape(k * M, d) - middle
        constant = (mean**2 * precision - np.log(precision)).sum(axis=1) + d * np.log(2.0 * np.pi)
        Z = X - middle
        squares = (Z**2) @ precision.T - 2.0 * Z @ (mean * precision).T + constant
        logs: Array = np.log(self.weights) - 0.5 * squares.reshape(-1, k, M)
        return logs

    def log_density(self, X: Array) -> Array:
        """log p(x | state) (T, k)."""
        return log_sum(self.log_components(X))


def log_sum(logs: Array) -> Array:
    """log of the sum of exponentials over the last axis; a tenth of the time of SciPy's for small arrays."""
    largest = logs.max(axis=-1, keepdims=True)
    total: Array = np.log(np.exp(logs - largest).sum(axis=-1)) + largest[..., 0]
    return total


@dataclass(frozen=True)
class MixtureEmissions:
    """The mixtures of each word, side by side; ``columns`` are the features that they know, None: all."""

    words: tuple[Mixtures, ...]
    columns: Indices | None = None

    def __call__(self, sequences: Sequence[Array]) -> list[Array]:
        X = np.concatenate(sequences)
        X = X if self.columns is None else X[:, self.columns]
        return split(np.column_stack([mixtures.log_density(X) for mixtures in self.words]), sequences)


@dataclass(frozen=True)
class DiscriminantEmissions:
    """Scaled likelihoods P(i | x) / P(i) of a classifier of states; ``shares`` are those of its training frames.

    Frames are seen with ``context`` neighbors on each side.
    """

    classifier: Any
    shares: Array
    floor: float
    context: int

    def __call__(self, sequences: Sequence[Array]) -> list[Array]:
        log_p = np.full((sum(map(len, sequences)), len(self.shares)), -np.inf)
        log_p[:, self.classifier.classes_] = log_probabilities(self.classifier, stacked(sequences, self.context))
        return split(scaled_likelihoods(log_p, self.shares, floor=self.floor), sequences)


def fit_discriminant(
    classifier: Any,
    sequences: Sequence[Array],
    labels: Sequence[Indices],
    groups: Indices,
    *,
    n_states: int,
    context: int,
    seed: int,
) -> DiscriminantEmissions:
    """One classifier of all states, from frames with labels (T_i,); frames of a group are held out together.

    Groups are dealt to at most 20 folds, word by word. Classifiers whose ``fit`` takes no ``groups`` may hold out
    frames singly; if they have ``partial_fit``, they may learn row by row, and get the frames in a random order.
    Probabilities are not below one over the number of frames: fewer frames have not been seen.
    """
    state = np.concatenate(labels)
    fold = np.repeat(folds(groups, [path[0] for path in labels]), [len(X) for X in sequences])
    if _row_by_row(classifier):
        order = np.random.default_rng(seed).permutation(len(state))
        classifier.fit(stacked(sequences, context)[order], state[order])
    elif len(state) > MANY_FRAMES and _reads_blocks(classifier):
        classifier.fit(FrameRows(sequences, state, context), **_grouped(classifier, fold))
    else:
        classifier.fit(stacked(sequences, context), state, **_grouped(classifier, fold))
    shares = np.bincount(state, minlength=n_states) / len(state)
    return DiscriminantEmissions(classifier, shares, 1.0 / len(state), context)


def folds(groups: Indices, word: ArrayLike) -> Indices:
    """Folds (n,) of whole groups of sequences, at most 20: groups are dealt in the order of their first words.

    Groups of one word go to different folds, in whatever order sequences come.
    """
    _, first, number = np.unique(groups, return_index=True, return_inverse=True)
    order = np.argsort(np.asarray(word)[first], kind="stable")
    dealt = np.empty(len(first), dtype=np.intp)
    dealt[order] = np.arange(len(first)) % EMISSION_FOLDS
    return dealt[number]


def batches(sequences: Sequence[Array]) -> Iterator[Sequence[Array]]:
    """Consecutive sequences with at most ``BATCH`` frames together, or one that has more."""
    first, frames = 0, 0
    for i, X in enumerate(sequences):
        if i > first and frames + len(X) > BATCH:
            yield sequences[first:i]
            first, frames = i, 0
        frames += len(X)
    yield sequences[first:]


def _last_step(classifier: Any) -> tuple[str, Any]:
    """The last step of a pipeline, or of the pipeline that is its last step, and the prefix of its parameters."""
    prefix = ""
    while isinstance(classifier, Pipeline):
        name, classifier = classifier.steps[-1]
        prefix += f"{name}__"
    return prefix, classifier


def _row_by_row(classifier: Any) -> bool:
    """Whether the order of rows may matter to a fit."""
    _, last = _last_step(classifier)
    return hasattr(last, "partial_fit") and not has_fit_parameter(last, "groups")


def _reads_blocks(classifier: Any) -> bool:
    """Whether a classifier needs only a block of the rows in memory."""
    if not isinstance(classifier, LeastSquaresModel) or classifier.cv is not None:
        return False
    return not (isinstance(classifier.centers, str) and classifier.centers == "all")


def _grouped(classifier: Any, fold: Indices) -> dict[str, Indices]:
    """Folds of rows for the fit of a classifier, or of the last step of a pipeline, if it accepts groups."""
    prefix, last = _last_step(classifier)
    # Of a classifier of pairs it is that of the pairs which counts.
    one = getattr(last, "estimator", None) or last
    if not has_fit_parameter(last, "groups") or not has_fit_parameter(one, "groups") or fold.max() == 0:
        return {}
    return {f"{prefix}groups": fold}
