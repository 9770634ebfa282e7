"""What is asked of a fit: every choice that does not depend on the rows, checked and frozen."""

from dataclasses import dataclass
from functools import cached_property
from numbers import Integral
from typing import Any, Literal, cast

from mercer._fitting.kernel_learning.learn import learns
from mercer._fitting.kernel_learning.relevance import Features
from mercer._fitting.sparse.problem import SparseSettings
from mercer._gram import Budget
from mercer._solvers.programs.losses import (
    EpsilonInsensitive,
    Hinge,
    Huber,
    Logistic,
    Loss,
    Pinball,
    Squared,
    SquaredHinge,
)
from mercer._solvers.spectrum import Penalty
from mercer._types import Array
from mercer.centers import CenterSelector, Given
from mercer.kernels import Kernel
from mercer.kernels._algebra.weighted_sum import WeightedSum
from mercer.rows._sampling.weights import Meaning
from mercer.rows._virtual import Copies

AnyPenalty = Literal["rkhs", "coef", "l1", "elastic_net"]

# Widths of losses in standard deviations of the noise: residuals beyond 1.345 of them are outliers (Huber 1964: of
# normal noise 95 % of the efficiency is left); a tolerance of 0.612 has the least variance (Smola et al. 1998).
WIDTHS: dict[str, tuple[type[Huber | EpsilonInsensitive], float]] = {
    "huber": (Huber, 1.345),
    "epsilon_insensitive": (EpsilonInsensitive, 0.612),
}
LOSSES: dict[str, Loss] = {
    "squared": Squared(),
    "absolute": EpsilonInsensitive(),
    "hinge": Hinge(),
    "squared_hinge": SquaredHinge(),
    "logistic": Logistic(),
}


@dataclass(frozen=True)
class LossChoice:
    """A loss by name; ``width`` is delta or epsilon, None: it follows from the noise; ``quantiles`` of pinball."""

    name: str
    width: float | None = None
    quantiles: tuple[float, ...] = ()

    @property
    def needs_scale(self) -> bool:
        return self.name in WIDTHS and self.width is None

    def losses(self, scale: Array) -> tuple[Loss, ...]:
        """The loss of each output, for standard deviations (q,) of the noise."""
        if self.name == "pinball":
            levels = self.quantiles if len(self.quantiles) > 1 else self.quantiles * len(scale)
            return tuple(Pinball(level) for level in levels)
        if self.name not in WIDTHS:
            return (LOSSES[self.name],) * len(scale)
        kind, share = WIDTHS[self.name]
        return tuple(kind(share * s if self.width is None else self.width) for s in scale.tolist())


@dataclass(frozen=True)
class SecondFit:
    """Whether a fit with the logistic loss is asked for, by the user or by default, and the ``parameter`` that
    forbids it because it is about the discriminant, None: none does.
    """

    asked: bool = False
    parameter: str | None = None


@dataclass(frozen=True)
class FitSpec:
    """Settings independent of the rows: kernel, alpha (None: by leave-one-out), penalty, the meaning of weights,
    the centers as given by the user, memory in GiB (None: what is free), whether passes show their progress, rows
    for leave-one-out of fits in passes (None: all), and whether there is an intercept.

    ``copies`` join the rows; changes of f by ``tangents`` are penalized instead, with one of the weights ``mus``.
    ``relevance``: features have gammas as far as they matter; None: all have the same. ``loss`` makes the fit a
    program, with the part ``l1_share`` of sum_j |c_j| in the penalty "elastic_net"; None: least squares.
    ``sparse``: how centers are selected one after another; None: they are not. ``logits``: whether probabilities
    may come from a second fit, with the logistic loss.
    """

    kernel: Kernel
    alpha: float | None
    penalty: AnyPenalty
    weights: Meaning
    centers: Any
    max_memory: float | None
    verbose: int = 0
    loo_rows: int | None = None
    intercept: bool = True
    copies: Copies | None = None
    tangents: Copies | None = None
    mus: tuple[float, ...] = ()
    relevance: Features | None = None
    loss: LossChoice | None = None
    l1_share: float = 0.0
    sparse: SparseSettings | None = None
    logits: SecondFit = SecondFit()

    @cached_property
    def budget(self) -> Budget:
        """Measured once: a fit decides everything by the same number."""
        return Budget.from_parameter(self.max_memory)

    def __getstate__(self) -> dict[str, Any]:
        """Without the budget, which is that of a machine at a moment."""
        return {name: value for name, value in vars(self).items() if name != "budget"}

    @property
    def norm(self) -> Penalty:
        """The penalty of least squares."""
        return cast(Penalty, self.penalty)

    @property
    def chooses(self) -> bool:
        """Whether kernel, alpha or centers are chosen by the rows, whatever fit is made."""
        selects = isinstance(self.centers, Integral | CenterSelector) and not isinstance(self.centers, Given)
        return self.alpha is None or not self.kernel.resolved or selects or len(self.mus) > 1

    @property
    def must_learn(self) -> bool:
        """Whether the kernel has something to learn, from however few rows."""
        asked = self.relevance is not None and not self.relevance.if_enough
        return asked or isinstance(self.kernel, WeightedSum)

    def learns_from(self, X: Any, most: int) -> bool:
        """Whether the kernel has something to learn, from at most a number of rows X, before it is compared."""
        return learns(self.kernel, self.relevance, X, most, self.budget)

    @property
    def all_are_centers(self) -> bool:
        """Whether the user wants every row to be a center."""
        return isinstance(self.centers, str) and self.centers == "all"

    @property
    def centers_are_chosen(self) -> bool:
        """Whether the rows decide how many of them are centers."""
        return isinstance(self.centers, str) and self.centers == "auto"
