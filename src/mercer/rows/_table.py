"""Tables of rows of any type: number of rows, subsets, concatenation, conversion to plain arrays.

A table is an array, a sparse matrix, a data frame of pandas or polars, named columns, or a list of objects. A
dict of tables holds several views of the same rows. pandas and polars are not imported: data frames are recognized
by their methods.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mercer._types import Array, Indices
from mercer._validation import labels, naming_text, not_dates, real, unmasked
from mercer.rows._columns import NamedColumns, joined_columns

Table = Any


def n_rows(X: Table) -> int:
    """Number of rows, the same in every view."""
    if has_views(X):
        return _same_number({name: n_rows(view) for name, view in X.items()})
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


class HasRows:
    """What holds a table of rows X; abstract."""

    X: Table

    @property
    def n_rows(self) -> int:
        return n_rows(self.X)


def _same_number(n: dict[Any, int]) -> int:
    """The number of rows that all views have."""
    if len(set(n.values())) != 1:
        sizes = ", ".join(f"{name!r} has {size} rows" for name, size in n.items()) or "there is none"
        raise ValueError(f"views must have the same number of rows, at least one, but {sizes}")
    return next(iter(n.values()))


def take(X: Table, rows: Indices | slice) -> Table:
    """Some of the rows, in every view; None of None."""
    if X is None:
        return None
    if has_views(X):
        return {name: take(view, rows) for name, view in X.items()}
    if hasattr(X, "iloc"):
        return X.iloc[rows]
    return X[rows] if hasattr(X, "shape") or isinstance(rows, slice) else [X[i] for i in rows]


def join(name: str, tables: Sequence[Table]) -> Table:
    """The rows of all tables stacked, sparse or dense like the first; None if all are None.

    ``name`` is the name of the tables in error messages.
    """
    if all(part is None for part in tables):
        return None
    if isinstance(tables[0], dict):
        return _joined_views(name, tables)
    if all(isinstance(part, NamedColumns) for part in tables):
        return joined_columns(name, tables)
    shapes = sorted({shape_of(part.shape[1:]) for part in tables if hasattr(part, "shape")})
    if len(shapes) > 1:
        raise ValueError(
            f"{name} has shape {shapes[0]} in some blocks and {shapes[1]} in others; pass blocks with the same "
            "columns"
        )
    if all(isinstance(part, list | tuple) for part in tables):
        return [row for part in tables for row in part]
    if all(isinstance(part, np.ndarray) or is_sparse(part) for part in tables):
        if is_sparse(tables[0]):
            parts = [part if is_sparse(part) else sparse.csr_matrix(part) for part in tables]
            return sparse.vstack(parts, format="csr")
        return np.concatenate([dense(part) for part in tables])
    kinds = ", ".join(sorted({type(part).__name__ for part in tables}))
    raise TypeError(
        f"{name} in blocks of {kinds} cannot be joined; pass all blocks as arrays, as CSR matrices, or as lists"
    )


def _joined_views(name: str, tables: Sequence[Table]) -> Table:
    """Every view joined, if all tables have the same views."""
    views = tables[0].keys()
    if any(not isinstance(part, dict) or part.keys() != views for part in tables):
        raise ValueError(
            f"{name} has the views {', '.join(views)} in some blocks and different ones in others; pass the same "
            "views in all blocks"
        )
    return {view: join(f"{name}[{view!r}]", [part[view] for part in tables]) for view in views}


def shape_of(row: tuple[int, ...]) -> str:
    """The text (b,) or (b, 3) for the shape of b rows of this shape."""
    return str(("b", *row)).replace("'", "")


def has_views(X: Table) -> bool:
    """Whether X is several tables of the same rows, by name; some sparse matrices are dictionaries, too."""
    return isinstance(X, dict) and not is_sparse(X)


def is_sparse(X: Table) -> bool:
    """Whether X is a SciPy sparse matrix or array, in any format."""
    return bool(sparse.issparse(X))


def dense(X: Table) -> NDArray[Any]:
    """A table of numbers as an array, sparse or not."""
    return np.asarray(X.toarray() if is_sparse(X) else X)


def is_frame(X: Table) -> bool:
    """Whether X is a data frame of pandas or polars."""
    return hasattr(X, "columns") and hasattr(X, "to_numpy")


def is_table(X: Any) -> bool:
    """Whether X holds rows in memory: an array, a sparse matrix, a data frame, a sequence, or a dict of these."""
    if has_views(X):
        return len(X) > 0 and all(map(is_table, X.values()))
    return (hasattr(X, "shape") and len(X.shape) > 0) or is_frame(X) or isinstance(X, Sequence)


def holds_objects(X: Table) -> bool:
    """Whether rows are objects in a list, in at least one view: equal objects may not compare equal."""
    return any(map(holds_objects, X.values())) if has_views(X) else not hasattr(X, "shape")


def holds_numbers(X: Table) -> bool:
    """Whether X has two dimensions and columns of numbers: an array, a frame, a sparse matrix."""
    if getattr(X, "ndim", 0) != 2:
        return False
    types = X.dtypes if hasattr(X, "dtypes") else [X.dtype]
    return all(getattr(dtype, "kind", "O") in "fiub" for dtype in types)


def column_names(X: Table) -> tuple[Any, ...] | None:
    """Column names of a data frame; None for anything else."""
    return tuple(X.columns) if is_frame(X) else None


def as_table(X: Table) -> Table:
    """Lists of lists of numbers as an array, sparse matrices as CSR; anything else unchanged."""
    if has_views(X):
        return {name: as_table(view) for name, view in X.items()}
    if is_sparse(X):
        return X.tocsr()
    if not (isinstance(X, list | tuple) and len(X) > 0 and isinstance(X[0], list | tuple)):
        return X
    try:
        array = np.asarray(X)
    except ValueError:
        return X
    return array if array.ndim == 2 and array.dtype.kind in "fiub" else X


def numbers(X: Table) -> Table:
    """Rows in the form that kernels accept: data frames as C-ordered arrays, others unchanged.

    Columns of a data frame without a common NumPy type become float64.
    """
    if has_views(X):
        return {name: numbers(view) for name, view in X.items()}
    X = unmasked("X", X)
    if not is_frame(X):
        return _plain(X)
    not_dates("X", X)
    array = X.to_numpy()
    if array.dtype != object:
        return np.ascontiguousarray(array)
    with naming_text("X", X):
        return _as_floats(X, array)


def _as_floats(frame: Any, array: NDArray[Any]) -> Array:
    """The values of a data frame, as objects, in float64."""
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError) as error:
        types = ", ".join(f"{name} ({kind})" for name, kind in zip(frame.columns, frame.dtypes))
        raise ValueError(
            f"the data frame has missing or non-numeric values; fill, convert or drop columns of {types}"
        ) from error


def targets(y: Any) -> Any:
    """Targets as an array; None stays None."""
    if y is None:
        return None
    y = _plain(unmasked("y", y))
    return y if hasattr(y, "shape") else labels("y", y)


def weights(weight: Any) -> Array | None:
    """Weights (b,)."""
    return None if weight is None else real("weight", _plain(weight))


def _plain(part: Any) -> Any:
    """The content of a data frame or series as an array."""
    return part.to_numpy() if hasattr(part, "to_numpy") else part


def in_single(*tables: Any) -> bool:
    """Whether rows of all these tables, and with them kernel values between them, are in float32.

    Integers are numbers of rows, which have no part in that.
    """
    types = [np.dtype(getattr(X, "dtype", object)) for X in tables]
    return {kind for kind in types if kind.kind not in "iu"} == {np.dtype(np.float32)}


def in_double(X: Any) -> Any:
    """Rows in float32, as an array or a CSR matrix, in float64; others unchanged."""
    return X.astype(np.float64) if in_single(X) else X


def n_columns(X: Any) -> int:
    """The number of features of rows in a block."""
    if np.ndim(X) != 2 and not hasattr(X, "indptr"):
        raise ValueError(f"X of a block has {np.ndim(X)} dimensions; pass blocks of b rows as (b, d)")
    return int(X.shape[1])
