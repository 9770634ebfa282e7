"""Models fitted at once or in passes over blocks of rows, to which rows can be added and from which removed."""

from copy import deepcopy
from dataclasses import dataclass
from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from mercer import validation
from mercer.centers import CenterSelector
from mercer.centers.resolve import EVERY_ROW, EXACT_ROWS, MATTERING_ROWS
from mercer.gram.moments import Moments
from mercer.kernels import WeightedSum, as_kernel
from mercer.kernels.vectors.stationary import Stationary
from mercer.models.anew import ANEW, Anew, Scored, choose_anew, known_score
from mercer.models.attributes import attributes_of
from mercer.models.base import KernelModel, check_names, read_blocks
from mercer.models.report import told
from mercer.models.state import PENDING, Awaited, Pending, aside, from_one_state, in_one_step
from mercer.models.validation import (
    check_parameters,
    folds_of_rows,
    generator,
    loo_size,
    meaning_of,
    memory_or_none,
    parameters_of,
    penalty_of,
    positive_or_loo,
    read_rows,
    refuse_changes,
    refuse_outside,
    refuse_to_go_on,
    under_parameters,
)
from mercer.rows import Block, Labels, MemoryRows, Rows, feature_names, is_out_of_core
from mercer.rows.base import BLOCK_ROWS
from mercer.rows.table import in_single, n_rows, take
from mercer.rows.virtual import as_copies, rows_for_each
from mercer.scores.targets import Targets
from mercer.scores.training_rows import Folds
from mercer.scores.uncertainty.unexplained_variance import UnexplainedVariance, learn
from mercer.solvers.spectrum import Penalty
from mercer.tuning.compare import Compared
from mercer.tuning.fit import EveryRow, Settings, check_enough_rows, check_folds
from mercer.tuning.passes import PassState, begin
from mercer.tuning.problem import ExactProblem
from mercer.tuning.relevance import Features, kinds_of
from mercer.tuning.result import FitResult
from mercer.types import Array, Indices

# So many times more rows than centers make a fit in passes worth it.
FEWER = 4
# The sums depend on these parameters: they must not change between batches.
FIXED = ("kernel", "centers", "penalty", "class_weight", "invariances", "relevance")
# One number or more for each training row, with which nothing is predicted.
OF_ROWS = ("loo_outputs_", "loo_decision_", "loo_proba_", "loo_prediction_", "loo_index_", "support_")
# Weights of the change of outputs under transformations, compared by leave-one-out.
MUS = (0.0, 0.01, 0.1, 1.0, 10.0)


@dataclass(frozen=True)
class Kept:
    """Rows of a fit with every distinct row as a center: the center of each (n,), targets, weights or None."""

    point: Indices
    y: NDArray[Any]
    weight: Array | None

    def rows(self, centers: Any) -> MemoryRows:
        """The rows, from the centers of the fit."""
        return MemoryRows(take(centers, self.point), self.y, self.weight)


