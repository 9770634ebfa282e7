"""Strings and texts: kernel Fisher discriminants with a kernel on strings, beside support vector machines.

Test error in % by --folds folds with its standard error, or on the test part that a set comes with, and seconds of
a fit with its predictions. ``LinearSVC`` has the features of the kernel that the Fisher discriminant chose (for
texts, those of ``TfidfVectorizer``, whose weights differ a little), and ``SVC`` has its values; their C is chosen
among 0.1, 1, 10 and 100 by five folds.
--large N  a fit with 1000 centers to N DNA strings of 100 letters: seconds, memory and errors
--pairs N  gap-weighted subsequences of all pairs among N strings of 100 letters, beside the plain recursion
"""

import argparse
import gzip
import resource
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from common import heading, table, timed
from numpy.typing import NDArray
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer, TfidfVectorizer
from sklearn.model_selection import GridSearchCV, StratifiedGroupKFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer
from sklearn.svm import SVC, LinearSVC

from mercer import KernelFisherClassifier
from mercer.kernels import BagOfWords, Kernel, KmerSpectrum, Linear, Normalized, Subsequence

PENALTIES = {"C": [0.1, 1.0, 10.0, 100.0]}
# Strings around a common point, such as splice sites: substrings count at the same place only.
PLACED = Normalized(KmerSpectrum(k="loo", min_k=1, aligned=True))
SPECTRUM = Normalized(KmerSpectrum(k="loo", min_k=1))
WORDS = Normalized(BagOfWords(ngrams=(1, 2), sublinear=True))


@dataclass(frozen=True)
class Problem:
    """Rows, labels and a kernel; ``group`` are rows that stay together, ``test`` the rows of a given test part."""

    X: Any
    y: NDArray[Any]
    kernel: Kernel
    group: NDArray[Any] | None = None
    test: NDArray[Any] | None = None

    def splits(self, folds: int) -> list[tuple[Any, Any]]:
        if self.test is not None:
            return [(np.flatnonzero(~self.test), np.flatnonzero(self.test))]
        kind = StratifiedKFold if self.group is None else StratifiedGroupKFold
        return list(kind(folds, shuffle=True, random_state=0).split(self.y, self.y, self.group))

    def rows(self, which: Any) -> Any:
        return self.X[which] if sparse.issparse(self.X) else [self.X[i] for i in which]


def columns(path: Path) -> dict[str, list[str]]:
    """A table separated by tabs, by the names of its first line."""
    content = path.read_bytes()
    text = (gzip.decompress(content) if path.suffix == ".gz" else content).decode("utf-8")
    names, *rows = (line.split("\t") for line in text.removesuffix("\n").split("\n"))
    return {name: [row[j] for row in rows] for j, name in enumerate(names)}


def archive(path: Path, kernel: Kernel) -> Problem:
    with np.load(path) as data:
        return Problem([str(s) for s in data["seq"]], data["y"], kernel)


def labeled(path: Path, label: str, text: str, kernel: Kernel) -> Problem:
    found = columns(path)
    return Problem(
        [row.replace(" ", "") if text == "seq" else row for row in found[text]], np.array(found[label]), kernel
    )


def names(folder: Path) -> Problem:
    """Beginnings and ends matter: they are marked."""
    found = labeled(folder / "names" / "names.tsv", "label", "name", SPECTRUM)
    return Problem([f"^{name.lower()}$" for name in found.X], found.y, found.kernel)


def coiled_coil(folder: Path) -> Problem:
    found = columns(folder / "coiled_coil" / "coiled_coil.tsv")
    return Problem(found["seq"], np.array(found["label"]), SPECTRUM, group=np.array(found["group"]))


def trec_qc(folder: Path) -> Problem:
    found = columns(folder / "trec_qc" / "trec_qc.tsv.gz")
    return Problem(found["question"], np.array(found["coarse"]), WORDS, test=np.array(found["part"]) != "train")


def reuters(folder: Path) -> Problem:
    """The topic earn against all others."""
    found = columns(folder / "reuters" / "reuters_top10.tsv.gz")
    y = np.array(["earn" in topics.split(",") for topics in found["topics"]])
    return Problem(found["text"], y, WORDS, test=np.array(found["date_part"]) != "train")


