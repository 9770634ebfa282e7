r"""Kernel and penalty of a sparse fit by leave-one-out of the sparse fit itself, at the end of its path.

For centers S that are given, all alphas come from one eigendecomposition: with B = A P^-1 and B'B = W diag(l) W',
N = B W and V = P^-1 W, each product is divided by l_k + alpha. Rows leave together with their center. At the end
of a long path every row is a center, or is represented by others, and the choice of centers tells least about
targets: there the criterion is compared.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import scipy.linalg

from mercer.errors import NumericalError
from mercer.kernels import Kernel
from mercer.linalg import map_in_threads
from mercer.linalg.eigen import symmetric_eigen
from mercer.solvers.orthogonal.candidates import CandidateColumns, Points
from mercer.solvers.orthogonal.orders import SelectionRule, Sums, choose_order
from mercer.solvers.orthogonal.path import State, Steps, follow, gcv, left_out
from mercer.solvers.orthogonal.reestimate import negative_evidence
from mercer.solvers.orthogonal.roots import root_of
from mercer.solvers.orthogonal.stop import Judge
from mercer.solvers.spectrum import Observations
from mercer.types import Array, Indices

ChosenBy = Literal["loo", "gcv", "evidence"]

# Multiples of tr B'B that are tried for alpha.
ALPHAS = 10.0 ** np.linspace(-8.0, 0.5, 18)
# Multiples of the mean of k(z, z) that are tried for the penalty "diagonal".
DIAGONALS = 10.0 ** np.linspace(-4.0, 1.5, 12)


@dataclass(frozen=True)
class SparseTrial:
    """A kernel, the alphas (a,) tried with it, and the criterion (a,) of the longest path for each.

    ``surprise`` (a,): minus twice the log evidence of the model on all candidates, where it was asked for.
    """

    kernel: Kernel
    alphas: Array
    scores: Array
    surprise: Array | None = None

    @property
    def best(self) -> float:
        """The least score; infinite where none is a number."""
        return float(np.nanmin(self.scores)) if np.isfinite(self.scores).any() else np.inf

    @property
    def alpha(self) -> float:
        """The largest alpha of least score."""
        close = self.scores <= self.best + 1e-9 * abs(self.best)
        return float(self.alphas[close].max())


@dataclass(frozen=True)
class Question:
    """What is asked of every kernel: the choice of centers among the points of a pool, their number, alpha
    (None: the best), the judge.

    ``chosen_by`` "gcv" compares the alphas of one kernel by generalized cross-validation, "evidence" lets the
    evidence decide between models that left-out rows hardly tell apart.
    """

    choice: SelectionRule
    pool: Indices
    most: int
    alpha: float | None
    judge: Judge
    chosen_by: ChosenBy = "loo"
    seed: int = 0
    # Kernels that are tried side by side.
    at_once: int | None = None


def search_kernels(
    kernels: Sequence[Kernel], X: Any, observations: Observations, question: Question
) -> list[SparseTrial]:
    """One trial for each kernel, side by side."""
    return map_in_threads(
        lambda kernel: try_kernel(CandidateColumns((kernel,), X, question.pool), observations, question),
        kernels,
        most=question.at_once,
    )


def try_kernel(
    candidates: CandidateColumns, observations: Observations, question: Question, sums: Sums | None = None
) -> SparseTrial:
    """The criterion of the longest path for every alpha; O(u c² + c m² + u m²) for c candidates, m centers."""
    rng = np.random.default_rng(question.seed)
    points = Points.of(observations)
    order = choose_order(candidates, points, question.choice, question.alpha, question.most, rng, sums)
    kernel = candidates.kernels[0]
    if len(order.centers) == 0:
        return SparseTrial(kernel, np.ones(1), np.full(1, np.inf))
    if question.choice.penalty == "diagonal":
        return _diagonal_trial(candidates, observations, order.centers, question)
    ridge = Ridges.of(candidates, observations, order.centers, question.choice)
    if question.alpha is not None:
        alphas = np.array([question.alpha])
    else:
        alphas = ALPHAS * ridge.unit if order.alpha is None else order.alpha[-1:]
    outputs = np.array([left_out(ridge.steps, ridge.state(alpha), observations) for alpha in alphas])
    scores = _finite(question.judge(outputs))
    if question.chosen_by == "evidence":
        return SparseTrial(kernel, alphas, scores, surprise(candidates, observations, alphas))
    return _trial(kernel, alphas, scores, lambda: ridge.gcv(alphas, observations), question)


def surprise(candidates: CandidateColumns, observations: Observations, alphas: Array) -> Array:
    """-2 log evidence (a,) of y ~ N(b, s² (W^-1 + K / alpha)) at the best s of each target, but for a constant.

    All u points are the candidates; which of them are chosen as centers has no say. O(u³). Rasmussen, Williams
    (2006), "Gaussian Processes for Machine Learning", Eq. (5.8).
    """
    points = Points.of(observations)
    half = points.weighted(candidates.columns(np.arange(len(candidates))))
    d, U = symmetric_eigen(points.weighted(half.T))
    d, square = np.maximum(d, 0.0), (U.T @ points.target) ** 2
    n = observations.n_counted
    total = observations.weight @ (observations.Y - points.mean) ** 2
    table = [
        [negative_evidence(d, z, float(all_), n, 1, float(alpha)) for z, all_ in zip(square.T, total)]
        for alpha in alphas
    ]
    return np.asarray(np.sum(table, axis=1))


def favorite(trials: Sequence[SparseTrial], n: float) -> tuple[Kernel, float]:
    """Kernel and alpha of least criterion, or by evidence where it is known.

    A mean of n squares of normal residuals has a relative standard error of sqrt(2/n): of the models within one
    of the least criterion, the evidence chooses. Few rows do not tell such models apart, and the least of many
    noisy criteria is often that of a wild one; evidence alone trusts the normal distribution too much.
    """
    if all(np.isnan(trial.scores).all() for trial in trials):
        raise NumericalError(
            "the criterion of held-out rows is not a number for any kernel and alpha; bring the features to one "
            "scale with a StandardScaler, or lower the parameters of the kernel"
        )
    best = min(trials, key=lambda trial: trial.best)
    if best.surprise is None:
        return best.kernel, best.alpha
    bound = best.best * (1.0 + np.sqrt(2.0 / n))
    _, kernel, alpha = min(
        (
            (value, trial.kernel, float(alpha))
            for trial in trials
            if trial.surprise is not None
            for value, score, alpha in zip(trial.surprise, trial.scores, trial.alphas)
            if score <= bound
        ),
        key=lambda model: model[0],
    )
    return kernel, alpha


def _trial(kernel: Kernel, alphas: Array, scores: Array, by_gcv: Any, question: Question) -> SparseTrial:
    """With generalized cross-validation only its favorite alpha is compared to other kernels."""
    if question.chosen_by == "gcv" and len(alphas) > 1:
        best = [int(np.argmin(by_gcv()))]
        return SparseTrial(kernel, alphas[best], scores[best])
    return SparseTrial(kernel, alphas, scores)


def _finite(scores: Array) -> Array:
    """Scores that overflowed are as good as none: infinite is that of a kernel without columns, and only that."""
    return np.where(np.isfinite(scores), scores, np.nan)


def _diagonal_trial(
    candidates: CandidateColumns, observations: Observations, order: Indices, question: Question
) -> SparseTrial:
    """One factorization for each alpha on the diagonal."""
    unit = float(np.abs(candidates.own(order)).mean()) or 1.0
    alphas = DIAGONALS * unit if question.alpha is None else np.array([question.alpha])
    outputs, scores = [], []
    n = observations.n_counted
    for alpha in alphas:
        steps = follow(candidates, observations, order, float(alpha), "diagonal")
        state = _last(steps)
        outputs.append(left_out(steps, state, observations))
        rss = ((Points.of(observations).target - state.F) ** 2).sum()
        scores.append(gcv(np.array([rss]), 1.0 + question.choice.cost * state.leverage.sum(keepdims=True), n)[0])
    judged = _finite(question.judge(np.array(outputs)))
    return _trial(candidates.kernels[0], alphas, judged, lambda: scores, question)


def _last(steps: Steps) -> State:
    V, own = steps.V, steps.N[steps.point]
    F, c = steps.N @ steps.zeta, V @ steps.zeta
    return State(len(V), F, (steps.N**2).sum(axis=1), (V**2).sum(axis=1), (V * own).sum(axis=1), c)


@dataclass(frozen=True)
class Ridges:
    """All alphas for given centers: ``steps`` in the basis W, where only all of them together mean anything."""

    steps: Steps
    values: Array
    cost: float

    @classmethod
    def of(
        cls, candidates: CandidateColumns, observations: Observations, order: Indices, choice: SelectionRule
    ) -> "Ridges":
        points = Points.of(observations)
        K = candidates.columns(order)
        A = points.weighted(K)
        kept, P = root_of(candidates, order, choice.penalty, A)
        B = scipy.linalg.solve_triangular(P, A[:, kept].T, trans=1, check_finite=False).T
        values, W = symmetric_eigen(B.T @ B)
        N, V = B @ W, scipy.linalg.solve_triangular(P, W, check_finite=False)
        mean = points.weight @ K[:, kept] / points.weight.sum()
        order = order[kept]
        values = np.maximum(values, 0.0)
        steps = Steps(
            order, candidates.point(order), mean, np.zeros(len(order)), N, V, N.T @ points.target, values
        )
        return cls(steps, values, choice.cost)

    @property
    def unit(self) -> float:
        """The natural unit of alpha."""
        return float(self.values.sum()) or 1.0

    def state(self, alpha: float) -> State:
        """The fit at one alpha; O(u m)."""
        scale, s = 1.0 / (self.values + alpha), self.steps
        weighted = scale[:, None] * s.zeta
        own = s.N[s.point]
        return State(
            len(scale), s.N @ weighted, s.N**2 @ scale, s.V**2 @ scale, (s.V * own) @ scale, s.V @ weighted
        )

    def gcv(self, alphas: Array, observations: Observations) -> Array:
        """Generalized cross-validation (a,) over the rows."""
        n, at_row, points = observations.n_counted, observations.rows.point, Points.of(observations)
        table = []
        for alpha in alphas:
            state = self.state(float(alpha))
            F = (points.mean + state.F / points.root[:, None])[at_row]
            table.append((observations.weight @ ((observations.Y - F) ** 2).sum(axis=1), state.leverage.sum()))
        rss, trace = np.array(table).T
        return gcv(rss, 1.0 + self.cost * trace, n)
