"""Validation of user input: finite numbers, no masked entries, no dates as numbers, labels of one type.

Every error states the name, the value and the remedy. Nothing is converted silently if this could change its
meaning: masked entries are not read, dates do not become numbers, and labels of different types do not become
strings.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import date, timedelta
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer._types import Array
from mercer.errors import KernelError

# Types of labels and their names; Booleans come first, because they are integers in Python.
FAMILIES: tuple[tuple[type, str], ...] = (
    (bool, "bool"),
    (np.bool_, "bool"),
    (Integral, "int"),
    (Real, "float"),
    (str, "str"),
    (bytes, "bytes"),
    (np.datetime64, "datetime64"),
    (np.timedelta64, "timedelta64"),
)
# Which models take frames with text, categories and dates.
TAKE_RAW_FRAMES = (
    "KernelFisherClassifier and KernelRidgeRegressor take such frames in memory, and with columns={} from any "
    "stream"
)
# Types of missing values: None, and those of pandas by name, since pandas is not imported.
MISSING_TYPES = ("NoneType", "NAType", "NaTType")
# Integers up to here are exact in float64.
EXACT_INTEGERS = 2.0**53
# Sizes of targets whose squares float64 can hold, with room for sums of them and for small residuals, by the type
# in which coefficients are stored: float32 must hold the targets themselves.
SQUARABLE_SIZES = {np.dtype(np.float64): (1e-130, 1e130), np.dtype(np.float32): (1e-30, 1e30)}
# Positive sample weights: squares of weights, and squares of such targets times weights, do not underflow or
# overflow. Single rows may have less weight than a whole fit, whose total must reach the second number; class
# weights lie between the second and the third.
LEAST_WEIGHT, LEAST_TOTAL, MOST_WEIGHT = 1e-100, 1e-30, 1e30
# Largest ratio of a row's weight to that of all others: when it is held out, the rest keeps four digits.
MOST_WEIGHT_RATIO = 1e12


def check_number(
    name: str,
    value: Any,
    allowed: str,
    *,
    above: float = -np.inf,
    least: float = -np.inf,
    below: float = np.inf,
    most: float = np.inf,
    error: type[ValueError] = ValueError,
) -> float:
    """A finite number with above < value < below and least <= value <= most; ``allowed`` describes the range."""
    found = _as_float(value)
    if not (np.isfinite(found) and above < found < below and least <= found <= most):
        raise error(f"{name}={format_value(value)}; it must be {allowed}")
    return found


def check_int(name: str, value: Any, allowed: str, *, least: int, error: type[ValueError] = ValueError) -> int:
    """An integer of at least ``least``; ``allowed`` describes the range."""
    scalar = _scalar(value)
    if _is_truth(scalar) or not isinstance(scalar, Integral) or int(scalar) < least:
        raise error(f"{name}={format_value(value)}; it must be {allowed}")
    return int(scalar)


def check_bool(name: str, value: Any) -> bool:
    """True or False."""
    scalar = _scalar(value)
    if not _is_truth(scalar):
        raise ValueError(f"{name}={format_value(value)}; it must be True or False")
    return bool(scalar)


def seed(random_state: Any) -> Any:
    """The given source of randomness; None is the seed 0, with which equal rows give equal results."""
    return 0 if random_state is None else random_state


def check_choice(name: str, value: Any, allowed: Iterable[str]) -> str:
    """One of the words."""
    words = list(allowed)
    if not isinstance(value, str) or value not in words:
        raise ValueError(
            f"{name}={format_value(value)} is not known; it must be one of {', '.join(map(repr, words))}"
        )
    return value


def _is_truth(value: Any) -> bool:
    return isinstance(value, bool | np.bool_)


def _scalar(value: Any) -> Any:
    """The content of a zero-dimensional array; anything else unchanged."""
    return value[()] if isinstance(value, np.ndarray) and value.ndim == 0 else value


def _as_float(value: Any) -> float:
    """The number, or NaN if it is not one: Booleans are not numbers."""
    scalar = _scalar(value)
    if _is_truth(scalar) or not isinstance(scalar, Real):
        return np.nan
    try:
        return float(scalar)
    except OverflowError:
        return np.inf


def format_value(value: Any) -> str:
    """A value in an error message: at most 200 characters of it, larger arrays by their shape."""
    shape = getattr(value, "shape", ())
    text = repr(value) if np.prod(shape) <= 10 else f"an array of shape {shape}"
    return text if len(text) <= 200 else f"{text[:200]}…"


def counted(n: int, one: str, several: str) -> str:
    """A number of things, by their name."""
    return f"{n} {one if n == 1 else several}"


def unmasked(name: str, values: Any) -> Any:
    """The values; masked entries raise an error, and a masked array without any becomes an ordinary one."""
    if isinstance(values, np.ma.MaskedArray):
        _refuse_masked(name, [values])
        return np.asarray(values.data)
    if isinstance(values, list | tuple):
        _refuse_masked(name, [part for part in values if isinstance(part, np.ma.MaskedArray)])
    return values


def _refuse_masked(name: str, parts: Sequence[Any]) -> None:
    masked = sum(int(np.count_nonzero(np.ma.getmaskarray(part))) for part in parts)
    if masked:
        raise ValueError(
            f"{name} has {counted(masked, 'masked entry', 'masked entries')}, not to be read; fill with "
            f"{name}.filled(...), or drop rows"
        )


def not_dates(name: str, values: Any) -> None:
    """Reject dates and times where numbers are needed: as numbers they depend on an arbitrary unit."""
    dates = types_of_dates(values)
    if dates:
        word = getattr(dates[0], "__name__", str(dates[0]))
        frame = _is_frame(values)
        where = f"column {_column_of(values, dates[0])!r} of {name}" if frame else name
        others = f"; {TAKE_RAW_FRAMES}" if frame else ""
        raise ValueError(f"{where} is of type {word}, but must be numeric; {_as_number(word)}{others}")


def _as_number(word: str) -> str:
    """How dates, or durations, of a type become numbers."""
    if "timedelta" in word.lower() or "duration" in word.lower():
        return "divide by a unit, such as np.timedelta64(1, 'D')"
    return "subtract a date and divide by a unit, such as (date - date.min()) / np.timedelta64(1, 'D')"


def types_of_dates(values: Any) -> list[Any]:
    """The types of dates and times among those of a data frame's columns, an array, a series or objects."""
    return [dtype for dtype in _types_of_columns(values) if _is_date(dtype)]


