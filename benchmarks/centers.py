"""How many centers each way of choosing them needs for the same test error.

Every selector gets the same rows, and for every number of centers m its own kernel width and penalty, chosen on
the training part by exact leave-one-out from a common grid. The test part is used for the final error only.
"""

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from common import heading, table
from numpy.typing import NDArray

from mercer._gram import combine
from mercer._gram.blocks import cross
from mercer._gram.moments import Moments
from mercer._solvers.moments.ridge import decompose_moments
from mercer.centers import CandidateRows, CenterSelector, ForwardSelection, KMeans, RPCholesky, Uniform
from mercer.centers._forward import moments_of_sample
from mercer.datasets import make_clusters, make_ringnorm, read_digits
from mercer.kernels import RBF

Array = NDArray[np.float64]
Split = tuple[Array, NDArray[Any], Array, NDArray[Any]]

SETS = ("ringnorm", "clusters", "letter", "pendigits", "usps", "adult")
SELECTORS: dict[str, CenterSelector] = {
    "uniform": Uniform(),
    "k-means": KMeans(max_iter=30),
    "RPCholesky": RPCholesky(),
    "forward": ForwardSelection(),
}
NUMBERS = (10, 20, 50, 100, 200, 500, 1000)
# Forward selection with m centers is held against up to so many times m centers of the others.
REACH = 5
# Widths in units of the median distance, penalties in units of the trace of the moments.
WIDTHS = (0.2, 0.7, 2.5, 10.0)
ALPHAS = 10.0 ** np.arange(-1, -11, -1)
# Leave-one-out is averaged over at most so many training rows; the fits are to all of them.
LEFT_OUT = 2000
TEST_ROWS = 20_000


@dataclass(frozen=True)
class Chosen:
    """Centers, their moments, the training rows at which they are judged, and the seconds of the choice."""

    rows: Array
    moments: Moments
    left_out: NDArray[np.intp]
    seconds: float


def read(data: Path, name: str, seed: int) -> Split:
    """Training rows, labels, test rows, labels of the customary parts."""
    if name in ("ringnorm", "clusters"):
        X, y = {"ringnorm": make_ringnorm, "clusters": make_clusters}[name](10_000 + TEST_ROWS, random_state=seed)
        return X[:10_000], y[:10_000], X[10_000:], y[10_000:]
    if name in ("letter", "pendigits", "usps"):
        return read_digits(data / name, name)
    with np.load(data / "adult" / "a9a.npz") as a:
        X, new = (np.unpackbits(a[f"X_{part}_bits"], axis=1)[:, :123] for part in ("train", "test"))
        return X.astype(float), a["y_train"], new.astype(float), a["y_test"]


def prepare(split: Split, max_rows: int, seed: int) -> tuple[CandidateRows, Array, NDArray[np.intp]]:
    """Some training rows and all test rows, standardized by the former; two classes are one target."""
    X, y, new, y_new = split
    kept = np.random.default_rng(seed).permutation(len(y))[:max_rows]
    X, y = X[kept], y[kept]
    scale = X.std(axis=0)
    scale[scale == 0] = 1.0
    classes, label = np.unique(np.concatenate([y, y_new]), return_inverse=True)
    label, test = label[: len(y)], label[len(y) :]
    Y = np.where(label > 0, 1.0, -1.0)[:, None] if len(classes) == 2 else np.eye(len(classes))[label]
    mean = X.mean(axis=0)
    return CandidateRows((X - mean) / scale, Y, np.ones(len(y)), label), (new - mean) / scale, test


def decide(outputs: Array) -> NDArray[np.intp]:
    """Class numbers of outputs (…, n, q)."""
    return (outputs[..., 0] > 0).astype(np.intp) if outputs.shape[-1] == 1 else outputs.argmax(axis=-1)


