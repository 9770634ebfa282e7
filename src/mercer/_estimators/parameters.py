"""Validation of user input; errors state what was given, what is allowed and what to do."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import is_dataclass, replace
from functools import partial
from numbers import Integral
from typing import Any, cast, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, is_classifier
from sklearn.model_selection import BaseCrossValidator, GroupKFold, LeaveOneGroupOut, check_cv
from sklearn.utils import check_array, check_random_state, compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, column_or_1d

from mercer import _validation
from mercer._fitting.spec import FitSpec
from mercer._scores import CALIBRATIONS, CLASSIFICATION_CRITERIA, THRESHOLDS
from mercer._scores.targets import ClassTargets, Decision, RealTargets, Targets
from mercer._scores.training_rows import Folds
from mercer._solvers.recursive import WHEN_FULL
from mercer._solvers.spectrum import Penalty
from mercer._types import Array
from mercer.centers import CenterSelector
from mercer.kernels import as_kernel
from mercer.rows._resolve import is_out_of_core
from mercer.rows._sampling.random_sample import Labels
from mercer.rows._sampling.weights import Meaning

# Range of given penalties: squares of others overflow or underflow.
PENALTY_RANGE = (1e-100, 1e100)


def positive_or_word(name: str, value: Any, words: Sequence[str] = ("loo",)) -> float | None:
    """A positive number, or None for one of the strings."""
    if isinstance(value, str) and value in words:
        return None
    _validation.check_number(name, value, _or_words(words) if words else "a number above 0", above=0.0)
    least, most = PENALTY_RANGE
    return _validation.check_number(name, value, f"between {least:g} and {most:g}", least=least, most=most)


def _or_words(words: Sequence[str]) -> str:
    *others, last = (f'"{word}"' for word in words)
    return f"{', '.join(['a positive number', *others])}, or {last}"


def positive_or_none(name: str, value: Any) -> float | None:
    """A positive number or None."""
    return None if value is None else _validation.check_number(name, value, "a positive number or None", above=0.0)


def memory_or_none(name: str, value: Any) -> float | None:
    """A positive number of GiB or None."""
    allowed = "a positive number of GiB, such as 0.5 or 4, or None"
    return None if value is None else _validation.check_number(name, value, allowed, above=0.0)


def positive(name: str, value: Any) -> float:
    """A positive number."""
    return _validation.check_number(name, value, "a number above 0", above=0.0)


def nonnegative(name: str, value: Any) -> float:
    """A number of at least zero."""
    return _validation.check_number(name, value, "a number of at least zero", least=0.0)


def generator(random_state: Any) -> np.random.Generator:
    """The source of randomness for a seed, a RandomState, or None, which is always the same seed."""
    return np.random.default_rng(check_random_state(_validation.seed(random_state)).randint(2**31 - 1))


def share(name: str, value: Any) -> float:
    """A number above zero and at most one."""
    return _validation.check_number(name, value, "a number above 0 and at most 1", above=0.0, most=1.0)


def count(name: str, value: Any) -> int:
    """A positive integer."""
    return _validation.check_int(name, value, "a positive integer", least=1)


def count_or_none(name: str, value: Any) -> int | None:
    """A positive integer or None."""
    return None if value is None else _validation.check_int(name, value, "a positive integer or None", least=1)


def _rows_or_none(name: str, value: Any) -> int | None:
    allowed = "a number of rows, at least 2, or None for all of them"
    return None if value is None else _validation.check_int(name, value, allowed, least=2)


def _verbosity(name: str, value: Any) -> int:
    allowed = "False, True or an integer of at least 0"
    return (
        int(value) if isinstance(value, bool | np.bool_) else _validation.check_int(name, value, allowed, least=0)
    )


def _nonnegative_or_none(name: str, value: Any) -> float | None:
    return None if value is None else nonnegative(name, value)


def _whole(name: str, value: Any) -> int:
    return _validation.check_int(name, value, "an integer of at least 0", least=0)


# Numeric and Boolean parameters, and their validation; alpha may also be a string.
CHECKS: dict[str, Callable[[str, Any], Any]] = {
    "delta": positive_or_none,
    "epsilon": positive_or_none,
    "l1_ratio": share,
    "calibration": partial(_validation.check_choice, allowed=CALIBRATIONS),
    "criterion": partial(_validation.check_choice, allowed=CLASSIFICATION_CRITERIA),
    "threshold": partial(_validation.check_choice, allowed=("bayes", *THRESHOLDS)),
    "decay": share,
    "fit_intercept": _validation.check_bool,
    "fit_inverse_transform": _validation.check_bool,
    "loo_rows": _rows_or_none,
    "max_centers": count_or_none,
    "max_memory": memory_or_none,
    "n_candidates": count_or_none,
    "nu": share,
    "prune": _validation.check_bool,
    "shared": _validation.check_bool,
    "tol": nonnegative,
    "verbose": _verbosity,
    "when_full": partial(_validation.check_choice, allowed=WHEN_FULL),
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
    "per_class": _validation.check_bool,
    "rows": _validation.unmasked,
    "tolerance": _nonnegative_or_none,
}


def check_parameters(model: Any, words: Sequence[str] = ("loo",)) -> None:
    """Validate all numeric parameters of a model and of its selector of centers, before anything is computed.

    ``words`` are the strings that alpha may be.
    """
    if hasattr(model, "alpha"):
        positive_or_word("alpha", model.alpha, words)
    _check_each(model, CHECKS)
    if getattr(model, "threshold", "bayes") != "bayes" and model.priors is not None:
        raise ValueError(
            f'priors would move the threshold, but threshold={model.threshold!r} fixes it; use "bayes"'
        )
    selector = getattr(model, "centers", None)
    if isinstance(selector, CenterSelector):
        _check_each(selector, CHECKS_OF_SELECTORS)


def common_spec(model: Any, words: Sequence[str] = ("loo",)) -> FitSpec:
    """What every model asks of a fit, validated: kernel, alpha, weights, centers and memory.

    ``words`` are the strings that alpha may be.
    """
    check_parameters(model, words)
    return FitSpec(
        kernel=as_kernel(model.kernel).copy(),
        alpha=positive_or_word("alpha", model.alpha, words),
        penalty="rkhs",
        weights=meaning_of(model.weights),
        centers=getattr(model, "centers", None),
        max_memory=model.max_memory,
        verbose=model.verbose,
    )


def _check_each(owner: Any, checks: dict[str, Callable[[str, Any], Any]]) -> None:
    for name, check in checks.items():
        if hasattr(owner, name):
            check(name, getattr(owner, name))


def parameters_of(model: Any, names: Iterable[str]) -> dict[str, Any]:
    """Parameters of a model by name, those of its kernel and selector by names such as kernel__gamma."""
    found = {name: getattr(model, name) for name in names if hasattr(model, name)}
    found["kernel"] = as_kernel(model.kernel)
    inner = [(name, part.get_params()) for name, part in found.items() if hasattr(part, "get_params")]
    return found | {f"{name}__{key}": value for name, params in inner for key, value in params.items()}


def refuse_changes(before: dict[str, Any], now: dict[str, Any]) -> None:
    """Parameters on which the moments depend must be the same as for the first rows."""
    for name in sorted(before.keys() | now.keys(), key=len, reverse=True):
        old, new = before.get(name), now.get(name)
        if not _same(old, new):
            raise ValueError(
                f"{name} was {_validation.format_value(old)} for the first rows and is "
                f"{_validation.format_value(new)} now, and sums for different values cannot "
                "be combined; restore it, or call fit to start over"
            )


def _same(a: Any, b: Any) -> bool:
    """Whether two parameters are equal; parameters of objects are compared separately."""
    if a is b:
        return True
    if hasattr(a, "get_params") or issparse(a) or isinstance(a, np.ndarray):
        alike = type(a) is type(b) and getattr(a, "shape", ()) == getattr(b, "shape", ())
        return alike and (hasattr(a, "get_params") or not np.any((a != b).data if issparse(a) else a != b))
    if isinstance(a, list | tuple):
        return type(a) is type(b) and len(a) == len(b) and all(map(_same, a, b))
    return type(b) is not np.ndarray and bool(a == b)


def quantiles_of(value: Any) -> tuple[float, ...]:
    """One or several numbers between 0 and 1."""
    levels = np.atleast_1d(_validation.real("quantile", value))
    if levels.ndim != 1 or len(levels) == 0 or not ((levels > 0.0) & (levels < 1.0)).all():
        raise ValueError(f"quantile={value!r}; it must be a number between 0 and 1, or a list of them")
    return tuple(levels.tolist())


def penalty_of(value: str) -> Penalty:
    """One of the two penalties."""
    _validation.check_choice("penalty", value, get_args(Penalty))
    return cast(Penalty, value)


def class_labels(y: Any) -> NDArray[Any]:
    """Class labels of one type, as one column."""
    if y is None:
        raise ValueError("a classifier requires y to be passed, but the target y is None")
    labels = _validation.labels("y", y)
    check_classification_targets(labels)
    return np.asarray(column_or_1d(labels, warn=True))


def known_classes(classes: Any) -> NDArray[Any]:
    """The distinct classes among labels, or those given as ``classes``, in order."""
    return np.unique(_validation.label_column("classes", classes))


def with_default(params: dict[str, Any], estimator: Any, default: Callable[[], Any]) -> dict[str, Any]:
    """Parameters of a model to set; those of its ``estimator`` are set on the default if there is none."""
    own = {name: value for name, value in params.items() if name.startswith("estimator__")}
    if not own or params.get("estimator", estimator) is not None:
        return params
    nested = {name.removeprefix("estimator__"): value for name, value in own.items()}
    others = {name: value for name, value in params.items() if name not in own}
    return others | {"estimator": default().set_params(**nested)}


def check_declared(classes: Any, known: NDArray[Any]) -> None:
    """Classes that are given with a later batch are those of the first."""
    if not np.array_equal(known, known_classes(classes)):
        raise ValueError(
            f"classes={classes!r} differ from those of the first call, {known.tolist()}; pass the same classes, "
            "or none"
        )


def real_targets(y: Any, owner: Any) -> Array:
    """Finite real targets of one or two dimensions, for an estimator."""
    if y is None:
        raise ValueError(f"{type(owner).__name__} requires y to be passed, but the target y is None")
    y = _validation.rows_in("y", y)
    try:
        targets: Array = check_array(y, ensure_2d=False, dtype=np.float64, input_name="y")
    except ValueError as problem:
        text = _validation.first_text(y)
        if text is None:
            raise
        raise ValueError(
            f"y contains {text!r}, but {type(owner).__name__} needs numbers; for classes, use "
            "KernelFisherClassifier or another classifier"
        ) from problem
    _validation.not_too_large("y", targets)
    return targets


def check_classes(classes: NDArray[Any], threshold: str) -> None:
    """At least two classes, and no more than the threshold can separate."""
    k = len(classes)
    if k == 0:
        raise ValueError("there are no labels of positive weight; a classifier needs at least 2 classes")
    if k < 2:
        raise ValueError(f"y contains one class, {classes.tolist()[0]!r}; a classifier needs at least 2 classes")
    if k > 2 and threshold not in ("bayes", "least_squares"):
        raise ValueError(
            f'threshold={threshold!r} separates two classes, but y has {k}; use "bayes" or "least_squares"'
        )


def component_count(value: Any, n_classes: int) -> int:
    """Number of discriminant directions kept for n_classes."""
    most = n_classes - 1
    if value is None:
        return most
    if isinstance(value, bool) or not isinstance(value, Integral) or not 1 <= int(value) <= most:
        raise ValueError(
            f"n_components={value!r}; {n_classes} classes have {most} discriminant "
            f"direction{'s' if most > 1 else ''}; it must be an integer from 1 to {most}, or None for all"
        )
    return int(value)


def class_priors(priors: Any, classes: NDArray[Any]) -> Array | None:
    """Positive numbers (k,) that sum to one, given in the order of the classes or by their labels, or None."""
    if priors is None:
        return None
    labels = classes.tolist()
    if isinstance(priors, Mapping) and set(priors) != set(labels):
        raise ValueError(f"priors={priors!r}; pass one for each of the classes {_validation.format_value(labels)}")
    wrong = ValueError(
        f"priors={priors!r}; pass {len(labels)} positive numbers that sum to one, in the order of the classes "
        f"{_validation.format_value(labels)}, or as a dict"
    )
    try:
        p = _validation.real(
            "priors", [priors[label] for label in labels] if isinstance(priors, Mapping) else priors
        )
    except ValueError as problem:
        raise wrong from problem
    # Written so that NaN fails the comparison.
    if p.shape != (len(labels),) or not (p > 0).all() or not abs(p.sum() - 1.0) <= 1e-6:
        raise wrong
    return p


def class_factors(class_weight: Any, labels: Labels, classes: NDArray[Any]) -> Array:
    """The factor (k,) of each class: "balanced" gives all classes the same total weight."""
    if isinstance(class_weight, dict):
        for label, factor in class_weight.items():
            _validation.class_factor(f"class_weight={class_weight!r}: the weight of class {label!r}", factor)
    if isinstance(class_weight, str) and class_weight == "balanced":
        # Labels that are not among the classes raise an error when rows are encoded.
        known = np.isin(labels.values, classes)
        total = np.zeros(len(classes))
        total[np.searchsorted(classes, labels.values[known])] = labels.weight[known]
        # A class without rows counts as one of average size.
        average = total.sum() / len(total)
        balanced: Array = average / np.where(total > 0, total, average)
        return balanced
    return np.asarray(compute_class_weight(class_weight, classes=classes, y=classes), dtype=np.float64)


def class_targets_of(model: Any, labels: Labels, declared: Any = None) -> ClassTargets:
    """The targets of a classifier for rows with these labels, or for declared classes."""
    classes = labels.values if declared is None else known_classes(declared)
    _validation.same_type("y", classes, labels.values)
    decision = _decision_of(model, classes)
    return ClassTargets(classes, class_factors(model.class_weight, labels, classes), decision)


def under_parameters(model: Any, targets: Targets) -> Targets:
    """The targets of earlier rows, with decisions by the current parameters of the model."""
    if isinstance(targets, RealTargets):
        return targets
    return replace(targets, decision=_decision_of(model, targets.classes))


def _decision_of(model: Any, classes: NDArray[Any]) -> Decision:
    check_classes(classes, model.threshold)
    return Decision(
        getattr(model, "criterion", CLASSIFICATION_CRITERIA[0]),
        model.calibration,
        model.threshold,
        component_count(getattr(model, "n_components", None), len(classes)),
        class_priors(model.priors, classes),
        model._moderates,
        model._has_directions,
    )


def row_weight(sample_weight: ArrayLike | None, n: int) -> Array:
    """Weights (n,) of the rows: nonnegative, in the range of sums, not all zero."""
    if sample_weight is None:
        return np.ones(n)
    w = _validation.real("sample_weight", sample_weight)
    if w.ndim == 0:
        w = np.full(n, float(w))
    if w.ndim != 1:
        raise ValueError(f"sample_weight has {w.ndim} dimensions; Sample weights must be 1D array or scalar")
    if w.shape != (n,):
        raise ValueError(f"sample_weight.shape == {w.shape}, expected {(n,)}: one for each row")
    _validation.weights_in_range("sample_weight", w)
    _validation.enough_weight("sample_weight", float(w.sum()))
    _validation.no_row_alone("sample_weight", w)
    return w


def meaning_of(weights: Any) -> Meaning:
    """The meaning of weights."""
    if np.ndim(weights) > 0:
        raise ValueError(
            f"weights={_validation.format_value(weights)}; weights of rows are passed to fit as sample_weight, "
            "and the parameter weights sets their meaning: 'auto', 'counts' or 'importance'"
        )
    return cast(Meaning, _validation.check_choice("weights", weights, get_args(Meaning)))


def read_rows(model: Any, X: Any, y: Any, sample_weight: Any, *, reset: bool) -> tuple[Any, NDArray[Any], Array]:
    """Rows in memory in the form the model accepts, labels or real targets, and weights, validated."""
    X = model._read(X, reset=reset, weight=sample_weight)
    y = class_labels(y) if is_classifier(model) else real_targets(y, model)
    check_consistent_length(X, y)
    return X, y, row_weight(sample_weight, len(y))


def refuse_blocks(model: Any, X: Any) -> None:
    """Reject out-of-core rows."""
    if is_out_of_core(X):
        raise ValueError(
            f"{type(model).__name__} needs the rows in memory, but X is {type(X).__name__}; pass an array, or use "
            "KernelFisherClassifier or KernelRidgeRegressor with centers=..., which read rows block by block"
        )


def refuse_outside(model: Any, X: Any, groups: Any) -> None:
    """Reject parameters that need the rows in memory, or Rows of which some can be read without the others."""
    in_part = hasattr(X, "some") and X.n_rows is not None
    if model.cv is not None or (groups is not None and not in_part):
        raise ValueError(
            "cv and groups need the rows in memory; pass an array, or set neither: single rows of files and "
            "streams are held out"
        )
    if isinstance(model.centers, str) and model.centers == "all":
        raise ValueError('centers="all" needs the rows in memory; set a number of centers')


def refuse_to_go_on(model: Any, decay: float) -> None:
    """Reject parameters and models to which rows cannot be added."""
    if isinstance(model.centers, str) and model.centers == "all":
        raise ValueError('centers="all" needs all rows at once; set a number of centers, or "auto"')
    if model._fitted is not None and model._fitted.is_lean:
        raise ValueError("a lean copy has no moments to add rows to; continue the model it is a copy of")
    if model.cv is not None:
        raise ValueError(f"cv={model.cv!r}; rows of a stream are held out one by one: use cv=None")
    share("decay", decay)
    if decay < 1 and model.weights == "counts":
        raise ValueError(f'decay={decay!r} leaves fractions of rows, which are not counts; use weights="auto"')


def folds_of_rows(cv: Any, y: NDArray[Any], groups: ArrayLike | None, *, classifier: bool) -> Folds | None:
    """The fold with which each row is held out, and its group; None if rows are held out singly."""
    if cv is None and groups is None:
        return None
    groups = None if groups is None else _validation.label_column("groups", groups)
    if groups is not None and len(groups) != len(y):
        raise ValueError(f"groups has {len(groups)} labels for {len(y)} rows; pass one for each row")
    if groups is not None and (groups == groups[:1]).all():
        raise ValueError("all rows are in one group; groups must define at least two")
    splitter: BaseCrossValidator = LeaveOneGroupOut() if cv is None else check_cv(cv, y, classifier=classifier)
    if groups is not None and isinstance(cv, Integral):
        # This number of folds of groups: a number alone means folds of rows.
        splitter = GroupKFold(int(cv))
    fold = np.full(len(y), -1, dtype=np.intp)
    for number, (_, test) in enumerate(splitter.split(np.zeros(len(y)), y, groups)):
        if (fold[test] >= 0).any():
            raise ValueError(f"cv={cv!r} holds out a row twice; its test sets must partition the rows")
        fold[test] = number
    if (fold < 0).any():
        raise ValueError(f"cv={cv!r} never holds out {(fold < 0).sum()} rows; its test sets must cover all rows")
    if fold.max() == 0:
        raise ValueError("all rows are in one fold; cv or groups must define at least two")
    return Folds(fold, None if groups is None else np.unique(groups, return_inverse=True)[1].reshape(-1))


def check_stored(value: Any) -> None:
    """Reject sparse rows with indices out of bounds: compiled code does not check them."""
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


def asks_for_relevance(relevance: Any) -> bool:
    """Whether relevances are learned whatever the kernel and the rows: neither None nor "auto"."""
    return relevance is not None and not (isinstance(relevance, str) and relevance == "auto")
