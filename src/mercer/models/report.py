"""What a fit did, in words."""

from dataclasses import dataclass
from typing import Any

from mercer.kernels import Kernel
from mercer.tuning import Tuned, TuningPath
from mercer.types import Indices


@dataclass(frozen=True)
class FitReport:
    """Facts about a fit; ``str`` gives them as lines."""

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
    rank: int
    negative: float
    error: float
    products: str

    def __str__(self) -> str:
        least = f"{self.criterion} {self.criterion_value:.4g}"
        lines = {
            "rows": str(self.n_rows),
            "centers": f"{self.n_centers}, {self.centers}",
            "kernel": str(self.kernel),
            "alpha": f"{self.alpha:.4g}",
            "chosen by": f"{least}, leaving out {self.leaving}; {self.searched}",
            "held-out rows": self.loo,
            "degrees of freedom": f"{self.degrees_of_freedom:.1f}",
            "kernel matrix": f"rank {self.rank}, negative part {self.negative:.1e} of the largest eigenvalue",
        }
        lines["rounding"] = f"moves outputs by at most {self.error:.0e} of their spread"
        if self.products:
            lines["products"] = self.products
        width = max(map(len, lines)) + 2
        return "\n".join(f"{name + ':':{width}}{text}" for name, text in lines.items())


def fit_report(
    model: Any,
    tuned: Tuned,
    loo: str,
    criterion: str,
    *,
    n_rows: int,
    centers: str,
    products: str,
    fold: Indices | None,
) -> FitReport:
    """The report of a model that has just been fitted."""
    return FitReport(
        n_rows=n_rows,
        n_centers=len(model.dual_coef_),
        centers=centers,
        kernel=model.kernel_,
        alpha=model.alpha_,
        criterion=criterion,
        criterion_value=float(tuned.paths[-1].scores.min()),
        searched=", then ".join(_in_words(path) for path in _told(tuned.paths)),
        leaving=_leaving(fold, len(tuned.loo), n_rows),
        loo=loo,
        degrees_of_freedom=model.degrees_of_freedom_,
        rank=tuned.rank,
        negative=tuned.negative,
        error=tuned.error,
        products=products,
    )


def _leaving(fold: Indices | None, n_loo: int, n_rows: int) -> str:
    if fold is not None:
        return f"{fold.max() + 1} folds"
    return "each row" if n_loo == n_rows else f"each of {n_loo} rows"


def _told(paths: tuple[TuningPath, ...]) -> tuple[TuningPath, ...]:
    """Without the last path where it repeats what a search on all rows has found."""
    if len(paths) > 1 and (paths[-2].n_points, paths[-2].n_centers) == (paths[-1].n_points, paths[-1].n_centers):
        return paths[:-1]
    return paths


def _in_words(path: TuningPath) -> str:
    kernels, alphas = path.scores.shape
    alone = "1 alpha" if alphas == 1 else f"{alphas} alphas"
    tried = f"{kernels} x {alphas} kernels and alphas" if kernels > 1 else alone
    centers = "" if path.n_centers is None else f" with {path.n_centers} centers"
    return f"{tried} on {path.n_points} rows{centers}"