def _is_frame(values: Any) -> bool:
    return hasattr(values, "columns") and hasattr(values, "dtypes")


def _column_of(frame: Any, dtype: Any) -> Any:
    """The first column of a type."""
    return next(column for column, own in zip(frame.columns, frame.dtypes) if own == dtype)


def _types_of_columns(values: Any) -> Iterable[Any]:
    """The types of a data frame's columns, of an array or a series; for objects, the types of all of them."""
    if _is_frame(values):
        return list(values.dtypes)
    if isinstance(values, list | tuple):
        return _types(values)
    if not hasattr(values, "dtype"):
        return ()
    return _types(np.asarray(values).ravel()) if _of_objects(values) else (values.dtype,)


def _of_objects(values: Any) -> bool:
    return bool(getattr(values.dtype, "kind", "") == "O")


def _types(values: Iterable[Any]) -> list[type]:
    """The types that occur, sorted by name."""
    return sorted(set(map(type, values)), key=lambda kind: kind.__name__)


def _is_date(dtype: Any) -> bool:
    if isinstance(dtype, type):
        return issubclass(dtype, date | timedelta | np.datetime64 | np.timedelta64) or dtype.__name__ == "NaTType"
    # Types of polars have no kind, but a method that identifies dates.
    is_temporal = getattr(dtype, "is_temporal", None)
    return getattr(dtype, "kind", "") in ("M", "m") or bool(is_temporal is not None and is_temporal())


@contextmanager
def naming_text(name: str, values: Any) -> Iterator[None]:
    """While numbers are read: an error names the columns of a data frame that contain text, or strings as rows."""
    try:
        yield
    except ValueError as problem:
        _refuse_strings(name, values, problem)
        texts = {column: first_text(values[column]) for column in (values.columns if _is_frame(values) else ())}
        found = {repr(column): text for column, text in texts.items() if text is not None}
        if not found:
            raise
        columns, contain = ("columns", "contain") if len(found) > 1 else ("column", "contains")
        raise ValueError(
            f"{columns} {', '.join(found)} of {name} {contain} text ({next(iter(found.values()))!r}), but must be "
            f"numeric; {TAKE_RAW_FRAMES}; otherwise encode text and categories with a OneHotEncoder or "
            "OrdinalEncoder in a ColumnTransformer, or compare them with a kernel, OnColumns(RBF(), [...]) * "
            "OnColumns(Nominal(), [...])"
        ) from problem


