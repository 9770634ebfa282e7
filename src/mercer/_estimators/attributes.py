"""From the result of a fit to the attributes of a model."""

from dataclasses import replace
from typing import Any

import numpy as np

from mercer._estimators.report import Report
from mercer._fitting.result import FitResult
from mercer._fitting.spec import FitSpec
from mercer._scores.uncertainty.unexplained_variance import UnexplainedVariance, learn_unexplained_variance
from mercer._types import Array
from mercer.rows._table import in_single
from mercer.rows._virtual import rows_for_each


def attributes_of(result: FitResult, spec: FitSpec, program: str = "") -> dict[str, Any]:
    """The fitted attributes that all models have, by name; ``program`` states loss and penalty for the report."""
    solution, targets, training = result.solution, result.targets, result.training
    known = _unexplained(result, spec) if targets.has_classes else None
    if known is not None:
        training = replace(training, trust=known[1])
    concluded = targets.conclude(training, solution, moments=result.moments, observations=result.observations)
    dtype = np.float32 if in_single(training.X, result.centers) else np.float64
    columns = {} if result.schema is None else result.schema.attributes
    explained = {"unexplained_variance_": None if known is None else known[0]}
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


def _unexplained(result: FitResult, spec: FitSpec) -> tuple[UnexplainedVariance, Array] | None:
    """What training rows, all or a sample, know of new ones, and of each other (n,).

    None for indefinite kernels, and for sparse fits, which have no novelty.
    """
    solution, training, copies = result.solution, result.training, spec.copies
    if not solution.definite or spec.sparse is not None:
        return None
    weight = training.weight.sum()
    total = weight if result.moments is None else result.moments.n
    alpha = solution.alpha * weight / total if spec.loss is None and spec.penalty != "coef" else None
    every = training if copies is None else training.with_copies(copies)
    found = learn_unexplained_variance(
        solution.kernel, every, alpha, solution.degrees_of_freedom, keep=spec.max_memory is None
    )
    return None if found is None else (found[0], found[1][:: rows_for_each(copies)])
