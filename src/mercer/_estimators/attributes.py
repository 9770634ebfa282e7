"""From the result of a fit to the attributes of a model."""

from dataclasses import replace
from typing import Any

import numpy as np

from mercer._estimators.report import Report
from mercer._fitting.result import FitResult
from mercer._scores.training_rows import Training
from mercer._scores.uncertainty.unexplained_variance import UnexplainedVariance
from mercer.rows._table import in_single


def attributes_of(
    result: FitResult, unexplained: tuple[UnexplainedVariance, Any] | None = None, *, program: str = ""
) -> dict[str, Any]:
    """The fitted attributes that all models have, by name.

    ``unexplained`` is what the training rows know of new ones, and of each other (n,); ``program`` states loss and
    penalty for the report.
    """
    solution, targets, training = result.solution, result.targets, _trusted(result.training, unexplained)
    concluded = targets.conclude(training, solution, moments=result.moments, observations=result.observations)
    dtype = np.float32 if in_single(training.X, result.centers) else np.float64
    columns = {} if result.schema is None else result.schema.attributes
    explained = {"unexplained_variance_": None if unexplained is None else unexplained[0]}
    return {
        **columns,
        **concluded,
        **(explained if targets.has_classes else {}),
        "kernel_": solution.kernel,
        "gamma_": solution.kernel.gamma,
        "alpha_": solution.alpha,
        "tuning_paths_": solution.paths,
        "X_fit_": result.centers,
        "support_": result.support,
        "dual_coef_": targets.shaped(solution.coef.astype(dtype, copy=False)),
        "intercept_": targets.shaped(solution.intercept.astype(dtype, copy=False)),
        "degrees_of_freedom_": solution.degrees_of_freedom,
        "report_": Report.of(result, concluded["loo_score_"], program),
    }


def _trusted(training: Training, unexplained: tuple[UnexplainedVariance, Any] | None) -> Training:
    """The training rows with what the others know of each."""
    return training if unexplained is None else replace(training, trust=unexplained[1])
