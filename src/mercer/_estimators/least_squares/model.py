"""Models fitted at once or in passes over blocks of rows, to which rows can be added and from which removed."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from mercer import _validation
from mercer._estimators.attributes import attributes_of
from mercer._estimators.base import read_blocks, schema_of
from mercer._estimators.fitted import Fitted, Waiting, atomic_update, fitted, with_state
from mercer._estimators.leave_one_out import LeaveOneOutModel
from mercer._estimators.parameters import (
    asks_for_relevance,
    common_spec,
    folds_of_rows,
    generator,
    parameters_of,
    penalty_of,
    read_rows,
    refuse_changes,
    refuse_outside,
    refuse_to_go_on,
    under_parameters,
)
from mercer._estimators.report import logs_fit_time
from mercer._fitting.data import RowSchema, TrainingData
from mercer._fitting.kernel_learning.relevance import Features, kinds_of
from mercer._fitting.moments import PassState, sample_rows, start_state
from mercer._fitting.result import FitResult
from mercer._fitting.run import run
from mercer._fitting.spec import FitSpec, SecondFit
from mercer._fitting.training import check_enough_rows
from mercer._gram.moments import Moments
from mercer._solvers.spectrum import Penalty
from mercer._types import Array, Indices
from mercer.centers import CenterSelector, Given
from mercer.kernels import Kernel, WeightedSum, as_kernel
from mercer.kernels._resolve import automatic_for_table
from mercer.kernels._vectors.stationary import Stationary
from mercer.kernels._vectors.units import RankNormal, Standardized
from mercer.rows import MemoryRows, Rows
from mercer.rows._base import BLOCK_ROWS
from mercer.rows._encoding.columns import TableEncoding
from mercer.rows._encoding.rule import as_raw
from mercer.rows._resolve import is_out_of_core
from mercer.rows._table import take
from mercer.rows._virtual import as_copies, rows_for_each

# The sums depend on these parameters: they must not change between batches.
FIXED = ("kernel", "centers", "penalty", "class_weight", "invariances", "relevance", "columns")
# Where probabilities come from.
PROBABILITIES = ("auto", "logistic", "discriminant")
# Weights of the change of outputs under transformations, compared by leave-one-out.
MUS: tuple[float, ...] = (0.0, 0.01, 0.1, 1.0, 10.0)


@dataclass(frozen=True)
class KeptRows:
    """Rows of a fit with every distinct row as a center: the center of each (n,), targets, weights or None."""

    point: Indices
    y: NDArray[Any]
    weight: Array | None

    def rows(self, centers: Any) -> MemoryRows:
        """The rows, from the centers of the fit."""
        return MemoryRows(take(centers, self.point), self.y, self.weight)


@dataclass(frozen=True, eq=False)
class Continuation:
    """What a fit leaves to go on from: its sums, or the rows that it ``kept``, None: there are none.

    Whatever parameters are set later, ``penalty`` and ``intercept`` are those of the fit, and sums can go on with
    the ``fixed_parameters`` only. ``selection_bias`` (q,) is that of residuals, if known.
    """

    fixed_parameters: dict[str, Any]
    penalty: Penalty
    intercept: bool
    sums: PassState | None = None
    kept: KeptRows | None = None
    selection_bias: Array | None = None


@dataclass(eq=False)
class WaitingSolution(Waiting):
    """The attributes that follow from sums to which rows were added, or from which they were removed."""

    sums: PassState
    found: dict[str, Any] | None = None

    def solve(self) -> dict[str, Any]:
        # With the memory that is free now.
        spec = replace(self.sums.spec)
        return _attributes(self.sums.under(spec, self.sums.targets).solved(), spec)


class LeastSquaresModel(LeaveOneOutModel):
    """A model fitted with every row as a center, or with m centers in blocks of rows; abstract."""

    centers: Any
    penalty: str
    cv: Any
    loo_rows: int | None
    fit_intercept = True
    invariances: Any = None
    mu: float | str | None = None
    relevance: Any = "auto"
    probabilities: str = "discriminant"
    columns: Mapping[Any, str] | None = None
    _encodes_tables = True

    columns_ = fitted[TableEncoding](waits=False)
    mu_ = fitted[float | None]()
    relevance_ = fitted[Array | None]()
    kernel_weights_ = fitted[dict[str, float] | None]()
    loo_index_ = fitted[Indices]()

    @logs_fit_time
    @atomic_update
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, groups: ArrayLike | None = None) -> Self:
        """Choose kernel and penalty by leave-one-out, and fit.

        Parameters
        ----------
        X : array, memory map, CSR matrix, data frame, list of objects or kernel matrix, n rows
            A frame may have categories, text, dates and missing values: they become features, see ``columns_``.
            Or out-of-core rows, which are read block by block: the path of a Parquet file or folder, a
            list of tuples (X, y) or (X, y, weight), a function that returns an iterator of them, or a
            collection of Dask, Ray or Spark.
        y : array of shape (n,), for a regressor also (n, q)
            Class labels of one type (numbers, strings, Booleans or dates), or real targets. For a path, the name
            of the column, or a list of names; tuples contain it.
        sample_weight : array of shape (n,), default=None
            Weights of the rows; a weight of two is equivalent to repeating the row, in leave-one-out only if
            ``weights`` are counts. For a path, the name of the column.
        groups : array of shape (n,), default=None
            Rows that are held out together; they are in memory, or Rows of which some can be read without the
            others, such as :class:`mercer.rows.MemoryRows`.
        """
        spec, rng = spec_of(self), generator(self.random_state)
        data = self._read_with_folds(X, y, sample_weight, groups, spec)
        spec = spec_of(self, data.schema.encoding or self._given_encoding)
        result = run(spec, data, rng)
        fixed_parameters = {} if result.state is None else _fixed_parameters(self)
        kept = _kept_rows(spec, data, result)
        details = Continuation(fixed_parameters, spec.norm, spec.intercept, result.state, kept)
        return self._publish_fit(_attributes(result, spec), spec, data, result, details)

    @atomic_update
    def remove(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Remove rows that were passed to ``fit`` or ``partial_fit``, O(b m²): the model is that of the others.

        Parameters
        ----------
        X, y, sample_weight : as in ``fit``
            The rows, with their current weight, after ``decay``. Rows that are not in the model raise an error if
            this can be detected.
        """
        check_is_fitted(
            self,
            "_moments",
            msg="%(name)s has no moments from which rows could be removed: it is not fitted, is a lean copy, or "
            "has every row as a center; fit it with centers=..., or refit it without these rows",
        )
        refuse_changes(self._continuation.fixed_parameters, _fixed_parameters(self))
        spec = spec_of(self)
        sums, rows = self._current_sums(spec), self._batch(X, y, sample_weight, spec)
        try:
            sums = sums.removed(rows)
        except ValueError:
            # A stream has names after a pass: other columns explain why its rows are not in the model.
            schema_of(self).of_rows(rows)
            raise
        return self._publish(self._unsolved(sums, schema_of(self).of_rows(rows)))

    def _lean_state(self) -> Fitted:
        details = replace(self._continuation, fixed_parameters={}, sums=None, kept=None)
        return replace(super()._lean_state(), details=details)

    @property
    def moments_(self) -> Moments:
        """Sums over all rows that determine the model, if it was fitted with centers."""
        return self._moments.of_kernel_values()

    @property
    def _moments(self) -> Moments:
        """The sums, in the coordinates in which they were computed."""
        sums = None if self._fitted is None else self._continuation.sums
        if sums is None:
            raise AttributeError(
                f"{type(self).__name__} has no moments_: it was not fitted with centers, or is lean"
            )
        return sums.moments

    @property
    def _continuation(self) -> Continuation:
        """What the fit can go on from."""
        found: Continuation = self._details
        return found

    def _read_with_folds(
        self, X: Any, y: Any, sample_weight: Any, groups: ArrayLike | None, spec: FitSpec
    ) -> TrainingData:
        """All rows of a fit, and which are held out together."""
        if is_out_of_core(X):
            refuse_outside(self, X, groups)
            data = self._read_training(X, y, sample_weight)
            folds = None if groups is None else folds_of_rows(None, np.zeros(X.n_rows), groups, classifier=False)
        else:
            data = self._read_training(X, y, sample_weight, block_rows=_block_rows(spec))
            check_enough_rows(int(np.count_nonzero(np.asarray(data.block.weight))))
            folds = folds_of_rows(self.cv, data.block.y, groups, classifier=is_classifier(self))
        return replace(data, folds=folds)

    def _batch(self, X: Any, y: Any, sample_weight: Any, spec: FitSpec) -> Rows:
        """Rows to add or remove, with the columns of those before; those in memory are validated."""
        if is_out_of_core(X):
            return read_blocks(self, X, y, sample_weight)
        X, y, weight = read_rows(self, X, y, sample_weight, reset=False)
        return MemoryRows(X, y, None if sample_weight is None else weight, block_rows=_block_rows(spec))

    def _add(self, X: Any, y: Any, sample_weight: Any, decay: float, declared: ArrayLike | None = None) -> Self:
        """Add rows to the fit, or start one; the weights of previous rows are multiplied by ``decay``."""
        spec, rng = spec_of(self), generator(self.random_state)
        refuse_to_go_on(self, decay)
        state = self._state_with_sums(spec, rng, declared)
        if state is None:
            data = self._read_training(X, y, sample_weight, declared, block_rows=_block_rows(spec))
            return self._publish(self._start_sums(spec_of(self, data.schema.encoding), data, rng))
        model = with_state(self, state)
        rows = model._batch(X, y, sample_weight, spec)
        sums = model._current_sums(spec).added(rows, decay)
        return self._publish(self._unsolved(sums, schema_of(model).of_rows(rows)))

    def _state_with_sums(
        self, spec: FitSpec, rng: np.random.Generator, declared: ArrayLike | None
    ) -> Fitted | None:
        """The sums so far, after a fit that made every row a center those of its rows; None: there are no rows."""
        state = self._fitted
        if state is None:
            return None
        if self._continuation.sums is not None:
            refuse_changes(self._continuation.fixed_parameters, _fixed_parameters(self))
            return state
        kept = self._continuation.kept
        if kept is None:
            raise ValueError(
                f"kernel={self.kernel!r} was fitted on kernel values, which are not kept; partial_fit would "
                f"forget the {len(self.loo_index_)} rows of fit; pass the kernel, or start with a clone"
            )
        check, has_classes = self._block_validator(), is_classifier(self)
        data = TrainingData(
            kept.rows(self.X_fit_), schema_of(self), self._targets_of, has_classes, check, declared=declared
        )
        return self._start_sums(spec_of(self, data.schema.encoding), data, rng)

    def _start_sums(self, spec: FitSpec, data: TrainingData, rng: np.random.Generator) -> Fitted:
        """Kernel and centers from a sample of the rows, and the sums of all of them."""
        sampled = sample_rows(spec, data, rng)
        return self._unsolved(start_state(spec, sampled, rng), sampled.schema)

    def _current_sums(self, spec: FitSpec) -> PassState:
        """The sums under the current parameters, except those on which they depend."""
        sums = self._known_sums()
        return sums.under(spec, under_parameters(self, sums.targets))

    def _known_sums(self) -> PassState:
        """The sums of the fit so far."""
        sums = self._continuation.sums
        assert sums is not None
        return sums

    def _unsolved(self, sums: PassState, schema: RowSchema) -> Fitted:
        """What was chosen; the rest is solved when it is needed."""
        spec = sums.spec
        chosen = {"kernel_": sums.kernel, "X_fit_": sums.centers, "support_": sums.support}
        details = Continuation(_fixed_parameters(self), spec.norm, spec.intercept, sums)
        attributes = schema.attributes | sums.targets.known | chosen
        return Fitted(attributes, details, WaitingSolution(sums), chooses=spec.chooses or spec.centers_are_chosen)