def news(folder: Path, name: str) -> Problem:
    """Word counts without their words: inner products of rows, weighted by tf-idf in each fold."""
    with np.load(folder / "news_pairs" / f"{name}.npz") as data:
        return Problem(sparse.csr_matrix(data["X"].astype(np.float64)), data["y"], Normalized(Linear()))


SETS: dict[str, Callable[[Path], Problem]] = {
    "promoters": lambda folder: archive(folder / "promoters" / "promoters.npz", SPECTRUM),
    "splice": lambda folder: archive(folder / "splice_dna" / "splice_seq.npz", PLACED),
    "coiled_coil": coiled_coil,
    "protein_loc": lambda folder: labeled(
        folder / "protein_loc" / "extracell_mitochondrion.tsv.gz", "label", "seq", SPECTRUM
    ),
    "names": names,
    "trec_qc": trec_qc,
    "sentence_polarity": lambda folder: labeled(
        folder / "sentence_polarity" / "sentence_polarity.tsv.gz", "label", "sentence", WORDS
    ),
    "pcmac": lambda folder: news(folder, "pcmac"),
    "basehock": lambda folder: news(folder, "basehock"),
    "relathe": lambda folder: news(folder, "relathe"),
    "reuters": reuters,
}


def features(kernel: Any) -> Any:
    """What makes vectors of rows for a linear machine, like those of a kernel that a fit has chosen."""
    inner = kernel.kernel
    if isinstance(inner, Linear):
        return Normalizer()
    if isinstance(inner, BagOfWords):
        return TfidfVectorizer(analyzer=inner.analyzer, ngram_range=inner.ngrams, sublinear_tf=inner.sublinear)
    lengths = (inner.min_k or inner.k, inner.k)
    if inner.aligned:
        return make_pipeline(CountVectorizer(analyzer=partial(placed, lengths)), Normalizer())
    return make_pipeline(CountVectorizer(analyzer="char", lowercase=False, ngram_range=lengths), Normalizer())


def placed(lengths: tuple[int, int], text: str) -> list[str]:
    """Substrings with the place where they start."""
    sizes = range(lengths[0], lengths[1] + 1)
    return [f"{i} {text[i : i + size]}" for size in sizes for i in range(len(text) - size + 1)]


def searched(machine: Any) -> GridSearchCV:
    return GridSearchCV(machine, PENALTIES, cv=StratifiedKFold(5, shuffle=True, random_state=0))


def measured(problem: Problem, train: Any, test: Any) -> list[tuple[float, float]]:
    """Error and seconds of the Fisher discriminant, of linear and of kernel support vector machines."""
    X, new, y = problem.rows(train), problem.rows(test), problem.y[train]
    weights = (TfidfTransformer(norm=None) if sparse.issparse(X) else FunctionTransformer()).fit(X)
    X, new = weights.transform(X), weights.transform(new)
    start = time.perf_counter()
    model = KernelFisherClassifier(problem.kernel, random_state=0).fit(X, y)
    answers = [model.predict(new)]
    times = [time.perf_counter()]
    vectors = features(model.kernel_)
    answers.append(
        searched(LinearSVC(max_iter=20_000)).fit(vectors.fit_transform(X), y).predict(vectors.transform(new))
    )
    times.append(time.perf_counter())
    K = model.kernel_.block(X, X)
    answers.append(searched(SVC(kernel="precomputed")).fit(K, y).predict(model.kernel_.block(new, X)))
    times.append(time.perf_counter())
    errors = [100.0 * float(np.mean(answer != problem.y[test])) for answer in answers]
    return list(zip(errors, np.diff([start, *times]).tolist()))


def line(name: str, problem: Problem, folds: int) -> list[object]:
    splits = problem.splits(folds)
    found = np.array([measured(problem, *split) for split in splits])
    row: list[object] = [name, len(problem.y)]
    for errors, seconds in found.transpose(1, 2, 0):
        share, n = errors.mean() / 100.0, len(splits[0][1])
        spread = (
            errors.std(ddof=1) / len(errors) ** 0.5 if len(errors) > 1 else 100 * (share * (1 - share) / n) ** 0.5
        )
        row += [f"{errors.mean():.1f} ± {spread:.1f}", f"{seconds.mean():.1f}"]
    print(*row, flush=True)
    return row


def random_strings(rng: np.random.Generator, n: int, letters: str, length: int = 100) -> NDArray[Any]:
    """Letters (n, length), independent and equally likely."""
    return np.array(list(letters))[rng.integers(0, len(letters), (n, length))]


