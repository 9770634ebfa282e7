"""Warnings of a fit: scales of features, memory, equal rows, constant or indefinite kernels, lost digits."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from mercer._fitting.memory import MemoryPlan
from mercer._gram import Budget, cross
from mercer._gram.budget import GIB
from mercer.errors import MemoryWarning, NumericalWarning, ScaleWarning, warn
from mercer.kernels import Kernel
from mercer.kernels._vectors.units import scales_features
from mercer.rows._distinct import distinct_rows
from mercer.rows._table import in_single, n_rows, take

# Half of the features must carry at least this share of squared distances: scales differ by at most about 1000.
UNSEEN = 1e-6
# Errors of outputs above this share of their spread cause a warning; the second is for rows in float32.
LOST, LOST_SINGLE = 1e-3, 0.1


def warn_of_scales(kernel: Kernel, X: Any, names: Sequence[str] | None = None) -> None:
    """Warn if at most half of the varying features account for all but a millionth of the squared distances.

    ``names`` (d,) of the features, None: their numbers.
    """
    alike = kernel.takes_vectors and not scales_features(kernel)
    if not alike or not isinstance(X, np.ndarray) or X.ndim != 2 or X.dtype.kind != "f":
        return
    with np.errstate(over="ignore"):
        spread = X.std(axis=0)
        if not 0.0 < spread.max(initial=0.0) ** 2 < np.inf:
            return
    # Rounding gives even constant features a spread.
    moving = np.flatnonzero(np.ptp(X, axis=0) > 0)
    order = moving[np.argsort(-spread[moving], kind="stable")]
    carried = np.cumsum(spread[order] ** 2)
    carrying = int((carried < (1.0 - UNSEEN) * carried[-1:]).sum()) + 1
    if 2 * carrying > len(order):
        return
    most, next_one = order[0], order[carrying]
    one, other = (j if names is None else repr(names[j]) for j in (most, next_one))
    # Below this squares are lost, and with them the spread.
    times = spread[most] / max(float(spread[next_one]), np.finfo(np.float64).tiny ** 0.5)
    warn(
        f"{carrying} of {len(order)} varying features account for all but {UNSEEN:.0e} of the squared distances: "
        f"feature {one} varies {times:.1e} times as much as feature {other}. If features have different "
        "units, use kernel=Standardized(...), or kernel='auto' for Fisher and ridge models",
        ScaleWarning,
    )


def warn_of_memory(plan: MemoryPlan, budget: Budget) -> None:
    """Warn if a budget that nobody has set makes the model another one, which the report describes."""
    less = [plan.words.removeprefix("; within max_memory ")] if plan.words else []
    less += [] if plan.probe else ["no test of the precision of sums"]
    if budget.given or not less:
        return
    warn(
        f"the memory that is free now allows {', '.join(less)}: at another time equal rows may give another "
        f"model; pass max_memory={budget.n_bytes / GIB:.2g} (in GiB) to always get this one, or free memory",
        MemoryWarning,
    )


def warn_of_equal_rows(kernel: Kernel, X: Any, rank: int | None = None) -> None:
    """Warn if all rows are equal, and with them the outputs of the model: ``rank``, if known, is zero."""
    if not kernel.takes_vectors or rank or not (_all_equal(_some(X)) and _all_equal(X)):
        return
    warn(
        f"all features are constant: the {n_rows(X)} rows are equal, so a classifier can predict only the shares "
        "of the classes, and a regressor only the mean of y; check X",
        NumericalWarning,
    )


def _some(X: Any) -> Any:
    """At most 256 rows, evenly spread."""
    n = n_rows(X)
    return take(X, np.unique(np.linspace(0, n - 1, min(n, 256)).astype(np.intp)))


def _all_equal(X: Any) -> bool:
    return len(distinct_rows(X).first) < 2


def warn_of_constant(kernel: Kernel, X: Any, rank: int | None = None) -> None:
    """Warn if the kernel has the same value for all pairs of distinct rows, checked on 256 of them.

    Otherwise warn if the rank of the kernel matrix, if known, is zero.
    """
    if not kernel.takes_vectors:
        return
    rows = _some(X)
    if _all_equal(rows):
        return
    K = cross(kernel, rows, rows)
    if np.ptp(K) <= 8.0 * np.finfo(K.dtype).eps * np.abs(K).max():
        warn(
            f"{kernel} has the same value, {K[0, 0]:.3g}, for all pairs of rows, up to rounding, so the model is "
            "a constant; scale the features with a StandardScaler, or change the parameters of the kernel",
            NumericalWarning,
        )
    elif rank == 0:
        warn(
            f"the matrix of {kernel} has no positive eigenvalue, so the model is a constant; use a positive "
            "semidefinite kernel, or change its parameters",
            NumericalWarning,
        )


def warn_of_indefinite(kernel: Kernel, negative: float) -> None:
    """Warn if the kernel is not positive semidefinite, and the negative part of its matrix was clipped."""
    if negative > 0 and not kernel.positive_semidefinite:
        warn(
            f"the kernel matrix of {kernel} is not positive semidefinite: an eigenvalue {-negative:.1e} times the "
            "largest was set to zero, and the model ignores that direction; use a positive semidefinite kernel "
            "if possible",
            NumericalWarning,
        )


def warn_of_lost_digits(X: Any, kernel: Kernel, alpha: float, error: float) -> None:
    """Warn if rounding errors may change outputs visibly."""
    single = in_single(X)
    if kernel.positive_semidefinite and error > (LOST_SINGLE if single else LOST):
        warn(
            f"rounding errors may change outputs by {error:.1e} of their spread: {kernel} with alpha={alpha:.1e} "
            "needs more digits of the kernel values than there are; "
            f"{'pass float64' if single else 'put a StandardScaler before the estimator, or raise alpha'}",
            NumericalWarning,
        )
