"""Checks of what users pass in; errors name the thing, the number and the remedy."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import is_dataclass
from numbers import Integral
from typing import Any, cast, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.base import BaseEstimator
from sklearn.model_selection import BaseCrossValidator, LeaveOneGroupOut, check_cv
from sklearn.utils import check_array, check_random_state, compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, column_or_1d

from mercer import gate
from mercer.centers import CenterSelector, ForwardSelection, Given, as_selector
from mercer.centers.resolve import selector_for
from mercer.errors import NumericalWarning, ScaleWarning, WeightWarning, warn
from mercer.gram import cross
from mercer.kernels import Kernel, as_kernel
from mercer.rows import Meaning, Reading, Tally, distinct_rows, reading_of
from mercer.rows.table import n_rows, take
from mercer.scores import CALIBRATIONS, CLASSIFICATION_CRITERIA, THRESHOLDS
from mercer.solvers.spectrum import Penalty
from mercer.types import Array, Indices

# Penalties that are given lie in between: of others squares are lost.
PENALTIES = (1e-100, 1e100)
# The share of squared distances that may be left to half of the features: scales that differ by a factor of 1000.
UNSEEN = 1e-6
# Leave-one-out scores, accuracy or R², that differ by more than this are worth a word.
SCORE_GAP = 0.02
# Outputs that may be off by more than this share of their spread are worth a warning; rows in float32: the second.
LOST, LOST_SINGLE = 1e-3, 0.1
# centers="auto" takes as many as a pass of so many multiplications allows, between these numbers.
AUTO_WORK = 4e12
AUTO_CENTERS = (500, 4000)


def choice(name: str, value: Any, allowed: Iterable[str]) -> None:
    """``value`` is one of the words."""
    allowed = list(allowed)
    if not isinstance(value, str) or value not in allowed:
        raise ValueError(f"{name}={_short(value)} is not known; it must be one of {', '.join(map(repr, allowed))}")


def positive_or_loo(name: str, value: Any) -> float | None:
    """A positive number, or None for the word "loo"."""
    return positive_or_word(name, value, ("loo",))


def positive_or_word(name: str, value: Any, words: Sequence[str]) -> float | None:
    """A positive number, or None for one of the words."""
    if isinstance(value, str) and value in words:
        return None
    gate.number(name, value, _or_words(words) if words else "a number above 0", above=0.0)
    least, most = PENALTIES
    return gate.number(name, value, f"between {least:g} and {most:g}", least=least, most=most)


def _or_words(words: Sequence[str]) -> str:
    *others, last = (f'"{word}"' for word in words)
    return f"{', '.join(['a positive number', *others])}, or {last}"


def positive_or_none(name: str, value: Any) -> float | None:
    """A positive number or None."""
    return None if value is None else gate.number(name, value, "a positive number or None", above=0.0)


def positive(name: str, value: Any) -> float:
    """A positive number."""
    return gate.number(name, value, "a number above 0", above=0.0)


def nonnegative(name: str, value: Any) -> float:
    """A number of at least zero."""
    return gate.number(name, value, "a number of at least zero", least=0.0)


def generator(random_state: Any) -> np.random.Generator:
    """The source of randomness for a seed, a RandomState, or None, which is the global state of NumPy."""
    return np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))


def share(name: str, value: Any) -> float:
    """A number above zero and at most one."""
    return gate.number(name, value, "a number above 0 and at most 1", above=0.0, most=1.0)


def count(name: str, value: Any) -> int:
    """A positive integer."""
    return gate.whole(name, value, "a positive integer", least=1)


def count_or_none(name: str, value: Any) -> int | None:
    """A positive integer or None."""
    return None if value is None else gate.whole(name, value, "a positive whole number or None", least=1)


def loo_size(value: Any) -> int | None:
    """A number of rows, at least two, or None for all."""
    allowed = "a number of rows, at least 2, or None for all of them"
    return None if value is None else gate.whole("loo_rows", value, allowed, least=2)


def _verbosity(name: str, value: Any) -> int:
    allowed = "False, True or a whole number of at least 0"
    return int(value) if isinstance(value, bool | np.bool_) else gate.whole(name, value, allowed, least=0)


def _nonnegative_or_none(name: str, value: Any) -> float | None:
    return None if value is None else nonnegative(name, value)


def _whole(name: str, value: Any) -> int:
    return gate.whole(name, value, "a whole number of at least 0", least=0)


# Parameters that are numbers or truth values, and what they must be; alpha knows words, too.
CHECKS: dict[str, Callable[[str, Any], Any]] = {
    "budget": count,
    "cost": positive,
    "fit_intercept": gate.truth,
    "forget": share,
    "loo_rows": lambda _, value: loo_size(value),
    "max_centers": count_or_none,
    "max_memory": positive_or_none,
    "n_candidates": count_or_none,
    "nu": share,
    "prune": gate.truth,
    "shared": gate.truth,
    "tol": nonnegative,
    "verbose": _verbosity,
    "window": count,
}
CHECKS_OF_SELECTORS: dict[str, Callable[[str, Any], Any]] = {
    "alpha": positive_or_none,
    "block_size": count_or_none,
    "cost": positive,
    "max_iter": count,
    "n_candidates": count,
    "n_centers": count_or_none,
    "n_init": count,
    "n_means": _whole,
    "n_subset": count,
    "per_class": gate.truth,
    "rows": gate.unmasked,
    "tolerance": _nonnegative_or_none,
}


def check_parameters(model: Any, words: Sequence[str] = ("loo",)) -> None:
    """All parameters of a model, and of its selector of centers, that are numbers, before anything is computed.

    ``words`` are those that alpha may be.
    """
    positive_or_word("alpha", model.alpha, words)
    _check_each(model, CHECKS)
    selector = getattr(model, "centers", None)
    if isinstance(selector, CenterSelector):
        _check_each(selector, CHECKS_OF_SELECTORS)


def _check_each(owner: Any, checks: dict[str, Callable[[str, Any], Any]]) -> None:
    for name, check in checks.items():
        if hasattr(owner, name):
            check(name, getattr(owner, name))


def auto_centers(n: int) -> int:
    """How many centers n rows get by themselves: at most half of them."""
    least, most = AUTO_CENTERS
    return max(1, min(n // 2, most, max(least, int((AUTO_WORK / max(n, 1)) ** 0.5))))


def wanted_centers(centers: Any) -> int:
    """The number of centers that the parameter asks for, or may ask for; 0 where they are given or not many."""
    _refuse_truth(centers)
    if isinstance(centers, str):
        return AUTO_CENTERS[1]
    number = centers if isinstance(centers, Integral) else getattr(centers, "n_centers", None)
    return 0 if number is None else int(number)


def as_plan(centers: Any, kernel: Kernel, X: Any, n: int) -> tuple[CenterSelector, int | None]:
    """Who chooses centers for n rows like X, and how many; None leaves that to the selector."""
    _refuse_truth(centers)
    if isinstance(centers, str):
        choice("centers", centers, ("auto", "all"))
        return selector_for(auto_centers(n)), auto_centers(n)
    if isinstance(centers, Integral):
        if int(centers) < 1:
            raise ValueError(f"centers={centers}; at least 1 center is needed")
        return selector_for(int(centers)), int(centers)
    if isinstance(centers, CenterSelector):
        chooses = isinstance(centers, ForwardSelection | Given)
        return centers, centers.n_centers or (None if chooses else auto_centers(n))
    given = as_selector(gate.unmasked("centers", centers))
    if isinstance(given, Given) and kernel.takes == "vectors" and isinstance(X, np.ndarray):
        # Centers in another precision than the rows would make every block slower.
        given = Given(check_array(given.rows, dtype=X.dtype))
        if given.rows.shape[1] != X.shape[1]:
            raise ValueError(
                f"centers have {given.rows.shape[1]} features and X has {X.shape[1]}; give centers with the "
                "columns of X"
            )
    return given, None


def _refuse_truth(centers: Any) -> None:
    if isinstance(centers, bool | np.bool_):
        raise ValueError(f'centers={centers}; give a number of centers, a selector, the centers, "auto" or "all"')


def settings(model: Any, names: Iterable[str]) -> dict[str, Any]:
    """Parameters of a model by their names, those of its kernel and selector by names such as kernel__gamma."""
    found = {name: getattr(model, name) for name in names if hasattr(model, name)}
    found["kernel"] = as_kernel(model.kernel)
    inner = [(name, part.get_params()) for name, part in found.items() if hasattr(part, "get_params")]
    return found | {f"{name}__{key}": value for name, params in inner for key, value in params.items()}


def refuse_changes(before: dict[str, Any], now: dict[str, Any]) -> None:
    """Parameters that moments depend on are what they were when the first rows came."""
    for name in sorted(before.keys() | now.keys(), key=len, reverse=True):
        old, new = before.get(name), now.get(name)
        if not _same(old, new):
            raise ValueError(
                f"{name} was {_short(old)} for the first rows and is {_short(new)} now, and their sums do not go "
                "together; set it back, or call fit to begin anew"
            )


def _same(a: Any, b: Any) -> bool:
    """Whether two parameters are equal; those of objects are compared by themselves."""
    if a is b:
        return True
    if hasattr(a, "get_params") or issparse(a) or isinstance(a, np.ndarray):
        alike = type(a) is type(b) and getattr(a, "shape", ()) == getattr(b, "shape", ())
        return alike and (hasattr(a, "get_params") or not np.any((a != b).data if issparse(a) else a != b))
    if isinstance(a, list | tuple):
        return type(a) is type(b) and len(a) == len(b) and all(map(_same, a, b))
    return type(b) is not np.ndarray and bool(a == b)


def _short(value: Any) -> str:
    shape = getattr(value, "shape", None)
    return repr(value) if shape is None else f"an array of shape {shape}"


def coverage_of(value: Any) -> None:
    """A share between zero and one."""
    gate.number("coverage", value, "a number between 0 and 1", above=0.0, below=1.0)


def penalty_of(value: str) -> Penalty:
    """One of the two penalties."""
    choice("penalty", value, get_args(Penalty))
    return cast(Penalty, value)


def class_labels(y: Any) -> NDArray[Any]:
    """Class labels of one type, as one column."""
    if y is None:
        raise ValueError("a classifier requires y to be passed, but the target y is None")
    labels = gate.labels("y", y)
    check_classification_targets(labels)
    return np.asarray(column_or_1d(labels, warn=True))


def known_classes(classes: Any) -> NDArray[Any]:
    """The different classes among labels, or those given as ``classes``, in their order."""
    return np.unique(gate.label_column("classes", classes))


def real_targets(y: Any, owner: Any) -> Array:
    """Finite real targets of one or two dimensions, for an estimator."""
    if y is None:
        raise ValueError(f"{type(owner).__name__} requires y to be passed, but the target y is None")
    y = gate.rows_in("y", y)
    targets: Array = check_array(y, ensure_2d=False, dtype=np.float64, input_name="y")
    gate.not_too_large("y", targets)
    return targets


def decision_words(model: Any) -> None:
    """What a classifier says of criterion, threshold and calibration is known, and goes together."""
    choice("criterion", model.criterion, CLASSIFICATION_CRITERIA)
    choice("threshold", model.threshold, ("bayes", *THRESHOLDS))
    choice("calibration", model.calibration, CALIBRATIONS)
    if model.threshold != "bayes" and model.priors is not None:
        raise ValueError(f'priors move the threshold, threshold={model.threshold!r} fixes it; use "bayes"')


def check_classes(classes: NDArray[Any], threshold: str) -> None:
    """At least two classes, and no more than the threshold can part."""
    k = len(classes)
    if k == 0:
        raise ValueError("there are no labels of positive weight; a classifier needs at least 2 classes")
    if k < 2:
        raise ValueError(f"y holds one class, {classes.tolist()[0]!r}; a classifier needs at least 2 classes")
    if k > 2 and threshold not in ("bayes", "least_squares"):
        raise ValueError(
            f'threshold={threshold!r} parts two classes and y has {k}; use "bayes" or "least_squares"'
        )


def component_count(value: Any, n_classes: int) -> int:
    """How many discriminant directions of n_classes are kept."""
    most = n_classes - 1
    if value is None:
        return most
    if isinstance(value, bool) or not isinstance(value, Integral) or not 1 <= int(value) <= most:
        raise ValueError(
            f"n_components={value!r}; {n_classes} classes have {most} discriminant direction"
            f"{'s' if most > 1 else ''}: give a whole number from 1 to {most}, or None for all"
        )
    return int(value)


def class_priors(priors: ArrayLike | None, n_classes: int) -> Array | None:
    """Positive numbers (k,) that sum to one, or None."""
    if priors is None:
        return None
    try:
        p = gate.real("priors", priors)
    except ValueError as problem:
        raise ValueError(f"priors={priors!r}; give {n_classes} numbers in the order of classes_") from problem
    # Comparisons that nan fails.
    if p.shape != (n_classes,) or not (p > 0).all() or not abs(p.sum() - 1.0) <= 1e-6:
        raise ValueError(f"priors={priors!r}; give {n_classes} positive numbers that sum to one")
    return p


def class_factors(class_weight: Any, classes: NDArray[Any], label: Indices, weight: Array) -> Array:
    """The factor (k,) of each class: "balanced" gives all classes the same total weight."""
    if isinstance(class_weight, dict):
        for label, factor in class_weight.items():
            gate.class_factor(f"class_weight={class_weight!r}: the weight of class {label!r}", factor)
    if isinstance(class_weight, str) and class_weight == "balanced":
        count = np.bincount(label, weight, minlength=len(classes))
        # A class that no row has seen yet counts as one of average size.
        average = weight.sum() / len(count)
        balanced: Array = average / np.where(count > 0, count, average)
        return balanced
    factors = compute_class_weight(class_weight, classes=classes, y=classes)
    return np.asarray(factors, dtype=np.float64)


def row_weight(sample_weight: ArrayLike | None, X: Any) -> Array:
    """Weights (n,) of the rows: nonnegative, of a size that sums can hold, not all zero."""
    if sample_weight is None:
        return np.ones(n_rows(X))
    w = gate.real("sample_weight", sample_weight)
    if w.ndim == 0:
        w = np.full(n_rows(X), float(w))
    if w.ndim != 1:
        raise ValueError(f"sample_weight has {w.ndim} dimensions; Sample weights must be 1D array or scalar")
    if w.shape != (n_rows(X),):
        raise ValueError(f"sample_weight.shape == {w.shape}, expected {(n_rows(X),)}: one for each row")
    gate.weights_in_range("sample_weight", w)
    gate.enough_weight("sample_weight", float(w.sum()))
    gate.no_row_alone("sample_weight", w)
    return w


def weight_reading(meaning: Any, weight: Array | Tally) -> Reading:
    """How weights (n,), or those of a tally, are read under the parameter ``weights``."""
    if np.ndim(meaning) > 0:
        raise ValueError(
            f"weights={_short(meaning)}; weights of rows are given to fit as sample_weight, and the parameter "
            "weights says what they mean: 'auto', 'counts' or 'importance'"
        )
    choice("weights", meaning, get_args(Meaning))
    tally = weight if isinstance(weight, Tally) else Tally.of(weight, len(weight))
    return reading_of(cast(Meaning, meaning), tally)


def warn_of_weights(reading: Reading, score: float, opposite: float) -> None:
    """One warning where weights might as well have been read in the other way, and the score would differ."""
    if abs(score - opposite) <= SCORE_GAP:
        return
    counts = "counts of equal rows (one copy is left out at a time)"
    importance = "importance (each row is left out as a whole)"
    taken, other = (counts, importance) if reading.counts else (importance, counts)
    keep, change = ("counts", "importance") if reading.counts else ("importance", "counts")
    warn(
        f"sample_weight holds whole numbers, which were read as {taken}: the leave-one-out score is {score:.3f}. "
        f"Read as {other} it would be {opposite:.3f}. If that was meant, use weights={change!r}; else use "
        f"weights={keep!r}, which reads them as now, without this warning",
        WeightWarning,
    )


def fold_of_rows(
    cv: Any, X: Any, y: NDArray[Any], groups: ArrayLike | None, *, classifier: bool = True
) -> Indices | None:
    """The fold (n,) in which each row leaves, or None where each leaves alone."""
    if cv is None and groups is None:
        return None
    groups = gate.unmasked("groups", groups)
    splitter: BaseCrossValidator = LeaveOneGroupOut() if cv is None else check_cv(cv, y, classifier=classifier)
    fold = np.full(n_rows(X), -1, dtype=np.intp)
    for number, (_, test) in enumerate(splitter.split(np.zeros(n_rows(X)), y, groups)):
        if (fold[test] >= 0).any():
            raise ValueError(f"cv={cv!r} leaves out a row twice; its test parts must be a partition of the rows")
        fold[test] = number
    if (fold < 0).any():
        raise ValueError(f"cv={cv!r} never leaves out {(fold < 0).sum()} rows; its test parts must cover all rows")
    if fold.max() == 0:
        raise ValueError("all rows are in one fold; cv or groups must give at least two")
    return fold


def check_stored(value: Any) -> None:
    """Refuse sparse rows whose indices lead out of their arrays: compiled code trusts them, and files may lie."""
    if hasattr(value, "check_format"):
        try:
            value.check_format(full_check=True)
        except ValueError as error:
            raise ValueError(
                f"sparse rows in the stored model are damaged: {error}; do not use this file"
            ) from None
    elif isinstance(value, dict):
        check_stored(list(value.values()))
    elif isinstance(value, list | tuple):
        for part in value:
            check_stored(part)
    elif is_dataclass(value) or isinstance(value, BaseEstimator):
        check_stored(vars(value))


def check_folds(fold: Indices | None, weight: Array | None) -> None:
    """Rows of positive weight are in two folds at least."""
    used = fold if fold is None or weight is None else fold[weight > 0]
    if used is not None and (used == used[0]).all():
        raise ValueError("all rows of positive weight are in one fold; cv or groups must give at least two")


def consistent(X: Any, y: Any) -> None:
    """As many targets as rows."""
    check_consistent_length(X, y)


def warn_of_scales(X: Any) -> None:
    """One warning where at most half of the features that vary carry all but a millionth of squared distances."""
    if not isinstance(X, np.ndarray) or X.ndim != 2 or X.dtype.kind != "f":
        return
    with np.errstate(over="ignore"):
        spread = X.std(axis=0)
        if not 0.0 < spread.max(initial=0.0) ** 2 < np.inf:
            return
    # Rounding gives constant features a spread, too.
    moving = np.flatnonzero(np.ptp(X, axis=0) > 0)
    order = moving[np.argsort(-spread[moving], kind="stable")]
    carried = np.cumsum(spread[order] ** 2)
    carrying = int((carried < (1.0 - UNSEEN) * carried[-1:]).sum()) + 1
    if 2 * carrying > len(order):
        return
    most, next_one = order[0], order[carrying]
    # Below this squares are lost, and with them the spread.
    times = spread[most] / max(float(spread[next_one]), np.finfo(np.float64).tiny ** 0.5)
    warn(
        f"{carrying} of {len(order)} features that vary carry all but {UNSEEN:.0e} of the squared distances: "
        f"feature {most} varies {times:.1e} times as much as feature {next_one}. If "
        "features have different units, put a StandardScaler before the estimator",
        ScaleWarning,
    )


def warn_of_constant(kernel: Kernel, X: Any, rank: int | None = None) -> None:
    """One warning where the kernel has the same value for all pairs of rows, though rows differ: looks at 256.

    Another where that is not so, and the rank of the kernel matrix is zero, if known.
    """
    if kernel.takes != "vectors":
        return
    n = n_rows(X)
    rows = take(X, np.unique(np.linspace(0, n - 1, min(n, 256)).astype(np.intp)))
    if len(distinct_rows(rows).first) < 2:
        return
    K = cross(kernel, rows, rows)
    if np.ptp(K) <= 8.0 * np.finfo(K.dtype).eps * np.abs(K).max():
        warn(
            f"{kernel} has the same value, {K[0, 0]:.3g}, for all pairs of rows, to rounding, so the model is a "
            "constant; bring the features to unit scale with a StandardScaler, or change the parameters of the "
            "kernel",
            NumericalWarning,
        )
    elif rank == 0:
        warn(
            f"the matrix of {kernel} has no positive eigenvalue, so the model is a constant; use a kernel that is "
            "positive semidefinite, or change its parameters",
            NumericalWarning,
        )


def warn_of_shift(shift: float) -> None:
    """One warning where a factorization needed a shift of the diagonal."""
    if shift > 0:
        warn(
            f"the kernel matrix is singular to working precision; {shift:.1e} was added to its diagonal",
            NumericalWarning,
        )


def warn_of_indefinite(kernel: Any, negative: float) -> None:
    """One warning where the kernel is none, and the negative part of its matrix was clipped."""
    if negative > 0 and not kernel.positive_semidefinite:
        warn(
            f"the kernel matrix of {kernel} is not positive semidefinite: an eigenvalue {-negative:.1e} times "
            "the largest was set to zero, and with it what the model sees in that direction",
            NumericalWarning,
        )


def warn_of_lost_digits(X: Any, kernel: Any, alpha: float, error: float) -> None:
    """One warning where rounding may move outputs visibly."""
    single = getattr(X, "dtype", None) == np.float32
    if kernel.positive_semidefinite and error > (LOST_SINGLE if single else LOST):
        warn(
            f"rounding errors may move outputs by {error:.1e} of their spread: {kernel} with alpha={alpha:.1e} "
            "needs more digits of the kernel values than there are; put a StandardScaler before the estimator, or "
            f"{'pass float64' if single else 'raise alpha'}",
            NumericalWarning,
        )