@contextmanager
def naming_missing(name: str, remedy: str) -> Iterator[None]:
    """While numbers are read: an error for missing ones has a remedy of this library."""
    try:
        yield
    except ValueError as problem:
        if not str(problem).startswith(f"Input {name} contains NaN"):
            raise
        raise ValueError(
            f"{name} contains NaN; fill missing values (SimpleImputer in a pipeline), or drop their rows{remedy}"
        ) from problem


def _refuse_strings(name: str, values: Any, problem: ValueError) -> None:
    """Name kernels for rows that are strings, which numbers cannot be read from."""
    if not isinstance(values, list | tuple) and np.ndim(values) != 1:
        return
    text = first_text([value for value in values if isinstance(value, str)])
    if text is not None:
        raise ValueError(
            f"rows of {name} are strings ({text!r}), and the kernel compares vectors of numbers; pass a kernel on "
            "strings, such as KmerSpectrum(), Subsequence() or BagOfWords() of mercer.kernels"
        ) from problem


def first_text(values: Any) -> str | None:
    """The first string that is not the text of a number; None if there is none."""
    strings = (str(value) for value in np.asarray(values, dtype=object).ravel() if isinstance(value, str))
    return next((text for text in strings if not _reads_as_number(text)), None)


def _reads_as_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def rows_in(name: str, X: Any) -> Any:
    """Numeric rows unchanged, if they have no masked entries and no dates."""
    X = unmasked(name, X)
    not_dates(name, X)
    return X


def real(name: str, values: Any) -> Array:
    """A float64 array from any container of numbers, which need not be finite."""
    values = rows_in(name, values)
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as problem:
        raise ValueError(f"{name} contains values that are missing or not numeric; fill or drop them") from problem


def finite(name: str, values: Any) -> Array:
    """An array of finite real numbers in float64, of one or two dimensions."""
    values = unmasked(name, values)
    if np.iscomplexobj(values):
        raise ValueError(
            f"Complex data not supported: {name} is of type {np.asarray(values).dtype}; pass real numbers"
        )
    array = real(name, values)
    if array.ndim not in (1, 2) or len(array) == 0:
        raise ValueError(f"{name} has shape {array.shape}; pass at least one row, as (n,) or (n, q)")
    if not np.isfinite(array).all():
        what = "NaN" if np.isnan(array).any() else "infinity or a value too large for dtype('float64')"
        raise ValueError(f"Input {name} contains {what}; fill these values or drop their rows")
    return array


def labels(name: str, y: Any) -> NDArray[Any]:
    """Class labels as an array of their original shape: numbers, strings, Booleans or dates of one type.

    Integers and floats count as one type: 1 and 1.0 are the same label. Numbers and Booleans given as objects
    become arrays of their type.
    """
    if y is None:
        raise ValueError(
            f"the rows have no labels: a classifier requires y to be passed, but the target {name} is None"
        )
    y = unmasked(name, y)
    if isinstance(y, list | tuple):
        # NumPy converts numbers to strings if there are strings among them.
        _one_type(name, [label for row in y for label in (row if isinstance(row, list | tuple) else (row,))])
    array = np.asarray(y)
    if _of_objects(array) and _one_type(name, array.ravel().tolist()) in ("bool", "int", "float"):
        array = np.array(array.tolist())
    _refuse_missing(name, array)
    return array


def label_column(name: str, y: Any) -> NDArray[Any]:
    """Class labels (b,), also from one column (b, 1)."""
    array = labels(name, y)
    if array.ndim != 1 and array.shape[1:] != (1,):
        raise ValueError(f"{name} has shape {array.shape}; pass one label for each row")
    return array.reshape(-1)


