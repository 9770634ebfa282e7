"""Reports on fits, as text."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any, TypeVar

import numpy as np

from mercer._fitting import TuningPath
from mercer._fitting.result import FitResult
from mercer._solvers.programs.losses import Huber, Loss
from mercer.kernels._base import Kernel, kind_of
from mercer.rows._progress import say

Method = TypeVar("Method", bound=Callable[..., Any])

# What the score of a choice is.
BEST = ", the best of those compared"


@dataclass(frozen=True)
class Report:
    """Facts about a fit; ``str`` returns them as lines. Facts that a model does not have are None or empty.

    ``centers`` states how they were selected, ``held_out`` what leave-one-out held out at a time, ``loo`` how well
    it was predicted, ``error`` by how much rounding may change outputs, in units of the spread of the targets.
    """

    n_rows: int
    n_centers: int
    centers: str
    strategy: str
    program: str
    kernel: Kernel
    alpha: float
    mu: float | None
    criterion: str
    criterion_value: float
    held_out: str
    searched: str
    loo: str
    probabilities: str
    degrees_of_freedom: float
    rank: int | None
    negative: float | None
    learned: str
    error: float | None
    products: str
    status: str
    columns: str

    @classmethod
    def of(cls, result: FitResult, score: float, program: str = "") -> "Report":
        """The report of a fit with this leave-one-out score; ``program`` states its loss and penalty."""
        solution, targets, decision = result.solution, result.targets, result.decision
        encoding = None if result.schema is None else result.schema.encoding
        several = result.sparse is not None or sum(path.scores.size for path in solution.paths) > 1
        return cls(
            n_rows=result.n_rows,
            n_centers=len(solution.coef),
            centers=result.selected,
            strategy="" if decision is None else f"{decision.strategy}: {decision.reason}",
            program=program,
            kernel=solution.kernel,
            alpha=solution.alpha,
            mu=result.mu,
            criterion=targets.criterion_name,
            criterion_value=result.criterion_value,
            held_out=result.held_out,
            searched=_searched(solution.paths) if result.sparse is None else _tried(solution.paths),
            loo=targets.score_words(score) + (BEST if several else ""),
            probabilities=solution.probabilities,
            degrees_of_freedom=solution.degrees_of_freedom,
            rank=solution.rank,
            negative=solution.negative,
            learned="" if result.learned is None else result.learned.words,
            error=solution.error,
            products=result.products,
            status="" if result.program is None else result.program.status,
            columns="" if encoding is None else encoding.summary,
        )

    def __str__(self) -> str:
        mu = "" if self.mu is None else f", and mu {self.mu:g} for changes under invariances"
        rounding = "" if self.error is None else f"changes outputs by at most {self.error:.0e} of their spread"
        lines = {
            "rows": str(self.n_rows),
            "columns": self.columns,
            "centers": f"{self.n_centers}, {self.centers}",
            "fit": self.strategy,
            "program": self.program,
            "kernel": str(self.kernel),
            "alpha": f"{self.alpha:.4g}{mu}",
            "chosen by": f"{_value(self.criterion, self.criterion_value)}, holding out {self.held_out}",
            "compared": self.searched,
            "held-out rows": self.loo,
            "probabilities": self.probabilities,
            "degrees of freedom": f"{self.degrees_of_freedom:.1f}",
            "kernel matrix": self._matrix(),
            "learned": self.learned,
            "rounding": rounding,
            "products": self.products,
            "solver": self.status,
        }
        return _aligned({name: text for name, text in lines.items() if text})

    def _matrix(self) -> str:
        """What is known of the kernel matrix."""
        if self.error is None:
            return ""
        if self.rank is None:
            return "positive definite with this alpha"
        return f"rank {self.rank}, negative part {self.negative or 0.0:.1e} of the largest eigenvalue"


def _aligned(lines: dict[str, str]) -> str:
    """Names and texts as lines."""
    width = max(map(len, lines)) + 2
    return "\n".join(f"{name + ':':{width}}{text}" for name, text in lines.items())


def loss_words(loss: str, losses: Sequence[Loss]) -> str:
    """The name of a loss, with the widths that were chosen."""
    widths = [each.delta if isinstance(each, Huber) else getattr(each, "epsilon", 0.0) for each in losses]
    if not any(widths):
        return f"{loss} loss"
    return f"{loss} loss of width {', '.join(dict.fromkeys(f'{width:.3g}' for width in widths))}"


def _value(criterion: str, value: float) -> str:
    """A criterion in words: squared errors are in units of the variance of the targets."""
    return f"{criterion} {value:.4g}{' of the variance (1 - R²)' if criterion == 'squared' else ''}"


def _searched(paths: tuple[TuningPath, ...]) -> str:
    """What was compared, one comparison after the other."""
    *before, last = paths
    kernels = [f"{_counted(len(path.kernels), _noun([path]))} {_by_fits(path)}" for path in before]
    return ", then ".join([*kernels, f"{_counted(last.scores.size, 'alpha')} {_by_fits(last)}"])


def _tried(paths: Sequence[TuningPath]) -> str:
    """Which kernels and alphas comparisons of sparse fits had, and by what they were compared."""
    noun = _noun(paths)
    return ", then ".join(_pairs(path, noun) for path in paths) or "nothing: there is only one kernel"


def _pairs(path: TuningPath, noun: str) -> str:
    counts = zip(path.scores.shape, (noun, "alpha"))
    several = " and ".join(_counted(count, name) for count, name in counts if count > 1) or "1 alpha"
    return f"{several} {_by_fits(path)}{'' if path.marginal_deviance is None else ' and by evidence'}"


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


def logs_fit_time(method: Method) -> Method:
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
