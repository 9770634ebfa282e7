"""What a fit did, in words."""

from dataclasses import dataclass
from typing import Any

from mercer.kernels import Kernel
from mercer.tuning import Path, Tuned


@dataclass(frozen=True)
class FitReport:
    """Facts about a fit; ``str`` gives them as lines."""

    n_rows: int
    n_centers: int
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

    def __str__(self) -> str:
        lines = {
            "rows": f"{self.n_rows}, distinct {self.n_centers}",
            "kernel": repr(self.kernel),
            "alpha": f"{self.alpha:.4g}",
            "chosen by": f"{self.criterion} {self.criterion_value:.4g}, {self.leaving} out; {self.searched}",
            "left out": self.loo,
            "degrees of freedom": f"{self.degrees_of_freedom:.1f}",
            "kernel matrix": f"rank {self.rank}, negative part {self.negative:.1e} of the largest eigenvalue",
        }
        width = max(map(len, lines)) + 2
        return "\n".join(f"{name + ':':{width}}{text}" for name, text in lines.items())


def _told(paths: tuple[Path, ...]) -> tuple[Path, ...]:
    """Without the last path where it repeats what a search on all rows has found."""
    return paths[:-1] if len(paths) > 1 and paths[-2].n_points == paths[-1].n_points else paths


def _in_words(path: Path) -> str:
    kernels, alphas = path.scores.shape
    tried = f"{kernels} x {alphas} kernels and alphas" if kernels > 1 else f"{alphas} alphas"
    return f"{tried} on {path.n_points} rows"


def fit_report(model: Any, tuned: Tuned, loo: str, criterion: str) -> FitReport:
    """The report of a model that has just been fitted."""
    return FitReport(
        n_rows=len(tuned.observations.Y),
        n_centers=len(model.dual_coef_),
        kernel=model.kernel_,
        alpha=model.alpha_,
        criterion=criterion,
        criterion_value=float(tuned.paths[-1].scores.min()),
        searched=", then ".join(_in_words(path) for path in _told(tuned.paths)),
        leaving="each row" if tuned.fold is None else f"{tuned.fold.max() + 1} folds",
        loo=loo,
        degrees_of_freedom=model.degrees_of_freedom_,
        rank=tuned.spectrum.rank,
        negative=tuned.spectrum.negative,
    )
