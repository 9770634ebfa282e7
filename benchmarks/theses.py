"""Figures of Mika (2002) that need USPS, 5.3, 5.8, 5.10, and of Andelić (2007) that need many draws, 5.3 and 5.4.

directions: the first two directions of PCA, kernel PCA, Fisher and kernel Fisher discriminants, found by the first
500 digits of USPS, and the other training digits along them (Mika, Fig. 5.3; --pictures draws them). Two classes
have one discriminant direction; the second is the first principal direction. The figure in the table is the area
under the ROC curve of the linear rule in these two coordinates, learned from the 500 digits.

greedy: seconds of the processor for one digit against the rest, by sparse greedy selection among 59 random rows
until five steps lower the objective by less than 10^-1, 10^-2, 10^-3 of it on average, and with every row a center
(Mika, Fig. 5.8; width and penalty of the thesis). The exponent is that of the last two numbers of rows.

tangent: USPS with the settings of Mika, section 5.3.1, and no invariances: pixels as they are, Gaussian kernel of
width 0.3 · 256, the first 3000 rows as centers, mu = 1e-3; by the library, and in plain NumPy.

sinc: order-recursive orthogonal least squares (OROLS, stopped by generalized cross-validation), RMSE to the
function without noise against the number of rows, and against noise (Andelić, Figs. 5.3, 5.4; with 50 rows and
noise 0.1, Table 5.4).
"""

import argparse
import time
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import scipy.linalg
from common import heading, table
from numpy.typing import NDArray
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.metrics import roc_auc_score
from sklearn.metrics.pairwise import rbf_kernel

from mercer import KernelFisherClassifier, KernelPCA, SparseFisherClassifier, SparseKernelRegressor
from mercer._expansion import Expansion
from mercer.datasets import make_sinc, read_digits
from mercer.kernels import RBF

Array = NDArray[Any]
# exp(-|x - z|² / c) with c = 0.3 · 256.
WIDTH = RBF(gamma=1.0 / (0.3 * 256))
DIGIT = 4
FIRST_ROWS = 500
FIRST_CENTERS = 3000
MU = 1e-3
ROWS = (500, 1000, 2000, 4000)
TOLERANCES = (1e-1, 1e-2, 1e-3)
STEPS = 5
MOST_CENTERS = 400
SIZES = (25, 50, 100, 200)
NOISES = (0.05, 0.2, 0.3, 0.4, 0.5)
NEW_ROWS = 1000


def directions(folder: Path, pictures: Path | None) -> str:
    X, y, _, _ = read_digits(folder / "usps", "usps")
    four, train = y == DIGIT, slice(FIRST_ROWS)
    pca, kernel_pca = (model.fit(X[train]) for model in (PCA(2), KernelPCA(2, kernel=WIDTH)))
    P, Q = pca.transform(X), kernel_pca.transform(X)
    fisher = LinearDiscriminantAnalysis().fit(X[train], four[train]).transform(X)
    kernel_fisher = KernelFisherClassifier(WIDTH, random_state=0).fit(X[train], four[train]).transform(X)
    found = {
        "PCA": P,
        "kernel PCA": Q,
        "Fisher": np.column_stack([fisher[:, 0], P[:, 0]]),
        "kernel Fisher": np.column_stack([kernel_fisher[:, 0], Q[:, 0]]),
    }
    rest = slice(FIRST_ROWS, None)
    areas = {}
    for name, F in found.items():
        rule = LinearDiscriminantAnalysis().fit(F[train], four[train])
        areas[name] = float(roc_auc_score(four[rest], rule.decision_function(F[rest])))
    if pictures is not None:
        draw_directions({name: F[rest] for name, F in found.items()}, four[rest], areas, pictures)
    return table([[name, f"{area:.3f}"] for name, area in areas.items()], ["directions", "area under the curve"])


