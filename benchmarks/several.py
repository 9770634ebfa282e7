"""Several kernels at once: weights learned by each rule, beside single kernels, their sum, and SVC on the sum.

--views    mfeat, six views of 2000 handwritten digits: test error in % over --splits halves
--planted  three of twelve kernels matter: shares of the others in % of all weight, and errors of new rows
--many     a hundred kernels, 2000 rows: seconds of a fit
Without these words, all three.
"""

import argparse
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from common import heading, table, timed
from numpy.typing import NDArray
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from mercer import KernelFisherClassifier, KernelRidgeRegressor
from mercer.kernels import RBF, Kernel, OnColumns, WeightedSum

Array = NDArray[Any]
RULES: tuple[str | float, ...] = ("equal", "alignment", "loo", 1.0, 2.0, "auto")
PENALTIES = {"C": 10.0 ** np.arange(-1, 4)}


def read_views(folder: Path) -> tuple[Array, Array, dict[str, Kernel]]:
    """Rows of all views side by side, labels, and a Gaussian kernel for each view."""
    with np.load(folder / "mfeat" / "mfeat.npz") as archive:
        tables = {name: archive[name].astype(np.float64) for name in ("fac", "fou", "kar", "mor", "pix", "zer")}
        y = archive["y"]
    ends = np.cumsum([0, *(table.shape[1] for table in tables.values())])
    where = {name: list(range(ends[v], ends[v + 1])) for v, name in enumerate(tables)}
    return np.hstack(list(tables.values())), y, {name: OnColumns(RBF(), some) for name, some in where.items()}


def views(folder: Path, rows: int, splits: int) -> str:
    """Errors in % with standard errors over splits, seconds, and the mean weights of learned sums."""
    X, y, each = read_views(folder)
    kernels = each | {f"sum, {rule}": WeightedSum(each, rule) for rule in RULES}
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in [*kernels, "SVC, equal sum"]}
    weights: dict[str, list[list[float]]] = {name: [] for name in kernels if name.startswith("sum")}
    for seed in range(splits):
        split = train_test_split(X, y, train_size=rows, random_state=seed, stratify=y)
        train, new, labels, truth = split
        for name, kernel in kernels.items():
            model = KernelFisherClassifier(kernel, random_state=0)
            seconds = timed(partial(model.fit, train, labels))
            found[name].append((100.0 * float(np.mean(model.predict(new) != truth)), seconds))
            if name in weights:
                weights[name].append([model.kernel_weights_.get(view, 0.0) for view in each])
            if name == "sum, equal":
                found["SVC, equal sum"].append(machine(model.kernel_, split))
    lines = []
    for name, figures in found.items():
        errors, seconds = np.array(figures).T
        shares = " ".join(f"{w:.2f}" for w in np.mean(weights[name], axis=0)) if name in weights else "-"
        spread = errors.std(ddof=1) / splits**0.5 if splits > 1 else 0.0
        lines.append([name, f"{errors.mean():.2f} ± {spread:.2f}", f"{seconds.mean():.1f}", shares])
    return table(lines, ["mfeat", "error %", "s", f"weights of {' '.join(each)}"])


def machine(kernel: Kernel, split: list[Array]) -> tuple[float, float]:
    """Error and seconds of a support vector machine on the values of a kernel, C by five folds."""
    train, new, labels, truth = split
    K = kernel.block(train, train)
    search = GridSearchCV(SVC(kernel="precomputed"), PENALTIES, cv=5)
    seconds = timed(partial(search.fit, K, labels))
    return 100.0 * float(np.mean(search.predict(kernel.block(new, train)) != truth)), seconds


def planted(n: int, draws: int) -> str:
    """Twelve features with a kernel each, three of which have a part in the target."""
    each = {str(j): RBF(gamma=np.eye(12)[j].tolist()) for j in range(12)}
    lines = []
    for rule in RULES:
        found = []
        for seed in range(draws):
            rng = np.random.default_rng(seed)
            X = rng.normal(size=(n + 2000, 12))
            truth = np.sin(2.0 * X[:, 0]) + np.cos(2.0 * X[:, 1]) + np.tanh(2.0 * X[:, 2])
            y = truth + 0.3 * rng.normal(size=len(X))
            model = KernelRidgeRegressor(WeightedSum(each, rule), random_state=0).fit(X[:n], y[:n])
            others = [model.kernel_weights_.get(str(j), 0.0) for j in range(3, 12)]
            error = np.mean((model.predict(X[n:]) - truth[n:]) ** 2) / np.var(truth)
            found.append([100.0 * sum(others), 100.0 * max(others), 100.0 * error])
        lines.append([rule, *(f"{v:.2f}" for v in np.mean(found, axis=0))])
    header = [f"3 of 12 kernels, {n} rows", "weight of others %", "largest of them %", "error % of variance"]
    return table(lines, header)


def many(n: int, count: int) -> str:
    """Gaussian kernels of random pairs among twenty features, three of which have a part in the classes."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n + 2000, 20))
    y = (X[:, 0] * X[:, 1] + np.sin(2.0 * X[:, 2]) + 0.3 * rng.normal(size=len(X)) > 0).astype(int)
    pairs = [rng.choice(20, 2, replace=False) for _ in range(count - 1)]
    gammas = [np.isin(np.arange(20), pair) * 0.5 for pair in ([0, 1], *pairs)]
    each = {f"pair {p}": RBF(gamma=gamma.tolist()) for p, gamma in enumerate(gammas)}
    lines = []
    for rule in RULES:
        model = KernelFisherClassifier(WeightedSum(each, rule), random_state=0)
        seconds = timed(partial(model.fit, X[:n], y[:n]))
        error = 100.0 * np.mean(model.predict(X[n:]) != y[n:])
        kept = sum(weight > 0.01 for weight in model.kernel_weights_.values())
        lines.append([rule, f"{seconds:.1f}", kept, f"{error:.1f}"])
    return table(lines, [f"{count} kernels, {n} rows", "s", "weights above 1 %", "error %"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder with mfeat/")
    parser.add_argument("--views", action="store_true")
    parser.add_argument("--planted", action="store_true")
    parser.add_argument("--many", action="store_true")
    parser.add_argument("--rows", type=int, default=1000, help="training rows of --views")
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--draws", type=int, default=10)
    parser.add_argument("--size", type=int, default=2000, help="rows of --many")
    parser.add_argument("--count", type=int, default=100, help="kernels of --many")
    args = parser.parse_args()
    every = not (args.views or args.planted or args.many)
    print(heading(), flush=True)
    with threadpool_limits(1):
        if (args.views or every) and args.data:
            print(views(args.data, args.rows, args.splits), end="\n\n", flush=True)
        if args.planted or every:
            for n in (200, 1000):
                print(planted(n, args.draws), end="\n\n", flush=True)
        if args.many or every:
            print(many(args.size, args.count), flush=True)


if __name__ == "__main__":
    main()
