"""Predictions of fitted models from their outputs: labels, probabilities or values, for rows from any source."""

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import (
    ClassifierMixin,
    ClassNamePrefixFeaturesOutMixin,
    MultiOutputMixin,
    RegressorMixin,
    TransformerMixin,
)
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from mercer._estimators.base import KernelModel
from mercer._estimators.dask_methods import supports_dask
from mercer._estimators.fitted import fitted, reads_one_state
from mercer._estimators.parameters import class_targets_of
from mercer._scores import LooResults, Rule
from mercer._scores.criteria import r_squared
from mercer._scores.targets import ClassTargets, RealTargets
from mercer._scores.training_rows import design_effect
from mercer._scores.uncertainty.unexplained_variance import UnexplainedVariance
from mercer._types import Array, Floats, Indices
from mercer.rows._sampling.random_sample import Labels
from mercer.rows._table import in_single

# In place of the logarithm of zero.
LEAST_LOG = float(np.log(np.finfo(np.float64).tiny))


def has_probabilities(classifier: Any) -> bool:
    """Whether a classifier, of any library, has probabilities or their logarithms."""
    return hasattr(classifier, "predict_log_proba") or hasattr(classifier, "predict_proba")


def log_probabilities(classifier: Any, X: Any) -> Array:
    """Logarithms (n, k) of the probabilities of a fitted classifier, finite; of its own, if it has them."""
    with np.errstate(divide="ignore"):
        own = hasattr(classifier, "predict_log_proba")
        found = classifier.predict_log_proba(X) if own else np.log(classifier.predict_proba(X))
    logs = np.asarray(found, dtype=np.float64)
    return np.where(np.isneginf(logs), LEAST_LOG, logs)


class LabelPredictions(ClassifierMixin):
    """Labels from probabilities; abstract."""

    classes_ = fitted[NDArray[Any]]()

    @supports_dask
    @reads_one_state
    def predict(self, X: Any) -> NDArray[Any]:
        """The class with the largest probability for each row (n,)."""
        best = self.predict_proba(X).argmax(axis=1)
        labels: NDArray[Any] = self.classes_[best]
        return labels


class ClassifierPredictions(LabelPredictions, KernelModel):
    """Predictions of every kernel classifier: its rule applied to its outputs; abstract."""

    rule_ = fitted[Rule]()
    priors_ = fitted[Array]()
    threshold_ = fitted[float | None]()
    # Whether probabilities are no surer than held-out rows justify.
    _moderates: ClassVar[bool] = False
    # Whether several classes are told apart in discriminant directions.
    _has_directions: ClassVar[bool] = True

    def _targets_of(self, y: Any, labels: Labels | None, declared: ArrayLike | None) -> ClassTargets:
        """The classes of rows with these labels, or the declared ones."""
        check_classification_targets(y)
        assert labels is not None
        return class_targets_of(self, labels, declared)

    @supports_dask
    @reads_one_state
    def predict_proba(self, X: Any) -> Floats:
        """Probabilities of the classes (n, n_classes), calibrated on held-out rows."""
        F, trust = self._evidence(X)
        return self.rule_.probabilities(F, trust)

    @supports_dask
    @reads_one_state
    def predict_log_proba(self, X: Any) -> Floats:
        """Logarithms of the probabilities (n, n_classes)."""
        F, trust = self._evidence(X)
        return self.rule_.log_probabilities(F, trust)

    @supports_dask
    @reads_one_state
    def decision_function(self, X: Any) -> Floats:
        """Log-odds of ``classes_[1]`` (n,), or log-probabilities of three or more classes (n, n_classes)."""
        F, trust = self._evidence(X)
        return self.rule_.decision(F, trust)

    def _evidence(self, X: Any) -> tuple[Floats, Array | None]:
        """Outputs (n, q), and the share (n,) of their evidence that counts; None: all of it."""
        check_is_fitted(self)
        return self._evaluated(X, self._scored()), None

    def _scored(self) -> Callable[[Any], Floats]:
        """The functions from whose outputs the rule makes probabilities."""
        return self._expansion()


class HeldOutProbabilities:
    """What leave-one-out says about the classes of the training rows; abstract."""

    loo_decision_ = fitted[Array]()
    loo_outputs_ = fitted[Array]()
    loo_proba_ = fitted[Array]()


