"""Kernels that see some columns of the rows, and the kernel of names."""

from collections.abc import Callable, Sequence
from functools import partial, reduce
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from mercer._types import Floats
from mercer._validation import real, types_of_dates
from mercer.errors import KernelError
from mercer.kernels._algebra.compositions import Mapped
from mercer.kernels._base import Grid, Kernel
from mercer.kernels._input_kinds import InputKind
from mercer.kernels._length_scales import column_lengths, column_means, median_distance
from mercer.kernels._matrices import Matrix, none_missing, precision_of
from mercer.kernels._parameters import nonnegative
from mercer.kernels._vectors.gamma import Gamma, gammas_around, unresolved
from mercer.rows._columns import NamedColumns, has_columns, read_columns
from mercer.rows._table import dense, is_sparse

# Columns that are not named one by one: all of numbers, all others.
COLUMN_KINDS = ("numbers", "names")
# Rows whose names are compared at a time, to stay in the cache.
COMPARED_ROWS = 64
# Codes below this are compared faster.
SMALL_CODES = 2**15
# A value that is not among those of the centers.
UNKNOWN_CODE = -1
# Integers (n, d) in place of values, and the integer of each value of a column.
Codes = NDArray[Any]
Book = dict[Any, int]


class OnColumns(Mapped):
    """k(x, z) = l(x_C, z_C): a kernel l that sees only the columns C of the rows.

    Columns of data frames (pandas, polars, pyarrow) have names, those of arrays positions. Sums and products of
    such kernels compare rows with columns of different kinds:
    ``OnColumns(RBF(), ["age", "hours"]) + OnColumns(Nominal(), ["job", "sex"])``. At prediction, columns are found
    by their names, in any order, and others are ignored.

    A kernel on vectors sees numbers (Booleans are 0 and 1); a kernel on objects, such as one on strings, sees the
    values of the column, or rows of an array of objects if there are several.

    Parameters
    ----------
    kernel : Kernel
        The kernel l.
    columns : list of names or positions, "numbers" or "names"
        "numbers": all columns of numbers. "names": all others: text, categories, Booleans. The rows decide, once.
    lengths : "std", None or array of shape (d,)
        For kernels on vectors: each column is divided by its length. "std": the standard deviation in the rows of
        the fit, so that units do not matter. None: no division, for columns of one unit.
    missing : None, "mean" or array of shape (d,)
        For kernels on vectors. None: a missing number (None, NaN) is an error. "mean": it is replaced by the mean
        of the column, and l sees d more columns, 1 for a missing number and 0 for others. So two missing
        numbers are equal, and a missing one differs from the mean by one length.

    Examples
    --------
    >>> from mercer.kernels import RBF, Linear
    >>> X = [[1.0, 0.0, 3.0], [2.0, 0.0, 1.0]]
    >>> OnColumns(Linear(), [0, 2], lengths=None).block(X, X)
    array([[10.,  5.],
           [ 5.,  5.]])
    >>> OnColumns(RBF(gamma=1.0), [0, 2]).candidates(X)[0]
    OnColumns(columns=[0, 2], kernel=RBF(gamma=1.0), lengths=[0.5, 1.0])
    """

    def __init__(
        self,
        kernel: Kernel,
        columns: Sequence[Any] | str,
        lengths: str | ArrayLike | None = "std",
        missing: str | ArrayLike | None = None,
    ) -> None:
        self.kernel = kernel
        self.columns = columns
        self.lengths = lengths
        self.missing = missing

    @property
    def input_kind(self) -> InputKind:
        return "columns"

    @property
    def reads(self) -> tuple[Any, ...] | None:
        return None if isinstance(self.columns, str) else tuple(self.columns)

    @property
    def resolved(self) -> bool:
        words = (self.columns, self.lengths, self.missing) if self.kernel.takes_vectors else (self.columns,)
        return self.kernel.resolved and not any(isinstance(word, str) for word in words)

    def candidates(self, X: Matrix, weight: ArrayLike | None = None) -> Sequence[Kernel]:
        """One for every candidate of the inner kernel; columns and lengths are the same in all."""
        same = self._for(X, weight)
        inner = self.kernel.candidates(same._seen(X), weight)
        return Grid([inner], lambda chosen: clone(same).set_params(kernel=chosen[0]))

    def check_rows(self, X: Matrix) -> None:
        if self.kernel.input_kind == "objects" and not isinstance(self.columns, str):
            self.kernel.check_rows(self._seen(X))

    def _for(self, X: Matrix, weight: ArrayLike | None) -> "OnColumns":
        """With columns, lengths and means of these rows in place of words."""
        columns = _columns_for(self.columns, X)
        lengths, missing = self.lengths, self.missing
        if self.kernel.takes_vectors and (isinstance(lengths, str) or isinstance(missing, str)):
            numbers = _numbers(_part(X, columns))
            lengths = _resolved("lengths", lengths, "std", column_lengths, numbers, weight)
            missing = _resolved("missing", missing, "mean", column_means, numbers, weight)
        return OnColumns(self.kernel, columns, lengths, missing)

    def _seen(self, X: Matrix) -> Matrix:
        if isinstance(self.columns, str):
            raise KernelError(
                f'columns="{self.columns}" are not known yet; name them, or use kernel.candidates(X)'
            )
        (kernel,), part = self._kernels(), _part(X, self.columns)
        if kernel.takes_values:
            raise KernelError(f"{kernel!r} takes kernel values, which are not columns; use it without OnColumns")
        if kernel.takes_vectors:
            return self._scaled(_numbers(part))
        named = isinstance(part, NamedColumns)
        return part.objects() if named and kernel.input_kind == "objects" else part

    def _scaled(self, X: Matrix) -> Matrix:
        """Columns (n, d) divided by their lengths; (n, 2 d) with indicators, if missing numbers have a meaning."""
        lengths = self._each("lengths", self.lengths, 1.0, X)
        if (lengths <= 0).any():
            raise KernelError(f"lengths={self.lengths!r}; they must be positive")
        if self.missing is None:
            X = X if is_sparse(X) else none_missing(X, list(self.columns))
            return X.multiply(1.0 / lengths).tocsr() if is_sparse(X) else X / lengths
        X = dense(X)
        absent = np.isnan(X)
        return np.hstack([np.where(absent, self._each("missing", self.missing, 0.0, X), X) / lengths, absent])

    def _each(self, name: str, value: Any, default: float, X: Matrix) -> Floats:
        """A number for each column, in the precision of the rows."""
        if isinstance(value, str):
            raise KernelError(f'{name}="{value}" are not numbers yet; pass numbers, or use kernel.candidates(X)')
        numbers = np.full(X.shape[1], default) if value is None else real(name, value)
        if numbers.shape != (X.shape[1],) or not np.isfinite(numbers).all():
            raise KernelError(f"{name}={value!r}; pass a finite number for each of {X.shape[1]} columns")
        return numbers.astype(X.dtype)


