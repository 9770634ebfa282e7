"""Fits to a stream: the kernel from its first rows, and leave-one-out scores of its last ones."""

from typing import Any

from mercer._scores.class_outputs import class_numbers
from mercer._scores.decision_rule import Scatter
from mercer._scores.prequential import ScoreWindow
from mercer._solvers.recursive import Recursion, RecursiveState, loo_outputs
from mercer._types import Array
from mercer.kernels import Kernel, as_kernel
from mercer.rows import Block
from mercer.rows._distinct import distinct_rows
from mercer.rows._sampling.row_matching import weight_of
from mercer.rows._sampling.weights import Reading

# Rows that determine kernel parameters given as strings, if the first call of partial_fit has fewer.
RESOLVING_ROWS = 100
# Rows that may be kept because they are all equal.
MOST_HELD = 1000


def resolved_kernel(kernel: Any, X: Any, weight: Array, *, more_to_come: bool) -> tuple[Kernel, bool]:
    """The kernel with strings replaced by numbers, and whether they are final; names mean gamma="median"."""
    chosen = as_kernel(kernel).copy()
    if isinstance(kernel, str) and chosen.gamma == "loo":
        chosen = chosen.set_params(gamma="median")
    if chosen.resolved:
        return chosen, True
    n, different = len(weight), len(distinct_rows(X).first)
    if different < 2 and (not more_to_come or n == 0 or n >= MOST_HELD):
        raise ValueError(
            f"{chosen!r} takes its parameters from the first rows, but of these, n_samples = {n}, only "
            f"{different} are distinct; pass the parameters, or start with other rows"
        )
    candidates = chosen.candidates(X, weight)
    if len(candidates) > 1:
        name = 'kernel="auto"' if isinstance(kernel, str) else repr(chosen)
        raise ValueError(
            f"{name} stands for {len(candidates)} kernels, but a stream has no second pass to choose between "
            "them; pass kernel_ of a model fitted to the first rows"
        )
    return candidates[0], not more_to_come or (n >= RESOLVING_ROWS and different >= 2)


def loo_scores_of_last_rows(
    recursion: Recursion, state: RecursiveState, last: Block, encoded: Block, reading: Reading
) -> ScoreWindow:
    """Leave-one-out scores of the last rows learned, with their class targets, for this meaning of weights."""
    weight, given = weight_of(encoded), weight_of(last)
    outputs = loo_outputs(recursion, state, last.X, encoded.y, weight / reading.copies(given))
    return ScoreWindow(outputs, class_numbers(encoded.y), weight, given).known()


def scatter_of(state: RecursiveState) -> Scatter:
    """What is known of the fit to all rows, as far as they have not decayed."""
    return Scatter.of_sums(*state.against_targets(), state.total_weight, state.n_rows)
