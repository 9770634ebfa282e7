"""Kernel CCA: planted correlations, and held-out retrieval and classification beside linear CCA.

--data DIR  folder with mfeat/mfeat.npz and nutrimouse/nutrimouse.npz; without it, planted correlations only
--rows N    training rows of the planted problem, 2000 by default
--draws N   draws of the planted problem, and random splits of nutrimouse
"""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from common import heading, table
from numpy.typing import NDArray
from sklearn.cross_decomposition import CCA
from sklearn.decomposition import PCA
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer import KernelCCA

Rows = NDArray[np.float64]
Pair = tuple[Rows, Rows]
# Canonical correlations of the states: eigenvalues of their joint distribution.
PLANTED = (0.8, 0.6, 0.4)
# Steps from the state of one view to that of the other, as bits, with these probabilities.
STEPS = (0.7, 0.2, 0.1, 0.0)
# Where a state is along the curves: the function of the states with the largest correlation is not monotone.
PLACE = np.array([0, 2, 1, 3])
# Principal components of a view for linear CCA, at most; and a quarter of the rows.
MOST_FEATURES = 50
PAIRS = (("fou", "kar"), ("pix", "mor"), ("fac", "zer"))


def planted(rng: np.random.Generator, n: int) -> Pair:
    """A state of four shows as a piece of a spiral in one view, as a piece of a wave in the other."""
    state = rng.integers(4, size=n)
    other = state ^ rng.choice(4, size=n, p=STEPS)
    t = 1.5 + 2.0 * (PLACE[state] + 0.5 * rng.uniform(size=n))
    u = PLACE[other] + 0.3 * rng.uniform(size=n)
    spiral, wave = np.column_stack([t * np.cos(t), t * np.sin(t)]) / 3.0, np.column_stack([u, np.sin(3.0 * u)])
    return spiral + 0.05 * rng.normal(size=(n, 2)), wave + 0.05 * rng.normal(size=(n, 2))


def recovered(n: int, draws: int) -> str:
    """Correlations of the training rows, in folds, and of 10,000 new rows, means over draws."""
    found: dict[str, list[Any]] = {"training rows": [], "held-out rows in folds": [], "new rows": []}
    linear = []
    for seed in range(draws):
        rng = np.random.default_rng(seed)
        (X, y), new = planted(rng, n), planted(rng, 10_000)
        model = KernelCCA(3, random_state=0).fit(X, y)
        for values, each in zip(found.values(), (model.correlations_, model.held_out_correlations_, None)):
            values.append(model.correlations(*new) if each is None else each)
        linear.append(KernelCCA(2, "linear", random_state=0).fit(X, y).correlations(*new))
    rows = [["planted", *(f"{rho:.3f}" for rho in PLANTED)]]
    rows += [[name, *(f"{value:.3f}" for value in np.mean(values, axis=0))] for name, values in found.items()]
    rows += [["linear CCA, new rows", *(f"{value:.3f}" for value in np.mean(linear, axis=0)), None]]
    off = np.abs(np.array(found["new rows"]) - PLANTED)
    words = f"differences of new rows: {off.mean():.3f} on the mean of {draws} draws, at most {off.max():.3f}"
    return table(rows, ["correlations", "first", "second", "third"]) + f"\n{words}"


