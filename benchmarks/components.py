"""Kernel PCA: beside scikit-learn's, with centers beside all rows, one pass, and alarms of a process.

--rows N     rows of the pass, a million by default
--draws N    draws of the process
--oriented   instead, the signal and noise of oriented kernel PCA for digits that are turned and shifted
"""

import argparse
from collections.abc import Callable
from functools import partial

import numpy as np
import sklearn.decomposition
from common import heading, table, timed
from numpy.typing import NDArray
from scipy import ndimage
from sklearn.datasets import load_digits

from mercer import KernelPCA, OrientedKernelPCA
from mercer._gram.moments import MomentsOf
from mercer.centers import KMeans, RPCholesky, Uniform
from mercer.datasets import make_ringnorm, make_waveform
from mercer.kernels import RBF
from mercer.rows import MemoryRows

Draw = Callable[[np.random.Generator, int], NDArray[np.float64]]


def beside_scikit_learn(n: int = 2000) -> str:
    """Seconds, and the largest difference of scores in units of the first standard deviation."""
    X, _ = make_ringnorm(n, random_state=0)
    rows = []
    for k in (2, 10, None):
        ours = KernelPCA(k, RBF(gamma=0.05))
        theirs = sklearn.decomposition.KernelPCA(k, kernel="rbf", gamma=0.05, random_state=0)
        seconds = np.min([[timed(partial(m.fit, X)) for m in (ours, theirs)] for _ in range(3)], axis=0)
        first = min(ours.n_components_, theirs.eigenvalues_.size, 10)
        scores = [model.transform(X)[:, :first] for model in (ours, theirs)]
        scores[1] *= np.sign((scores[0] * scores[1]).sum(axis=0))
        off = float(np.abs(scores[0] - scores[1]).max() / scores[1][:, 0].std())
        rows.append([n, "all" if k is None else k, *(f"{s:.2f}" for s in seconds), f"{off:.0e}"])
    return table(rows, ["rows", "components", "mercer s", "scikit-learn s", "difference"])