class Nominal(Kernel):
    """k(x, z) = exp(-gamma D(x, z)), D = sum_j w_j [x_j != z_j] / sum_j w_j: the share of columns that differ.

    The kernel of names: strings, categories, Booleans, any values that are equal or not. It is the Gaussian kernel
    of indicators ("one-hot encoding") of names, a product over columns, so that combinations of names count. With
    gamma=None, k(x, z) = 1 - D, the share of equal columns: the model then adds up one number for each name.
    A name that no center has differs from all others. A missing value (None, NaN, NaT) is a value of its own,
    equal to other missing ones.

    O(n m d) for a block: names become integers, and these are compared.

    Parameters
    ----------
    gamma : float, "median", "loo" or None
        Inverse share of columns. "median" is 1 / the median of D over pairs of distinct rows, "loo" a grid around
        it from which leave-one-out chooses, None the share of equal columns itself.
    weights : array of shape (d,), optional
        How much each column counts; None: all the same.

    Examples
    --------
    >>> X = [["red", "round"], ["red", "square"], ["blue", None]]
    >>> Nominal(gamma=None).block(X, X)
    array([[1. , 0.5, 0. ],
           [0.5, 1. , 0. ],
           [0. , 0. , 1. ]])
    >>> Nominal(gamma=1.0).block(X[:1], X).round(4)
    array([[1.    , 0.6065, 0.3679]])
    """

    def __init__(self, gamma: Gamma | None = "loo", weights: ArrayLike | None = None) -> None:
        self.gamma = gamma
        self.weights = weights

    @property
    def input_kind(self) -> InputKind:
        return "columns"

    @property
    def symmetric(self) -> bool:
        return True

    def candidates(self, X: Matrix, weight: ArrayLike | None = None) -> list[Kernel]:
        """One kernel for "median", one for every number of the grid for "loo"."""
        if not isinstance(self.gamma, str):
            return [self]
        codes, _ = _coded(_values(X))
        shares = self._shares(codes.shape[1])

        def median() -> float:
            return median_distance(codes, weight, lambda A, B, gamma: -gamma * _differing(A, B, shares))

        gammas = gammas_around(self, median, 'None, "median", "loo"')
        return [clone(self).set_params(gamma=float(gamma)) for gamma in gammas]

    def block(self, X: Matrix, Z: Matrix) -> Floats:
        return self._profile(self._distances(X, *_coded(_values(Z))))

    def evaluator(self, Z: Matrix) -> Callable[..., Floats]:
        return partial(self._evaluate, *_coded(_values(Z)))

    def blocks_for_widths(self, X: Matrix, Z: Matrix) -> Callable[[Kernel], Floats]:
        D = self._distances(X, *_coded(_values(Z)))
        return lambda kernel: kernel._profile(D.copy())

    def diag(self, X: Matrix) -> Floats:
        columns = _values(X)
        self._profile(np.zeros((1, 1)))
        self._shares(len(columns))
        return np.ones(len(columns[0]), precision_of(X))

    def _evaluate(self, codes: Codes, books: list[Book], X: Matrix, workspace: Floats | None = None) -> Floats:
        return self._profile(self._distances(X, codes, books))

    def _distances(self, X: Matrix, codes: Codes, books: list[Book]) -> Floats:
        """D (n, m) of rows X and centers given by their codes (m, d)."""
        columns = _values(X)
        if len(columns) != len(books):
            raise KernelError(
                f"X has {len(columns)} columns and Z has {len(books)}; they must have the same number"
            )
        own, _ = _coded(columns, books)
        return _differing(own, codes, self._shares(len(books)).astype(precision_of(X)))

    def _shares(self, d: int) -> Floats:
        """The weight of each column, as a share of all."""
        weights = np.ones(d) if self.weights is None else real("weights", self.weights)
        if weights.shape != (d,) or not (np.isfinite(weights) & (weights >= 0)).all() or weights.sum() == 0:
            raise KernelError(
                f"weights={self.weights!r}; pass a number >= 0 for each of {d} columns, not all zero"
            )
        return np.asarray(weights / weights.sum())

    def _profile(self, D: Floats) -> Floats:
        """Kernel values from D, in its memory."""
        if self.gamma is None:
            return np.subtract(1.0, D, out=D)
        if isinstance(self.gamma, str):
            raise unresolved(self, self.gamma)
        D *= -nonnegative("gamma", self.gamma)
        return np.exp(D, out=D)