class HeldOutValues:
    """What leave-one-out says about the values of the training rows, and the noise; abstract."""

    loo_prediction_ = fitted[Array]()
    noise_std_ = fitted[Any]()
    loo_results_ = fitted[LooResults]()


class NoveltyPredictions(ClassifierPredictions):
    """Probabilities that tend to the shares of the classes where little is known of a row; abstract."""

    unexplained_variance_ = fitted[UnexplainedVariance | None]()

    @supports_dask
    @reads_one_state
    def novelty(self, X: Any) -> Floats:
        """How little the training rows say about each row (n,).

        The logarithm of half of what is known of all but the 1 % least known training rows, when they are left
        out, over what is known of the row: the explained share of the prior variance of f over its variance,
        times the share of k(x, x) that training rows express. Far away it grows without bound. Above zero less is
        known than is usual, and probabilities tend to the shares of the classes:
        the log-odds of the evidence are multiplied by exp(-novelty). Rows with a novelty above zero, or above a
        larger number, are the ones to inspect or to refuse. Costs O(r²) per row, r <= 200.
        """
        check_is_fitted(self)
        if self.unexplained_variance_ is None:
            raise ValueError(
                f"there is no novelty for kernel={self.kernel!r}: it is not positive semidefinite, or given by "
                "values whose diagonal is not constant, so that k(x, x) of new rows is not known; pass another "
                "kernel, or normalized values"
            )
        return self._evaluated(X, self.unexplained_variance_.novelty)

    def _evidence(self, X: Any) -> tuple[Floats, Array | None]:
        check_is_fitted(self)
        if self.unexplained_variance_ is None:
            return super()._evidence(X)
        f, trust = self._scored(), self.unexplained_variance_.trust
        both = self._evaluated(X, lambda rows: np.column_stack([f(rows), trust(rows)]))
        return both[:, :-1], both[:, -1].astype(np.float64)


class DiscriminantPredictions(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClassifierPredictions):
    """Probabilities, and discriminant variates; abstract."""

    scalings_ = fitted[Array]()
    eigenvalues_ = fitted[Array]()
    explained_variance_ratio_ = fitted[Array]()
    # Types of numbers that outputs keep.
    _preserved: ClassVar[tuple[str, ...]] = ("float64", "float32")

    @supports_dask
    @reads_one_state
    def transform(self, X: Any) -> Floats:
        """Discriminant variates (n, n_components), best first.

        On the scale of their targets: two classes are fitted to -1 and +1; with more classes, class c is fitted to
        row c of ``scalings_``. Columns of directions that carry no information, because the rank of the kernel
        matrix is below classes minus one, are zero.
        """
        variates = self.rule_.variates(self._outputs(X))
        # Centers may be in float64 where float32 has too few digits.
        return variates.astype(np.float32) if in_single(X) else variates

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = list(self._preserved)
        return tags

    @property
    def _n_features_out(self) -> int:
        return int(self.scalings_.shape[1])


class RegressorPredictions(MultiOutputMixin, RegressorMixin, KernelModel):
    """Predictions of every kernel regressor: its outputs, in the shape of the targets; abstract."""

    def _targets_of(self, y: Any, labels: Labels | None, declared: ArrayLike | None) -> RealTargets:
        """Real targets in the shape of y."""
        return RealTargets(np.shape(y)[1:])

    @supports_dask
    @reads_one_state
    def predict(self, X: Any) -> Floats:
        """f at each row (n,) or (n, q)."""
        return self._shaped(self._outputs(X))

    def _expected_score(
        self, y: NDArray[Any], predicted: Floats, weight: Array, fold: Indices | None = None
    ) -> float:
        """R² to expect of many new rows, whose variance is larger than that of n rows around their own mean.

        Rows of a ``fold`` (n,) may have one target.
        """
        values, outputs = (np.asarray(each, dtype=np.float64).reshape(len(y), -1) for each in (y, predicted))
        found = r_squared(values, outputs, weight)
        if (values == values[:1]).all():
            return found
        rows = float(weight.sum() ** 2 / (weight**2).sum())
        if fold is not None:
            rows = min(rows, len(y) / design_effect(values, weight / weight.mean(), np.ones(len(y)), fold))
        return 1.0 - (1.0 - found) * (1.0 - 1.0 / rows)

    def _shaped(self, F: Floats) -> Floats:
        return F[:, 0] if np.ndim(self.dual_coef_) == 1 else F