def fit(kernel: RBF, sample: CandidateRows, chosen: Chosen) -> tuple[float, Array, Array]:
    """The least share of training rows that are wrong when left out, over alphas, and its coef and intercept."""
    spectrum = decompose_moments(chosen.moments, cross(kernel, chosen.rows, chosen.rows))
    few = chosen.left_out
    alphas = ALPHAS * spectrum.trace
    K = cross(kernel, sample.X[few], chosen.rows)
    outputs = spectrum.loo_map(alphas, K.dtype)(K, sample.Y[few], sample.weight[few])
    wrong = (decide(outputs) != sample.label[few]).mean(axis=1)
    # Among equal shares the least sum of squares decides.
    score = wrong + 1e-6 * ((outputs - sample.Y[few]) ** 2).sum(axis=-1).mean(axis=1)
    best = int(score.argmin())
    return float(score[best]), *spectrum.solve(float(alphas[best]))


def choices(
    selector: CenterSelector, kernel: RBF, sample: CandidateRows, numbers: list[int], seed: int
) -> Iterator[tuple[int, Chosen]]:
    """Centers for each m; k-means starts anew for each, the others go on."""
    nested = not isinstance(selector, KMeans)
    for m in numbers[-1:] if nested else numbers:
        start = perf_counter()
        centers = selector.select(kernel, sample, m, np.random.default_rng(seed))
        seconds = perf_counter() - start
        moments = moments_of_sample(kernel, sample, centers.rows)
        few = np.arange(len(sample.Y)) if centers.unseen is None or not len(centers.unseen) else centers.unseen
        for k in numbers if nested else [m]:
            if k <= len(centers.rows):
                part = moments.restricted(np.arange(k))
                yield k, Chosen(centers.rows[:k], part, few[:LEFT_OUT], seconds)


def errors(
    selector: CenterSelector, sample: CandidateRows, new: Array, label: NDArray[np.intp], args: Any, seed: int
) -> list[list[float]]:
    """Test error in % and seconds of the choice for each m, at the width of the best score."""
    best = {m: [np.inf, np.nan, np.nan] for m in args.numbers}
    unit = RBF(gamma="median").candidates(sample.X)[0].gamma
    for width in args.widths:
        kernel = RBF(gamma=unit / width)
        for m, chosen in choices(selector, kernel, sample, args.numbers, seed):
            score, coef, intercept = fit(kernel, sample, chosen)
            if score < best[m][0]:
                wrong = (decide(combine(kernel, new, chosen.rows, coef) + intercept) != label).mean()
                best[m] = [score, 100.0 * float(wrong), chosen.seconds]
    return [best[m][1:] for m in args.numbers]


def measure(name: str, args: Any) -> dict[str, Array]:
    """Mean test errors and seconds (numbers, 2) of every selector."""
    found: dict[str, list[Any]] = {selector: [] for selector in SELECTORS}
    for seed in range(args.seeds):
        kept = None if args.keep is None else args.keep / f"{name}-{seed}.json"
        if kept is not None and kept.exists():
            results = json.loads(kept.read_text())
        else:
            sample, new, label = prepare(read(args.data, name, seed), args.max_rows, seed)
            results = {key: errors(SELECTORS[key], sample, new, label, args, seed) for key in SELECTORS}
            if kept is not None:
                kept.write_text(json.dumps(results))
        for selector in SELECTORS:
            found[selector].append(results[selector])
    return {selector: np.mean(values, axis=0) for selector, values in found.items()}


def needed(error: float, numbers: list[int], peers: Array) -> float:
    """The number of centers at which a curve first comes down to an error, log-log; the largest if it never is."""
    for i, (m, peer) in enumerate(zip(numbers, peers)):
        if peer <= error:
            if i == 0:
                return float(m)
            share = np.log(peers[i - 1] / error) / np.log(peers[i - 1] / max(peer, 1e-9))
            return float(numbers[i - 1] * (m / numbers[i - 1]) ** share)
    return float(numbers[-1])