def _block_rows(spec: FitSpec) -> int:
    """Rows of blocks that have the usual size with their copies, so that threads share them."""
    return max(1, BLOCK_ROWS // max(rows_for_each(spec.copies), rows_for_each(spec.tangents)))


def _kept_rows(spec: FitSpec, data: TrainingData, result: FitResult) -> KeptRows | None:
    """The rows of a fit with every row a center; kernel values are not kept."""
    if spec.kernel.takes_values or result.observations is None:
        return None
    rows, used = data.rows, np.asarray(data.block.weight) > 0
    assert isinstance(rows, MemoryRows)
    weight = None if rows.weight is None else np.asarray(rows.weight)[used]
    return KeptRows(result.observations.rows.point, np.asarray(rows.y)[used], weight)


def spec_of(model: LeastSquaresModel, encoding: TableEncoding | None = None) -> FitSpec:
    """The parameters of a model, validated, for rows that are numbers or features of a raw table."""
    _check_learned(model)
    common, relevance = common_spec(model), _relevance_of(model)
    if encoding is not None:
        common = _for_table(model, common, encoding)
        relevance = None if relevance is None else _of_columns(relevance, encoding)
    return replace(
        common,
        penalty=penalty_of(model.penalty),
        intercept=model.fit_intercept,
        loo_rows=model.loo_rows,
        relevance=relevance,
        logits=_second_fit(model),
        **_invariance_of(model),
    )


def _for_table(model: LeastSquaresModel, spec: FitSpec, encoding: TableEncoding) -> FitSpec:
    """The default kernel for features of one unit, and given centers as features."""
    if model.invariances is not None:
        raise ValueError(
            "invariances transform rows of numbers, but X is a raw table; encode it before, or pass None"
        )
    kernel, centers = spec.kernel, spec.centers
    if _is_auto(model.kernel):
        kernel = automatic_for_table(encoding.numbers)
    if isinstance(centers, Given) or not isinstance(centers, str | Integral | CenterSelector):
        rows = centers.rows if isinstance(centers, Given) else centers
        centers = Given(encoding.encode(as_raw(rows)))
    return replace(spec, kernel=kernel, centers=centers)


def _of_columns(features: Features, encoding: TableEncoding) -> Features:
    """One relevance for all features of a column, but for what else is said of it, such as that it is missing."""
    if features.group is None:
        return replace(features, group=encoding.groups)
    if len(features.group) != len(encoding.columns):
        raise ValueError(
            f"relevance names the groups of {len(features.group)} columns, but X has {len(encoding.columns)}"
        )
    return replace(features, group=np.unique(features.group[encoding.of_column], return_inverse=True)[1])


def _second_fit(model: LeastSquaresModel) -> SecondFit:
    """Whether probabilities may come from a fit with the logistic loss; what forbids that is an error if the user
    asks for it.
    """
    asked = model.probabilities
    _validation.check_choice("probabilities", asked, PROBABILITIES)
    by_default = asked == "auto" and _is_auto(model.kernel)
    if not is_classifier(model) or not (by_default or asked == "logistic"):
        return SecondFit()
    needed: dict[str, tuple[Any, ...]] = {
        "penalty": ("rkhs",),
        "threshold": ("bayes",),
        "calibration": ("logistic",),
        "criterion": ("brier", "log_loss"),
        "invariances": (None,),
        "n_components": (None,),
    }
    other = next((name for name, values in needed.items() if not _is_one(getattr(model, name), values)), None)
    if asked == "logistic" and other is not None:
        raise ValueError(
            f'probabilities="logistic" needs {other}={needed[other][0]!r}; {getattr(model, other)!r} is about the '
            'discriminant: use probabilities="discriminant"'
        )
    return SecondFit(asked=True, parameter=other)


def _is_one(value: Any, values: tuple[Any, ...]) -> bool:
    """Whether a value, of any type, is one of some words, or None."""
    return value is None if values == (None,) else isinstance(value, str) and value in values


def _is_auto(kernel: Any) -> bool:
    """Whether the kernel is the default one."""
    return isinstance(kernel, str) and kernel == "auto"


def _check_learned(model: LeastSquaresModel) -> None:
    """What is learned before a fit is learned with the norm of the function as penalty."""
    asked = asks_for_relevance(model.relevance)
    what = "relevance is" if asked else "weights of kernels are learned"
    learned = asked or isinstance(as_kernel(model.kernel), WeightedSum)
    if learned and model.penalty != "rkhs":
        raise ValueError(f'{what} for penalty="rkhs", not {model.penalty!r}')


def _relevance_of(model: LeastSquaresModel) -> Features | None:
    """The features whose relevances are learned, for a kernel that can have them; None: all alike."""
    if not asks_for_relevance(model.relevance):
        chosen = model.relevance is not None and _is_auto(model.kernel)
        plain = model.penalty == "rkhs" and model.invariances is None
        return Features(if_enough=True) if chosen and plain else None
    features = _features_of(model.relevance)
    kernel = as_kernel(model.kernel)
    if not all(_has_unknown_width(one) for one in kinds_of(kernel)):
        raise ValueError(
            f"relevance chooses a gamma for each feature, but the kernel is {kernel}; use RBF, Matern, "
            'Laplacian or another function of a distance with gamma="loo", "median" or "scale"'
        )
    return features


def _has_unknown_width(kernel: Kernel) -> bool:
    """Whether a kernel is a function of a distance, perhaps in other units, with a gamma to be chosen."""
    inner = kernel.kernel if isinstance(kernel, Standardized | RankNormal) else kernel
    return isinstance(inner, Stationary) and isinstance(inner.gamma, str)


def _features_of(relevance: Any) -> Features:
    """Each feature by itself, or in the group that is named for it."""
    if isinstance(relevance, str):
        _validation.check_choice("relevance", relevance, allowed=("auto", "diagonal"))
        return Features()
    names = _validation.labels("relevance", relevance)
    if names.ndim != 1:
        raise ValueError(
            f'relevance is {_validation.format_value(relevance)}; pass "diagonal", or one label for each feature: '
            "its group"
        )
    return Features(np.unique(names, return_inverse=True)[1])


def _invariance_of(model: LeastSquaresModel) -> dict[str, Any]:
    """Settings of the copies that join the rows, or of changes that are penalized."""
    copies = as_copies(model.invariances)
    mus = MUS
    if model.mu not in (None, "loo"):
        mus = (_validation.check_number("mu", model.mu, 'a number of at least 0, "loo" or None', least=0.0),)
    if copies is None:
        if model.mu is not None:
            raise ValueError(
                f"mu={model.mu!r} is the weight of invariances, and there are none; pass some, or None"
            )
        return {}
    if as_kernel(model.kernel).takes_values:
        raise ValueError("invariances transform rows, and a kernel matrix has none; pass a kernel and the rows")
    if isinstance(model.centers, str) and model.centers == "all":
        raise ValueError(
            'centers="all" with invariances; use "auto", or a number of centers up to that of rows and copies'
        )
    return {"copies": copies} if model.mu is None else {"tangents": copies, "mus": mus}


def _fixed_parameters(model: LeastSquaresModel) -> dict[str, Any]:
    """Parameters that must not change between batches, and whether copies are rows."""
    fixed = parameters_of(model, FIXED) | {"mu": None if model.mu is None else "a weight"}
    given = fixed["invariances"]
    return fixed | {"invariances": list(given) if isinstance(given, list) else given}


def _attributes(result: FitResult, spec: FitSpec) -> dict[str, Any]:
    """The fitted attributes of a model, by name."""
    learned = {} if result.learned is None else result.learned.attributes
    own: dict[str, Any] = {
        "relevance_": None,
        "kernel_weights_": None,
        "mu_": result.mu,
        "loo_index_": result.index,
    }
    logits = result.solution.logits
    if result.targets.has_classes:
        own["logit_coef_"] = None if logits is None else logits.coef
        own["logit_intercept_"] = None if logits is None else logits.intercept
    return attributes_of(result, spec) | own | learned
