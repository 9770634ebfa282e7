"""Tables of rows, whatever holds them: how many rows, some of them, several tables joined, as plain arrays.

A table is an array, a sparse matrix, a frame of pandas or polars, or a list of objects. A dict of tables holds
several views of the same rows. pandas and polars are not imported: frames are known by what they can do.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from mercer.gate import labels, not_dates, real, unmasked
from mercer.types import Array, Indices

Table = Any


def n_rows(X: Table) -> int:
    """How many rows there are, in every view."""
    if isinstance(X, dict):
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
        raise ValueError(f"views are of the same rows, at least one of them, and {sizes}")
    return next(iter(n.values()))


def take(X: Table, rows: Indices | slice) -> Table:
    """Some of the rows, in every view; None of None."""
    if X is None:
        return None
    if isinstance(X, dict):
        return {name: take(view, rows) for name, view in X.items()}
    if hasattr(X, "iloc"):
        return X.iloc[rows]
    return X[rows] if hasattr(X, "shape") or isinstance(rows, slice) else [X[i] for i in rows]


def join(name: str, tables: Sequence[Table]) -> Table:
    """The rows of all tables one below the other, sparse or dense as the first; None where all are None.

    ``name`` is what an error calls the tables.
    """
    if all(part is None for part in tables):
        return None
    if isinstance(tables[0], dict):
        return _joined_views(name, tables)
    shapes = sorted({shape_of(part.shape[1:]) for part in tables if hasattr(part, "shape")})
    if len(shapes) > 1:
        raise ValueError(
            f"{name} of some blocks has shape {shapes[0]} and of others {shapes[1]}; give all the same columns"
        )
    if all(isinstance(part, list | tuple) for part in tables):
        return [row for part in tables for row in part]
    if all(isinstance(part, np.ndarray) or is_sparse(part) for part in tables):
        if is_sparse(tables[0]):
            parts = [part if is_sparse(part) else sparse.csr_matrix(part) for part in tables]
            return sparse.vstack(parts, format="csr")
        return np.concatenate([part.toarray() if is_sparse(part) else part for part in tables])
    kinds = ", ".join(sorted({type(part).__name__ for part in tables}))
    raise TypeError(
        f"{name} in blocks of {kinds} cannot be joined; give all blocks as arrays, as CSR matrices, or as lists"
    )


def _joined_views(name: str, tables: Sequence[Table]) -> Table:
    """Every view joined, where all tables have the same."""
    views = tables[0].keys()
    if any(not isinstance(part, dict) or part.keys() != views for part in tables):
        raise ValueError(f"{name} of some blocks has the views {', '.join(views)}, and of others different ones")
    return {view: join(f"{name}[{view!r}]", [part[view] for part in tables]) for view in views}


def shape_of(row: tuple[int, ...]) -> str:
    """In words: (b,), or (b, 3), the shape of b rows that each have this shape."""
    return str(("b", *row)).replace("'", "")


def is_sparse(X: Table) -> bool:
    """A sparse matrix or array of SciPy, in any format."""
    return bool(sparse.issparse(X))


def is_frame(X: Table) -> bool:
    """A table of pandas or polars."""
    return hasattr(X, "columns") and hasattr(X, "to_numpy")


def is_table(X: Any) -> bool:
    """Whether X holds rows in memory: an array, a sparse matrix, a frame, a sequence, or several of them."""
    if isinstance(X, dict):
        return len(X) > 0 and all(map(is_table, X.values()))
    return (hasattr(X, "shape") and len(X.shape) > 0) or is_frame(X) or isinstance(X, Sequence)


def holds_objects(X: Table) -> bool:
    """Whether rows are objects in a list, in one view at least: two of them may be equal and not seen to be."""
    return any(map(holds_objects, X.values())) if isinstance(X, dict) else not hasattr(X, "shape")


def holds_numbers(X: Table) -> bool:
    """Whether X has two dimensions and columns of numbers: an array, a frame, a sparse matrix."""
    if getattr(X, "ndim", 0) != 2:
        return False
    types = X.dtypes if hasattr(X, "dtypes") else [X.dtype]
    return all(getattr(dtype, "kind", "O") in "fiub" for dtype in types)


def column_names(X: Table) -> tuple[Any, ...] | None:
    """Names of the columns of a frame; None of anything else."""
    return tuple(X.columns) if is_frame(X) else None


def as_table(X: Table) -> Table:
    """Lists of lists of numbers as an array, sparse matrices as CSR; the rest as it is."""
    if isinstance(X, dict):
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
    """Rows as kernels take them: those of a frame as a C-ordered array, others as they are.

    Columns of a frame that have no common type in NumPy become float64.
    """
    if isinstance(X, dict):
        return {name: numbers(view) for name, view in X.items()}
    X = unmasked("X", X)
    if not is_frame(X):
        return _plain(X)
    not_dates("X", X)
    array = X.to_numpy()
    if array.dtype != object:
        return np.ascontiguousarray(array)
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError) as error:
        types = ", ".join(f"{name} ({kind})" for name, kind in zip(X.columns, X.dtypes))
        raise ValueError(
            f"the frame has values that are missing or not numbers; select or convert columns of {types}"
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
    """What a frame or a series holds, as an array."""
    return part.to_numpy() if hasattr(part, "to_numpy") else part
