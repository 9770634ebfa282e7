"""Coverage of prediction intervals with everything chosen by leave-one-out, near the data and at their edge.

Six regression problems, two with noise that depends on x and one with heavy tails. For each number of rows some
draws; the share of 1000 new observations that are covered, the same for the tenth of them farthest from the mean
of the training rows, each feature in units of its standard deviation, and the width of intervals in units of the
standard deviation of y. None of the problems was used to choose the method.
"""

import argparse
from collections.abc import Callable, Sequence

import numpy as np
from common import heading, table
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from mercer import KernelRidgeRegressor
from mercer.datasets import make_sinc

COVERAGES = (0.8, 0.9, 0.95)
NEW = 1000
Draw = tuple[NDArray[np.float64], NDArray[np.float64]]


def sinc(rng: np.random.Generator, n: int) -> Draw:
    """sin(x) / x on a line, normal noise."""
    X, y = make_sinc(n, noise=0.1, random_state=int(rng.integers(2**31)))
    return X, y


def friedman(rng: np.random.Generator, n: int) -> Draw:
    """The first problem of Friedman (1991), five features."""
    X = rng.uniform(size=(n, 5))
    f = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3] + 5 * X[:, 4]
    return X, f + rng.normal(size=n)


def waves(rng: np.random.Generator, n: int) -> Draw:
    """Waves over normal rows in the plane, which are sparse at the edge."""
    X = rng.normal(size=(n, 2))
    return X, np.sin(2 * X[:, 0]) + np.cos(X[:, 1]) + 0.3 * rng.normal(size=n)


def funnel(rng: np.random.Generator, n: int) -> Draw:
    """Noise that is largest at both ends of a line."""
    X = rng.uniform(-3, 3, size=(n, 1))
    return X, np.sin(X[:, 0]) + (0.1 + 0.3 * np.abs(X[:, 0])) * rng.normal(size=n)


def slope(rng: np.random.Generator, n: int) -> Draw:
    """Noise that grows along one of two normal features."""
    X = rng.normal(size=(n, 2))
    return X, X[:, 0] + 0.5 * np.exp(0.5 * X[:, 1]) * rng.normal(size=n)


def heavy(rng: np.random.Generator, n: int) -> Draw:
    """Noise with heavy tails: Student's t with three degrees of freedom."""
    X = rng.uniform(-1, 1, size=(n, 3))
    return X, X[:, 0] ** 2 + 2 * X[:, 1] * X[:, 2] + 0.3 * rng.standard_t(3, size=n)


PROBLEMS: dict[str, Callable[[np.random.Generator, int], Draw]] = {
    function.__name__: function for function in (sinc, friedman, waves, funnel, slope, heavy)
}


def measure(name: str, n: int, draw: int) -> list[float]:
    """Share covered of all new rows and of the outer tenth, mean and median width, for each coverage."""
    rng = np.random.default_rng([draw, n, *name.encode()])
    X, y = PROBLEMS[name](rng, n + NEW)
    model = KernelRidgeRegressor(random_state=0).fit(X[:n], y[:n])
    distance = np.linalg.norm((X[n:] - X[:n].mean(axis=0)) / X[:n].std(axis=0), axis=1)
    outer, found = distance >= np.quantile(distance, 0.9), []
    for coverage in COVERAGES:
        low, high = model.predict_interval(X[n:], coverage=coverage).T
        covered, width = (low <= y[n:]) & (y[n:] <= high), (high - low) / y[n:].std()
        found += [100 * covered.mean(), 100 * covered[outer].mean(), width.mean(), np.median(width)]
    return [float(value) for value in found]


def row(name: str, n: int, draws: int) -> list[object]:
    """A row of the table: means over draws."""
    found = np.mean([measure(name, n, draw) for draw in range(draws)], axis=0).reshape(len(COVERAGES), 4)
    covered, outer = ([f"{share:.1f}" for share in found[:, column]] for column in (0, 1))
    print(f"  {name} {n}: {' '.join(covered)}, outer {' '.join(outer)}", flush=True)
    return [name, str(n), *covered, *outer, *(f"{found[1, column]:.2f}" for column in (2, 3))]


def summary(rows: Sequence[Sequence[object]]) -> str:
    """The largest deviation from what is promised, of the outer tenth also."""
    shares = np.array([[float(str(value)) for value in line[2:8]] for line in rows])
    apart = np.abs(shares - 100 * np.tile(COVERAGES, 2))
    within = (apart[:, :3] <= 2).mean(), (apart[:, 3:] <= 5).mean()
    means = " ".join(f"{value:.1f}" for value in shares.mean(axis=0))
    return (
        f"mean: {means}; largest deviation {apart[:, :3].max():.1f}, outer tenth {apart[:, 3:].max():.1f}; "
        f"within 2 points {100 * within[0]:.0f} %, outer tenth within 5 points {100 * within[1]:.0f} %"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--draws", type=int, default=30)
    parser.add_argument("--rows", type=int, nargs="+", default=[30, 50, 100, 300])
    parser.add_argument("--problems", nargs="+", default=list(PROBLEMS), choices=list(PROBLEMS))
    args = parser.parse_args()
    with threadpool_limits(1):
        rows = [row(name, n, args.draws) for n in args.rows for name in args.problems]
    header = ["", "rows", "80 %", "90 %", "95 %", "outer 80 %", "90 %", "95 %", "width of 90 %", "median"]
    print("\n" + heading() + "\nShare of new observations covered, in %\n" + table(rows, header))
    print("\n" + "\n".join(f"{n} rows: {summary([r for r in rows if r[1] == str(n)])}" for n in args.rows))


if __name__ == "__main__":
    main()
