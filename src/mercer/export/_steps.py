"""The steps before a model: scalers, projections and column selections of scikit-learn, and scores of ranks."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
from numpy.typing import NDArray
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA, IncrementalPCA, TruncatedSVD
from sklearn.feature_selection import SelectorMixin
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer, MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler
from sklearn.utils.validation import check_is_fitted

from mercer._types import Array, Indices


@dataclass(frozen=True)
class Scaling:
    """v_j = (u[take_j] - shift_j) / scale_j * factor_j + offset_j, rounded as the scalers round; all (k,)."""

    n_in: int
    take: Indices
    shift: Array
    scale: Array
    factor: Array
    offset: Array

    @classmethod
    def of(
        cls,
        n_in: int,
        take: Any = None,
        *,
        shift: Any = 0.0,
        scale: Any = 1.0,
        factor: Any = 1.0,
        offset: Any = 0.0,
    ) -> "Scaling":
        """A scaling from some of its parts."""
        index = np.arange(n_in) if take is None else np.asarray(take, dtype=np.intp)
        parts = (np.asarray(part, dtype=np.float64) for part in (shift, scale, factor, offset))
        return cls(n_in, index, *(np.broadcast_to(part, index.shape) for part in parts))

    @property
    def n_out(self) -> int:
        return len(self.take)

    def tables(self) -> dict[str, NDArray[Any]]:
        """Names and numbers of the parts that are not the identity."""
        whole = np.array_equal(self.take, np.arange(self.n_in))
        found: dict[str, NDArray[Any]] = {} if whole else {"take": self.take}
        for name, neutral in (("shift", 0.0), ("scale", 1.0), ("factor", 1.0), ("offset", 0.0)):
            if not (getattr(self, name) == neutral).all():
                found[name] = getattr(self, name)
        return found

    def entry(self, u: str, table: Callable[[str], str]) -> str:
        """v_j as an expression in C and Python, of the array u and the names of tables."""
        known = self.tables()
        value = f"{u}[{table('take')}[j]]" if "take" in known else f"{u}[j]"
        value = f"({value} - {table('shift')}[j])" if "shift" in known else value
        for sign, name in (("/", "scale"), ("*", "factor"), ("+", "offset")):
            value += f" {sign} {table(name)}[j]" if name in known else ""
        return value

    def between(self, before: int, after: int) -> "Scaling":
        """The same, with this many unchanged columns on either side."""
        n_in = before + self.n_in + after
        take = np.concatenate([np.arange(before), before + self.take, np.arange(n_in - after, n_in)])
        sides = (before, after)
        return Scaling(
            n_in,
            take,
            shift=np.pad(self.shift, sides),
            scale=np.pad(self.scale, sides, constant_values=1.0),
            factor=np.pad(self.factor, sides, constant_values=1.0),
            offset=np.pad(self.offset, sides),
        )


@dataclass(frozen=True)
class Projection:
    """v = (u - mean) W; mean (d,), W (d, k)."""

    mean: Array
    W: Array

    @property
    def n_in(self) -> int:
        return len(self.mean)

    @property
    def n_out(self) -> int:
        return int(self.W.shape[1])

    def tables(self) -> dict[str, NDArray[Any]]:
        """Names and numbers."""
        return {"mean": self.mean, "matrix": self.W}

    def entry(self, u: str, table: Callable[[str], str]) -> str:
        """What u_j adds to v_c, as an expression in C and Python."""
        return f"({u}[j] - {table('mean')}[j]) * {table('matrix')}[j][c]"

    def between(self, before: int, after: int) -> "Projection":
        """The same, with this many unchanged columns on either side."""
        mean = np.concatenate([np.zeros(before), self.mean, np.zeros(after)])
        return Projection(mean, scipy.linalg.block_diag(np.eye(before), self.W, np.eye(after)))


@dataclass(frozen=True)
class Interpolation:
    """v_j is a curve of u_j: lines between the ``knots`` start[j] to start[j + 1] - 1, constant beyond them."""

    knots: Array
    scores: Array
    start: Indices

    @property
    def n_in(self) -> int:
        return int(self.start.size) - 1

    @property
    def n_out(self) -> int:
        return self.n_in

    def tables(self) -> dict[str, NDArray[Any]]:
        """Names and numbers."""
        return {"knots": self.knots, "scores": self.scores, "start": self.start}

    def entry(self, u: str, table: Callable[[str], str]) -> str:
        """Between knots i and i + 1, as an expression in C and Python."""
        k, v = table("knots"), table("scores")
        return f"({v}[i + 1] - {v}[i]) / ({k}[i + 1] - {k}[i]) * ({u}[j] - {k}[i]) + {v}[i]"


Affine = Scaling | Projection
Step = Affine | Interpolation


def affine_steps(steps: Iterable[tuple[str, Any]]) -> list[Affine]:
    """The steps of a fitted pipeline, one after the other, without those that change nothing."""
    return [part for name, step in steps for part in _parts(name, step) if part.tables()]


def _parts(name: str, step: Any) -> list[Affine]:
    """What one step does, as affine steps."""
    if step is None or (isinstance(step, str) and step == "passthrough"):
        return []
    check_is_fitted(step)
    if type(step) is Pipeline:
        return affine_steps(step.steps)
    if type(step) is ColumnTransformer:
        return _side_by_side(step)
    if isinstance(step, SelectorMixin) and type(step).transform is SelectorMixin.transform:
        return [Scaling.of(step.n_features_in_, step.get_support(indices=True))]
    # Only scalers clip, and only a FunctionTransformer has a function.
    if type(step) not in _STEPS or getattr(step, "clip", False) or getattr(step, "func", None) is not None:
        raise _not_affine(name, step)
    return _STEPS[type(step)](step)


def _not_affine(name: str, step: Any) -> ValueError:
    clips = " with clip=True" if getattr(step, "clip", False) else ""
    return ValueError(
        f'the step "{name}", {type(step).__name__}{clips}, is not an affine map that can be exported; '
        "StandardScaler, MinMaxScaler, MaxAbsScaler, RobustScaler, PCA, IncrementalPCA, TruncatedSVD, selections "
        "of features, and pipelines and ColumnTransformers of them can. Export the part after it, pipeline[k:], "
        "and apply the steps before it to the rows yourself"
    )


def _standard(step: Any) -> list[Affine]:
    shift = step.mean_ if step.with_mean else 0.0
    return [Scaling.of(step.n_features_in_, shift=shift, scale=step.scale_ if step.with_std else 1.0)]


def _robust(step: Any) -> list[Affine]:
    shift = step.center_ if step.with_centering else 0.0
    return [Scaling.of(step.n_features_in_, shift=shift, scale=step.scale_ if step.with_scaling else 1.0)]


def _principal(step: Any) -> list[Affine]:
    W = np.asarray(step.components_, dtype=np.float64).T
    if step.whiten:
        deviation = np.sqrt(step.explained_variance_)
        # Directions without variance are divided by this, as scikit-learn does.
        W = W / np.maximum(deviation, np.finfo(deviation.dtype).eps)
    return [Projection(np.asarray(step.mean_, dtype=np.float64), W)]


def _singular(step: Any) -> list[Affine]:
    W = np.asarray(step.components_, dtype=np.float64).T
    return [Projection(np.zeros(len(W)), W)]


# Subclasses may do something else.
_STEPS: dict[type, Callable[[Any], list[Affine]]] = {
    StandardScaler: _standard,
    RobustScaler: _robust,
    MinMaxScaler: lambda s: [Scaling.of(s.n_features_in_, factor=s.scale_, offset=s.min_)],
    MaxAbsScaler: lambda s: [Scaling.of(s.n_features_in_, scale=s.scale_)],
    PCA: _principal,
    IncrementalPCA: _principal,
    TruncatedSVD: _singular,
    FunctionTransformer: lambda s: [],
}


def _side_by_side(step: Any) -> list[Affine]:
    """A ColumnTransformer: its columns in their order, then one part after the other while the rest waits."""
    parts = []
    for name, part, columns in step.transformers_:
        take = _positions(step, columns)
        if len(take) > 0 and not (isinstance(part, str) and part == "drop"):
            weight = (step.transformer_weights or {}).get(name, 1.0)
            parts.append((take, _weighted(_parts(name, part), len(take), weight)))
    chain: list[Affine] = [Scaling.of(step.n_features_in_, np.concatenate([take for take, _ in parts]))]
    before, after = 0, chain[0].n_out
    for take, inner in parts:
        after -= len(take)
        chain += [one.between(before, after) for one in inner]
        before += inner[-1].n_out
    return chain


def _weighted(steps: list[Affine], n_in: int, weight: float) -> list[Affine]:
    return [*steps, Scaling.of(steps[-1].n_out if steps else n_in, factor=weight)]


def _positions(step: Any, columns: Any) -> Indices:
    """The columns of a part of a ColumnTransformer as numbers."""
    if isinstance(columns, slice) and any(isinstance(end, str) for end in (columns.start, columns.stop)):
        raise ValueError(f"a ColumnTransformer with {columns!r} cannot be exported; pass a list of columns to it")
    if not isinstance(columns, slice):
        columns = np.atleast_1d(np.asarray(columns, dtype=None if np.size(columns) else np.intp))
        if columns.dtype.kind in "UO":
            names = list(step.feature_names_in_)
            columns = np.array([names.index(name) for name in columns], dtype=np.intp)
    numbers: Indices = np.atleast_1d(np.arange(step.n_features_in_)[columns])
    return numbers