def ratios(found: dict[str, Array], numbers: list[int]) -> list[float]:
    """Geometric means over m of the centers that uniform, k-means and RPCholesky need, in units of m."""
    forward = found["forward"][:, 0]
    compared = [i for i, m in enumerate(numbers) if REACH * m <= numbers[-1]]
    return [
        float(
            np.exp(
                np.mean([np.log(needed(forward[i], numbers, found[peer][:, 0]) / numbers[i]) for i in compared])
            )
        )
        for peer in list(SELECTORS)[:-1]
    ]


def draw(results: dict[str, dict[str, Array]], numbers: list[int], path: Path) -> None:
    """One panel for each set: test error over the number of centers."""
    import matplotlib.pyplot as plt  # noqa: PLC0415
    from matplotlib.ticker import LogFormatter  # noqa: PLC0415

    looks = {
        "uniform": ("0.55", "o"),
        "k-means": ("#d98c21", "s"),
        "RPCholesky": ("#3b7dd8", "^"),
        "forward": ("#b0123b", "D"),
    }
    columns = (len(results) + 1) // 2
    fig, axes = plt.subplots(
        2, columns, figsize=(3.1 * columns, 6), layout="constrained", sharex=True, squeeze=False
    )
    for ax, (name, found) in zip(axes.flat, results.items()):
        for selector, values in found.items():
            color, marker = looks[selector]
            ax.loglog(numbers, values[:, 0], color=color, marker=marker, ms=4, lw=1.5, label=selector)
        ax.set(title=name)
        ax.xaxis.set_major_formatter(LogFormatter())
        ax.yaxis.set_minor_formatter(LogFormatter(minor_thresholds=(2, 0.5)))
        ax.yaxis.set_major_formatter(LogFormatter())
    for ax in axes.flat[len(results) :]:
        ax.remove()
    fig.supxlabel("centers")
    fig.supylabel("test error in %")
    fig.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=4, frameon=False)
    fig.savefig(path, dpi=110)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with letter/letter.npz … adult/a9a.npz")
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=SETS)
    parser.add_argument("--max-rows", type=int, default=5000, help="training rows, drawn anew for every seed")
    parser.add_argument("--most", type=int, default=1000, help="the largest number of centers")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="one seed, two widths, at most 200 centers")
    parser.add_argument("--keep", type=Path, help="folder for what was measured, to go on from after a break")
    parser.add_argument("--picture", type=Path, help="draw the curves into this file")
    args = parser.parse_args()
    args.widths = WIDTHS
    if args.keep is not None:
        args.keep.mkdir(parents=True, exist_ok=True)
    if args.quick:
        args.most, args.widths, args.seeds = min(args.most, 200), WIDTHS[1:3], 1
    args.numbers = [m for m in NUMBERS if m <= args.most]
    return args


def main() -> None:
    args = arguments()
    results = {}
    for name in args.sets:
        results[name] = measure(name, args)
        print(f"  {name} done", file=sys.stderr, flush=True)
    rows = [
        [f"{name}, {selector}", *(float(e) for e in values[:, 0]), float(values[-1, 1])]
        for name, found in results.items()
        for selector, values in found.items()
    ]
    print(
        "\n"
        + heading()
        + f"\nTest error in % for m centers, mean of {args.seeds} draws of {args.max_rows} training rows"
    )
    print(table(rows, ["set, selector", *(f"m={m}" for m in args.numbers), f"s for {args.numbers[-1]}"]))
    shares = {name: ratios(found, args.numbers) for name, found in results.items()}
    mean = np.exp(np.mean(np.log(list(shares.values())), axis=0))
    print("\nCenters needed for the error of m centers of forward selection, in units of m, mean over m up to "
          f"{args.numbers[-1] // REACH}; at most those measured")  # fmt: skip
    print(table([*([k, *v] for k, v in shares.items()), ["mean", *mean.tolist()]], ["set", *list(SELECTORS)[:-1]]))
    if args.picture:
        draw(results, args.numbers, args.picture)


if __name__ == "__main__":
    main()
