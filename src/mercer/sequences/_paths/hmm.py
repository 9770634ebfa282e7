"""hmmlearn, and nobody else: Viterbi's algorithm, forward-backward and Baum-Welch.

hmmlearn's models take emissions of one's own through ``_compute_log_likelihood`` of a subclass. Here the rows that
they are given *are* the logarithms of emissions, and ends of paths, which hmmlearn does not have, are added to the
emissions of the last frame.
"""

from functools import cache
from typing import Any

import numpy as np

from mercer._types import Array, Indices
from mercer.rows._optional import optional
from mercer.sequences._emissions import Mixtures, log_sum
from mercer.sequences._paths.chains import Chain


def best_path(chain: Chain, emissions: Array) -> tuple[float, Indices]:
    """Log-weight of the most likely path and its states (T,), by Viterbi's algorithm: O(T k²).

    ``emissions`` (T, k) are log p(x_t | state), or anything that differs from it by a constant of each frame.
    """
    value, path = _model(chain).decode(emissions)
    return float(value), path.astype(np.intp)


def log_likelihood(chain: Chain, emissions: Array) -> float:
    """Logarithm of the sum of the weights of all paths, by the forward algorithm: O(T k²)."""
    return float(_model(chain).score(emissions))


def baum_welch(
    X: Array, lengths: Indices, limits: Chain, first: Mixtures, *, least: Array, n_iter: int
) -> Mixtures:
    """Mixtures in k states, from the first ones, by Baum-Welch; ``least`` (d,) are the least variances.

    Each component gets a frame more at its first mean, and five more with its first variances, each allowed step
    counts once more: no component is lost.
    """
    _, mixtures = _classes()
    k, M = first.weights.shape
    model = mixtures(k, M, n_iter=n_iter, tol=1e-3 * len(X), init_params="", covariance_type="diag")
    model.monitor_ = _quiet(model.monitor_)
    model.log_end = _log(limits.end)
    model.startprob_ = limits.start / limits.start.sum()
    model.transmat_ = limits.step / limits.step.sum(axis=1, keepdims=True)
    model.startprob_prior, model.transmat_prior = 2.0, 2.0
    model.weights_, model.means_, model.covars_, model.least = first.weights, first.means, first.variances, least
    model.weights_prior, model.means_prior, model.means_weight = 2.0, first.means, 1.0
    # The mode with (a - 3) / 2 and a v / 2 is (sum of squares + a v) / (frames + a).
    model.covars_prior, model.covars_weight = (PSEUDO - 3.0) / 2.0, 0.5 * PSEUDO * first.variances
    model.fit(X, lengths)
    return Mixtures(model.weights_, model.means_, model.covars_)


# Frames of its first variances that each component gets.
PSEUDO = 5.0


def _model(chain: Chain) -> Any:
    given, _ = _classes()
    model = given(len(chain.start))
    model.startprob_, model.transmat_, model.log_end = chain.start, chain.step, _log(chain.end)
    return model


@cache
def _classes() -> tuple[Any, Any]:
    """Subclasses of hmmlearn's models: emissions that are given, and mixtures whose paths end where they may."""
    with optional("sequences", "hidden Markov models need hmmlearn"):
        from hmmlearn.base import BaseHMM
        from hmmlearn.hmm import GMMHMM

    class GivenEmissions(BaseHMM):
        def _check(self) -> None:
            """Weights of chains need not be probabilities."""

        def _compute_log_likelihood(self, X: Array) -> Array:
            return _ended(np.array(X), self.log_end)

    class EndedMixtures(GMMHMM):
        """All components of all states at once, which takes a tenth of the time of one state after another."""

        least: Any = 0.0

        def _init(self, X: Array, lengths: Indices | None = None) -> None:
            """All parameters are given: hmmlearn would cluster the frames nevertheless, in half of all time."""
            self.n_features = X.shape[1]
            self._fix_priors_shape()

        def _compute_log_likelihood(self, X: Array) -> Array:
            self.logs = Mixtures(self.weights_, self.means_, self.covars_).log_components(X)
            return _ended(log_sum(self.logs), self.log_end)

        def _compute_posteriors_log(self, forward: Array, backward: Array) -> Array:
            logs = forward + backward
            posteriors: Array = np.exp(logs - log_sum(logs)[:, None])
            return posteriors

        def _accumulate_sufficient_statistics(
            self, stats: Any, X: Array, lattice: Array, P: Array, *passes: Any
        ) -> None:
            BaseHMM._accumulate_sufficient_statistics(self, stats, X, lattice, P, *passes)
            parts = P[:, :, None] * np.exp(self.logs - log_sum(self.logs)[:, :, None])
            (k, M), flat = parts.shape[1:], parts.reshape(len(X), -1)
            sums = (flat.T @ X).reshape(k, M, -1)
            stats["post_sum"] += P.sum(axis=0)
            stats["post_mix_sum"] += parts.sum(axis=0)
            stats["m_n"] += sums
            stats["c_n"] += (flat.T @ X**2).reshape(k, M, -1) - 2.0 * self.means_ * sums
            stats["c_n"] += self.means_**2 * parts.sum(axis=0)[:, :, None]

        def _do_mstep(self, stats: Any) -> None:
            super()._do_mstep(stats)
            np.maximum(self.covars_, self.least, out=self.covars_)

    return GivenEmissions, EndedMixtures


def _quiet(monitor: Any) -> Any:
    """The same monitor of convergence, that logs nothing: with frames added, the likelihood itself may fall."""

    def report(log_prob: float) -> None:
        monitor.history.append(log_prob)
        monitor.iter += 1

    monitor.report = report
    return monitor


def _ended(emissions: Array, log_end: Array) -> Array:
    emissions[-1] += log_end
    return emissions


def _log(weight: Array) -> Array:
    with np.errstate(divide="ignore"):
        return np.log(weight)
