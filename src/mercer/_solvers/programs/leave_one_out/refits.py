"""Rows held out by fits without them: one at a time, or in folds if there are many."""

from dataclasses import replace

import numpy as np

from mercer._solvers.programs import Program, Solution, solve
from mercer._solvers.programs.losses import SmoothLoss
from mercer._types import Array, Indices

# Fits without single rows may take the first number of operations; otherwise these rows are held out in folds.
MOST_OPERATIONS, REFIT_FOLDS = 5e7, 10
# Smooth losses with |v|_1 change one sign at a time: a fit takes this many times the operations of others.
LASSO_SLOWNESS = 10


def refit_without(program: Program, found: Solution, share: Array, own: Indices | None, rows: Indices) -> Array:
    """Outputs (r,) of some rows for fits without a share (n,) of their weights and without their columns ``own``.

    The fits begin with the solution of all rows. Folds are taken in the order of the targets.
    """
    times = LASSO_SLOWNESS if program.lasso > 0.0 and isinstance(program.loss, SmoothLoss) else 1
    operations = float(len(rows)) * len(program.y) * program.m**2 * times
    alone = len(rows) <= REFIT_FOLDS or operations <= MOST_OPERATIONS
    order = np.argsort(program.y[rows], kind="stable")
    outputs = np.empty(len(rows))
    for fold in order[:, None] if alone else [order[k::REFIT_FOLDS] for k in range(REFIT_FOLDS)]:
        outputs[fold] = _without(program, found, share, own, rows[fold])
    return outputs


def _without(program: Program, found: Solution, share: Array, own: Indices | None, fold: Indices) -> Array:
    """Outputs (f,) of the rows of a fold."""
    weight, stay = program.weight.copy(), np.ones(program.m, dtype=bool)
    weight[fold] *= 1.0 - share[fold]
    if own is not None:
        stay[own[fold][own[fold] >= 0]] = False
    kept = weight > 0.0
    Phi = program.Phi[:, stay]
    part = replace(program, Phi=Phi[kept], y=program.y[kept], weight=weight[kept])
    without = solve(part, np.append(found.coef[stay], found.intercept))
    if not without.converged:
        without = min(without, solve(part), key=lambda solution: solution.gap)
    most = program.largest_outputs[fold]
    return np.clip(Phi[fold] @ without.coef + without.intercept, -most, most)