def with_centers(n: int = 10_000, m: int = 1000, k: int = 10) -> str:
    """The variance of the first components with m centers, in % of that with all rows."""
    rows = []
    for name, draw in {"ringnorm": make_ringnorm, "waveform": make_waveform}.items():
        X, _ = draw(n, random_state=0)
        exact = KernelPCA(k, centers="all").fit(X)
        for centers in (KMeans(m // 4), RPCholesky(m // 4), Uniform(m // 4), KMeans(m)):
            model = KernelPCA(k, exact.kernel_, centers=centers, random_state=0).fit(X)
            share = 100.0 * model.explained_variance_ / exact.explained_variance_
            how = [type(centers).__name__, centers.n_centers]
            rows.append([name, n, *how, f"{share.mean():.2f}", f"{share.min():.2f}"])
    return table(rows, ["set", "rows", "centers", "m", f"variance of {k} %", "least %"])


def one_pass(n: int, m: int = 1000) -> str:
    """The fit over one bare pass for moments of the same centers."""
    X, _ = make_waveform(n, random_state=0, dtype=np.float32)
    model = KernelPCA(10, RBF(gamma=0.02), centers=m, random_state=0)
    found = []
    for _ in range(2):
        seconds = timed(partial(model.fit, X))
        fold = MomentsOf(model.kernel_, model.X_fit_, np.float32)
        found.append([seconds, timed(partial(MemoryRows(X).reduce, fold))])
    fit, bare = np.min(found, axis=0)
    return table(
        [[n, m, f"{fit:.1f}", f"{bare:.1f}", f"{fit / bare:.2f}"]], ["rows", "centers", "fit s", "pass s", "ratio"]
    )


def usual(rng: np.random.Generator, n: int) -> NDArray[np.float64]:
    """Six sensors that follow two hidden causes, not linearly."""
    mix = np.array([[1.0, -0.5, 0.8, 0.0, 1.5, 0.3], [0.2, 1.0, -0.7, 1.2, 0.0, -1.0]])
    causes = rng.normal(size=(n, 2))
    return np.tanh(causes @ mix) + 0.1 * rng.normal(size=(n, 6))


def drift(rng: np.random.Generator, n: int) -> NDArray[np.float64]:
    X = usual(rng, n)
    X[:, 3] += np.linspace(0.0, 1.5, n)
    return X


def stuck(rng: np.random.Generator, n: int) -> NDArray[np.float64]:
    X = usual(rng, n)
    X[:, 0] = 0.9
    return X


def larger(rng: np.random.Generator, n: int) -> NDArray[np.float64]:
    return 1.3 * usual(rng, n)


FAULTS: dict[str, Draw] = {
    "a sensor drifts by 0.01 a row": drift,
    "a sensor is stuck": stuck,
    "all sensors read 30 % more": larger,
}


def alarms(draws: int, n: int = 500, length: int = 150) -> str:
    """False alarms in %, and rows until the third alarm of a fault, of T² and SPE."""
    rows = []
    for rate in (0.05, 0.01):
        false, delays = [], {name: [] for name in FAULTS}
        for seed in range(draws):
            rng = np.random.default_rng(seed)
            model = KernelPCA(0.9, random_state=0).fit(usual(rng, n))
            limits = model.control_limits(rate)
            false.append([100.0 * each.mean() for each in limits.exceeded(model.statistics(usual(rng, 4000)))])
            for name, fault in FAULTS.items():
                either = np.any(limits.exceeded(model.statistics(fault(rng, length))), axis=0)
                delays[name].append(int(np.append(np.flatnonzero(np.cumsum(either) == 3)[:1], length)[0]))
        mean = [f"{value:.2f}" for value in np.mean(false, axis=0)]
        rows.append([f"{100 * rate:g}", *mean, *(f"{np.median(delays[name]):.0f}" for name in FAULTS)])
    words = "; ".join(f"fault {i + 1}: {name}" for i, name in enumerate(FAULTS))
    header = ["nominal %", "T² %", "SPE %", *(f"fault {i + 1}" for i in range(len(FAULTS)))]
    return table(rows, header) + f"\n{words}; medians of rows until the third alarm, of {length}"


def turned(X: NDArray[np.float64], angle: float) -> NDArray[np.float64]:
    images = X.reshape(-1, 8, 8)
    return ndimage.rotate(images, angle, axes=(1, 2), reshape=False, order=1).reshape(X.shape)


def shifted(X: NDArray[np.float64], columns: float) -> NDArray[np.float64]:
    return ndimage.shift(X.reshape(-1, 8, 8), (0, 0, columns), order=1).reshape(X.shape)


MOVES = [
    *(partial(turned, angle=angle) for angle in (-15.0, 15.0)),
    *(partial(shifted, columns=columns) for columns in (-0.5, 0.5)),
]


def signal_to_noise(model: KernelPCA | OrientedKernelPCA, X: NDArray[np.float64]) -> NDArray[np.float64]:
    """The variance of each score over what all movements together change in it."""
    scores = model.transform(X)
    noise = sum(np.square(model.transform(move(X)) - scores).mean(axis=0) for move in MOVES)
    return np.asarray(scores.var(axis=0) / noise)


def oriented(n: int = 1000, k: int = 10) -> str:
    """Signal to noise of rows of the fit and of others, geometric means over k components."""
    X = np.random.default_rng(0).permutation(load_digits().data) / 16.0
    models: dict[tuple[str, str], KernelPCA | OrientedKernelPCA] = {("kernel PCA", ""): KernelPCA(k)}
    for mu in (10.0, 0.1, 0.01, 0.001, 1e-4, 1e-5):
        models["oriented", f"{mu:g}"] = OrientedKernelPCA(k, noise=MOVES, mu=mu)
    models["oriented, 200 centers", "0.001"] = OrientedKernelPCA(k, noise=MOVES, centers=200, random_state=0)
    some = X[: n // 5]
    copies = np.vstack([some, *(move(some) for move in MOVES)])
    models[f"oriented, {len(some)} rows and copies", "0.001"] = OrientedKernelPCA(k, noise=MOVES, centers=copies)
    rows = []
    for (name, mu), model in models.items():
        seconds = timed(partial(model.fit, X[:n]))
        fitted, others = signal_to_noise(model, X[:n]), signal_to_noise(model, X[n:])
        ratios = [f"{value:.2f}" for part in (fitted, others) for value in (part[0], np.exp(np.log(part).mean()))]
        rows.append([name, mu, *ratios, f"{seconds:.1f}"])
    header = ["model", "mu", "first", f"mean of {k}", "first, others", f"mean of {k}, others", "fit s"]
    return table(rows, header)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--oriented", action="store_true")
    args = parser.parse_args()
    print(heading(), flush=True)
    if args.oriented:
        print("\nSignal to noise of digits that are turned and shifted\n" + oriented(min(1000, args.rows)))
        return
    print("\nBeside scikit-learn\n" + beside_scikit_learn(min(2000, args.rows)), flush=True)
    print(
        "\nCenters beside all rows\n" + with_centers(min(10_000, args.rows), min(1000, args.rows // 4)), flush=True
    )
    print("\nOne pass\n" + one_pass(args.rows, min(1000, args.rows // 4)), flush=True)
    print("\nFalse alarms, and rows until a fault is seen\n" + alarms(args.draws), flush=True)


if __name__ == "__main__":
    main()
