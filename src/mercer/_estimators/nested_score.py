"""Nested cross-validation: rows predicted by models for which everything was chosen without them.

Kernel, penalty and centers are the best of many by leave-one-out, so the score of the best one is too high
(selection bias), most where rows are few and say little. Here each of some folds is predicted by a model for which
everything was chosen again without it (Varma and Simon 2006).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier
from sklearn.model_selection import PredefinedSplit

from mercer._estimators.fitted import Waiting
from mercer._scores.training_rows import Folds, Training
from mercer._types import Array, Indices
from mercer.errors import without_warnings
from mercer.kernels import Kernel
from mercer.rows._encoding.columns import TableEncoding
from mercer.rows._progress import progress
from mercer.rows._table import take

# More rows are not kept. A fit to as many with every row a center takes up to two minutes.
MOST_NESTED_ROWS = 10_000
# Tenths up to this number of rows, fifths beyond.
TENTHS = 300
# Beyond the first number of rows only some of the fifths are predicted: it takes about two fits, and the score has
# two digits.
ALL_FIFTHS, SOME_FIFTHS = 1000, 3
# Fewer rows, or groups of rows, cannot be chosen by.
FEWEST_ROWS = 4
# Equally large classes are dealt one by one to at least this number of folds.
FEWEST_FOLDS = 5


@dataclass(eq=False)
class NestedScore(Waiting):
    """A model that is not fitted, and rows to choose it by: X[row], y, weights or None, what each counts for in
    the score (n,), the outer fold (n,) in which it is predicted (-1: never), and the folds that are held out
    together and their groups. Rows of a raw table are features already, by its ``encoding``.
    """

    model: Any
    X: Any
    row: Indices
    y: NDArray[Any]
    weight: Array | None
    counted_weight: Array
    outer: Indices
    folds: Folds | None
    found: dict[str, Any] | None = None
    encoding: TableEncoding | None = None

    @property
    def score(self) -> float:
        """Accuracy, or R² to expect, of predicted rows; the only row of a class cannot be, and is an error."""
        held = self.outer >= 0
        if is_classifier(self.model):
            _, number, count = np.unique(self.y, return_inverse=True, return_counts=True)
            counted = held | (count[number] == 1)
            right = held & (self.predicted == self.y)
            return float(np.average(right[counted], weights=self.counted_weight[counted]))
        y, predicted, counted_weight = self.y[held], self.predicted[held], self.counted_weight[held]
        group = None if self.folds is None else self.folds.some(np.flatnonzero(held)).group
        return float(self.model._expected_score(y, predicted, counted_weight, group))

    @property
    def predicted(self) -> NDArray[Any]:
        """Predictions, like y, of models that were chosen without the fold of the row; made once."""
        return np.asarray(self.get()["predicted"])

    def solve(self) -> dict[str, Any]:
        return {"predicted": self._predicted()}

    def _predicted(self) -> NDArray[Any]:
        predicted, folds = None, np.unique(self.outer[self.outer >= 0])
        verbose = getattr(self.model, "verbose", 0)
        with (
            without_warnings(),
            progress("nested cross-validation", len(folds), verbose=verbose, unit="folds") as advance,
        ):
            for fold in folds:
                rows = np.flatnonzero(self.outer == fold)
                found = self._chosen_without(fold).predict(take(self.X, self.row[rows]))
                if predicted is None:
                    # Several quantiles of one target have a column each.
                    predicted = (
                        self.y.copy()
                        if found.shape[1:] == self.y.shape[1:]
                        else np.zeros((len(self.y), *found.shape[1:]))
                    )
                predicted[rows] = found
                advance(1)
        assert predicted is not None
        return predicted

    def _chosen_without(self, fold: int) -> Any:
        """The model, chosen and fitted without a fold."""
        rows = np.flatnonzero(self.outer != fold)
        weight = None if self.weight is None else self.weight[rows]
        model, more = clone(self.model), {}
        if self.encoding is not None:
            model._given_encoding = self.encoding
        if self.folds is not None:
            more = _as_given(model, self.folds.some(rows))
        if hasattr(model, "verbose"):
            model.set_params(verbose=0)
        return model.fit(take(self.X, self.row[rows]), self.y[rows], sample_weight=weight, **more)


def known_score(nested: Any) -> float | None:
    """The score for a copy without rows, if it was computed."""
    if isinstance(nested, NestedScore):
        return None if nested.found is None else nested.score
    return None if nested is None else float(nested)


def nested_score_of(
    model: Any,
    kernel: Kernel,
    training: Training,
    y: NDArray[Any],
    given: Array | None,
    centers: tuple[Any, Indices] | None = None,
    encoding: TableEncoding | None = None,
) -> NestedScore | None:
    """How a fit to these rows with targets y and weights ``given`` (None: ones) is scored.

    ``centers``: rows that every row with weight is one of, and which (n,); None: rows are copied. ``encoding`` is
    that of the rows if they were a raw table; it has seen no targets, and is not made again. None is returned if
    there are too many or too few rows, or if the kernel is precomputed: its values are not kept. A row with a
    count is that number of rows: folds depend on the order of distinct rows, not on where their copies are.
    """
    count = np.where(training.weight > 0, training.count, 0.0)
    if kernel.takes_values or not FEWEST_ROWS <= count.sum() <= MOST_NESTED_ROWS:
        return None
    rows = np.repeat(np.arange(len(y)), count.astype(np.intp))
    distinct = kernel.distinct(take(training.X, rows))
    first = distinct.first[distinct.point]
    order = np.argsort(first, kind="stable")
    rows, first = rows[order], first[order]
    X, row = _kept(training, rows, centers)
    folds = None if training.fold is None else Folds(training.fold, training.group).some(rows)
    label = y[rows] if is_classifier(model) else None
    outer = _outer_folds(label, None if folds is None else folds.fold, _in_order(first, y[rows]))
    if outer is None:
        return None
    return NestedScore(
        # Not fitted; the same rows give the same results, and weights keep their meaning.
        clone(model).set_params(weights="counts" if training.reading.counts else "importance"),
        X,
        row,
        y[rows],
        None if given is None or training.reading.counts else given[rows],
        (training.weight / training.count)[rows],
        outer,
        folds,
        encoding=encoding,
    )


def _kept(training: Training, rows: Indices, centers: tuple[Any, Indices] | None) -> tuple[Any, Indices]:
    """Rows X of which the n ``rows`` of the training rows are copies, and the number (n,) of each."""
    if centers is None:
        return take(training.X, rows), np.arange(len(rows))
    number = np.cumsum(training.weight > 0) - 1
    return centers[0], centers[1][number[rows]]


def _as_given(model: Any, folds: Folds) -> dict[str, Indices]:
    """What ``fit`` takes for these folds; a splitter is replaced by its folds."""
    if model.cv is not None:
        split = PredefinedSplit(folds.fold)
        model.set_params(cv=split if folds.group is None else list(split.split()))
    return {} if folds.group is None else {"groups": folds.group}


def _in_order(first: Indices, y: NDArray[Any]) -> Indices:
    """Rows (n,) in the order of the first row that equals each, and of their targets, then shuffled."""
    keys = np.unique(y, axis=0, return_inverse=True)[1].reshape(len(y))
    return np.lexsort((keys, first))[np.random.default_rng(0).permutation(len(y))]


def _outer_folds(label: NDArray[Any] | None, groups: Indices | None, order: Indices) -> Indices | None:
    """The fold (n,) of each row, -1 if it is not predicted. None: there are too few.

    Folds do not have the shares of all rows: if they had, the larger class would be known in advance, and noise
    would be predicted too well. Classes that are equally large have been made so, and folds have their shares:
    otherwise the class of a row would be the smaller one without it.
    """
    outer = _all_folds(label, groups, order)
    if outer is None or len(order) <= ALL_FIFTHS:
        return outer
    return np.where(np.isin(outer, np.unique(outer[outer >= 0])[:SOME_FIFTHS]), outer, -1)


def _all_folds(label: NDArray[Any] | None, groups: Indices | None, order: Indices) -> Indices | None:
    """The fold of each row, if all of them are predicted."""
    n = len(order)
    most = 10 if n <= TENTHS else 5
    number = None if label is None else np.unique(label, return_inverse=True)[1]
    if groups is not None:
        return _folds_of_groups(np.unique(groups, return_inverse=True)[1], number, order, most)
    outer = _dealt(number, order, most)
    if number is None:
        return outer
    rows_of = [order[number[order] == c] for c in range(number.max() + 1)]
    for rows in rows_of:
        # A class that is in one fold only would be unknown without it.
        if (outer[rows] == outer[rows[0]]).all():
            outer[rows[0]] = -1 if len(rows) == 1 else (outer[rows[0]] + 1) % min(most, n)
    return outer if sum(len(rows) > 1 for rows in rows_of) > 1 else None


def _dealt(number: Indices | None, order: Indices, most: int) -> Indices:
    """Folds (n,) dealt in an order (n,), each class for itself if classes are equally large.

    A fold with one row more of a class would be predicted to be of the others, which are larger without it.
    """
    outer, place = np.empty(len(order), dtype=np.intp), np.arange(len(order))
    if number is not None and np.ptp(count := np.bincount(number)) <= 1:
        order = order[np.argsort(number[order], kind="stable")]
        if count.min() >= FEWEST_FOLDS:
            place, most = place - (np.cumsum(count) - count)[number[order]], min(most, int(count.min()))
    outer[order] = place % most
    return outer


def _folds_of_groups(group: Indices, number: Indices | None, order: Indices, most: int) -> Indices | None:
    """The fold (n,) of each row: that of its group, or -1 if the rows outside of it lack a class.

    Groups are dealt in the order of their first rows, whatever they are called, as rows are without groups: by the
    class that is most frequent in them.
    """
    if group.max() + 1 < FEWEST_ROWS:
        return None
    groups = group[order][np.sort(np.unique(group[order], return_index=True)[1])]
    if number is None:
        return _dealt(None, groups, most)[group]
    table = np.zeros((len(groups), number.max() + 1))
    np.add.at(table, (group, number), 1.0)
    kind = np.unique(table.argmax(axis=1), return_inverse=True)[1]
    outer = _dealt(kind, groups, most)[group]
    without = [len(np.unique(number[outer != fold])) == table.shape[1] for fold in range(outer.max() + 1)]
    outer = np.where(np.array(without)[outer], outer, -1)
    return outer if outer.max() >= 0 else None
