"""What all kernel models share: reading rows as their kernel wants them, and one fit."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path as FilePath
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, is_classifier
from sklearn.utils.validation import check_is_fitted, validate_data

from mercer import gate
from mercer.expansion import Expansion
from mercer.gram import Budget
from mercer.kernels import Kernel, as_kernel
from mercer.models.passes import Columns
from mercer.models.validation import (
    check_folds,
    check_stored,
    generator,
    penalty_of,
    positive_or_loo,
    positive_or_none,
    warn_of_constant,
    warn_of_indefinite,
    warn_of_lost_digits,
    warn_of_scales,
)
from mercer.rows import ParquetRows, Reading, Rows, as_rows, elsewhere
from mercer.rows.table import holds_numbers, take
from mercer.scores.criteria import CriterionFor
from mercer.solvers import Observations
from mercer.tuning import ExactProblem, Tuned, at_points, tune
from mercer.types import Array, Floats, Indices


@dataclass(frozen=True)
class Training:
    """Rows X, targets Y (n, q), weights (n,), those ``given`` (n,) without weights of classes, folds (n,) or None.

    ``reading`` says what the given weights mean. ``represents`` (n,) are factors of the weights where the rows are
    a sample that is not uniform, ``faded`` (n,) what decay has left of each row.
    """

    X: Any
    Y: Array
    weight: Array
    given: Array
    reading: Reading
    fold: Indices | None
    represents: Array | None = None
    faded: Array | None = None

    @property
    def count(self) -> Array:
        """How many rows each row stands for (n,)."""
        return self.reading.copies(self.given)

    @property
    def unit(self) -> Array:
        """The weight (n,) that leaves with a row: of several copies one."""
        unit: Array = self.weight / self.count
        return unit

    @property
    def doubt(self) -> Array | None:
        """What would leave with a row (n,) if the weights meant the other thing, where they may; None in folds."""
        if not self.reading.doubtful or self.fold is not None:
            return None
        unit: Array = self.weight / self.reading.opposite.copies(self.given)
        return unit

    @property
    def evidence(self) -> Array:
        """The weights (n,) in such a unit that they sum to the number of rows."""
        scaled: Array = self.standing * (self.rows[self.weight > 0].sum() / self.standing.sum())
        return scaled

    @property
    def standing(self) -> Array:
        """The weight (n,) of all the rows that each row stands for."""
        return self.weight if self.represents is None else self.weight * self.represents

    @property
    def rows(self) -> Array:
        """How many rows each is as evidence (n,): of rows that fade the sum is (sum w)² / sum w² (Kish 1965)."""
        if self.faded is None or self.represents is None:
            return self.count
        left = np.where(self.weight > 0, self.faded * self.represents, 0.0)
        rows: Array = left * (left.sum() / (left @ left))
        return rows

    @property
    def n_left(self) -> float:
        """As how many rows of one weight all rows count, those of the sample and others, after they faded."""
        if self.faded is None or self.represents is None:
            return float(self.count[self.weight > 0].sum())
        left = np.where(self.weight > 0, self.faded * self.represents, 0.0)
        return float(left.sum() ** 2 / (left @ self.faded))

    def some(self, kernel: Kernel, rows: Indices) -> "Training":
        """Some of the rows."""
        if len(rows) == len(self.Y):
            return self
        fold = None if self.fold is None else self.fold[rows]
        X = kernel.subset(self.X, rows)
        return Training(X, self.Y[rows], self.weight[rows], self.given[rows], self.reading, fold)


class KernelModel(BaseEstimator):
    """A model f(x) = sum_j c_j k(x, z_j) + b; abstract."""

    kernel: str | Kernel | Any
    alpha: float | str
    penalty: str
    weights: str
    cv: Any
    max_memory: float | None
    random_state: Any
    support_: Indices | None
    n_features_in_: int
    dual_coef_: Floats
    intercept_: Floats

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        takes = as_kernel(self.kernel).takes
        tags.input_tags.pairwise = takes == "values"
        tags.input_tags.sparse = takes != "values"
        return tags

    def set_params(self, **params: Any) -> Self:
        """Set parameters; ``kernel__gamma`` and the like reach a kernel that was given by name, too."""
        if isinstance(self.kernel, str) and any(key.startswith("kernel__") for key in params):
            self.kernel = as_kernel(self.kernel)
        super().set_params(**params)
        return self

    def __setstate__(self, state: dict[str, Any]) -> None:
        """What comes from a file, or from another process."""
        check_stored(state)
        super().__setstate__(state)

    def _read(self, X: Any, *, reset: bool) -> Any:
        """X as the kernel wants it: finite numbers, or whatever objects were given."""
        takes = as_kernel(self.kernel).takes
        X = gate.unmasked("X", X)
        if takes == "objects" and not holds_numbers(X):
            return X.to_numpy() if hasattr(X, "to_numpy") else X
        gate.not_dates("X", X)
        X = validate_data(
            self,
            X,
            reset=reset,
            accept_sparse="csr" if takes != "values" else False,
            dtype=[np.float64, np.float32],
        )
        if takes == "values" and reset and X.shape[0] != X.shape[1]:
            raise ValueError(
                f"Precomputed metric requires shape (n_queries, n_indexed): kernel='precomputed' is fitted on the "
                f"square matrix K(train, train), and this has shape {X.shape}"
            )
        return X

    def _fit(self, training: Training, criterion: CriterionFor, *, intercept: bool) -> tuple[Tuned, Observations]:
        """Choose kernel and alpha, every row a center, and set what every model has.

        Rows of weight zero take no part; being left out is their usual state, and others leave with them by folds.
        """
        kernel = as_kernel(self.kernel)
        used = np.flatnonzero(training.weight > 0)
        part = training.some(kernel, used)
        _check_enough(part)
        unused = training.weight == 0
        apart = () if training.fold is None else tuple(np.unique(training.fold[unused]).tolist())
        tuned, observations = self._tune(kernel, part, lambda rows: criterion(used[rows]), intercept, apart)
        self.support_ = used[observations.rows.first]
        self.X_fit_ = kernel.centers(training.X, self.support_)
        self.loo_index_ = np.arange(len(training.Y))
        if len(used) == len(training.Y):
            return tuned, observations
        fitted = np.asarray(self._expansion()(training.X), dtype=np.float64)
        loo = fitted.copy()
        for f, model in tuned.without.items():
            rows = np.flatnonzero(unused & (training.fold == f))
            outputs = Expansion(self.kernel_, self.X_fit_, model.coef, model.intercept)
            loo[rows] = outputs(take(training.X, rows))
        fitted[used], loo[used] = tuned.fitted, tuned.loo
        otherwise = None if tuned.otherwise is None else loo.copy()
        if otherwise is not None:
            otherwise[used] = tuned.otherwise
        return replace(tuned, fitted=fitted, loo=loo, otherwise=otherwise), observations

    def _tune(
        self,
        kernel: Kernel,
        training: Training,
        criterion: CriterionFor,
        intercept: bool,
        apart: tuple[int, ...],
    ) -> tuple[Tuned, Observations]:
        if kernel.takes == "vectors" and np.ndim(getattr(kernel, "gamma", 0.0)) == 0:
            warn_of_scales(training.X)
        points, observations = at_points(
            kernel, training.X, training.Y, training.weight, training.unit, training.doubt
        )
        problem = ExactProblem(
            X=points,
            observations=observations,
            criterion=criterion,
            alpha=positive_or_loo("alpha", self.alpha),
            penalty=penalty_of(self.penalty),
            intercept=intercept,
            budget=self._budget(),
            fold=training.fold,
            apart=apart,
            classes=is_classifier(self),
        )
        tuned = tune(kernel, problem, generator(self.random_state))
        warn_of_indefinite(tuned.kernel, tuned.negative)
        warn_of_lost_digits(training.X, tuned.kernel, tuned.alpha, tuned.error)
        self._store(training.X, tuned)
        return tuned, observations

    def _store(self, X: Any, tuned: Tuned) -> None:
        warn_of_constant(tuned.kernel, X, tuned.rank)
        dtype = np.float32 if getattr(X, "dtype", None) == np.float32 else np.float64
        self.kernel_ = tuned.kernel
        self.alpha_ = tuned.alpha
        self.gamma_ = getattr(tuned.kernel, "gamma", None)
        self.loo_path_ = tuned.paths[0]
        self.degrees_of_freedom_ = tuned.degrees_of_freedom
        self.dual_coef_ = tuned.coef.astype(dtype, copy=False)
        self.intercept_ = tuned.intercept.astype(dtype, copy=False)

    def _budget(self) -> Budget:
        return Budget.from_parameter(positive_or_none("max_memory", self.max_memory))

    def _outputs(self, X: Any) -> Floats:
        """f at new rows (n, q)."""
        check_is_fitted(self)
        if elsewhere(X):
            f, read, rows = self._expansion(), self._reader(), self._rows(X)
            outputs = np.concatenate([f(read(block.X)) for block in rows.blocks()])
            self._check_names(getattr(rows, "feature_names", None))
            return outputs
        X = self._read(X, reset=False)
        return self._expansion()(X)

    def _reader(self) -> Callable[[Any], Any]:
        """How blocks of rows elsewhere are read: as in fit, by position, not by name."""
        return Columns(self.n_features_in_) if self.kernel_.takes == "vectors" else lambda X: X

    def _check_names(self, names: tuple[Any, ...] | None) -> None:
        """Columns of rows elsewhere, where they have names, are those of the first rows."""
        known = tuple(getattr(self, "feature_names_in_", ()))
        if names is not None and known and names != known:
            raise ValueError(
                f"the columns are {', '.join(map(str, names))}, and the model knows {', '.join(known)}; give the "
                "same columns in the same order: frame[[...]], or ParquetRows(path, columns=[...], target=...)"
            )

    def _rows(self, X: Any) -> Rows:
        """Rows of a source; of Parquet files the columns that the model was fitted on."""
        names = getattr(self, "feature_names_in_", None)
        if isinstance(X, str | FilePath) and names is not None:
            return ParquetRows(X, columns=list(names))
        return as_rows(X)

    def _expansion(self) -> Expansion:
        return Expansion(self.kernel_, self.X_fit_, self.dual_coef_, self.intercept_)


def _check_enough(training: Training) -> None:
    """At least two rows, and two folds, are left when rows of weight zero are gone."""
    n = len(training.Y)
    if n < 2:
        raise ValueError(f"leave-one-out needs at least 2 rows of positive weight, and there is n_samples = {n}")
    check_folds(training.fold, training.weight)
