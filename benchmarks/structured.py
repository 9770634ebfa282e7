"""Strings and texts: kernel Fisher discriminants with a kernel on strings, beside support vector machines.

Test error in % by --folds folds with its standard error, or on the test part that a set comes with, and seconds of
a fit with its predictions. ``LinearSVC`` has the features of the kernel that the Fisher discriminant chose (for
texts, those of ``TfidfVectorizer``, whose weights differ a little), and ``SVC`` has its values; their C is chosen
among 0.1, 1, 10 and 100 by five folds.
"""

import argparse
import gzip
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from common import heading, table
from numpy.typing import NDArray
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer, TfidfTransformer, TfidfVectorizer
from sklearn.model_selection import GridSearchCV, StratifiedGroupKFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, Normalizer
from sklearn.svm import SVC, LinearSVC

from mercer import KernelFisherClassifier
from mercer.kernels import BagOfWords, Kernel, KmerSpectrum, Linear, Normalized

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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--data", type=Path, required=True, help="folder with promoters/, splice_dna/, names/, ..."
    )
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--folds", type=int, default=10)
    args = parser.parse_args()
    print(heading(), flush=True)
    lines = [line(name, SETS[name](args.data), args.folds) for name in args.sets]
    print("\n" + table(lines, ("set", "rows", "mercer", "s", "LinearSVC", "s", "SVC", "s")))


if __name__ == "__main__":
    main()
