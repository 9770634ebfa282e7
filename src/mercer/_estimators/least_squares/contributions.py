"""What single predictions take from each column."""

from dataclasses import replace
from numbers import Real
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from mercer._estimators.fitted import reads_one_state
from mercer._estimators.least_squares.importances import ColumnImportances
from mercer._estimators.parameters import generator
from mercer._expansion import Expansion
from mercer._scores.contributions import Background, Contributions, background_of, contributions
from mercer._types import Array
from mercer._validation import check_int
from mercer.kernels._vectors.products import FeatureProduct
from mercer.rows._resolve import is_out_of_core
from mercer.rows._table import dense, in_double


class ColumnContributions(ColumnImportances):
    """Contributions of columns to predictions, for a kernel that is a product over features; abstract."""

    @reads_one_state
    def contributions(self, X: Any, *, background: Any = 100, random_state: Any = None) -> Contributions:
        """What each column contributes to the prediction of each row: exact Shapley values.

        A prediction is ``base``, the mean output of background rows, plus the contributions of all columns. Each
        is the mean change of f when the value of its column, in place of that of a background row, becomes known,
        over all orders in which columns may become known (interventional SHAP values). They have a closed form,
        with no sampling of orders, for ``RBF`` and ``Laplacian``, also of normal scores or standardized, with
        learned relevances, and with any centers. All that a column of a raw table has become contributes together.

        Explained are: of a regressor the prediction; of a classifier of two classes the log-odds of
        ``classes_[1]``, which are ``decision_function`` where rows are like the training rows, and surer than it
        where it is moderated, far from them or beyond what most held-out rows have; with more classes, or with
        isotonic or quadratic calibration, the outputs f. ``output`` of the result says which.

        O(n b m C²) for n rows, b background rows, m centers and C columns (from 32 columns on, C to the power of
        3/2), and at most 40 MB besides copies of the rows and centers, and the result.

        Parameters
        ----------
        X : n rows, as in ``predict``
        background : int or rows, default=100
            A number of training rows that are drawn in proportion to their weights, or of centers if there are
            fewer centers than rows; or the rows with which those of X are compared.
        random_state : int, RandomState or None, default=None
            For the background rows; None is seed 0.

        Returns
        -------
        Contributions
            With names, ``values`` (n, n_columns), or (n, n_columns, q) for several outputs, and ``base``.
        """
        check_is_fitted(self)
        kernel = self._feature_product()
        f, output = self._explained()
        known = self._background(background, generator(random_state))
        column, names = self._columns_of_features(known.rows.shape[1])
        values = self._evaluated(
            X, lambda rows: contributions(kernel, f.centers, f.coef, rows, known, column, len(names))
        )
        base = known.share @ f(known.rows)
        if len(base) == 1:
            return Contributions(names, np.asarray(values[:, :, 0]), float(base[0]), output)
        return Contributions(names, np.asarray(values), base, output)

    def _feature_product(self) -> FeatureProduct:
        """The kernel as a product, of dense rows."""
        product = FeatureProduct.of(self.kernel_)
        if not isinstance(self.X_fit_, np.ndarray):
            raise ValueError(
                f"contributions need dense rows, but the centers of the model are {type(self.X_fit_).__name__}; "
                "fit it to X.toarray()"
            )
        return product

    def _explained(self) -> tuple[Expansion, str]:
        """The function that is explained, in float64, and its name."""
        f: Any = self._scored() if is_classifier(self) else self._expansion()
        f = Expansion(f.kernel, in_double(f.centers), in_double(f.coef), in_double(f.intercept))
        if not is_classifier(self):
            return f, "prediction"
        if len(self.classes_) > 2:
            return f, f"outputs of the {len(self.classes_)} classes"
        line = self.rule_.posterior.line
        if line is None:
            return f, f"output: -1 for {self.classes_[0]}, +1 for {self.classes_[1]}"
        slope, offset = line
        logit = replace(f, coef=slope * f.coef, intercept=slope * f.intercept + offset)
        return logit, f"log-odds of {self.classes_[1]}"

    def _background(self, background: Any, rng: np.random.Generator) -> Background:
        """Given rows, or a number of rows of the fit."""
        if background is None or isinstance(background, Real) or is_out_of_core(background):
            most = check_int("background", background, "a number of rows, at least 1, or rows", least=1)
            return background_of(self.X_fit_, self._center_weights(), most, rng)
        rows = in_double(dense(self._read(background, reset=False, fill=True)))
        return Background(rows, np.full(len(rows), 1.0 / len(rows)))

    def _center_weights(self) -> Array:
        """The weight (m,) of the training rows that are each center; one if these are not known."""
        kept = self._continuation.kept
        if kept is None:
            return np.ones(len(self.X_fit_))
        return np.bincount(kept.point, kept.weight, minlength=len(self.X_fit_)).astype(np.float64)
