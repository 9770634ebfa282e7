"""What leave-one-out says about noise: scores and probabilities of every estimator beside chance, over many draws.

Labels, values or the second view are drawn without regard to the rows, as many of each class or, where several
rows leave at once, by coins: nothing can be learned, the accuracy to expect is 1 / k, the correlation zero.
``nested_score()`` of a regressor is compared with its R² on new rows, which is below zero; ``loo_proba_`` with
probabilities of new rows, of which each class has the share that it has in training, by Brier scores, means of
|p - e|² / 2 over rows with indicators e. Columns are means over draws ± two standard errors; "!" is outside of
these, as one figure in twenty is without any defect.

--parts A,B,...   some of the parts: plain, groups, weights, relevance, kernels, centers, sparse, machines, cca
--rows N          rows of a draw, 64 by default
--draws N         30 by default
"""

import argparse
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from common import heading, table
from numpy.typing import NDArray

from mercer import (
    KernelCCA,
    KernelFisherClassifier,
    KernelMachineClassifier,
    KernelMachineRegressor,
    KernelRidgeRegressor,
    SparseFisherClassifier,
    SparseKernelRegressor,
)
from mercer.kernels import RBF, Laplacian, WeightedSum

Rows = NDArray[np.float64]
D = 5
NEW_ROWS = 2000
NEAR = 0.01
SEVERAL = WeightedSum({"gaussian": RBF(gamma="median"), "laplacian": Laplacian(gamma="median")})


@dataclass(frozen=True)
class Draw:
    """Rows, targets, and what else ``fit`` takes."""

    X: Rows
    y: NDArray[Any]
    more: dict[str, Any] = field(default_factory=dict)


def plain(n: int, k: int, rng: np.random.Generator) -> Draw:
    """As many rows of each of k classes; k = 0: normal values."""
    return Draw(rng.normal(size=(n, D)), rng.permutation(np.arange(n) % k) if k else rng.normal(size=n))


def coins(n: int, k: int, rng: np.random.Generator) -> Draw:
    """Classes of every row at random."""
    return Draw(rng.normal(size=(n, D)), rng.integers(k, size=n))


def in_fifths(n: int, k: int, rng: np.random.Generator) -> Draw:
    """As many rows of each class, also in each of five folds."""
    return plain(n - n % (5 * k), k, rng)