def by_cca(train: Pair, test: Pair, k: int) -> tuple[Pair, Pair]:
    """Scores of scikit-learn's CCA of principal components: it needs many more rows than features."""
    most = min(MOST_FEATURES, len(train[0]) // 4)
    reduced = [PCA(min(most, view.shape[1]), random_state=0) for view in train]
    scale = [make_pipeline(StandardScaler(), part).fit(view) for part, view in zip(reduced, train)]
    rows, new = ([part.transform(view) for part, view in zip(scale, pair)] for pair in (train, test))
    model = CCA(k, scale=True, max_iter=2000).fit(*rows)
    return model.transform(*rows), model.transform(*new)


def by_kernel(kernel: str, train: Pair, test: Pair, k: int) -> tuple[Pair, Pair]:
    scale = [StandardScaler().fit(view) for view in train]
    rows = [part.transform(view) for part, view in zip(scale, train)]
    model = KernelCCA(k, kernel, random_state=0).fit(*rows)
    return model.transform(*rows), model.transform(*(part.transform(view) for part, view in zip(scale, test)))


def spaces(train: Pair, test: Pair, k: int) -> Iterator[tuple[str, Pair, Pair]]:
    """Scores of training and test rows in the shared space, by method."""
    yield "CCA of components", *by_cca(train, test, k)
    yield "KernelCCA, linear", *by_kernel("linear", train, test, k)
    yield "KernelCCA", *by_kernel("rbf", train, test, k)


def reciprocal_rank(scores: Pair) -> tuple[float, float]:
    """Of the other view of a row among all test rows, by cosine: mean of 1 / rank, and how often it is first."""
    a, b = (part / np.linalg.norm(part, axis=1, keepdims=True) for part in scores)
    similar = a @ b.T
    rank = (similar > similar.diagonal()[:, None]).sum(axis=1) + 1
    return float(np.mean(1.0 / rank)), float(np.mean(rank == 1))


def figures(train: Pair, test: Pair, labels: Any, new_labels: Any, k: int) -> dict[str, list[float]]:
    """Correlation, retrieval, and errors of neighbors: within the first view, and from the second to the first."""
    found = {}
    for name, known, new in spaces(train, test, k):
        few = [np.corrcoef(a, b)[0, 1] for a, b in zip(new[0].T, new[1].T)]
        near = KNeighborsClassifier(min(5, len(known[0]) // 5)).fit(known[0], labels)
        errors = [100.0 * (1.0 - near.score(part, new_labels)) for part in new]
        found[name] = [float(np.mean(few)), *reciprocal_rank(new), *errors]
    return found


def printed(name: str, runs: list[dict[str, list[float]]]) -> list[list[Any]]:
    """One line for each method: means over runs."""
    rows = []
    for method in runs[0]:
        mean = np.mean([run[method] for run in runs], axis=0)
        rows.append(
            [name, method, *(f"{value:.3f}" for value in mean[:3]), *(f"{value:.1f}" for value in mean[3:])]
        )
    return rows


HEADER = ["views", "method", "correlation", "1/rank", "first", "error %", "across %"]


def digits(folder: Path, k: int = 9) -> str:
    """Pairs of views of 2000 digits, half of them for training."""
    with np.load(folder / "mfeat" / "mfeat.npz") as archive:
        data = {name: archive[name].astype(np.float64) for name in archive}
    y = data["y"].astype(int)
    train = np.random.default_rng(0).permutation(len(y)) < len(y) // 2
    rows = []
    for pair in PAIRS:
        old, new = (tuple(data[name][part] for name in pair) for part in (train, ~train))
        rows += printed(" & ".join(pair), [figures(old, new, y[train], y[~train], min(k, old[1].shape[1]))])
    return table(rows, HEADER)


def mice(folder: Path, draws: int, k: int = 3) -> str:
    """Genes and lipids of 40 mice, 30 for training, classified by genotype and by diet."""
    with np.load(folder / "nutrimouse" / "nutrimouse.npz") as archive:
        views = archive["gene"].astype(np.float64), archive["lipid"].astype(np.float64)
        labels = {"genotype": archive["genotype"], "diet": archive["diet"]}
    rows = []
    for name, y in labels.items():
        splits = StratifiedShuffleSplit(draws, test_size=10, random_state=0).split(views[0], y)
        runs = []
        for train, test in splits:
            old, new = (tuple(view[part] for view in views) for part in (train, test))
            runs.append(figures(old, new, y[train], y[test], k))
        rows += printed(f"genes & lipids, {name}", runs)
    return table(rows, HEADER)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--draws", type=int, default=10)
    args = parser.parse_args()
    print(heading(), flush=True)
    print(f"\nPlanted correlations, {args.rows} rows\n" + recovered(args.rows, args.draws), flush=True)
    if args.data is not None:
        print("\nDigits\n" + digits(args.data), flush=True)
        print("\nMice\n" + mice(args.data, args.draws), flush=True)


if __name__ == "__main__":
    main()
