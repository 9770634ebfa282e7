r"""All alphas for given centers, and the evidence of all points.

With B = A P^-1 and B'B = W diag(l) W', N = B W and V = P^-1 W, each product is divided by l_k + alpha: one
eigendecomposition for every alpha.
"""

from dataclasses import dataclass, replace

import numpy as np

from mercer._linalg.eigen import symmetric_eigen
from mercer._linalg.lapack import solve_triangular
from mercer._solvers.orthogonal.candidates import CandidateColumns, Points, SparsePenalty
from mercer._solvers.orthogonal.path import Steps, fitted_at, gcv, loo_outputs_of_rows, state_at
from mercer._solvers.orthogonal.reestimate import negative_evidence
from mercer._solvers.orthogonal.roots import root_of
from mercer._solvers.spectrum import Observations
from mercer._types import Array, Indices


@dataclass(frozen=True)
class RidgeFit:
    """Fits for every alpha: ``steps`` in the basis W, meaningful only all together."""

    steps: Steps
    observations: Observations

    @classmethod
    def of(
        cls, candidates: CandidateColumns, observations: Observations, order: Indices, penalty: SparsePenalty
    ) -> "RidgeFit":
        """O(u m² + m³) for m centers."""
        points = Points.of(observations)
        K = candidates.columns(order)
        A = points.weighted(K)
        kept, P = root_of(candidates, order, penalty, A)
        B = solve_triangular(P, A[:, kept].T, transposed=True).T
        values, W = symmetric_eigen(B.T @ B)
        N, V = B @ W, solve_triangular(P, W)
        mean = points.weight @ K[:, kept] / points.weight.sum()
        order, d = order[kept], np.maximum(values, 0.0)
        zero = np.zeros(len(order))
        return cls(Steps(order, candidates.point(order), mean, zero, N, V, N.T @ points.target, d), observations)

    @property
    def unit(self) -> float:
        """The natural unit of alpha: the trace of B'B."""
        return float(np.asarray(self.steps.d).sum())

    def loo_outputs(self, alphas: Array, rows: Indices) -> Array:
        """Leave-one-out outputs (a, r, q) of rows (r,) whose points are not centers; O(r m) for each alpha."""
        m = len(self.steps.order)
        return np.array(
            [loo_outputs_of_rows(self._at(float(alpha)), m, self.observations, rows) for alpha in alphas]
        )

    def gcv(self, alphas: Array, cost: float) -> Array:
        """Generalized cross-validation (a,) over the rows."""
        observations, table = self.observations, []
        for alpha in alphas:
            steps = self._at(float(alpha))
            state = state_at(steps, len(steps.order))
            residual = observations.Y - fitted_at(steps, state, observations)
            table.append((observations.weight @ (residual**2).sum(axis=1), state.leverage.sum()))
        rss, trace = np.array(table).T
        return gcv(rss, 1.0 + cost * trace, observations.n_counted)

    def _at(self, alpha: float) -> Steps:
        """The steps with one alpha."""
        return replace(self.steps, alpha=np.full(len(self.steps.order), alpha))


def marginal_deviance(candidates: CandidateColumns, observations: Observations, alphas: Array) -> Array:
    """-2 log evidence (a,) of y ~ N(b, s² (W^-1 + K / alpha)) at the best s of each target, up to a constant.

    All u points are candidates, regardless of which of them are selected as centers. O(u³). Rasmussen, Williams
    (2006), "Gaussian Processes for Machine Learning", Eq. (5.8).
    """
    points = Points.of(observations)
    half = points.weighted(candidates.columns(np.arange(len(candidates))))
    d, U = symmetric_eigen(points.weighted(half.T))
    d, square = np.maximum(d, 0.0), (U.T @ points.target) ** 2
    n = observations.n_counted
    total = observations.weight @ (observations.Y - points.mean) ** 2
    each = [negative_evidence(d, z, float(all_), n, 1, alphas) for z, all_ in zip(square.T, total)]
    return np.asarray(np.sum(each, axis=0))