class ResumableModel(Scored, KernelModel):
    """A model fitted with every row as a center, or with m centers in blocks of rows; abstract."""

    alpha: float | str
    centers: Any
    penalty: str
    weights: str
    cv: Any
    loo_rows: int | None
    max_memory: float | None
    random_state: Any
    verbose: int
    fit_intercept = True
    invariances: Any = None
    mu: float | str | None = None
    relevance: Any = None
    _private = ("_state", "_kept", ANEW, PENDING, "_lean", "_begun_with")
    _state: PassState
    _kept: Kept
    _begun_with: dict[str, Any]
    # Penalty and intercept of the fit, whatever is set later.
    _penalized: tuple[Penalty, bool]

    alpha_: Any = Awaited()
    mu_: Any = Awaited()
    relevance_: Any = Awaited()
    kernel_weights_: Any = Awaited()
    gamma_: Any = Awaited()
    dual_coef_: Any = Awaited()
    intercept_: Any = Awaited()
    degrees_of_freedom_: Any = Awaited()
    loo_index_: Any = Awaited()
    support_: Any = Awaited()
    loo_path_: Any = Awaited()
    loo_best_score_: Any = Awaited()
    report_: Any = Awaited()

    @told
    @in_one_step
    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, groups: ArrayLike | None = None) -> Self:
        """Choose kernel and penalty by leave-one-out, and fit.

        Parameters
        ----------
        X : array, memory map, CSR matrix, data frame, list of objects or kernel matrix, n rows
            Or rows outside memory, which are read block by block: the path of a Parquet file or folder, a
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
        settings, rng = settings_of(self), generator(self.random_state)
        self._start_anew()
        self._penalized = settings.penalty, settings.intercept
        if is_out_of_core(X):
            refuse_outside(self, X, groups)
            rows = read_blocks(self, X, y, sample_weight, first=True)
            folds = None if groups is None else folds_of_rows(None, np.zeros(X.n_rows), groups, classifier=False)
            check_folds(folds, None if folds is None else getattr(X, "weight", None))
            self._begin(rows, settings, rng, folds)
            fit = self._state.solved(None if folds is None else X)
            self.__dict__ |= _attributes(self._state.targets, fit, settings)
            return self
        X, y, weight = read_rows(self, X, y, sample_weight, reset=True)
        check_enough_rows(int(np.count_nonzero(weight > 0)))
        folds = folds_of_rows(self.cv, y, groups, classifier=is_classifier(self))
        rows = _in_memory(settings, X, y, None if sample_weight is None else weight)
        if _in_passes(settings, X, folds):
            check_folds(folds, rows.weight)
            self._begin(rows, settings, rng, folds)
            fit = self._state.solved(rows)
            self.__dict__ |= _attributes(self._state.targets, fit, settings, _anew(self, settings, fit, rows))
            return self
        targets = self._settle(y, Labels.of(y, weight) if is_classifier(self) else None, None)
        names = getattr(self, "feature_names_in_", None)
        every = EveryRow.of(settings, targets, Block(X, y, weight, 0), folds, names)
        limited = _may_be_limited(settings, len(y)) and not every.fits
        if settings.learns and not limited:
            # Kernels are then compared with the same random centers as if nothing were learned.
            every = every.with_learned(settings.relevance, deepcopy(rng))
        compared = None if limited else every.compare(rng, count=_may_be_fewer(settings, every.problem.X, folds))
        if compared is None or _are_enough(compared, every.problem):
            self._begin(rows, settings, rng, folds, compared=compared, every=limited)
            fit = self._state.solved(rows)
            self.__dict__ |= _attributes(self._state.targets, fit, settings, _anew(self, settings, fit, rows))
            return self
        fit = every.fit(compared)
        if not settings.kernel.takes_values and fit.observations is not None:
            used = weight > 0
            self._kept = Kept(
                fit.observations.rows.point, y[used], None if sample_weight is None else weight[used]
            )
        self.__dict__ |= _attributes(targets, fit, settings, _anew(self, settings, fit, rows))
        return self

    @in_one_step
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
            "_state",
            msg="%(name)s has no moments from which rows could be removed: it is not fitted, is a lean copy, or "
            "has every row as a center; fit it with centers=..., or refit it without these rows",
        )
        refuse_changes(self._begun_with, _fixed(self))
        state, rows = self._current_state(settings_of(self)), self._batch(X, y, sample_weight)
        try:
            self._state = state.removed(rows)
        finally:
            # A stream has names after a pass: other columns explain why its rows are not in the model.
            check_names(self, feature_names(rows))
        return self._await_solution()

    @from_one_state
    def lean(self) -> Self:
        """A copy that can only predict: without leave-one-out results of training rows, and the moments and
        rows from which the fit could be continued.
        """
        check_is_fitted(self)
        model: Self = aside(self)
        for name in ("_state", "_kept", *OF_ROWS):
            model.__dict__.pop(name, None)
        model.__dict__ |= known_score(model.__dict__.pop(ANEW, None))
        model._lean = True
        return model

    @property
    def moments_(self) -> Moments:
        """Sums over all rows that determine the model, if it was fitted with centers."""
        return self._moments.of_kernel_values()

    @property
    def _moments(self) -> Moments:
        """The sums, in the coordinates in which they were computed."""
        if "_state" not in vars(self):
            raise AttributeError(
                f"{type(self).__name__} has no moments_: it was not fitted with centers, or is lean"
            )
        return self._state.moments

    def __getstate__(self) -> dict[str, Any]:
        """What is stored in a file: the solution, if there is one, and no lock."""
        state = super().__getstate__()
        pending = state.pop(PENDING, None)
        return state if pending is None or pending.solved is None else state | pending.solved

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if "_state" in vars(self) and "dual_coef_" not in vars(self):
            self._pending = Pending()

    def _begin(
        self,
        rows: Rows,
        settings: Settings,
        rng: np.random.Generator,
        folds: Folds | None = None,
        declared: ArrayLike | None = None,
        compared: Compared | None = None,
        *,
        every: bool = False,
    ) -> None:
        """One pass for a sample, on which kernel and centers are chosen, and one for the moments.

        ``every``: only the budget keeps every row from being a center.
        """
        looked, encode = self._look(settings, rows, rng, declared)
        self.__dict__ |= encode.targets.known
        names = getattr(self, "feature_names_in_", None)
        self._state = begin(settings, encode, looked, rng, folds, compared, names, every=every)
        self._begun_with = _fixed(self)

    def _batch(self, X: Any, y: Any, sample_weight: Any) -> Rows:
        """Rows to add or remove; those in memory are validated."""
        if is_out_of_core(X):
            return read_blocks(self, X, y, sample_weight, first="_state" not in vars(self))
        X, y, weight = read_rows(self, X, y, sample_weight, reset="_state" not in vars(self))
        return _in_memory(settings_of(self), X, y, None if sample_weight is None else weight)

    def _add(self, X: Any, y: Any, sample_weight: Any, decay: float, declared: ArrayLike | None = None) -> Self:
        """Add rows to the fit, or start one; the weights of previous rows are multiplied by ``decay``."""
        settings, rng = settings_of(self), generator(self.random_state)
        refuse_to_go_on(self, decay)
        if "_state" in vars(self):
            refuse_changes(self._begun_with, _fixed(self))
        else:
            self._begin_with_kept_rows(settings, rng, declared)
        rows = self._batch(X, y, sample_weight)
        if "_state" in vars(self):
            self._state = self._current_state(settings).added(rows, decay)
            check_names(self, feature_names(rows))
        else:
            self._begin(rows, settings, rng, None, declared)
        return self._await_solution()

    def _current_state(self, settings: Settings) -> PassState:
        """The state under the current parameters, except those on which the sums depend."""
        return self._state.under(settings, under_parameters(self, self._state.targets))

    def _begin_with_kept_rows(
        self, settings: Settings, rng: np.random.Generator, declared: ArrayLike | None
    ) -> None:
        """Start over, with the rows of a fit that made each a center, if there was one."""
        before = vars(self).copy()
        self._start_anew()
        if "_kept" in before:
            self.__dict__ |= {name: before[name] for name in before if name == "feature_names_in_"}
            self._begin(before["_kept"].rows(before["X_fit_"]), settings, rng, None, declared)
        elif "dual_coef_" in before:
            raise ValueError(
                f"kernel={self.kernel!r} was fitted on kernel values, which are not kept; partial_fit would "
                f"forget the {len(before['loo_index_'])} rows of fit; pass the kernel, or start with a clone"
            )

    def _await_solution(self) -> Self:
        """Keep what was chosen; the rest is solved when it is needed."""
        self.__dict__.pop(ANEW, None)
        chosen = {"n_features_in_", "feature_names_in_", "classes_"}
        for name in [name for name in vars(self) if name.endswith("_") and name not in chosen]:
            delattr(self, name)
        state = self._state
        self._penalized = state.settings.penalty, state.settings.intercept
        self.kernel_, self.X_fit_, self.support_ = state.kernel, state.centers, state.support
        self._pending = Pending()
        return self

    def _solution(self) -> dict[str, Any]:
        """The fitted attributes that follow from the state."""
        return _attributes(self._state.targets, self._state.solved(None), self._state.settings)


def _in_memory(settings: Settings, X: Any, y: Any, weight: Array | None) -> MemoryRows:
    """Rows in blocks that have the usual size with their copies, so that threads share them."""
    size = max(rows_for_each(settings.copies), rows_for_each(settings.tangents))
    return MemoryRows(X, y, weight, block_rows=max(1, BLOCK_ROWS // size))


def _anew(model: ResumableModel, settings: Settings, fit: FitResult, rows: MemoryRows) -> Anew | None:
    """How a fit to all of these rows is scored, if something was chosen."""
    if not _chooses(settings) or len(fit.index) < len(rows.y):
        return None
    given = None if rows.weight is None else rows.weight[fit.index]
    centers = None if fit.observations is None else (fit.centers, fit.observations.rows.point)
    return choose_anew(model, settings.kernel, fit.training, rows.y[fit.index], given, centers)


def _chooses(settings: Settings) -> bool:
    """Whether kernel, alpha or centers are chosen by the rows."""
    selects = isinstance(settings.centers, Integral | CenterSelector)
    return settings.alpha is None or not settings.kernel.resolved or selects or len(settings.mus) > 1


def _in_passes(settings: Settings, X: Any, folds: Folds | None) -> bool:
    """Whether rows in memory are fitted with fewer centers than rows."""
    centers = settings.centers
    if settings.copies is not None or settings.tangents is not None:
        return True
    if isinstance(centers, str) and centers == "auto":
        most = MATTERING_ROWS if _may_be_fewer(settings, X, folds) else EXACT_ROWS
        return not settings.kernel.takes_values and n_rows(X) > most
    return not (isinstance(centers, str) and centers == "all")


def _may_be_limited(settings: Settings, n: int) -> bool:
    """Whether the budget may allow fewer centers than n rows."""
    return (
        isinstance(settings.centers, str)
        and settings.centers == "auto"
        and n > EVERY_ROW
        and not settings.kernel.takes_values
    )


def _are_enough(compared: Compared, problem: ExactProblem) -> bool:
    """Whether so few of the distinct rows are enough as centers that a fit in passes is worth it."""
    return compared.enough is not None and FEWER * compared.enough <= n_rows(problem.X)


def _may_be_fewer(settings: Settings, X: Any, folds: Folds | None) -> bool:
    """Whether it is asked if fewer centers than rows are enough.

    Not where few centers are another model or a worse one: for kernels that may be indefinite, and for rows in
    float32. Nor for folds, each of which would take a decomposition, or with what is learned from all rows.
    """
    return (
        _may_be_limited(settings, n_rows(X))
        and settings.kernel.positive_semidefinite
        and folds is None
        and not settings.learns
        and not in_single(X)
    )


def settings_of(model: ResumableModel) -> Settings:
    """The parameters of a model, validated."""
    check_parameters(model)
    _check_learned(model)
    return Settings(
        kernel=as_kernel(model.kernel).copy(),
        alpha=positive_or_loo("alpha", model.alpha),
        penalty=penalty_of(model.penalty),
        intercept=model.fit_intercept,
        weights=meaning_of(model.weights),
        centers=model.centers,
        loo_rows=loo_size(model.loo_rows),
        max_memory=memory_or_none("max_memory", model.max_memory),
        verbose=model.verbose,
        relevance=_relevance_of(model),
        **_invariance_of(model),
    )


def _check_learned(model: ResumableModel) -> None:
    """What is learned before a fit is learned with the norm of the function as penalty."""
    what = "relevance is" if model.relevance is not None else "weights of kernels are learned"
    learned = model.relevance is not None or isinstance(as_kernel(model.kernel), WeightedSum)
    if learned and model.penalty != "rkhs":
        raise ValueError(f'{what} for penalty="rkhs", not {model.penalty!r}')


def _relevance_of(model: ResumableModel) -> Features | None:
    """The features whose relevances are learned, for a kernel that can have them; None: all alike."""
    if model.relevance is None:
        return None
    features = _features_of(model.relevance)
    kernel = as_kernel(model.kernel)
    if not all(isinstance(one, Stationary) and isinstance(one.gamma, str) for one in kinds_of(kernel)):
        raise ValueError(
            f"relevance chooses a gamma for each feature, but the kernel is {kernel}; use RBF, Matern, "
            'Laplacian or another function of a distance with gamma="loo", "median" or "scale"'
        )
    return features


def _features_of(relevance: Any) -> Features:
    """Each feature by itself, or in the group that is named for it."""
    if isinstance(relevance, str):
        validation.check_choice("relevance", relevance, allowed=("diagonal",))
        return Features()
    names = validation.labels("relevance", relevance)
    if names.ndim != 1:
        raise ValueError(
            f'relevance is {validation.format_value(relevance)}; pass "diagonal", or one label for each feature: '
            "its group"
        )
    return Features(np.unique(names, return_inverse=True)[1])


def _invariance_of(model: ResumableModel) -> dict[str, Any]:
    """Settings of the copies that join the rows, or of changes that are penalized."""
    copies = as_copies(model.invariances)
    mu = None if model.mu is None or model.mu == "loo" else _mu(model.mu)
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
    return {"copies": copies} if model.mu is None else {"tangents": copies, "mus": MUS if mu is None else (mu,)}


def _mu(value: Any) -> float:
    return validation.check_number("mu", value, 'a number of at least 0, "loo" or None', least=0.0)


def _fixed(model: ResumableModel) -> dict[str, Any]:
    """Parameters that must not change between batches, and whether copies are rows."""
    fixed = parameters_of(model, FIXED) | {"mu": None if model.mu is None else "a weight"}
    given = fixed["invariances"]
    return fixed | {"invariances": list(given) if isinstance(given, list) else given}


def _attributes(targets: Targets, fit: FitResult, settings: Settings, anew: Anew | None = None) -> dict[str, Any]:
    """The fitted attributes of a model, by name; ``anew`` if its score counts the price of choosing."""
    learned = _learned(fit, settings) if targets.has_classes else None
    return attributes_of(fit, targets, anew, learned) | {
        **({"knowledge_": None if learned is None else learned[0]} if targets.has_classes else {}),
        "mu_": fit.mu,
        **(
            {"relevance_": None, "kernel_weights_": None} | ({} if fit.learned is None else fit.learned.attributes)
        ),
        "loo_index_": fit.index,
        "loo_path_": fit.solution.paths[0],
    }


def _learned(fit: FitResult, settings: Settings) -> tuple[UnexplainedVariance, Array] | None:
    """What training rows, all or a sample, know of new rows, and of each other; None for indefinite kernels."""
    solution, training, copies = fit.solution, fit.training, settings.copies
    if not solution.definite:
        return None
    weight = training.weight.sum()
    total = weight if fit.moments is None else fit.moments.n
    alpha = None if settings.penalty == "coef" else solution.alpha * weight / total
    every = training if copies is None else training.with_copies(copies)
    learned = learn(solution.kernel, every, alpha, solution.degrees_of_freedom, keep=settings.max_memory is None)
    return None if learned is None else (learned[0], learned[1][:: rows_for_each(copies)])