def _columns_for(columns: Any, X: Matrix) -> Any:
    """The list of columns that a word stands for in these rows."""
    if not isinstance(columns, str):
        return columns
    if columns not in COLUMN_KINDS:
        raise KernelError(f'columns="{columns}"; pass a list of names, ["{columns}"], or one of {COLUMN_KINDS}')
    if has_columns(X):
        names, numbers = list(read_columns(X).columns), read_columns(X).of_numbers()
    else:
        names, numbers = list(range(X.shape[1])), list(range(X.shape[1]))
    found = numbers if columns == "numbers" else [name for name in names if name not in numbers]
    if not found:
        raise KernelError(f'columns="{columns}", but the rows have no such columns; leave this part out')
    if columns == "names" and has_columns(X):
        _refuse_dates(read_columns(X, found))
    return found


def _refuse_dates(table: NamedColumns) -> None:
    """Dates are no names: nearly all of them differ."""
    for name, column in table.columns.items():
        if types_of_dates([value for value in column.tolist() if value is not None]):
            raise KernelError(
                f'column {name!r} holds dates, and columns="names" are text, categories and Booleans; drop it, '
                f"make a number of it, such as (date - date.min()) / np.timedelta64(1, 'D'), or name all columns"
            )


def _part(X: Matrix, columns: Any) -> Matrix:
    """Some columns, by name or position."""
    if has_columns(X):
        return read_columns(X, columns)
    X = X.tocsr() if is_sparse(X) else np.asarray(X)
    if X.ndim != 2:
        raise KernelError(f"rows with columns are needed, got shape {X.shape}; pass a data frame or a 2-D array")
    wrong = [j for j in columns if not isinstance(j, Integral) or not 0 <= int(j) < X.shape[1]]
    if wrong or not len(columns):
        raise KernelError(
            f"the rows have {X.shape[1]} columns without names, and columns={columns!r}; pass positions, or a "
            "data frame"
        )
    return X[:, list(columns)]


