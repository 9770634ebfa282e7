"""Base of models whose kernel, alpha and centers are chosen by leave-one-out: what a fit publishes, and scores."""

from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mercer._estimators.base import KernelModel
from mercer._estimators.fitted import Fitted, fitted, reads_one_state, with_state
from mercer._estimators.nested_score import (
    FEWEST_ROWS,
    MOST_NESTED_ROWS,
    NestedScore,
    known_score,
    nested_score_of,
)
from mercer._estimators.report import Report
from mercer._fitting.data import TrainingData
from mercer._fitting.result import FitResult
from mercer._fitting.selection.path import TuningPath
from mercer._fitting.spec import FitSpec
from mercer._types import Indices

# One number or more for each training row, with which nothing is predicted.
OF_ROWS = (
    *("loo_outputs_", "loo_decision_", "loo_proba_", "loo_prediction_"),
    *("loo_index_", "loo_results_", "support_"),
)


class LeaveOneOutModel(KernelModel):
    """A model whose kernel, alpha and centers are chosen by leave-one-out; abstract."""

    alpha: float | str
    weights: str
    max_memory: float | None
    random_state: Any
    verbose: int

    alpha_ = fitted[float]()
    tuning_paths_ = fitted[tuple[TuningPath, ...]]()
    support_ = fitted[Indices | None]()
    degrees_of_freedom_ = fitted[float]()
    loo_score_ = fitted[float]()
    report_ = fitted[Report]()

    def _publish_fit(
        self, attributes: dict[str, Any], spec: FitSpec, data: TrainingData, result: FitResult, details: Any = None
    ) -> Self:
        """The model with the result of a fit, and what a nested score needs."""
        # Sums with centers="auto" have as many centers as the rows were found to need.
        chooses = spec.chooses or (spec.centers_are_chosen and result.state is not None)
        nested = _nested(self, spec, data, result) if chooses else None
        return self._publish(Fitted(attributes, details, nested=nested, chooses=chooses))

    def nested_score(self) -> float:
        """The accuracy, or R², to expect of new rows: that of rows for which everything was chosen without them.

        Nested cross-validation of kernel, alpha and centers: ten folds, five beyond 300 rows, three of these
        beyond 1000. The first call takes as long as a fit for each of them. If nothing was chosen it is
        ``loo_score_``.

        Only for 4 to 10,000 rows in memory (or as many groups), which are kept: otherwise use
        :func:`sklearn.model_selection.cross_val_score` on some rows.
        """
        check_is_fitted(self)
        assert self._fitted is not None
        nested = self._fitted.nested
        if not self._fitted.chooses:
            return float(self.loo_score_)
        if isinstance(nested, NestedScore):
            return nested.score
        if nested is None:
            raise ValueError(
                f"{type(self).__name__} has no rows for a nested score: it needs {FEWEST_ROWS} to "
                f"{MOST_NESTED_ROWS:,} rows, in at least {FEWEST_ROWS} groups if there are groups, that were "
                "passed to fit in memory, not in batches, and with their kernel; loo_score_ is known, and a "
                "little too high where rows are few; a lean copy has only a score that was computed before"
            )
        return float(nested)

    @reads_one_state
    def lean(self) -> Self:
        """A copy that can only predict: without leave-one-out outputs and labels of training rows, and without the
        rows and sums from which the fit could be continued or scored. Score, path and report stay.
        """
        check_is_fitted(self)
        lean: Self = with_state(self, self._lean_state())
        return lean

    def _lean_state(self) -> Fitted:
        """The state without what is known of single training rows."""
        state = self._fitted
        assert state is not None
        attributes = {name: value for name, value in state.every.items() if name not in OF_ROWS}
        return Fitted(attributes, nested=known_score(state.nested), chooses=state.chooses, is_lean=True)


def _nested(model: Any, spec: FitSpec, data: TrainingData, result: FitResult) -> NestedScore | None:
    """How a fit is scored; None: not all of its rows are known."""
    rows, index, observations = data.in_memory, result.index, result.observations
    if rows is None or len(index) < rows.n_rows:
        return None
    given = None if rows.weight is None else np.asarray(rows.weight)[index]
    centers = None if observations is None else (result.centers, observations.rows.point)
    y = np.asarray(rows.y)[index]
    return nested_score_of(model, spec.kernel, result.training, y, given, centers, data.schema.encoding)