def draw_directions(found: dict[str, Array], four: Array, areas: dict[str, float], folder: Path) -> None:
    fig, axes = plt.subplots(2, 2, figsize=(8, 7), layout="constrained")
    for ax, (name, F) in zip(axes.flat, found.items()):
        ax.scatter(*F[~four].T, s=6, color="#0072B2", alpha=0.35, lw=0, label="other digits")
        ax.scatter(*F[four].T, s=10, color="#D55E00", alpha=0.7, lw=0, label=f"digit {DIGIT}")
        first, second = ("first", "second") if "PCA" in name else ("discriminant", "first principal")
        ax.set(title=f"{name}: area under the ROC curve {areas[name]:.2f}", xticks=[], yticks=[])
        ax.set(xlabel=f"{first} direction", ylabel=f"{second} direction")
    axes[0, 0].legend(markerscale=2.5)
    fig.savefig(folder / "usps_directions.png", dpi=90)


def greedy(folder: Path, digits: list[int], sizes: list[int], pictures: Path | None) -> str:
    X, y, _, _ = read_digits(folder / "usps", "usps")
    seconds, centers = np.zeros((len(TOLERANCES) + 1, len(sizes))), np.zeros((len(TOLERANCES), len(sizes)))
    for j, n in enumerate(sizes):
        for digit in digits:
            rows = X[:n], y[:n] == digit
            needed = numbers_of_centers(rows, min(n // 2, MOST_CENTERS))
            centers[:, j] += np.array(needed) / len(digits)
            models = [sparse(m) for m in needed] + [KernelFisherClassifier(WIDTH, alpha=1.0, centers="all")]
            seconds[:, j] += np.array([busy(model, rows) for model in models]) / len(digits)
        print(f"  {n} rows: {np.round(seconds[:, j], 2)} s, {centers[:, j]} centers", flush=True)
    exponents = np.log(seconds[:, -1] / seconds[:, -2]) / np.log(sizes[-1] / sizes[-2])
    names = [f"greedy, {tolerance:g}" for tolerance in TOLERANCES] + ["every row"]
    if pictures is not None:
        draw_greedy(names, sizes, seconds, exponents, pictures)
    last = [f"{m:.0f}" for m in [*centers[:, -1], sizes[-1]]]
    rows = [
        [name, *map(float, times), m, float(slope)]
        for name, times, m, slope in zip(names, seconds, last, exponents)
    ]
    return table(rows, ["seconds", *(f"{n} rows" for n in sizes), "centers", "exponent"])


def sparse(centers: int) -> SparseFisherClassifier:
    return SparseFisherClassifier(
        WIDTH, n_candidates=59, alpha=1.0, stop=None, max_centers=centers, random_state=0
    )


def numbers_of_centers(rows: tuple[Array, Array], most: int) -> list[int]:
    """At each tolerance the first number at which the mean relative decrease over five steps is below it."""
    objective = sparse(most).fit(*rows).center_path_.objective
    decrease = (objective[:-STEPS] - objective[STEPS:]) / objective[:-STEPS] / STEPS
    below = [np.flatnonzero(decrease < tolerance) for tolerance in TOLERANCES]
    return [int(where[0]) + STEPS + 1 if len(where) else most for where in below]


def busy(model: Any, rows: tuple[Array, Array]) -> float:
    start = time.process_time()
    model.fit(*rows)
    return time.process_time() - start


def draw_greedy(names: list[str], sizes: list[int], seconds: Array, exponents: Array, folder: Path) -> None:
    fig, ax = plt.subplots(figsize=(9, 4.2), layout="constrained")
    for name, color, times, exponent in zip(names, ("#56B4E9", "#009E73", "#CC79A7", "black"), seconds, exponents):
        ax.loglog(sizes, times, "o-", color=color, label=f"{name}: exponent {exponent:.1f}")
    ax.set(xlabel="rows", ylabel="seconds of the processor", xticks=sizes, xticklabels=sizes)
    ax.yaxis.set_major_formatter("{x:g}")
    ax.minorticks_off()
    words = "centers are added until\nfive steps lower the objective\nby less than this share each"
    fig.legend(title=words, loc="outside right center", frameon=False)
    fig.savefig(folder / "usps_greedy.png", dpi=110)


def tangent(folder: Path) -> str:
    X, y, X_test, y_test = read_digits(folder / "usps", "usps")
    Z = X[:FIRST_CENTERS]
    model = KernelFisherClassifier(WIDTH, centers=Z, alpha=MU, penalty="coef", threshold="least_squares").fit(X, y)
    K, L = rbf_kernel(X, Z, WIDTH.gamma), rbf_kernel(X_test, Z, WIDTH.gamma)
    mean, Y = K.mean(axis=0), np.eye(10)[y] - np.eye(10)[y].mean(axis=0)
    K -= mean
    # The scatter within classes in place of that of all rows gives the same directions.
    coef = scipy.linalg.solve(K.T @ K + MU * np.eye(len(Z)), K.T @ Y, assume_a="pos")
    label = ((L - mean) @ coef + np.eye(10)[y].mean(axis=0)).argmax(axis=1)
    outputs = Expansion(model.kernel_, model.X_fit_, model.dual_coef_, model.intercept_)(X_test)
    rows = [
        ["mercer", 100.0 * float(np.mean(outputs.argmax(axis=1) != y_test))],
        ["mercer, by probabilities", 100.0 * float(np.mean(model.predict(X_test) != y_test))],
        ["plain NumPy", 100.0 * float(np.mean(label != y_test))],
    ]
    return table(rows, ["largest output of ten", "error %"])


def sinc(draws: int) -> str:
    """Means over draws, with the standard error."""
    lines = [["50 rows, default model", *judged(50, 0.1, draws)]]
    kept = {"selection": "residual", "penalty": "orthogonal"}
    lines += [["50 rows, OROLS, alpha by held-out rows", *judged(50, 0.1, draws, **kept)]]
    orols = {**kept, "alpha": "gcv", "stop": "gcv"}
    lines += [[f"{n} rows, noise 0.1", *judged(n, 0.1, draws, **orols)] for n in SIZES]
    lines += [[f"100 rows, noise {noise:g}", *judged(100, noise, draws, **orols)] for noise in NOISES]
    return table(lines, ["sinc", "RMSE", "s.e.", "RMSE / noise", "centers"])


def judged(n: int, noise: float, draws: int, **options: str) -> list[object]:
    errors, centers = [], []
    for seed in range(draws):
        X, y = make_sinc(n, noise=noise, random_state=seed)
        new, clean = make_sinc(NEW_ROWS, noise=0.0, random_state=10**6 + seed)
        model = SparseKernelRegressor(random_state=0, **options).fit(X, y)
        errors.append(np.sqrt(np.mean((model.predict(new) - clean) ** 2)))
        centers.append(len(model.support_))
    mean, spread = np.mean(errors), np.std(errors, ddof=1) / np.sqrt(draws) if draws > 1 else 0.0
    print(f"  {n} rows, noise {noise:g}: {mean:.4f}", flush=True)
    return [f"{mean:.4f}", f"{spread:.4f}", float(mean / noise), f"{np.mean(centers):.1f}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with usps/usps.npz")
    names = ["directions", "greedy", "tangent", "sinc"]
    parser.add_argument("--figures", nargs="+", default=names, choices=names)
    parser.add_argument("--digits", nargs="+", type=int, default=list(range(10)), help="of greedy selection")
    parser.add_argument("--rows", nargs="+", type=int, default=list(ROWS), help="of greedy selection")
    parser.add_argument("--draws", type=int, default=100, help="of sinc")
    parser.add_argument("--pictures", type=Path, help="folder for pictures")
    args = parser.parse_args()
    print(heading(), flush=True)
    parts = {
        "directions": lambda: directions(args.data, args.pictures),
        "greedy": lambda: greedy(args.data, args.digits, args.rows, args.pictures),
        "tangent": lambda: tangent(args.data),
        "sinc": lambda: sinc(args.draws),
    }
    for name in args.figures:
        print(f"{parts[name]()}\n", flush=True)


if __name__ == "__main__":
    main()