def planted(n: int) -> tuple[list[str], NDArray[Any]]:
    """DNA strings, half of them with a motif of eight letters, of which one is drawn anew, at a random place."""
    rng = np.random.default_rng(0)
    letters, y = random_strings(rng, n, "ACGT"), rng.permutation(n) % 2
    for i in np.flatnonzero(y):
        motif = np.array(list("ACGTTGCA"))
        motif[rng.integers(8)] = rng.choice(list("ACGT"))
        start = rng.integers(93)
        letters[i, start : start + 8] = motif
    return ["".join(row) for row in letters], y


def large(n: int, m: int) -> str:
    """Seconds and memory of a fit with m centers to n strings, and errors of 2000 others."""
    X, y = planted(n + 2000)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    model = KernelFisherClassifier(Normalized(KmerSpectrum(k=6)), centers=m, random_state=0)
    seconds = timed(partial(model.fit, X[:n], y[:n]))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    error = 100.0 * float(np.mean(model.predict(X[n:]) != y[n:]))
    left_out = 100.0 * (1.0 - model.loo_score_)
    figures = [f"{seconds:.0f}", f"{before:.2f}", f"{memory:.2f}", f"{left_out:.1f}", f"{error:.1f}"]
    header = ["s", "GiB before", "GiB at most", "left-out error %", "test error %"]
    return table([[n, m, *figures]], ["DNA strings", "centers", *header])


def recursion(s: str, t: str, p: int, decay: float) -> float:
    """Gap-weighted subsequences of length p as Lodhi et al. (2002) define them, each value computed once."""

    @cache
    def inner(q: int, i: int, j: int) -> float:
        if q == 0:
            return 1.0
        if min(i, j) < q:
            return 0.0
        return decay * inner(q, i - 1, j) + tail(q, i, j)

    @cache
    def tail(q: int, i: int, j: int) -> float:
        if min(i, j) < q:
            return 0.0
        last = decay * inner(q - 1, i - 1, j - 1) if s[i - 1] == t[j - 1] else 0.0
        return decay * (tail(q, i, j - 1) + last)

    places = [(i, j) for i in range(len(s)) for j in range(len(t)) if s[i] == t[j]]
    return sum(decay**2 * inner(p - 1, i, j) for i, j in places)


def pairs(n: int, length: int = 3, decay: float = 0.5, few: int = 6) -> str:
    """Seconds of a Gram matrix of n strings, and of the plain recursion for all pairs, from those of a few."""
    kernel, lines = Subsequence(length=length, decay=decay), []
    for letters in ("ACGT", "ACDEFGHIKLMNPQRSTVWY"):
        X = ["".join(row) for row in random_strings(np.random.default_rng(0), n, letters)]
        start = time.perf_counter()
        K = kernel.block(X, X)
        middle = time.perf_counter()
        naive = [recursion(X[0], t, length, decay) for t in X[:few]]
        seconds, each = middle - start, (time.perf_counter() - middle) / few
        np.testing.assert_allclose(K[0, :few], naive, rtol=1e-10)
        plain = each * n * (n + 1) / 2
        figures = [f"{seconds:.1f}", f"{1000 * each:.1f}", f"{plain:.0f}", f"{plain / seconds:.0f}"]
        lines.append([len(letters), n, *figures])
    header = ["letters", "strings", "s", "recursion: ms a pair", "s for pairs i <= j", "ratio"]
    return table(lines, header)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder with promoters/, splice_dna/, names/, ...")
    parser.add_argument("--large", type=int, help="number of strings", metavar="N")
    parser.add_argument("--pairs", type=int, help="number of strings", metavar="N")
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--folds", type=int, default=10)
    args = parser.parse_args()
    if not (args.data or args.large or args.pairs):
        parser.error("pass --data, --large or --pairs")
    print(heading(), flush=True)
    if args.large:
        print(large(args.large, min(1000, args.large // 4)), end="\n\n", flush=True)
    if args.pairs:
        print(pairs(args.pairs), end="\n\n", flush=True)
    if not args.data:
        return
    lines = [line(name, SETS[name](args.data), args.folds) for name in args.sets]
    print("\n" + table(lines, ("set", "rows", "mercer", "s", "LinearSVC", "s", "SVC", "s")))


if __name__ == "__main__":
    main()
