"""The rule that turns outputs of a class fit into variates, decisions and probabilities."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mercer.scores.probabilities import Posterior, calibrate
from mercer.scores.relative import relative
from mercer.scores.thresholds import threshold_at
from mercer.solvers import Directions, discriminant_directions

Array = NDArray[np.float64]
# Outputs keep the precision of the rows.
Outputs = NDArray[np.floating]


@dataclass(frozen=True)
class Rule:
    """``directions`` (None for two classes: the output is the variate) and the posterior on relative scores."""

    directions: Directions | None
    posterior: Posterior

    def variates(self, F: Outputs) -> Outputs:
        """Discriminant variates (n, r) of outputs F (n, q)."""
        return F if self.directions is None else self.directions.project(F).astype(F.dtype, copy=False)

    def probabilities(self, F: Outputs) -> Outputs:
        """(n, k)."""
        return self.posterior.probabilities(scores_in(self.directions, F))

    def decision(self, F: Outputs) -> Outputs:
        """Log-odds of the second of two classes (n,), or log-probabilities of all (n, k)."""
        if self.directions is None:
            return np.asarray(self.posterior.logits(scores_in(None, F))[:, 0])
        return self.log_probabilities(F)

    def log_probabilities(self, F: Outputs) -> Outputs:
        """(n, k), exact where a probability rounds to one or zero."""
        logits = self.posterior.logits(scores_in(self.directions, F))
        logits = np.column_stack([np.zeros(len(logits)), logits])
        top = logits.max(axis=1, keepdims=True)
        log_p: Array = logits - top - np.log(np.exp(logits - top).sum(axis=1, keepdims=True))
        return log_p

    def geometry(self, scatter: "Scatter") -> tuple[Array, Array]:
        """Class targets in each direction (k, r), and squared canonical correlations (r,) of the fit."""
        if self.directions is not None:
            return self.directions.scalings, self.directions.eigenvalues
        mean = scatter.Y**2 / scatter.n
        return np.array([[-1.0], [1.0]]), (scatter.FY[0] - mean) / (scatter.n - mean)


@dataclass(frozen=True)
class Scatter:
    """What is known of a fit F to class targets Y on all rows: F'WY (q, q), Y'w (q,), the total weight."""

    FY: Array
    Y: Array
    n: float

    @classmethod
    def of(cls, F: Array, Y: Array, weight: Array) -> "Scatter":
        return cls((F * weight[:, None]).T @ Y, weight @ Y, float(weight.sum()))


@dataclass(frozen=True)
class ClassFit:
    """Left-out outputs ``loo`` and targets Y (n, q), class numbers and weights (n,); the scatter of the fit."""

    loo: Array
    Y: Array
    label: NDArray[np.intp]
    weight: Array
    scatter: Scatter

    def used(self) -> "ClassFit":
        """Without rows of weight zero."""
        rows = self.weight > 0
        return ClassFit(self.loo[rows], self.Y[rows], self.label[rows], self.weight[rows], self.scatter)


def make_rule(fit: ClassFit, *, n_components: int, calibration: str, threshold: str, prior_shift: Array) -> Rule:
    """Directions from the fit, posterior and threshold from the rows that were left out."""
    fit = fit.used()
    directions = None
    if fit.Y.shape[1] > 1:
        directions = discriminant_directions(fit.scatter.FY, fit.scatter.Y).first(n_components)
    R = scores_in(directions, fit.loo)
    posterior = calibrate(calibration, R, fit.label, fit.weight)
    shift = prior_shift if threshold == "bayes" else -_logits_at_cut(threshold, posterior, R, fit)
    return Rule(directions, posterior.shifted(shift))


def scores_in(directions: Directions | None, F: Outputs) -> Array:
    """Relative scores (n, k - 1) of what the kept directions see of outputs F (n, q)."""
    outputs: Array = np.asarray(F, dtype=np.float64)
    if directions is None:
        return outputs
    scores: Array = relative(directions.restore(directions.project(outputs)))
    return scores


def _logits_at_cut(threshold: str, posterior: Posterior, R: Array, fit: ClassFit) -> Array:
    """Logits (k - 1,) at the cut, which become zero there."""
    if R.shape[1] > 1:
        return np.asarray(posterior.logits(np.zeros((1, R.shape[1])))[0])
    cut = threshold_at(threshold, R[:, 0], fit.Y[:, 0], fit.weight)
    return np.asarray(posterior.logits(np.array([[cut]]))[0])
