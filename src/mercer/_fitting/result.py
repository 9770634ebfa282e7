"""What every fit results in, whatever the solver: the solution, its evidence, and what the report tells of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from mercer._fitting.data import RowSchema
from mercer._fitting.kernel_learning.evidence import LearnedKernel
from mercer._fitting.selection.path import TuningPath
from mercer._gram.moments import Moments
from mercer._scores.targets import Targets
from mercer._scores.training_rows import Training
from mercer._solvers import Observations
from mercer._solvers.orthogonal import SparsePath
from mercer._solvers.orthogonal.stages import SparseStage
from mercer._solvers.programs.losses import Loss
from mercer._solvers.spectrum import Coefficients
from mercer._types import Array, Indices
from mercer.kernels._base import Kernel


@dataclass(frozen=True)
class LogitSolution:
    """Functions of the same centers whose outputs are logits: coef (m, q), intercept (q,), fitted with the
    logistic loss and this alpha, and leave-one-out outputs (n, q), also under the opposite reading of weights.
    """

    alpha: float
    coef: Array
    intercept: Array
    loo: Array
    loo_opposite: Array | None = None


@dataclass(frozen=True)
class ChosenSolution:
    """The chosen kernel and alpha, coef (m, q), intercept (q,), fitted and leave-one-out outputs of n rows (n, q).

    ``paths`` ends with the comparison of alphas for the chosen kernel; those of kernels come before.
    ``loo_opposite`` (n, q) are the leave-one-out outputs under the opposite reading of weights, counts or
    importance, if they are ambiguous. ``rank`` is that of the kernel matrix, None: not computed; ``negative`` the
    clipped negative part in units of the largest eigenvalue, None: not known; ``error`` a bound on rounding errors
    of outputs, in units of the spread of the targets; ``fold_models`` holds models without a fold.
    ``loo_of_kernel`` (n, q) are those with a kernel that was learned from all rows, None: that is ``loo``.
    ``logits`` give the probabilities, None: the outputs do; ``probabilities`` states why.
    """

    kernel: Kernel
    alpha: float
    coef: Array
    intercept: Array
    fitted: Array
    loo: Array
    degrees_of_freedom: float
    paths: tuple[TuningPath, ...]
    loo_opposite: Array | None = None
    rank: int | None = None
    negative: float | None = None
    error: float | None = None
    fold_models: Mapping[int, Coefficients] = field(default_factory=dict)
    loo_of_kernel: Array | None = None
    logits: LogitSolution | None = None
    probabilities: str = ""

    def of_rows(self, rows: Indices) -> "ChosenSolution":
        """With the outputs of some rows only."""
        fitted = self.fitted[rows] if len(self.fitted) else self.fitted
        loo_opposite = None if self.loo_opposite is None else self.loo_opposite[rows]
        return replace(self, fitted=fitted, loo=self.loo[rows], loo_opposite=loo_opposite)

    @property
    def least(self) -> float:
        """The criterion at the chosen alpha."""
        return float(np.nanmin(self.paths[-1].scores))

    @property
    def definite(self) -> bool:
        """Whether f has a variance: the kernel is positive semidefinite, or its matrix was found to be."""
        return self.kernel.positive_semidefinite or self.negative == 0.0


def held_out_words(fold: Indices | None, n_held_out: int, n_rows: int) -> str:
    """What leave-one-out holds out at a time, in words."""
    if fold is not None:
        return f"{fold.max() + 1} folds"
    return "each row" if n_held_out == n_rows else f"each of {n_held_out} rows"


@dataclass(frozen=True)
class FitDecision:
    """Which fit is made: the name of a strategy, and the reason in words."""

    strategy: str
    reason: str


@dataclass(frozen=True)
class SparseDetails:
    """Of a sparse fit: center j has the kernel of ``number`` j (m,); path and stages of each selection."""

    kernels: tuple[Kernel, ...]
    number: Indices
    paths: tuple[SparsePath, ...]
    stages: tuple[SparseStage, ...]


@dataclass(frozen=True)
class ProgramDetails:
    """Of a convex program: its losses, the largest duality gap as a share of the objective of f = 0, or after
    passes what the last step gains, and how the solver ended.
    """

    losses: tuple[Loss, ...]
    gap: float
    status: str


@dataclass(frozen=True)
class FitResult:
    """A solution with centers, which are rows number ``support`` (m,), None: they are not rows; and its evidence,
    ``training`` rows of number ``index`` (n,), of all ``n_rows``, that were held out, ``held_out`` at a time.

    ``criterion_value`` is the criterion at the choice, ``selected`` and ``products`` state how centers were
    selected and products computed. ``observations`` if every distinct row is a center, ``moments`` of all rows if
    sums were made; ``mu`` is the weight of the penalty of transformations, None: there is none; ``learned`` is
    what the kernel had to learn before, None: nothing. ``state`` is what the fit can go on from, None: it cannot;
    ``decision`` states which fit was made and why, and ``schema`` what the columns of the rows are.
    """

    solution: ChosenSolution
    training: Training
    index: Indices
    targets: Targets
    centers: Any
    support: Indices | None
    n_rows: int
    criterion_value: float
    held_out: str
    selected: str
    products: str = ""
    moments: Moments | None = None
    observations: Observations | None = None
    mu: float | None = None
    learned: LearnedKernel | None = None
    sparse: SparseDetails | None = None
    program: ProgramDetails | None = None
    state: Any = None
    decision: FitDecision | None = None
    schema: RowSchema | None = None
