"""Which columns a fit needs, by rows that were not fitted."""

from typing import Any

import numpy as np
from sklearn.base import is_classifier

from mercer._estimators.base import schema_of
from mercer._estimators.fitted import reads_one_state
from mercer._estimators.least_squares.model import LeastSquaresModel
from mercer._estimators.parameters import count, generator, meaning_of
from mercer._fitting.data import TrainingData
from mercer._fitting.training import training_of
from mercer._gram import Budget, gram
from mercer._scores.importance import HeldOutFunctions, Importances, importances
from mercer._solvers.smoother import make_smoother
from mercer._types import Array, Indices

# Rows whose columns are exchanged, drawn at random if there are more.
MOST_EXCHANGED_ROWS = 1000
REMEDY = "; use sklearn.inspection.permutation_importance on rows that were not fitted"


class ColumnImportances(LeastSquaresModel):
    """Importances of columns for a model with every row as a center; abstract."""

    @reads_one_state
    def importances(self, *, n_repeats: int = 5, random_state: Any = None) -> Importances:
        """How much worse held-out rows are predicted if a column comes from other rows: permutation importance.

        Each row is predicted by the fit without it, in closed form, so that columns of noise have no importance,
        however well the fit follows its rows. Squared errors of f, whatever probabilities are made of it; of a raw
        table all that a column has become is exchanged together. Correlated columns stand in for each other, and
        share what they know. At most 1000 rows are exchanged; O(n³ / 3) once, and O(n) kernel values for each of
        them, column and repetition.

        Parameters
        ----------
        n_repeats : int, default=5
            How often each column is exchanged at random.
        random_state : int, RandomState or None, default=None
            For the exchanges; None is seed 0.

        Returns
        -------
        Importances
            With names, mean and error, and ``shares`` that sum to one.
        """
        repeats, rng = count("n_repeats", n_repeats), generator(random_state)
        held_out, weight = self._held_out_functions(rng)
        column, names = self._columns_of_features(held_out.X.shape[1])
        return importances(held_out, weight, column, names, rng, repeats)

    @property
    def feature_importances_(self) -> Array:
        """``importances().shares``, computed when it is read: one for each column of X."""
        if self._fitted is None:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute 'feature_importances_'")
        try:
            return self.importances().shares
        except ValueError as problem:
            raise AttributeError(f"feature_importances_ of {type(self).__name__}: {problem}") from problem

    def _held_out_functions(self, rng: np.random.Generator) -> tuple[HeldOutFunctions, Array]:
        """The functions without each of some rows, and the weights (r,) of these."""
        kept, penalty = self._continuation.kept, self._continuation.penalty
        if kept is None or not isinstance(self.X_fit_, np.ndarray) or not self.kernel_.takes_vectors:
            needed = "every row as a center, of dense numbers or a raw table, and no lean copy"
            raise ValueError(f"importances need {needed}{REMEDY}")
        if self.report_.negative:
            raise ValueError(
                f"importances need a positive semidefinite kernel, but {self.kernel_} is none{REMEDY}"
            )
        classes = self.classes_ if is_classifier(self) else None
        rows = kept.rows(self.X_fit_)
        data = TrainingData(rows, schema_of(self), self._targets_of, is_classifier(self), declared=classes)
        training, _, used = training_of(self.kernel_, meaning_of(self.weights), data.targets, data.block, None)
        point_weight = np.bincount(kept.point, training.weight, minlength=len(self.X_fit_)).astype(np.float64)
        K = gram(self.kernel_, self.X_fit_, budget=Budget.from_parameter(self.max_memory))
        smoother = make_smoother(
            np.asarray(K, dtype=np.float64),
            point_weight,
            self.alpha_,
            penalty=penalty,
            intercept=self._continuation.intercept,
        )
        some = np.sort(rng.permutation(used)[:MOST_EXCHANGED_ROWS])
        point = kept.point[some]
        held_out = HeldOutFunctions(
            self._expansion(),
            self.kernel_,
            self.X_fit_,
            smoother,
            self.X_fit_[point],
            training.Y[some],
            point,
            training.unit[some] / point_weight[point],
        )
        return held_out, training.weight[some]

    def _columns_of_features(self, d: int) -> tuple[Indices, list[Any]]:
        """The column (d,) to which each feature belongs, and the names of all columns."""
        encoding = getattr(self, "columns_", None)
        if encoding is not None:
            return encoding.of_column, [column.name for column in encoding.columns]
        names = getattr(self, "feature_names_in_", None)
        return np.arange(d), list(range(d) if names is None else names)