def near_copies(n: int, k: int, rng: np.random.Generator) -> Draw:
    """Groups of four near-copies with one target."""
    few, group = plain(n // 4, k, rng), np.repeat(np.arange(n // 4), 4)
    X = few.X[group] + NEAR * rng.normal(size=(len(group), D))
    return Draw(X, few.y[group], {"groups": group})


def own_labels(n: int, k: int, rng: np.random.Generator) -> Draw:
    """The same with a class by coins for every row.

    Were there as many rows of each class, that of most rows in a group would be the smaller one without them.
    """
    copies = near_copies(n, k, rng)
    return Draw(copies.X, coins(len(copies.X), k, rng).y, copies.more)


def importance(n: int, k: int, rng: np.random.Generator) -> Draw:
    """Classes by coins, and weights whose logarithm is normal.

    Were classes of the same weight, that of a heavy row would be the smaller one without it.
    """
    draw = coins(n, k, rng) if k else plain(n, 0, rng)
    return Draw(draw.X, draw.y, {"sample_weight": np.exp(rng.normal(size=n))})


def counts(n: int, k: int, rng: np.random.Generator) -> Draw:
    """Rows at n / 2 places; those equal in all and in their target are one row with a count."""
    places, y = rng.normal(size=(n // 2, D)), plain(n, k, rng).y
    found, count = np.unique(np.column_stack([rng.integers(n // 2, size=n), y]), axis=0, return_counts=True)
    return Draw(places[found[:, 0]], found[:, 1], {"sample_weight": count.astype(np.float64)})


def of_same_shares(draw: Draw, rng: np.random.Generator) -> Draw:
    """New rows, of which each class has the share that it has in the weight of the draw."""
    weight = draw.more.get("sample_weight", np.ones(len(draw.y)))
    place = (np.arange(NEW_ROWS) + 0.5) / NEW_ROWS * weight.sum()
    return Draw(rng.normal(size=(NEW_ROWS, D)), draw.y[np.searchsorted(np.cumsum(weight), place)])


@dataclass(frozen=True)
class Line:
    """An estimator and how rows of noise are drawn for it; ``k`` classes, 0: real values."""

    words: str
    model: Any
    k: int = 2
    draw: Callable[[int, int, np.random.Generator], Draw] = plain


FISHER, RIDGE = KernelFisherClassifier, KernelRidgeRegressor
MACHINE, VALUES = KernelMachineClassifier, KernelMachineRegressor
PARTS: dict[str, tuple[Line, ...]] = {
    "plain": (
        Line("two classes", FISHER()),
        Line("two classes by coins", FISHER(), draw=coins),
        Line("three classes", FISHER(), 3),
        Line("isotonic", FISHER(calibration="isotonic")),
        Line("values", RIDGE(), 0),
    ),
    "groups": (
        Line("near-copies, one label", FISHER(), draw=near_copies),
        Line("near-copies, three classes", FISHER(), 3, near_copies),
        Line("near-copies, own labels", FISHER(), draw=own_labels),
        Line("near-copies, one value", RIDGE(), 0, near_copies),
        Line("cv=5", FISHER(cv=5), draw=in_fifths),
        Line("cv=5, values", RIDGE(cv=5), 0),
    ),
    "weights": (
        Line("importance", FISHER(weights="importance"), draw=importance),
        Line("importance, values", RIDGE(weights="importance"), 0, importance),
        Line("counts", FISHER(weights="counts"), draw=counts),
    ),
    "relevance": (
        Line("two classes", FISHER(relevance="diagonal")),
        Line("near-copies, one label", FISHER(relevance="diagonal"), draw=near_copies),
        Line("values", RIDGE(relevance="diagonal"), 0),
    ),
    "kernels": (
        Line("two classes", FISHER(SEVERAL)),
        Line("values", RIDGE(SEVERAL), 0),
    ),
    "centers": (
        Line("16 centers", FISHER(centers=16)),
        Line("16 centers, values", RIDGE(centers=16), 0),
    ),
    "sparse": (
        Line("two classes", SparseFisherClassifier()),
        Line("importance", SparseFisherClassifier(weights="importance"), draw=importance),
        Line("values", SparseKernelRegressor(), 0),
    ),
    "machines": (
        Line("hinge", MACHINE(loss="hinge")),
        Line("logistic", MACHINE(loss="logistic")),
        Line("squared", MACHINE(loss="squared")),
        Line("logistic, importance", MACHINE(loss="logistic", weights="importance"), draw=importance),
        Line("absolute", VALUES(loss="absolute"), 0),
        Line("huber", VALUES(loss="huber"), 0),
    ),
    "cca": (Line("first correlation", KernelCCA(1), 0), Line("alpha = 0.1", KernelCCA(1, alpha=0.1), 0)),
}


def brier(P: Rows, y: NDArray[Any], weight: Rows | None = None) -> float:
    return float(np.average(((P - np.eye(P.shape[1])[y]) ** 2).sum(axis=1) / 2.0, weights=weight))


def one_draw(line: Line, n: int, seed: int) -> list[float]:
    """How far score and Brier score are from chance or new rows; Brier score of new rows beside that of 1 / k."""
    rng = np.random.default_rng(seed)
    model = line.model.set_params(random_state=0)
    if isinstance(model, KernelCCA):
        model.fit(rng.normal(size=(n, D)), rng.normal(size=(n, 2)))
        return [float(model.held_out_correlations_[0]), np.nan, np.nan]
    draw = line.draw(n, line.k, rng)
    new = plain(NEW_ROWS, 0, rng) if not line.k else of_same_shares(draw, rng)
    model.fit(draw.X, draw.y, **draw.more)
    if not line.k:
        return [model.nested_score() - model.score(new.X, new.y), np.nan, np.nan]
    seen = brier(model.predict_proba(new.X), new.y)
    own = brier(model.loo_proba_, draw.y, draw.more.get("sample_weight"))
    return [model.nested_score() - 1.0 / line.k, own - seen, seen - (1.0 - 1.0 / line.k) / 2.0]


def printed(values: NDArray[np.float64]) -> tuple[str, bool]:
    """Mean ± two standard errors, and whether the mean is outside of these."""
    if np.isnan(values).all():
        return "-", False
    mean, error = float(values.mean()), 2.0 * float(values.std(ddof=1)) / len(values) ** 0.5
    return f"{mean:+.4f} ± {error:.4f}", abs(mean) > error


def measured(line: Line, n: int, draws: int) -> tuple[list[object], bool]:
    """A row of the table, and whether a figure of leave-one-out is outside of two standard errors."""
    start = time.process_time()
    found = np.array([one_draw(line, n, seed) for seed in range(draws)])
    (score, first), (proba, second), (new, _) = map(printed, found.T)
    marks = [text + (" !" if outside else "") for text, outside in ((score, first), (proba, second))]
    name = type(line.model).__name__
    return [name, line.words, *marks, new, f"{time.process_time() - start:.0f}"], first or second


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", type=partial(str.split, sep=","), default=list(PARTS))
    parser.add_argument("--rows", type=int, default=64)
    parser.add_argument("--draws", type=int, default=30)
    choices = parser.parse_args()
    print(heading(), flush=True)
    outside: list[str] = []
    header = ("", "noise", "nested", "loo_proba_ - new rows", "new rows - chance", "s")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for part in choices.parts:
            found = [measured(line, choices.rows, choices.draws) for line in PARTS[part]]
            print(f"{part}\n{table([row for row, _ in found], header)}\n", flush=True)
            outside += [f"{part}: {row[0]}, {row[1]}" for row, is_outside in found if is_outside]
    lines = sum(len(PARTS[part]) for part in choices.parts)
    print("\n".join([f"outside of two standard errors: {len(outside)} of {lines} lines", *outside]))


if __name__ == "__main__":
    main()
