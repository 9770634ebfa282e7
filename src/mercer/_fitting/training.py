"""The training rows of a fit, what memory it needs for them, and what it warns of."""

from numbers import Integral
from typing import Any

import numpy as np

from mercer._fitting.memory import KERNELS_TO_COMPARE, MemoryInputs, blocks_of, most_loo_rows, row_bytes
from mercer._fitting.notices import warn_of_constant, warn_of_equal_rows, warn_of_lost_digits
from mercer._fitting.result import ChosenSolution
from mercer._fitting.selection.centers import ModelSelection
from mercer._fitting.selection.path import ALPHAS
from mercer._fitting.spec import FitSpec
from mercer._linalg import blas_threads
from mercer._scores.targets import Targets
from mercer._scores.training_rows import Folds, Training
from mercer._types import Array, Indices
from mercer.centers import Given, Uniform
from mercer.centers._resolve import EXACT_ROWS, as_plan, requested_centers
from mercer.kernels import Kernel
from mercer.rows import Block, Rows
from mercer.rows._base import LocalRows
from mercer.rows._sampling.random_sample import ROWS_OF_EACH_LABEL
from mercer.rows._sampling.row_matching import weight_of
from mercer.rows._sampling.weights import Meaning, Tally, reading_of
from mercer.rows._table import in_single
from mercer.rows._virtual import rows_for_each

KEEP_EVERY_ROW = 2**62


def training_of(
    kernel: Kernel,
    weights: Meaning,
    targets: Targets,
    block: Block,
    folds: Folds | None,
) -> tuple[Training, Training, Indices]:
    """The rows of a block with their targets, those of them that have weight, and their positions."""
    encoded = targets.encode(block)
    reading = reading_of(weights, Tally.of(block.weight, block.n_rows))
    fold, group = (None, None) if folds is None else (folds.fold, folds.group)
    training = Training(encoded.X, encoded.y, weight_of(encoded), weight_of(block), reading, fold, group=group)
    weighted, used = training.used(kernel)
    check_enough(weighted)
    return training, weighted, used


def at_rows(fitted: Array, used: Indices, outputs: Array) -> Array:
    """Outputs (n, q) of all rows: those of the rows with weight, and fitted ones (n, q) of the others."""
    outputs_of_all = fitted.copy()
    outputs_of_all[used] = outputs
    return outputs_of_all


def memory_inputs(
    spec: FitSpec,
    X: Any,
    q: int,
    sample: int,
    held_out: int,
    n: int,
    has_classes: bool,
    rows: Rows | None,
    selection: ModelSelection | None = None,
) -> MemoryInputs:
    """What the memory of a fit depends on: n rows like X (None: not known yet) with q targets, of which ``sample``
    are held and ``held_out`` of them held out.
    """
    kernel, copies = spec.kernel, rows_for_each(spec.copies)
    sample, n = copies * sample, copies * n
    selector, n_centers = as_plan(spec.centers, kernel, X, n)
    if selection is not None:
        # Kernel and centers are those of the first rows, however many were added since.
        kernel, selector, n_centers = selection.kernel, Given(selection.centers.rows), selection.n_centers
    auto = spec.centers_are_chosen and selection is None
    if spec.copies is not None:
        # Copies are good centers, and targets cannot select among them: a candidate explains its own copies best.
        selector = Uniform() if isinstance(spec.centers, Integral) else selector
    if auto and n <= EXACT_ROWS and (spec.copies or spec.tangents):
        n_centers = n
    return MemoryInputs(
        row=0.0 if X is None else row_bytes(X),
        sample=sample,
        held_out=held_out,
        q=q,
        n_centers=n_centers,
        selector=selector,
        threads=blas_threads(),
        n=n,
        item=4 if in_single(X) else 8,
        has_classes=has_classes,
        kernels=1 if kernel.resolved else KERNELS_TO_COMPARE,
        alphas=len(ALPHAS) if spec.alpha is None else 1,
        copied=isinstance(rows, LocalRows) and not isinstance(getattr(rows, "X", None), np.ndarray),
        blocks=blocks_of(kernel, X),
        floor=0 if selection is not None else 2 * requested_centers(spec.centers),
        least=ROWS_OF_EACH_LABEL * max(q, 2) if has_classes else 0,
        usual=n_centers if auto else None,
    )


def n_held_out(spec: FitSpec, q: int, size: int) -> int:
    """How many of the drawn rows leave-one-out uses for q targets."""
    if spec.loo_rows is None or spec.kernel.takes_values:
        return size
    return min(size, most_loo_rows(spec.loo_rows, q))


def n_drawn(spec: FitSpec) -> int:
    """How many rows are kept: all if the kernel is a matrix."""
    if spec.loo_rows is None or spec.kernel.takes_values:
        return KEEP_EVERY_ROW
    return max(spec.loo_rows, 2 * requested_centers(spec.centers))


def inputs_before_sample(
    spec: FitSpec, X: Any, q: int, n: int, has_classes: bool, rows: Rows | None
) -> MemoryInputs:
    """The inputs before a sample is drawn, without rows that are kept for their labels."""
    sample = min(n, n_drawn(spec))
    return memory_inputs(spec, X, q, sample, n_held_out(spec, q, sample), n, has_classes, rows)


def warn_of_fit(X: Any, solution: ChosenSolution) -> None:
    """Warnings that apply to any fit."""
    warn_of_lost_digits(X, solution.kernel, solution.alpha, solution.error or 0.0)
    warn_of_equal_rows(solution.kernel, X, solution.rank)
    warn_of_constant(solution.kernel, X, solution.rank)


def check_enough(training: Training) -> None:
    """At least two rows, and two folds, have weight."""
    check_enough_rows(len(training.Y))
    check_folds(None if training.fold is None else Folds(training.fold), training.weight)


def check_enough_rows(n: int) -> None:
    """At least two rows have weight."""
    if n < 2:
        raise ValueError(f"leave-one-out needs at least 2 rows of positive weight, but there is n_samples = {n}")


def check_folds(folds: Folds | None, weight: Array | None) -> None:
    """Rows of positive weight must be in at least two folds."""
    if folds is None:
        return
    used = folds.fold if weight is None else folds.fold[weight > 0]
    if (used == used[0]).all():
        raise ValueError("all rows of positive weight are in one fold; cv or groups must define at least two")