def signs(name: str, y: Any) -> Array:
    """Labels (m,) of -1 and +1 in float64."""
    array = finite(name, y)
    wrong = array[np.abs(array) != 1.0]
    if array.ndim != 1 or len(wrong):
        what = f"the label {format_value(float(wrong[0]))}" if len(wrong) else f"shape {array.shape}"
        raise ValueError(f"{name} has {what}; pass one label for each row, -1 or +1")
    return array


def square(name: str, K: Any) -> Array:
    """A finite matrix (m, m) in float64."""
    array = finite(name, K)
    if array.ndim != 2 or array.shape[0] != array.shape[1]:
        raise ValueError(f"{name} has shape {array.shape}; pass a square matrix, of every row with every row")
    return array


def squared_lengths(K: Array) -> Array:
    """The diagonal k(x_i, x_i) (m,) of a kernel matrix K (m, m): squared lengths, none of them negative."""
    own: Array = np.diag(K)
    if own.min() < 0.0:
        row = int(own.argmin())
        raise KernelError(f"k(x, x) of row {row} is {own[row]:.3g}; pass a positive semidefinite kernel matrix")
    return own


def as_long(name: str, values: Any, m: int) -> Array:
    """Finite numbers (m,) in float64."""
    array = finite(name, values)
    if array.shape != (m,):
        raise ValueError(f"{name} has shape {array.shape}; pass one number for each of {m} rows")
    return array


def same_type(name: str, one: NDArray[Any], other: NDArray[Any]) -> None:
    """Reject labels of two sets of rows that differ in type, or that one array cannot hold exactly."""
    if one.size == 0 or other.size == 0 or (one.dtype == other.dtype and not _of_objects(one)):
        return
    _one_type(name, [*_examples(one), *_examples(other)])
    if np.result_type(one, other).kind == "f" and (_beyond_float(one) or _beyond_float(other)):
        raise ValueError(
            f"{name} is of type {one.dtype} in some rows and {other.dtype} in others, and has labels beyond 2^53, "
            "which are not exact in float64; convert them to one integer type, or to strings"
        )


