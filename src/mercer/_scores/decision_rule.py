"""The rule that turns outputs of a class fit into variates, decisions and probabilities."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax

from mercer._gram.moments import Moments
from mercer._linalg import eigen_psd
from mercer._linalg.tolerance import rounding_unit
from mercer._scores.class_outputs import relative
from mercer._scores.probabilities.calibration import Posterior, cross_calibrate, moderated
from mercer._scores.probabilities.logit_maps import parts
from mercer._scores.thresholds import THRESHOLDS
from mercer._solvers.directions.discriminants import Directions, discriminant_directions
from mercer._types import Array, Floats, Indices

# Outputs keep the precision of the rows.
Outputs = Floats


@dataclass(frozen=True)
class Rule:
    """``directions`` (None for two classes: the output is the variate; or where a class has no rows yet) and the
    posterior on relative scores.

    The posterior uses only the ``reliable`` directions, in which leave-one-out variates increase with the scores
    of the classes; None: all outputs.
    """

    directions: Directions | None
    reliable: Directions | None
    posterior: Posterior

    def variates(self, F: Outputs) -> Outputs:
        """Discriminant variates (n, r) of outputs F (n, q)."""
        if self.directions is not None:
            return self.directions.project(F).astype(F.dtype, copy=False)
        if F.shape[1] > 1:
            raise ValueError(
                f"there are no directions yet that separate {F.shape[1]} classes: some class has no training "
                "rows; add rows of every class"
            )
        return F

    def probabilities(self, F: Outputs, trust: Array | None = None) -> Outputs:
        """(n, k); ``trust`` (n,) is the share of the evidence that counts, None: all of it."""
        return self.posterior.probabilities(scores_in(self.reliable, F), trust)

    def decision(self, F: Outputs, trust: Array | None = None) -> Outputs:
        """Log-odds of the second of two classes (n,), or log-probabilities of all (n, k)."""
        if F.shape[1] == 1:
            return np.asarray(self.posterior.logits(scores_in(None, F), trust)[:, 0])
        return self.log_probabilities(F, trust)

    def log_probabilities(self, F: Outputs, trust: Array | None = None) -> Outputs:
        """(n, k), exact even if a probability rounds to one or zero."""
        logits = self.posterior.logits(scores_in(self.reliable, F), trust)
        return np.asarray(log_softmax(np.column_stack([np.zeros(len(logits)), logits]), axis=1))

    def geometry(self, scatter: "Scatter") -> tuple[Array, Array]:
        """Class targets in each direction (k, r), and squared canonical correlations (r,) of the fit."""
        if self.directions is not None:
            return self.directions.scalings, self.directions.eigenvalues
        if (k := len(scatter.Y)) > 1:
            return np.zeros((k, k - 1)), np.zeros(k - 1)
        mean = scatter.Y**2 / scatter.n
        # Zero if the weight of a class is negligible compared with that of the other.
        apart = scatter.n - mean
        return np.array([[-1.0], [1.0]]), (scatter.FY[0] - mean) / np.where(apart > 0, apart, np.inf)


@dataclass(frozen=True)
class Scatter:
    """Statistics of a fit F to class targets Y on all rows: F'WY (q, q), Y'w (q,), the total weight.

    ``error`` (q, q) bounds the rounding errors of F'WY, assumed independent and of the size of its n terms.
    """

    FY: Array
    Y: Array
    n: float
    error: Array

    @classmethod
    def of(cls, F: Array, Y: Array, weight: Array) -> "Scatter":
        WF = F * weight[:, None]
        return cls(WF.T @ Y, weight @ Y, float(weight.sum()), _rounding(np.abs(WF).T @ np.abs(Y), len(Y)))

    @classmethod
    def of_sums(cls, FY: Array, Y: Array, n: float, n_rows: int) -> "Scatter":
        """Of sums over ``n_rows`` rows."""
        return cls(FY, Y, n, _rounding(np.abs(FY), n_rows))

    @classmethod
    def of_moments(cls, moments: Moments, coef: Array, intercept: Array) -> "Scatter":
        """Of the fit K coef + intercept to the rows of the moments."""
        FY, terms = moments.against_targets(coef, intercept)
        return cls(FY, moments.t, moments.n, _rounding(terms, moments.n_rows))


def _rounding(terms: Array, n: int) -> Array:
    return np.asarray(rounding_unit(np.float64, 4.0) * np.sqrt(n) * terms)


@dataclass(frozen=True)
class ClassFit:
    """Leave-one-out outputs ``loo`` and targets Y (n, q), class numbers and weights (n,); scatter of the fit."""

    loo: Array
    Y: Array
    label: Indices
    weight: Array
    scatter: Scatter

    def some(self, rows: NDArray[np.bool_]) -> "ClassFit":
        """Some of the rows; the scatter is that of all."""
        return ClassFit(self.loo[rows], self.Y[rows], self.label[rows], self.weight[rows], self.scatter)


@dataclass(frozen=True)
class CrossFittedRule:
    """The rule from all rows, and those made ``without`` each ``part`` (n,) of the rows; -1: in no part."""

    rule: Rule
    part: Indices
    without: tuple[Rule, ...]

    def probabilities(self, F: Outputs, trust: Array | None) -> Outputs:
        """(n, k) of the outputs F (n, q) from which the rule was made, by rules that were made without them."""
        return self._crossed(Rule.probabilities, F, trust)

    def decision(self, F: Outputs, trust: Array | None) -> Outputs:
        """Log-odds (n,) or log-probabilities (n, k) in the same way."""
        return self._crossed(Rule.decision, F, trust)

    def _crossed(
        self, answer: Callable[[Rule, Outputs, Array | None], Outputs], F: Outputs, trust: Array | None
    ) -> Outputs:
        found = answer(self.rule, F, trust)
        for p, rule in enumerate(self.without):
            rows = self.part == p
            found[rows] = answer(rule, F[rows], None if trust is None else trust[rows])
        return found


def make_rule(
    fit: ClassFit,
    *,
    n_components: int,
    calibration: str,
    threshold: str,
    prior_shift: Array,
    streamed: bool = False,
    moderate: bool = False,
    directed: bool = True,
    group: Indices | None = None,
) -> CrossFittedRule:
    """Directions from the fit, posterior and threshold from held-out rows, and the same without parts of them.

    ``streamed``: rows were predicted before they were learned; the posterior uses all outputs and one slope.
    ``moderate``: it is no surer than these rows justify. ``directed``: several classes have discriminant
    directions, those of least squares. Rows of a ``group`` (n,) are in one part.
    """
    used = fit.weight > 0
    n, fit = len(used), fit.some(used)
    directions = reliable = None
    if directed and fit.Y.shape[1] > 1 and fit.scatter.Y.all():
        scatter = fit.scatter
        directions = discriminant_directions(scatter.FY, scatter.Y, scatter.error).first(n_components)
        reliable = None if streamed else reliable_directions(directions, fit)
    R = scores_in(reliable, fit.loo)
    basis = None if reliable is None else reliable.of_relative()
    # Other thresholds than Bayes' belong to the order of the scores.
    ordered = streamed or threshold != "bayes"
    part = np.full(len(R), -1) if streamed else parts(R, fit.label, None if group is None else group[used])
    found = cross_calibrate(calibration, R, fit.label, fit.weight, part, basis, ordered=ordered)

    def at_cut(posterior: Posterior, rows: NDArray[np.bool_]) -> Posterior:
        """The posterior whose evidence is relative to the odds, or to the cut by some rows."""
        if threshold == "bayes":
            return posterior
        # Evidence is what speaks for one side of the cut: however little of it counts, the cut stays there.
        return replace(posterior, odds=_logits_at_cut(threshold, posterior, R[rows], fit.some(rows)))

    whole = at_cut(found.posterior, np.ones(len(R), dtype=bool))
    if moderate:
        whole = moderated(whole, R, fit.label, fit.weight)

    def finished(posterior: Posterior) -> Rule:
        """The rule with this posterior, moderated as that of all rows."""
        posterior = replace(posterior, limit=whole.limit, counted=whole.counted)
        shift = prior_shift if threshold == "bayes" else -posterior.odds
        return Rule(directions, reliable, posterior.shifted(shift))

    every = np.full(n, -1)
    every[used] = part
    without = tuple(finished(at_cut(posterior, part != p)) for p, posterior in enumerate(found.without))
    return CrossFittedRule(finished(whole), every, without)


def reliable_directions(directions: Directions, fit: ClassFit) -> Directions:
    """The directions in which leave-one-out variates Z (n, r) increase with the class scores T = Y theta.

    If a direction has no signal, the fit is the mean of the targets, and the leave-one-out variate of a row of
    class c is -theta_c / (n - 1): tiny, on the wrong side, and it reveals the class. So cov(T, Z) is negative
    there. Its eigenvectors separate such directions from the others, whatever the basis of directions with equal
    rho².
    """
    Z, T = directions.project(fit.loo), directions.scalings[fit.label]
    share = fit.weight / fit.weight.sum()
    G = ((T - share @ T) * share[:, None]).T @ Z
    eigen = eigen_psd(np.asfortranarray((G + G.T) / 2.0))
    right = np.flatnonzero(eigen.values > 0.0)[::-1]
    return directions.within(eigen.vectors[:, right], eigen.values[right])


def scores_in(directions: Directions | None, F: Outputs) -> Array:
    """Relative scores (n, k - 1) of outputs F (n, q) projected onto the directions; None: all of F."""
    outputs: Array = np.asarray(F, dtype=np.float64)
    return np.asarray(relative(outputs if directions is None else directions.restore(directions.project(outputs))))


def _logits_at_cut(threshold: str, posterior: Posterior, R: Array, fit: ClassFit) -> Array:
    """Logits (k - 1,) at the cut, which become zero there."""
    if R.shape[1] > 1:
        return np.asarray(posterior.logits(np.zeros((1, R.shape[1])))[0])
    cut = THRESHOLDS[threshold](R[:, 0], fit.Y[:, 0], fit.weight)
    return np.asarray(posterior.logits(np.array([[cut]]))[0])
