"""What benchmark scripts share: the heading of a table, its columns, and the peer they are held against."""

import platform
import sys
from collections.abc import Sequence
from datetime import date
from importlib.metadata import version

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from mercer import KernelFisherClassifier
from mercer.kernels import RBF
from mercer.tuning import ALPHAS

PACKAGES = ("mercer", "numpy", "scipy", "scikit-learn")


def heading() -> str:
    """The command, the versions, the processor and the date."""
    versions = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    machine = f"{platform.machine()}, Python {platform.python_version()}, {_processor()}"
    words = [word if "/" not in word else word.rsplit("/", 1)[-1] for word in sys.argv]
    return f"$ python benchmarks/{' '.join(words)}\n{versions}\n{machine}\n{date.today()}\n"


def _processor() -> str:
    try:
        with open("/proc/cpuinfo") as lines:
            names = [line.split(":")[1].strip() for line in lines if line.startswith("model name")]
        return f"{len(names)} x {names[0]}"
    except (OSError, IndexError):
        return platform.processor()


def table(rows: Sequence[Sequence[object]], header: Sequence[str]) -> str:
    """Columns of equal width: the first flush left, the others flush right."""
    cells = [list(header), *[[_cell(value) for value in row] for row in rows]]
    widths = [max(len(row[j]) for row in cells) for j in range(len(header))]
    lines = []
    for row in cells:
        first, *rest = (text.ljust(w) if j == 0 else text.rjust(w) for j, (text, w) in enumerate(zip(row, widths)))
        lines.append("  ".join([first, *rest]).rstrip())
    return "\n".join([lines[0], "-" * len(lines[0]), *lines[1:]])


def _cell(value: object) -> str:
    if value is None or (isinstance(value, float) and np.isnan(value)):
        return "-"
    return f"{value:.2f}" if isinstance(value, float) else str(value)


def default_model() -> object:
    """Everything default; standardizing is the user's step."""
    return make_pipeline(StandardScaler(), KernelFisherClassifier())


def svc_search(X: NDArray[np.float64], *, seed: int = 0) -> GridSearchCV:
    """SVC over as many gammas and penalties as the self-tuned fit tries, 5 folds, for standardized rows X."""
    gammas = [kernel.gamma for kernel in RBF(gamma="loo").candidates(X)]
    grid = {"gamma": gammas, "C": np.logspace(-2, 4, len(ALPHAS))}
    return GridSearchCV(SVC(cache_size=500), grid, cv=StratifiedKFold(5, shuffle=True, random_state=seed))
