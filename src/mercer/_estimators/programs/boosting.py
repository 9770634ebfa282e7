"""Boosting with soft margins by a linear program, over any weak learner."""

from dataclasses import dataclass, replace
from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils import get_tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, has_fit_parameter, validate_data

from mercer import _validation
from mercer._estimators.base import schema_of
from mercer._estimators.estimator import MercerEstimator
from mercer._estimators.fitted import Fitted, atomic_update, fitted, reads_one_state, unfitted
from mercer._estimators.parameters import generator, row_weight, share
from mercer._solvers.programs.nonsmooth.soft_margin import SoftMargin, soft_margin
from mercer._types import Array, Indices
from mercer.errors import NumericalWarning, warn
from mercer.rows._distinct import distinct_rows
from mercer.rows._table import dense

# Margins up to this one are none.
NO_MARGIN = 1e-9


@dataclass(frozen=True)
class Stump:
    """A decision tree with one question, and nothing that a file could lead astray: skops does not trust trees.

    Labels for values of one feature up to the threshold, above it, and for missing ones.
    """

    feature: int
    threshold: float
    below: float
    above: float
    missing: float

    @classmethod
    def of(cls, fitted: DecisionTreeClassifier) -> "Stump":
        """The question of a fitted tree of depth one; a tree without one has the same label everywhere."""
        tree = fitted.tree_
        leaf = fitted.classes_[tree.value[:, 0].argmax(axis=1)].astype(np.float64).tolist()
        if len(leaf) == 1:
            return cls(0, 0.0, *leaf, *leaf, *leaf)
        left, right = leaf[tree.children_left[0]], leaf[tree.children_right[0]]
        missing = left if tree.missing_go_to_left[0] else right
        return cls(int(tree.feature[0]), float(tree.threshold[0]), left, right, missing)

    def predict(self, X: Any) -> Array:
        """Labels (n,); values are compared in float32, as trees do."""
        column = X[:, [self.feature]]
        x = np.asarray(dense(column), dtype=np.float32)[:, 0]
        return np.where(np.isnan(x), self.missing, np.where(x <= self.threshold, self.below, self.above))


@dataclass(frozen=True)
class Ensemble:
    """Weak learners with weights (t,), whose predictions are -1 and +1, and a constant.

    ``margin`` is the value of the program, ``gap`` how much larger the edge of the last learner was.
    """

    learners: list[Any]
    weight: Array
    constant: float
    margin: float
    gap: float

    def __call__(self, X: Any) -> Array:
        """sum_j a_j h_j (n,) plus the constant, between -1 and 1."""
        outputs = np.full(X.shape[0], self.constant)
        for learner, weight in zip(self.learners, self.weight):
            outputs += weight * _signs(learner, X)
        return outputs


