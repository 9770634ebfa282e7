"""One discriminant for each pair of classes (one-vs-one), and coupled class probabilities."""

from collections.abc import Callable, Sequence
from copy import deepcopy
from itertools import combinations
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import MetaEstimatorMixin, clone
from sklearn.utils import get_tags, indexable
from sklearn.utils.metaestimators import available_if
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_consistent_length, check_is_fitted, has_fit_parameter

from mercer._estimators.base import BlockValidator, KernelModel, check_square, read_blocks, schema_of
from mercer._estimators.dask_methods import supports_dask
from mercer._estimators.estimator import MercerEstimator
from mercer._estimators.fitted import Fitted, atomic_update, fitted, reads_one_state, with_state
from mercer._estimators.least_squares.classifier import KernelFisherClassifier
from mercer._estimators.parameters import (
    check_classes,
    check_declared,
    class_labels,
    folds_of_rows,
    known_classes,
    refuse_blocks,
    row_weight,
    with_default,
)
from mercer._estimators.predictions import LabelPredictions, has_probabilities, log_probabilities
from mercer._fitting.data import check_names
from mercer._gram.blocks import BLOCK_SIZE, cuts
from mercer._scores.probabilities.coupling import couple_least_squares, couple_odds
from mercer._types import Array, Indices
from mercer._validation import check_choice, same_type, unmasked
from mercer.rows._resolve import is_out_of_core
from mercer.rows._sources.memory import HeldRows
from mercer.rows._table import n_rows, take

# Rows that pairs are asked about at once, at least: each question takes time of its own.
ASKED = 1000
# Log-odds of all pairs that are coupled at once.
COUPLED = 2**19


def _goes_on(model: "PairwiseClassifier") -> bool:
    return hasattr(model._new(), "partial_fit")


def _rule(coupling: Any) -> Callable[[Array], Array]:
    """Log-probabilities of classes from log-odds of pairs, by the name of the rule."""
    check_choice("coupling", coupling, ("least_squares", "odds"))
    return couple_odds if coupling == "odds" else couple_least_squares


