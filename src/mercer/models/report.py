"""Reports on fits, as text."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any, TypeVar

import numpy as np

from mercer.kernels.base import Kernel, kind_of
from mercer.rows.progress import say
from mercer.scores.targets import Targets
from mercer.solvers.programs.losses import Huber, Loss
from mercer.tuning import TuningPath
from mercer.tuning.few_rows import FewRows
from mercer.tuning.fit import Fit
from mercer.tuning.machine import MachineFit
from mercer.types import Indices

Method = TypeVar("Method", bound=Callable[..., Any])

# What the score of a choice is.
BEST = ", the best of those compared"


@dataclass(frozen=True)
class FitReport:
    """Facts about a fit; ``str`` returns them as lines."""

    n_rows: int
    n_centers: int
    centers: str
    kernel: Kernel
    alpha: float
    criterion: str
    criterion_value: float
    searched: str
    leaving: str
    loo: str
    degrees_of_freedom: float
    rank: int | None
    negative: float
    error: float
    products: str
    mu: float | None = None
    learned: str = ""

    def __str__(self) -> str:
        mu = "" if self.mu is None else f", and mu {self.mu:g} for changes under invariances"
        lines = {
            "rows": str(self.n_rows),
            "centers": f"{self.n_centers}, {self.centers}",
            "kernel": str(self.kernel),
            "alpha": f"{self.alpha:.4g}{mu}",
            "chosen by": f"{_value(self.criterion, self.criterion_value)}, leaving out {self.leaving}",
            "compared": self.searched,
            "held-out rows": self.loo,
            "degrees of freedom": f"{self.degrees_of_freedom:.1f}",
            "kernel matrix": self._matrix(),
        }
        if self.learned:
            lines["learned"] = self.learned
        lines["rounding"] = f"changes outputs by at most {self.error:.0e} of their spread"
        if self.products:
            lines["products"] = self.products
        return _aligned(lines)

    def _matrix(self) -> str:
        """What is known of the kernel matrix."""
        if self.rank is None:
            return "positive definite with this alpha"
        return f"rank {self.rank}, negative part {self.negative:.1e} of the largest eigenvalue"


@dataclass(frozen=True)
class SparseReport:
    """Facts about a sparse fit; ``str`` returns them as lines.

    ``longest`` is the number of centers on the longest path; if all were kept, ``end`` states why.
    """

    n_rows: int
    n_centers: int
    longest: int
    end: str
    kernel: Kernel
    alpha: float
    selection: str
    criterion: str
    criterion_value: float
    n_kernels: int
    searched: str
    loo: str

    def __str__(self) -> str:
        lines = {
            "rows": f"{self.n_rows}, of which {self.n_centers} are centers ({self.n_centers / self.n_rows:.1%})",
            "kernel": f"{self.kernel}, of {self.n_kernels}",
            "alpha": f"{self.alpha:.4g}",
            "centers": f"by {self.selection}, {'all ' if self.end else ''}of a path of {self.longest}{self.end}",
            "chosen by": f"{_value(self.criterion, self.criterion_value)}, with centers selected without the row",
            "compared": self.searched,
            "held-out rows": self.loo,
        }
        return _aligned(lines)

    @classmethod
    def of(cls, fit: FewRows, targets: Targets, selection: str, score: float) -> "SparseReport":
        """The report of a fit with this leave-one-out score."""
        return cls(
            n_rows=len(fit.loo),
            n_centers=len(fit.coef),
            longest=max(len(path) for path in fit.paths),
            end=fit.end,
            kernel=fit.kernels[0],
            alpha=fit.alpha,
            selection=selection,
            criterion=targets.criterion_name,
            criterion_value=fit.criterion_value,
            n_kernels=max((len(path.kernels) for path in fit.trials), default=1),
            searched=_tried(fit.trials) or "nothing: there is only one kernel",
            loo=targets.score_words(score) + BEST,
        )


@dataclass(frozen=True)
class MachineReport:
    """Facts about the fit of a machine; ``str`` returns them as lines."""

    n_rows: int
    n_centers: int
    loss: str
    penalty: str
    kernel: Kernel
    alpha: float
    criterion: str
    criterion_value: float
    searched: str
    chosen_by: str
    loo: str
    degrees_of_freedom: float
    status: str

    def __str__(self) -> str:
        lines = {
            "rows": f"{self.n_rows}, of which {self.n_centers} have coefficients",
            "program": f"{self.loss} with the penalty {self.penalty}",
            "kernel": str(self.kernel),
            "alpha": f"{self.alpha:.4g}",
            "chosen by": f"{_value(self.criterion, self.criterion_value)}, {self.chosen_by}",
            "compared": self.searched,
            "held-out rows": self.loo,
            "degrees of freedom": f"{self.degrees_of_freedom:.1f}",
            "solver": self.status,
        }
        return _aligned(lines)

    @classmethod
    def of(cls, fit: MachineFit, targets: Targets, loss: str, penalty: str, score: float) -> "MachineReport":
        """The report of a fit with this leave-one-out score."""
        return cls(
            n_rows=fit.n_rows,
            n_centers=len(fit.coef),
            loss=_loss_words(loss, fit.losses),
            penalty=penalty,
            kernel=fit.kernel,
            alpha=fit.alpha,
            criterion=targets.criterion_name,
            criterion_value=fit.criterion_value,
            searched=_searched(fit.paths),
            chosen_by="held-out folds" if fit.by_folds else "leaving out each row by Newton steps",
            loo=targets.score_words(score) + BEST,
            degrees_of_freedom=fit.degrees_of_freedom,
            status=fit.status,
        )


def _aligned(lines: dict[str, str]) -> str:
    """Names and texts as lines."""
    width = max(map(len, lines)) + 2
    return "\n".join(f"{name + ':':{width}}{text}" for name, text in lines.items())


def _loss_words(loss: str, losses: Sequence[Loss]) -> str:
    """The name of a loss, with the widths that were chosen."""
    widths = [each.delta if isinstance(each, Huber) else getattr(each, "epsilon", 0.0) for each in losses]
    if not any(widths):
        return f"{loss} loss"
    return f"{loss} loss of width {', '.join(dict.fromkeys(f'{width:.3g}' for width in widths))}"


def fit_report(fit: Fit, targets: Targets, score: float) -> FitReport:
    """The report of a fit with this leave-one-out score."""
    tuned = fit.tuned
    return FitReport(
        n_rows=fit.n_rows,
        n_centers=len(tuned.coef),
        centers=fit.selected,
        kernel=tuned.kernel,
        alpha=tuned.alpha,
        criterion=targets.criterion_name,
        criterion_value=float(tuned.paths[-1].scores.min()),
        searched=_searched(tuned.paths),
        leaving=_leaving(fit.training.fold, len(tuned.loo), fit.n_rows),
        loo=targets.score_words(score) + (BEST if sum(path.scores.size for path in tuned.paths) > 1 else ""),
        degrees_of_freedom=tuned.degrees_of_freedom,
        rank=tuned.rank,
        negative=tuned.negative,
        error=tuned.error,
        products=fit.products,
        mu=fit.mu,
        learned="" if fit.learned is None else fit.learned.words,
    )


def _leaving(fold: Indices | None, n_loo: int, n_rows: int) -> str:
    if fold is not None:
        return f"{fold.max() + 1} folds"
    return "each row" if n_loo == n_rows else f"each of {n_loo} rows"


def _value(criterion: str, value: float) -> str:
    """A criterion in words: squared errors are in units of the variance of the targets."""
    return f"{criterion} {value:.4g}{' of the variance (1 - R²)' if criterion == 'squared' else ''}"


def _searched(paths: tuple[TuningPath, ...]) -> str:
    """What was compared, one comparison after the other."""
    *before, last = paths
    noun = _noun(before)
    kernels = [f"{_counted(len(path.kernels), noun)} {_by_fits(path)}" for path in before]
    return ", then ".join([*kernels, f"{_counted(last.scores.size, 'alpha')} {_by_fits(last)}"])


def _tried(paths: Sequence[TuningPath]) -> str:
    """Which kernels and alphas comparisons of sparse fits had, and by what they were compared."""
    noun = _noun(paths)
    return ", then ".join(_pairs(path, noun) for path in paths)


def _pairs(path: TuningPath, noun: str) -> str:
    counts = zip(path.scores.shape, (noun, "alpha"))
    several = " and ".join(_counted(count, name) for count, name in counts if count > 1) or "1 alpha"
    return f"{several} {_by_fits(path)}{'' if path.surprise is None else ' and by evidence'}"


def _by_fits(path: TuningPath) -> str:
    """By which fits kernels or alphas were compared."""
    centers = "" if path.n_centers is None else f" with {_counted(path.n_centers, 'center')}"
    return f"by fits{centers} to {_counted(path.n_points, 'row')}"


def _noun(paths: Sequence[TuningPath]) -> str:
    """What was compared: widths if the kernels differ in one gamma only."""
    kernels = [kernel for path in paths for kernel in path.kernels]
    if len({kind_of(kernel) for kernel in kernels}) > 1:
        return "kernel"
    numbers = [_numbers(kernel) for kernel in kernels]
    varied = {name for some in numbers for name in some if not np.array_equal(some[name], numbers[0][name])}
    return "width" if len(varied) == 1 and varied.pop().split("__")[-1] == "gamma" else "kernel"


def _numbers(kernel: Kernel) -> dict[str, Any]:
    """The parameters of a kernel that are neither kernels nor lists of them, by name."""
    params = kernel.get_params(deep=True).items()
    return {name: value for name, value in params if not isinstance(value, Kernel) and name != "parts"}


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def told(method: Method) -> Method:
    """A method that fits a model; if it is ``verbose``, a line of rows, centers and seconds is the end."""

    @wraps(method)
    def call(self: Any, *args: Any, **choices: Any) -> Any:
        start = time.perf_counter()
        fitted = method(self, *args, **choices)
        if self.verbose > 0:
            seconds, report = time.perf_counter() - start, self.report_
            rows = f"{report.n_rows:,} rows with {report.n_centers:,} centers"
            say(f"{type(self).__name__}: {rows} fitted in {seconds:.1f} s")
        return fitted

    return call  # type: ignore[return-value]