class LPBoostClassifier(MetaEstimatorMixin, ClassifierMixin, MercerEstimator):
    r"""Boosting that maximizes a soft margin: a convex combination of weak learners by a linear program.

    ``LPBoostClassifier()`` boosts decision stumps.

    Finds weights a_j >= 0 with sum 1 of weak learners h_j(x) = -1, +1 and a constant that maximize

        rho - 1 / (nu n) sum_i xi_i,    y_i f(x_i) >= rho - xi_i,    f = sum_j a_j h_j.

    At most the share ``nu`` of the rows has a margin below rho. Learners are added one at a time: the next is
    fitted with the weights of the rows that solve the dual program, until none has an edge that would raise the
    margin (column generation). Unlike AdaBoost, weights of learners that were added before change, and most
    become zero; rows that cannot be fitted get no more than a bounded weight.

    Parameters
    ----------
    estimator : classifier, default=None
        The weak learner; it must take ``sample_weight``. None: ``DecisionTreeClassifier(max_depth=1)``, each of
        which is stored as its one question (files of skops with other trees need trust in them).
    nu : float, default=0.2
        The largest share of rows with a margin below rho, between 0 and 1; larger is softer.
    tol : float, default=0.01
        How much the edge of a new learner must exceed the margin to be added.
    max_estimators : int, default=300
        The largest number of learners; a warning states how much a further one would add.
    random_state : int, RandomState or None, default=None
        For weak learners that are random.
        None is seed 0: equal rows give equal models, to the bit.

    Attributes
    ----------
    classes_ : ndarray of shape (k,)
    ensembles_ : list of Ensemble
        For two classes one, for more one against the rest for each, with ``learners``, ``weight``, ``constant``.
    margin_ : ndarray of shape (1,) or (k,)
        The value of each program.
    gap_ : float
        How much a further learner would raise the margin at most, if the weak learner finds the best one.

    References
    ----------
    A. Demiriz, K. Bennett and J. Shawe-Taylor (2002), Linear programming boosting via column generation, Machine
    Learning 46.

    Examples
    --------
    >>> from mercer import LPBoostClassifier
    >>> from mercer.datasets import make_banana
    >>> X, y = make_banana(200, random_state=0)
    >>> model = LPBoostClassifier(random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.85
    True
    """

    classes_ = fitted[NDArray[Any]]()
    ensembles_ = fitted[list[Ensemble]]()
    margin_ = fitted[Array]()
    gap_ = fitted[float]()

    def __init__(
        self,
        estimator: Any = None,
        *,
        nu: float = 0.2,
        tol: float = 0.01,
        max_estimators: int = 300,
        random_state: Any = None,
    ) -> None:
        self.estimator = estimator
        self.nu = nu
        self.tol = tol
        self.max_estimators = max_estimators
        self.random_state = random_state

    @atomic_update
    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Add weak learners until none raises the margin.

        Parameters
        ----------
        X : rows that the weak learner takes, n of them
        y : array of shape (n,)
            Class labels.
        sample_weight : array of shape (n,), default=None
            Weights of the rows; a weight of two is equivalent to repeating the row.
        """
        self._check()
        model = unfitted(self)
        X, y = validate_data(model, X, y, accept_sparse=["csr"], dtype=None, ensure_all_finite=False)
        X = _numbers(X)
        check_classification_targets(y)
        weight = row_weight(sample_weight, X.shape[0])
        classes, label = np.unique(y, return_inverse=True)
        if len(np.unique(label[weight > 0.0])) < 2:
            raise ValueError(f"y has one class only, {classes[0]!r}; {type(self).__name__} needs two or more")
        rng, k = generator(self.random_state), len(classes)
        X, label, weight = _merged(X, label, weight)
        bound = weight / (self.nu * weight.sum())
        targets = [np.where(label == c, 1, -1) for c in ((1,) if k == 2 else range(k))]
        ensembles = [self._boosted(X, each, bound, rng) for each in targets]
        margin, gap = np.array([each.margin for each in ensembles]), max(each.gap for each in ensembles)
        if gap > self.tol:
            warn(
                f"{self.max_estimators} weak learners were added, and the next one would still have an edge that "
                f"is {gap:.2g} larger than the margin; raise max_estimators, nu or tol",
                NumericalWarning,
            )
        if margin.min() <= NO_MARGIN:
            warn(
                f"no combination of these weak learners has a soft margin with nu={self.nu:g}: f is constant"
                f"{'' if len(ensembles) == 1 else ' for some classes'}; raise nu, or use stronger learners",
                NumericalWarning,
            )
        found = {"classes_": classes, "ensembles_": ensembles, "margin_": margin, "gap_": gap}
        return self._publish(Fitted(schema_of(model).attributes | found))

    @reads_one_state
    def decision_function(self, X: Any) -> Array:
        """f (n,) for two classes, positive for the second, or (n, k)."""
        check_is_fitted(self)
        finite = "allow-nan" if self.estimator is None else False
        X = validate_data(self, X, accept_sparse=["csr"], dtype=None, ensure_all_finite=finite, reset=False)
        outputs = np.column_stack([ensemble(_numbers(X)) for ensemble in self.ensembles_])
        return np.asarray(outputs[:, 0] if outputs.shape[1] == 1 else outputs)

    @reads_one_state
    def predict(self, X: Any) -> NDArray[Any]:
        """Class labels (n,)."""
        outputs = self.decision_function(X)
        number = (outputs > 0.0).astype(np.intp) if outputs.ndim == 1 else outputs.argmax(axis=1)
        labels: NDArray[Any] = self.classes_[number]
        return labels

    def _check(self) -> None:
        share("nu", self.nu)
        _validation.check_number("tol", self.tol, "a number, at least 0", least=0.0)
        _validation.check_int("max_estimators", self.max_estimators, "a whole number, at least 1", least=1)
        learner = self._learner
        if not has_fit_parameter(learner, "sample_weight"):
            raise ValueError(
                f"estimator={learner!r} does not take sample_weight in fit, which boosting needs; use one that "
                "does"
            )

    @property
    def _learner(self) -> Any:
        return DecisionTreeClassifier(max_depth=1) if self.estimator is None else self.estimator

    def _boosted(self, X: Any, y: NDArray[Any], bound: Array, rng: np.random.Generator) -> Ensemble:
        """Learners for labels y = -1, +1 (n,), rows of which have weights up to ``bound`` (n,) in the program."""
        learners, signs = list[Any](), list[float]()
        columns = [y.astype(np.float64), -y.astype(np.float64)]
        found = soft_margin(np.column_stack(columns), bound)
        # The program of constants does not say which rows count: all do.
        found = replace(found, row=bound / bound.sum())
        while True:
            learner = self._next(X, y, found, rng)
            column = y * _signs(learner, X)
            edge = float(found.row @ column)
            gap = abs(edge) - found.value
            if gap <= self.tol or len(learners) == self.max_estimators:
                break
            # A learner that is wrong more often than not is right the other way round.
            signs.append(1.0 if edge >= 0.0 else -1.0)
            learners.append(learner)
            columns.append(signs[-1] * column)
            found = soft_margin(np.column_stack(columns), bound)
        weight, constant = found.column[2:] * np.array(signs), float(found.column[0] - found.column[1])
        kept = np.flatnonzero(weight)
        return Ensemble([learners[j] for j in kept], weight[kept], constant, found.value, max(gap, 0.0))

    def _next(self, X: Any, y: NDArray[Any], found: SoftMargin, rng: np.random.Generator) -> Any:
        """A weak learner fitted with the weights of the rows."""
        learner, some = clone(self._learner), found.row > 0.0
        if "random_state" in learner.get_params(deep=False):
            learner.set_params(random_state=int(rng.integers(2**31)))
        learner.fit(X[some], y[some], sample_weight=found.row[some] * some.sum())
        return Stump.of(learner) if self.estimator is None else learner

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = get_tags(self._learner).input_tags.sparse
        tags.input_tags.allow_nan = get_tags(self._learner).input_tags.allow_nan
        return tags


def _numbers(X: Any) -> Any:
    """Rows as numbers if all of their entries are, whatever array holds them."""
    is_number = X.dtype == object and all(isinstance(value, Real) for value in X.flat)
    return X.astype(np.float64) if is_number else X


def _merged(X: Any, label: Indices, weight: Array) -> tuple[Any, Indices, Array]:
    """Rows with weight, equal ones of one class merged, in an order that depends on what they are only."""
    used = np.flatnonzero(weight > 0.0)
    X, label, weight = X[used], label[used], weight[used]
    if X.dtype.kind not in "fiub":
        return X, label, weight
    point = distinct_rows(X).point * (int(label.max()) + 1) + label
    _, first, row = np.unique(point, return_index=True, return_inverse=True)
    return X[first], label[first], np.bincount(row, weight).astype(np.float64)


def _signs(learner: Any, X: Any) -> Array:
    """Predictions -1 and +1 (n,) of a weak learner, which may have seen one class only."""
    signs: Array = np.asarray(learner.predict(X), dtype=np.float64)
    if signs.shape != (X.shape[0],) or not (np.abs(signs) == 1.0).all():
        raise ValueError(
            f"{learner!r} was fitted to labels -1 and 1, but its predictions have shape {signs.shape}, or other "
            "values; use a classifier that predicts labels it was fitted to"
        )
    return signs