def joined(name: str, parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Targets of several blocks, stacked, if they are of one type."""
    for part in parts[1:]:
        same_type(name, parts[0], part)
    return np.concatenate(parts)


def _examples(y: NDArray[Any]) -> list[Any]:
    """Values of all types that occur: one for an array without objects."""
    return y.ravel().tolist() if _of_objects(y) else [y.ravel()[0]]


def _beyond_float(y: NDArray[Any]) -> bool:
    """Whether there are integers that float64 cannot represent."""
    return y.dtype.kind in "iu" and bool((np.abs(y.astype(np.float64)) > EXACT_INTEGERS).any())


def _one_type(name: str, values: Sequence[Any]) -> str:
    """The type of the values, in one word; mixed types and missing values raise an error."""
    words = {kind: _word(kind) for kind in _types(values)}
    for kind, word in words.items():
        if word in MISSING_TYPES:
            raise _missing(name, str(_first(values, kind)))
        if word not in dict(FAMILIES).values():
            raise ValueError(
                f"Unknown label type: {name} contains {format_value(_first(values, kind))}, of type {word}; pass "
                "numbers, strings, Booleans or dates"
            )
    found = sorted(set(words.values()))
    if len(found) > 1 and found != ["float", "int"]:
        raise _mixture(name, values, words)
    return found[0] if found else "float"


def _word(kind: type) -> str:
    """The name of a label's type: one word for all integers, one for all other numbers."""
    if kind.__name__ in MISSING_TYPES:
        return kind.__name__
    return next((word for family, word in FAMILIES if issubclass(kind, family)), kind.__name__)


def _mixture(name: str, values: Sequence[Any], words: dict[type, str]) -> ValueError:
    """The error for labels of several types; NaN among strings means a missing label."""
    if any(isinstance(value, float) and np.isnan(value) for value in values):
        return _missing(name, "nan")
    examples = {word: format_value(_first(values, kind)) for kind, word in words.items()}
    both = " and ".join(f"{word} ({example})" for word, example in examples.items())
    return ValueError(
        f"{name} contains labels of type {both}; convert all of them to one type, such as {name}.astype(str)"
    )


def _first(values: Sequence[Any], kind: type) -> Any:
    return next(value for value in values if type(value) is kind)


def _missing(name: str, value: str) -> ValueError:
    return ValueError(f"{name} contains {value}, which is not a label; fill these labels or drop their rows")


def _refuse_missing(name: str, y: NDArray[Any]) -> None:
    """Reject labels that are NaN, infinite or NaT."""
    if y.dtype.kind in "Mm" and np.isnat(y).any():
        raise _missing(name, "NaT")
    if y.dtype.kind != "f" or np.isfinite(y).all():
        return
    if np.isnan(y).any():
        raise ValueError(f"Input {name} contains NaN, which is not a label; fill these labels or drop their rows")
    raise ValueError(f"Input {name} contains infinity or a value too large for {y.dtype!r}; drop these rows")


def not_too_large(name: str, Y: Array, dtype: Any = np.float64) -> None:
    """Reject targets whose squares overflow, or that ``dtype``, the type of the coefficients, cannot represent."""
    _, most = _safe(dtype)
    largest = float(np.abs(Y).max(initial=0.0))
    if largest > most:
        raise ValueError(
            f"{name} has values up to {largest:.1e}; beyond {most:.0e}, squares, or coefficients in the type of "
            f"X, overflow; divide {name} by a constant"
        )


def in_range(name: str, Y: Array, dtype: Any = np.float64) -> None:
    """Reject targets (n, ...) that are too large, or columns so small that they or their squares underflow."""
    not_too_large(name, Y, dtype)
    least, _ = _safe(dtype)
    largest = np.abs(Y).max(axis=0, initial=0.0)
    small = largest[(largest > 0) & (largest < least)]
    if small.size:
        raise ValueError(
            f"{name} has no value larger than {small.min():.1e}; below {least:.0e}, squares, or coefficients in "
            f"the type of X, underflow; multiply {name} by a constant"
        )


def _safe(dtype: Any) -> tuple[float, float]:
    """Smallest and largest size of targets; integers and objects are processed in float64."""
    return SQUARABLE_SIZES[np.dtype(np.float32 if dtype == np.float32 else np.float64)]


def weights_in_range(name: str, weight: Array) -> None:
    """Reject weights (n,) that are negative, not finite, or too large or small for sums; zero is allowed."""
    if not np.isfinite(weight).all() or (weight < 0).any():
        raise ValueError(
            f"{name} spans {weight.min()} to {weight.max()}; weights must be finite, nonnegative and not all zero"
        )
    largest = float(weight.max(initial=0.0))
    if largest > MOST_WEIGHT:
        raise ValueError(
            f"{name} has values up to {largest:.1e}; beyond {MOST_WEIGHT:.0e}, weighted squares overflow; divide "
            "all weights by a constant"
        )
    small = weight[(weight > 0) & (weight < LEAST_WEIGHT)]
    if small.size:
        raise ValueError(
            f"{name} has {small.size} positive values down to {small.min():.1e}; below {LEAST_WEIGHT:.0e}, "
            "weighted squares underflow; set them to zero, or multiply all weights by a constant"
        )


def enough_weight(name: str, total: float) -> None:
    """Reject rows whose weights sum to zero, or to so little that weighted squares of targets may underflow."""
    if total == 0:
        raise ValueError(f"{name} is zero for all rows; weights must be finite, nonnegative and not all zero")
    if total < LEAST_TOTAL:
        raise ValueError(
            f"{name} sums to {total:.1e}; below {LEAST_TOTAL:.0e}, weighted squares underflow; multiply all "
            "weights by a constant"
        )


def no_row_alone(name: str, weight: Array) -> None:
    """Reject weights (n,) of which one is so large that all others are lost in rounding."""
    heaviest = int(weight.argmax())
    others = float(np.delete(weight, heaviest).sum())
    if 0 < MOST_WEIGHT_RATIO * others < weight[heaviest]:
        raise ValueError(
            f"row {heaviest} has a {name} of {weight[heaviest]:.1e}, and all other rows together {others:.1e}; "
            f"above {MOST_WEIGHT_RATIO:.0e} times their weight, the other rows are lost in rounding: lower it"
        )


def class_factor(name: str, value: Any) -> float:
    """The weight of a class: positive, and of a size that keeps sample weights in range."""
    allowed = f"a positive, finite number between {LEAST_TOTAL:.0e} and {MOST_WEIGHT:.0e}"
    return check_number(name, value, allowed, least=LEAST_TOTAL, most=MOST_WEIGHT)