def _numbers(part: Matrix) -> Matrix:
    """Columns as a matrix of float32 or float64, NaN where a number is missing."""
    if isinstance(part, NamedColumns):
        return part.numbers()
    dtype = part.dtype if part.dtype in (np.float32, np.float64) else np.float64
    return part.astype(dtype, copy=False)


def _resolved(
    name: str, value: Any, word: str, of_columns: Callable[..., Floats], X: Matrix, weight: ArrayLike | None
) -> Any:
    """A parameter with its word replaced by numbers of the columns X (n, d)."""
    if not isinstance(value, str):
        return value
    if value != word:
        raise KernelError(f'{name}="{value}" is not known; pass "{word}", None, or a number for each column')
    return of_columns(X, weight).tolist()


def _values(X: Matrix) -> list[list[Any]]:
    """The values of each column, None where missing: of named columns, a matrix, or a list of rows or values."""
    if isinstance(X, NamedColumns):
        return [_listed(column) for column in X.columns.values()]
    if is_sparse(X) or (isinstance(X, np.ndarray) and X.ndim == 2 and X.dtype.kind in "fiub"):
        return [_listed(column) for column in dense(X).T]
    return _values(read_columns(X))


def _listed(column: NDArray[Any]) -> list[Any]:
    """A column (n,) as a list, with None for NaN."""
    if column.dtype.kind != "f":
        return list(column.tolist())
    return [None if value != value else value for value in column.tolist()]


def _coded(columns: list[list[Any]], books: list[Book] | None = None) -> tuple[Codes, list[Book]]:
    """Integers (n, d) for values, equal if and only if these are, and the books of all values of each column.

    With the books of other rows, values that are not in them are -1.
    """
    books = [_book(column) for column in columns] if books is None else books
    codes = [[book.get(value, UNKNOWN_CODE) for value in column] for book, column in zip(books, columns)]
    return np.array(codes, dtype=np.int32).T, books


def _book(values: list[Any]) -> Book:
    """A number for each value, in an order that does not depend on that of the rows."""
    try:
        return {value: i for i, value in enumerate(sorted(set(values), key=_place))}
    except TypeError as problem:
        raise KernelError(f"values of a column cannot be compared as names: {problem}; use strings") from problem


def _place(value: Any) -> tuple[bool, float, str]:
    number = isinstance(value, int | float)
    return number, float(value) if number else 0.0, str(value)


def _differing(A: Codes | Floats, B: Codes | Floats, shares: Floats) -> Floats:
    """sum_j shares_j [a_ij != b_kj] (n, m); columns of the same share are counted together, in small integers."""
    size = np.int16 if max(A.max(initial=0), B.max(initial=0)) < SMALL_CODES else np.int32
    own, other = A.T.astype(size, order="C"), B.T.astype(size, order="C")
    groups = [(share, np.flatnonzero(shares == share)) for share in np.unique(shares)]
    D = np.empty((len(A), len(B)), dtype=shares.dtype)
    for i in range(0, len(A), COMPARED_ROWS):
        rows = slice(i, i + COMPARED_ROWS)
        D[rows] = reduce(
            np.add, (share * _count_differing(own[some, rows], other[some]) for share, some in groups)
        )
    return D


def _count_differing(own: Codes, other: Codes) -> NDArray[Any]:
    """The number (b, m) of columns in which codes (d, b) and (d, m) differ."""
    count = np.zeros((own.shape[1], other.shape[1]), dtype=np.uint8 if len(own) < 256 else np.uint32)
    differs = np.empty(count.shape, dtype=bool)
    for a, b in zip(own, other):
        np.not_equal(a[:, None], b, out=differs)
        np.add(count, differs, out=count)
    return count
