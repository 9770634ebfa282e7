"""From the result of a fit to the attributes of a model."""

from dataclasses import replace
from typing import Any

import numpy as np

from mercer.models.anew import Anew, with_score
from mercer.models.report import Report
from mercer.rows.table import in_single
from mercer.scores.targets import Targets
from mercer.scores.training_rows import Training
from mercer.scores.uncertainty.unexplained_variance import UnexplainedVariance
from mercer.tuning.result import FitResult


def attributes_of(
    result: FitResult,
    targets: Targets,
    anew: Anew | None,
    learned: tuple[UnexplainedVariance, Any] | None = None,
    *,
    program: str = "",
) -> dict[str, Any]:
    """The fitted attributes that all models have, by name; ``anew`` if the score counts the price of choosing.

    ``learned`` is what the training rows know of new ones, and of each other (n,); ``program`` states loss and
    penalty for the report.
    """
    solution, training = result.solution, _trusted(result.training, learned)
    concluded = targets.conclude(training, solution, moments=result.moments, observations=result.observations)
    dtype = np.float32 if in_single(training.X, result.centers) else np.float64
    return with_score(concluded, anew) | {
        "kernel_": solution.kernel,
        "gamma_": solution.kernel.gamma,
        "alpha_": solution.alpha,
        "X_fit_": result.centers,
        "support_": result.support,
        "dual_coef_": targets.shaped(solution.coef.astype(dtype, copy=False)),
        "intercept_": targets.shaped(solution.intercept.astype(dtype, copy=False)),
        "degrees_of_freedom_": solution.degrees_of_freedom,
        "report_": Report.of(result, targets, concluded["loo_best_score_"], program),
    }


def _trusted(training: Training, learned: tuple[UnexplainedVariance, Any] | None) -> Training:
    """The training rows with what the others know of each."""
    return training if learned is None else replace(training, trust=learned[1])