class PairwiseClassifier(MetaEstimatorMixin, LabelPredictions, MercerEstimator):
    """One-vs-one classification: k (k - 1) / 2 classifiers with coupled class probabilities.

    The classifier of the pair (i, j) is fitted to the rows of these two classes and gives r_ij(x), the probability
    of i given that x belongs to one of the two. It chooses its own kernel and penalty. If one fit to n rows costs
    O(n³), the pairs of k classes of equal size together cost 4 / k of it.

    Parameters
    ----------
    estimator : classifier with predict_log_proba or predict_proba, default=None
        The classifier fitted to each pair; None is ``KernelFisherClassifier()``.
    coupling : {"least_squares", "odds"}, default="least_squares"
        How probabilities of pairs become those of classes: "least_squares" minimizes
        sum_ij (r_ji p_i - r_ij p_j)² [1]_, O(k³) for a row, "odds" takes p_i proportional to
        1 / sum_j (r_ji / r_ij) [2]_, O(k²).
    n_jobs : int, default=None
        Number of pairs fitted in parallel.

    Attributes
    ----------
    classes_ : array of shape (k,)
    pairs_ : list of tuple
        Positions (i, j) in ``classes_``, i < j.
    estimators_ : list
        The classifier of each pair.

    References
    ----------
    .. [1] Wu, Lin and Weng (2004), Probability estimates for multi-class classification by pairwise coupling,
       JMLR 5:975-1005, Section 4.2.
    .. [2] Andelić (2007), Sparse Nonlinear Discriminants, Eq. (4.8).

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from mercer import PairwiseClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> model = PairwiseClassifier().fit(scale(X), y)
    >>> model.pairs_
    [(0, 1), (0, 2), (1, 2)]
    >>> model.score(scale(X), y)
    1.0
    """

    pairs_ = fitted[list[tuple[int, int]]]()
    estimators_ = fitted[list[Any]]()

    def __init__(self, estimator: Any = None, *, coupling: str = "least_squares", n_jobs: int | None = None):
        self.estimator = estimator
        self.coupling = coupling
        self.n_jobs = n_jobs

    @atomic_update
    def fit(
        self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None, groups: ArrayLike | None = None
    ) -> Self:
        """Fit a classifier to each pair of classes.

        Parameters
        ----------
        X : array or data frame of shape (n, d), list of n objects, or kernel values of shape (n, n)
            Any rows that ``estimator`` accepts.
        y : array of shape (n,)
            Labels.
        sample_weight : array of shape (n,), default=None
            Passed to each pair with its rows.
        groups : array of shape (n,), default=None
            Rows that are held out together, passed to each pair with its rows, unless all of them are one group.
        """
        X, labels, weight = self._table(X, y, sample_weight)
        folds = folds_of_rows(None, labels, groups, classifier=True)
        if folds is not None and not has_fit_parameter(self._new(), "groups"):
            raise ValueError(f"groups are for a classifier whose fit takes them, and {self._new()!r} does not")
        values = get_tags(self._new()).input_tags.pairwise
        if values:
            X = BlockValidator(None)(X)
            check_square(X)
        classes, pairs = _classes_and_pairs(np.unique(labels[weight > 0]))
        of_pairs = [_rows_of(classes[list(pair)], labels) for pair in pairs]
        columns = [rows if values else None for rows in of_pairs]
        estimators = Parallel(n_jobs=self.n_jobs)(
            delayed(_fit_pair)(
                self._new(),
                X,
                labels,
                rows,
                some,
                _weights(sample_weight, weight, rows)
                | _groups(self._new(), None if folds is None else folds.fold, weight, rows),
            )
            for rows, some in zip(of_pairs, columns)
        )
        known = {"n_features_in_": X.shape[1]} if values else _columns_of(estimators)
        found = {"classes_": classes, "pairs_": pairs, "estimators_": estimators}
        return self._publish(Fitted(known | found, columns))

    @available_if(_goes_on)
    @atomic_update
    def partial_fit(
        self, X: Any, y: ArrayLike, classes: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Continue with more rows; each pair gets those of its two classes.

        Parameters
        ----------
        X : array of shape (n, d)
        y : array of shape (n,)
            Labels.
        classes : array of shape (k,), default=None
            All labels that will occur, in the first call; later the same, or None.
        sample_weight : array of shape (n,), default=None
        """
        X, labels, weight = self._table(X, y, sample_weight)
        if self._fitted is None:
            found = np.unique(labels[weight > 0]) if classes is None else known_classes(classes)
            known, pairs = _classes_and_pairs(found)
            estimators = [self._new() for _ in pairs]
        else:
            known, pairs = self.classes_, self.pairs_
            # Readers of the previous state keep its estimators.
            estimators = [_successor(model) for model in self.estimators_]
            if classes is not None:
                check_declared(classes, known)
        same_type("y", known, labels)
        unknown = np.setdiff1d(labels[weight > 0], known)
        if len(unknown):
            raise ValueError(
                f"y contains {unknown.tolist()}, but the first call had only {known.tolist()}; pass all "
                "labels as classes in the first call"
            )
        for pair, model in zip(pairs, estimators):
            rows = _rows_of(known[list(pair)], labels)
            if weight[rows].any():
                more = {"classes": known[list(pair)]} | _weights(sample_weight, weight, rows)
                model.partial_fit(take(X, rows), labels[rows], **more)
        attributes = {"classes_": known, "pairs_": pairs, "estimators_": estimators}
        return self._publish(Fitted(_columns_of(estimators) | attributes, [None] * len(pairs)))

    @supports_dask
    @reads_one_state
    def predict_proba(self, X: Any) -> Array:
        """Probabilities (n, k) of the classes."""
        return np.exp(self._coupled(X, _rule(self.coupling)))

    @supports_dask
    @reads_one_state
    def predict_log_proba(self, X: Any) -> Array:
        """Logarithms (n, k) of the probabilities; they are finite, also where probabilities underflow to zero."""
        return self._coupled(X, _rule(self.coupling))

    @supports_dask
    @reads_one_state
    def decision_function(self, X: Any) -> Array:
        """Probabilities (n, k), or for two classes the log-odds (n,) of the second, used by ``predict``."""
        check_is_fitted(self, "estimators_")
        return self._coupled(X, lambda odds: odds[:, 1, 0]) if len(self.classes_) == 2 else self.predict_proba(X)

    def set_params(self, **params: Any) -> Self:
        """Set parameters; ``estimator__alpha`` and the like also work for the default estimator, None."""
        params = with_default(params, self.estimator, KernelFisherClassifier)
        super().set_params(**params)
        return self

    def __sklearn_tags__(self) -> Any:
        tags, base = super().__sklearn_tags__(), get_tags(self._new())
        tags.input_tags.pairwise = base.input_tags.pairwise
        tags.input_tags.sparse = base.input_tags.sparse
        tags.input_tags.allow_nan = base.input_tags.allow_nan
        return tags

    def _new(self) -> Any:
        return KernelFisherClassifier() if self.estimator is None else clone(self.estimator)

    def _table(self, X: Any, y: Any, sample_weight: Any) -> tuple[Any, NDArray[Any], Array]:
        """Rows, labels and weights, validated."""
        _rule(self.coupling)
        if not has_probabilities(self._new()):
            raise TypeError(
                f"{self.estimator!r} has no predict_log_proba or predict_proba; use a classifier with "
                "probabilities, which are needed to couple pairs"
            )
        # Dask arrays are indexed like arrays.
        if not hasattr(X, "shape"):
            refuse_blocks(self, X)
        (X,), labels = indexable(unmasked("X", X)), class_labels(y)
        check_consistent_length(X, labels)
        return X, labels, row_weight(sample_weight, len(labels))

    def _coupled(self, X: Any, couple: Callable[[Array], Array]) -> Array:
        """couple(log r_ij / r_ji (b, k, k)) at rows from any source, b at a time."""
        check_is_fitted(self, "estimators_")
        asked = max(ASKED, 2 * BLOCK_SIZE // len(self.pairs_))
        if not is_out_of_core(X):
            (X,) = indexable(unmasked("X", X))
            # Without rows, pairs say what they miss.
            some = [take(X, rows) for rows in cuts(n_rows(X), asked)] or [X]
            return np.concatenate(
                [self._couple_pairs(self._log_odds(n_rows(part), part), couple) for part in some]
            )
        read = read_blocks(self, X)
        held = (HeldRows(block, block_rows=asked) for block in read.blocks())
        parts = (part for rows in held for part in rows.blocks())
        coupled = [self._couple_pairs(self._log_odds(part.n_rows, HeldRows(part)), couple) for part in parts]
        check_names(schema_of(self).names, getattr(read, "feature_names", None))
        return np.concatenate(coupled)

    def _couple_pairs(self, odds: Array, couple: Callable[[Array], Array]) -> Array:
        """couple(S) for log-odds of pairs (pairs, n), a few rows at a time: S is twice as large."""
        k = len(self.classes_)
        i, j = np.array(self.pairs_).T
        found = []
        for rows in cuts(odds.shape[1], max(1, COUPLED // k**2)):
            S = np.zeros((k, k, rows.stop - rows.start))
            S[i, j], S[j, i] = odds[:, rows], -odds[:, rows]
            found.append(couple(S.transpose(2, 0, 1)))
        return np.concatenate(found)

    def _log_odds(self, n: int, X: Any) -> Array:
        """log r_ij / r_ji (pairs, n) at n rows in memory, or of a block; zero for pairs without training rows."""
        odds, of_pairs = np.zeros((len(self.pairs_), n)), self._details
        if of_pairs[0] is not None:
            X = BlockValidator(self.n_features_in_)(X.block.X if isinstance(X, HeldRows) else X)
        for place, (model, columns) in enumerate(zip(self.estimators_, of_pairs)):
            if hasattr(model, "classes_"):
                log_p = log_probabilities(model, _rows_for(model, X, columns))
                odds[place] = log_p[:, 0] - log_p[:, 1]
        return odds


def _classes_and_pairs(classes: NDArray[Any]) -> tuple[NDArray[Any], list[tuple[int, int]]]:
    check_classes(classes, "bayes")
    return classes, list(combinations(range(len(classes)), 2))


def _columns_of(estimators: Sequence[Any]) -> dict[str, Any]:
    """What scikit-learn knows of the columns, from a pair."""
    names = ("n_features_in_", "feature_names_in_")
    known = {name: [getattr(each, name) for each in estimators if hasattr(each, name)] for name in names}
    return {name: values[0] for name, values in known.items() if values}


def _rows_of(two: NDArray[Any], labels: NDArray[Any]) -> Indices:
    """Positions of the rows of two classes."""
    return np.flatnonzero(np.isin(labels, two))


def _rows_for(model: Any, X: Any, columns: Indices | None) -> Any:
    """What a pair reads: blocks, whose columns have no names, as a whole where it takes them, else as arrays."""
    if isinstance(X, HeldRows):
        return X if isinstance(model, KernelModel) else X.block.X
    return _columns(X, columns)


def _fit_pair(
    model: Any, X: Any, y: NDArray[Any], rows: Indices, columns: Indices | None, more: dict[str, Any]
) -> Any:
    return model.fit(take(_columns(X, columns), rows), y[rows], **more)


def _successor(model: Any) -> Any:
    """A model to continue with that shares no mutable state with this one."""
    return with_state(model, model._fitted) if isinstance(model, KernelModel) else deepcopy(model)


def _weights(sample_weight: Any, weight: Array, rows: Indices) -> dict[str, Any]:
    """Weights of the rows, if given: not every classifier accepts them."""
    return {} if sample_weight is None else {"sample_weight": weight[rows]}


def _groups(model: Any, fold: Indices | None, weight: Array, rows: Indices) -> dict[str, Any]:
    """Groups of the rows, if given and known to the classifier of a pair, which needs at least two with weight."""
    if fold is None or not has_fit_parameter(model, "groups"):
        return {}
    return {"groups": fold[rows]} if len(np.unique(fold[rows][weight[rows] > 0])) > 1 else {}


def _columns(X: Any, columns: Indices | None) -> Any:
    """Some columns of kernel values; other rows unchanged."""
    return X if columns is None else X[:, columns]
