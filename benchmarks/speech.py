"""Spoken digits and vowels: hidden Markov models with mixtures, with discriminants, and an SVM on summaries.

--data DIR      folder with fsdd/fsdd_pcm.npz and japanese_vowels/japanese_vowels.npz
--parts NAME    official (digits, indices below 5 are the test part), speakers (digits, each speaker left out),
                vowels, strings (connected digits of a speaker left out), probabilities; all by default
--models NAME   some of the models, all by default
--speakers N    speakers left out, one after another: all six by default
--first N       the first of them
--every N       only every N-th training recording of digits
--centers N     centers of the discriminant of all states
--frames N      instead: read N frames from a Parquet file and fit, in a process of its own: seconds and memory
--store FILE    JSON file of results: those that it has are not computed again
"""

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from importlib.metadata import version
from itertools import islice
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from common import heading, held, table
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from mercer import KernelFisherClassifier, OnlineFisherClassifier, PairwiseClassifier, SparseFisherClassifier
from mercer.centers import Uniform
from mercer.kernels import RBF
from mercer.sequences import (
    HiddenMarkovClassifier,
    differences,
    read_sequences,
    speech_frames,
    standardize,
    word_errors,
)

Frames = NDArray[np.float64]
PARTS = ("official", "speakers", "vowels", "strings", "probabilities")
# Neighbors that discriminants see, and the number of states of a word.
CONTEXT, STATES = 4, 5
# Noise below the speech of connected digits, in decibels, and pauses in seconds.
NOISE, PAUSES = 30.0, (0.05, 0.3)
N_STRINGS = 20
# Noise of repeated recordings, whose features have a variance of one, and recordings that are written at a time.
REPEATED, WRITTEN = 0.1, 500
PENALTIES = (0.0, 5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 320.0)


class Summary:
    """Means of five parts of a sequence, and a support vector machine."""

    def fit(self, X: Sequence[Frames], y: Any, groups: Any = None) -> "Summary":
        self.model = make_pipeline(StandardScaler(), SVC(C=10.0)).fit(summaries(X), y)
        return self

    def predict(self, X: Sequence[Frames]) -> Any:
        return self.model.predict(summaries(X))


def summaries(X: Sequence[Frames]) -> Frames:
    return np.array([np.concatenate([part.mean(axis=0) for part in np.array_split(x, 5)]) for x in X])


def kernel(d: int) -> RBF:
    """The width of Andelić (2007), 8 for 39 standardized features, wider as the root of their number."""
    return RBF(gamma=39.0 / (128.0 * d))


def narrow(d: int) -> RBF:
    """The width that was better with a smaller penalty, in trials that the page of results describes."""
    return RBF(gamma=1.0 / d)


def models(d: int, centers: int, states: Any = STATES) -> dict[str, Callable[[], Any]]:
    """Models by name, for frames of d features."""
    near = (2 * CONTEXT + 1) * d

    def mixtures(n: int) -> Callable[[], Any]:
        return lambda: HiddenMarkovClassifier(
            "mixtures", n_states=states, n_mixtures=n, held_out=0, random_state=0
        )

    def hybrid(estimator: Any, context: int = CONTEXT, rounds: int = 0) -> Callable[[], Any]:
        choices = {"n_states": states, "n_mixtures": 4, "n_rounds": rounds, "held_out": 0}
        return lambda: HiddenMarkovClassifier(estimator, context=context, random_state=0, **choices)

    def fisher(width: Any, alpha: Any) -> Any:
        choices = {"criterion": "log_loss", "loo_rows": 4000, "random_state": 0}
        return KernelFisherClassifier(width, alpha=alpha, centers=Uniform(centers), **choices)

    pair = KernelFisherClassifier(kernel(d), alpha=1.0, centers=Uniform(50), loo_rows=500, random_state=0)
    few = SparseFisherClassifier(kernel(d), alpha=1.0, max_centers=50, stop=None, random_state=0, n_candidates=59)
    stream = OnlineFisherClassifier(kernel(d), max_centers=100)
    svc = CalibratedClassifierCV(SVC(gamma=kernel(d).gamma), cv=3, ensemble=False)
    return {f"mixtures {n}": mixtures(n) for n in (1, 2, 4, 8)} | {
        "all states, no context": hybrid(fisher(narrow(d), 0.3), 0),
        "all states": hybrid(fisher(narrow(near), 0.3)),
        "all states, chosen": hybrid(fisher("rbf", "loo")),
        "all states, 1 round": hybrid(fisher(narrow(near), 0.3), rounds=1),
        "sparse": hybrid(few, 0),
        "pairs": hybrid(PairwiseClassifier(pair, coupling="odds"), 0),
        "pairs of SVC": hybrid(PairwiseClassifier(svc, coupling="odds"), 0),
        "one against the rest, online": hybrid(OneVsRestClassifier(stream), 0),
        "SVM on summaries": Summary,
    }


@cache
def digits(folder: Path) -> dict[str, Any]:
    """Signals, digits, speakers and indices of the recordings."""
    with np.load(folder / "fsdd" / "fsdd_pcm.npz") as archive:
        found = {name: archive[name] for name in archive.files}
    pieces = np.split(found["pcm"].astype(np.float64), np.cumsum(found["length"])[:-1])
    return {"signal": pieces} | {name: found[name].astype(int) for name in ("digit", "speaker", "index")}


def vowels(folder: Path) -> tuple[list[Frames], NDArray[Any], int]:
    """Cepstra with first differences, speakers, and how many are for training."""
    with np.load(folder / "japanese_vowels" / "japanese_vowels.npz") as archive:
        X, length, y, n = (archive[name] for name in ("frames", "length", "y", "n_train"))
    sequences = np.split(X.astype(np.float64), np.cumsum(length.astype(int))[:-1])
    sequences = [np.column_stack([x, differences(x)]) for x in sequences]
    scale = StandardScaler().fit(np.concatenate(sequences[: int(n)]))
    return [scale.transform(x) for x in sequences], y, int(n)


@cache
def spoken(folder: Path) -> list[Frames]:
    """Frames of all recordings, standardized by speaker."""
    data = digits(folder)
    return standardize([speech_frames(x, 8000) for x in data["signal"]], data["speaker"])


class Results:
    """Results by key, in a file if there is one."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.known: dict[str, Any] = json.loads(path.read_text()) if path is not None and path.exists() else {}

    def get(self, key: str, compute: Callable[[], Any]) -> Any:
        if key not in self.known:
            self.known[key] = compute()
            if self.path is not None:
                self.path.write_text(json.dumps(self.known, indent=1, sort_keys=True))
        return self.known[key]


def measured(model: Any, train: Any, test: Any, groups: Any = None) -> dict[str, float]:
    """Errors in percent, and seconds of training and of each test sequence."""
    start = time.perf_counter()
    model.fit(*train, groups=groups)
    fitted = time.perf_counter()
    wrong = float(np.mean(model.predict(test[0]) != test[1]))
    return {
        "error": 100 * wrong,
        "seconds": fitted - start,
        "each": (time.perf_counter() - fitted) / len(test[0]),
    }


def some(X: Sequence[Frames], chosen: Any) -> list[Frames]:
    return [X[i] for i in np.flatnonzero(chosen)]


class Split(NamedTuple):
    """Recordings and digits for training and for testing, and what is held out together within a fit."""

    name: str
    train: tuple[list[Frames], Any]
    test: tuple[list[Frames], Any]
    groups: Any


def splits_of(args: Any, part: str) -> list[Split]:
    """The official part, or speakers left out; groups are like the test part: recordings, or speakers."""
    data, X = digits(args.data), spoken(args.data)
    y, speaker, index = data["digit"], data["speaker"], data["index"]
    groups = np.arange(len(y)) if part == "official" else speaker
    left = range(args.first, args.speakers)
    tests = {"official": index < 5} if part == "official" else {str(s): speaker == s for s in left}
    thinned = index % args.every == args.every - 1
    return [
        Split(
            name, (some(X, ~test & thinned), y[~test & thinned]), (some(X, test), y[test]), groups[~test & thinned]
        )
        for name, test in tests.items()
    ]


def on_splits(
    args: Any, results: Results, part: str, measure: Callable[[Any, Split], Any], chosen: Any, key: str = ""
) -> Iterator[tuple[str, list[Any], dict[str, float]]]:
    """Names of the chosen models, None: all, with what is measured on each split, and the means."""
    splits = splits_of(args, part)
    for name, new in models(splits[0].train[0][0].shape[1], args.centers).items():
        if chosen and name not in chosen:
            continue
        found = [
            results.get(
                f"{key}{part} {split.name} {name} {args.every} {args.centers}",
                lambda split=split, new=new: measure(new(), split),
            )
            for split in splits
        ]
        yield name, found, {what: float(np.mean([each[what] for each in found])) for what in found[0]}


def isolated(args: Any, results: Results, part: str) -> list[list[Any]]:
    """Errors of single digits, of the official part or of speakers left out."""
    rows = []
    measure = lambda model, split: measured(model, split.train, split.test, split.groups)  # noqa: E731
    for name, found, mean in on_splits(args, results, part, measure, args.models):
        errors = " ".join(f"{each['error']:.1f}" for each in found) if len(found) > 1 else None
        rows.append([name, mean["error"], errors, f"{mean['seconds']:.0f}", f"{1000 * mean['each']:.0f}"])
    return rows


def sure(model: Any, split: Split) -> dict[str, float]:
    """How sure probabilities of words are, with a fifth of the training recordings held out for their slope."""
    model.set_params(held_out=0.2).fit(*split.train, groups=split.groups)
    X, y = split.test
    log_p, place = model.predict_log_proba(X), np.searchsorted(model.classes_, y)
    return {
        "right": 100 * float(np.mean(log_p.argmax(axis=1) == place)),
        "sure": 100 * float(np.exp(log_p.max(axis=1)).mean()),
        "loss": -float(log_p[np.arange(len(y)), place].mean()),
        "slope": model.slope_,
    }


def probabilities(args: Any, results: Results) -> list[list[Any]]:
    """Probabilities of single digits, on the official part and on speakers left out."""
    chosen, rows = args.models or ("mixtures 4", "all states"), []
    for part in ("official", "speakers"):
        for name, _, mean in on_splits(args, results, part, sure, chosen, "probabilities "):
            rows.append([f"{name}, {part}", mean["right"], mean["sure"], mean["loss"], f"{mean['slope']:.2g}"])
    return rows


def japanese(args: Any, results: Results) -> list[list[Any]]:
    """Errors of nine speakers by two vowels."""
    X, y, n = vowels(args.data)
    rows = []
    for name, new in models(X[0].shape[1], args.centers).items():
        if args.models and name not in args.models:
            continue
        compute = lambda new=new: measured(new(), (X[:n], y[:n]), (X[n:], y[n:]))  # noqa: E731
        found = results.get(f"vowels {name} {args.centers}", compute)
        rows.append([name, found["error"], None, f"{found['seconds']:.0f}", f"{1000 * found['each']:.0f}"])
    return rows


def noisy(rng: np.random.Generator, signal: Frames, level: float) -> Frames:
    return signal + level * rng.normal(size=len(signal))


def joined(rng: np.random.Generator, signals: Sequence[Frames], level: float) -> Frames:
    """Recordings with pauses between them and around, and noise over all."""
    parts = [np.zeros(int(8000 * rng.uniform(*PAUSES)))]
    for signal in signals:
        parts += [signal, np.zeros(int(8000 * rng.uniform(*PAUSES)))]
    return noisy(rng, np.concatenate(parts), level)


@cache
def strings_of(folder: Path, s: int, seed: int) -> tuple[list[Frames], list[list[str]]]:
    """Strings of 3 to 7 digits of a speaker, standardized together, and their digits."""
    data, rng = digits(folder), np.random.default_rng(seed)
    own = np.flatnonzero(data["speaker"] == s)
    level = loudness(data, own)
    chosen = [rng.choice(own, rng.integers(3, 8)) for _ in range(N_STRINGS)]
    sounds = [speech_frames(joined(rng, [data["signal"][i] for i in c], level), 8000) for c in chosen]
    return standardize(sounds, np.zeros(N_STRINGS)), [[str(data["digit"][i]) for i in c] for c in chosen]


def loudness(data: dict[str, Any], own: Any) -> float:
    """The level of noise for recordings: some decibels below their mean power."""
    power = float(np.mean(np.concatenate([data["signal"][i] for i in own]) ** 2))
    return float(np.sqrt(power * 10.0 ** (-NOISE / 10.0)))


@cache
def training_of(folder: Path, s: int, every: int) -> tuple[list[Frames], list[str]]:
    """Noisy recordings of a speaker with a pause before and after, cut into the digit and the pauses."""
    data, rng = digits(folder), np.random.default_rng(s)
    own = np.flatnonzero((data["speaker"] == s) & (data["index"] % every == every - 1))
    level, frames, labels = loudness(data, own), [], []
    for i in own:
        around = np.zeros(1200)
        X = speech_frames(noisy(rng, np.concatenate([around, data["signal"][i], around]), level), 8000)
        frames += [X[13:-13], X[1:12], X[-12:-1]]
        labels += [str(data["digit"][i]), "pause", "pause"]
    return standardize(frames, np.zeros(len(frames))), labels


def connected(args: Any, results: Results) -> list[list[Any]]:
    """Word accuracy of connected digits of speakers left out."""
    rows = []
    for name, new in models(39, args.centers, {"pause": 1}).items():
        if name not in (args.models or ("mixtures 4", "mixtures 8", "all states", "all states, no context")):
            continue
        found = []
        for s in range(args.first, args.speakers):
            compute = lambda s=s, new=new: strings_tested(args.data, s, new(), args.every)  # noqa: E731
            found.append(results.get(f"strings {s} {name} {args.every} {args.centers}", compute))
        counts = [
            sum(each[key] for each in found) for key in ("words", "substitutions", "deletions", "insertions")
        ]
        rows.append([name, 100 * (1 - sum(counts[1:]) / counts[0]), *counts])
    return rows


def strings_tested(folder: Path, s: int, model: Any, every: int) -> dict[str, float]:
    """Counts of errors; the insertion penalty is the best one for strings of another speaker whom a model without
    both of them has not heard.
    """
    others = [t for t in range(6) if t != s]
    heard = fitted(folder, others[1:], clone(model), every)
    tuning = strings_of(folder, others[0], 100)
    best = max(PENALTIES, key=lambda penalty: string_errors(heard, *tuning, penalty).accuracy)
    found = string_errors(fitted(folder, others, model, every), *strings_of(folder, s, s), best)
    return vars(found) | {"penalty": best}


def fitted(folder: Path, speakers: Sequence[int], model: Any, every: int) -> Any:
    """A model of digits and pauses of some speakers."""
    parts = [training_of(folder, t, every) for t in speakers]
    groups = np.repeat(speakers, [len(labels) for _, labels in parts])
    return model.fit([x for X, _ in parts for x in X], [y for _, labels in parts for y in labels], groups=groups)


def string_errors(model: Any, X: Sequence[Frames], said: Sequence[Sequence[str]], penalty: float) -> Any:
    """Errors of strings in which digits and pauses follow each other in any order, and end with either."""
    words = [*"0123456789", "pause"]
    grammar = dict.fromkeys([None, *words], words)
    heard = [model.decode(x, grammar, insertion_penalty=penalty, silence="pause") for x in X]
    return word_errors(said, heard)


def repeated(folder: Path, n: int) -> Iterator[tuple[Frames, int]]:
    """Training recordings of the official part and their digits, again and again with new noise: n frames."""
    X, data, rng = spoken(folder), digits(folder), np.random.default_rng(0)
    known = np.flatnonzero(data["index"] >= 5)
    while n > 0:
        for i in rng.permutation(known):
            if n > 0:
                yield X[i][:n] + REPEATED * rng.normal(size=X[i][:n].shape), int(data["digit"][i])
                n -= len(X[i])


def write_frames(folder: Path, n: int, path: Path) -> None:
    """A Parquet file with n frames, a row group for some recordings."""
    names = [f"f{j}" for j in range(spoken(folder)[0].shape[1])]
    schema = pa.schema([*((name, pa.float32()) for name in names), ("n", pa.int64()), ("digit", pa.int64())])
    recordings = enumerate(repeated(folder, n))
    with pq.ParquetWriter(path, schema) as writer:
        while block := list(islice(recordings, WRITTEN)):
            X, lengths = np.concatenate([x for _, (x, _) in block]), [len(x) for _, (x, _) in block]
            numbers, words = np.array([(i, digit) for i, (_, digit) in block]).repeat(lengths, axis=0).T
            writer.write_table(pa.table([*X.T.astype(np.float32), numbers, words], schema=schema))


def read_and_fit(folder: Path, path: Path, name: str, centers: int) -> dict[str, float]:
    """Seconds of reading and of the fit, the most memory of this process, and errors of the official test part."""
    bare, start = held("VmRSS"), time.perf_counter()
    X, y = read_sequences(path, "digit", sequence="n", file=path.with_suffix(".npy"))
    read, size = time.perf_counter(), sum(x.nbytes for x in X)
    model = models(X[0].shape[1], centers)[name]().fit(X, y)
    fitted, peak = time.perf_counter(), held("VmHWM")
    data = digits(folder)
    test = data["index"] < 5
    error = 100 * float(np.mean(model.predict(some(spoken(folder), test)) != data["digit"][test]))
    sizes = {"size": size, "peak": peak - bare}
    return {"read": read - start, "seconds": fitted - read, "error": error} | sizes


def many(args: Any, results: Results) -> list[list[Any]]:
    """Seconds, memory and errors of fits to many frames."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "frames.parquet"
        for name in args.models or ("mixtures 4", "all states, no context", "all states"):
            compute = lambda name=name: apart(args, path, name)  # noqa: E731
            found = results.get(f"frames {args.frames} {name} {args.centers}", compute)
            sizes = [f"{found[key] / 1e6:.0f}" for key in ("size", "peak")]
            rows.append([name, f"{found['read']:.0f}", f"{found['seconds']:.0f}", *sizes, found["error"]])
    return rows


def apart(args: Any, path: Path, name: str) -> dict[str, float]:
    """One fit in a process of its own; the file is written for the first of them."""
    if not path.exists():
        write_frames(args.data, args.frames, path)
    with ProcessPoolExecutor(1, get_context("spawn")) as process:
        return process.submit(read_and_fit, args.data, path, name, args.centers).result()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--parts", nargs="+", default=PARTS, choices=PARTS)
    parser.add_argument("--models", nargs="+")
    parser.add_argument("--speakers", type=int, default=6)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--centers", type=int, default=1000)
    parser.add_argument("--frames", type=int)
    parser.add_argument("--store", type=Path)
    args = parser.parse_args()
    results = Results(args.store)
    print(f"{heading()}hmmlearn {version('hmmlearn')}\n")
    if args.frames:
        columns = ["read s", "fit s", "MB of frames", "peak MB", "error %"]
        print(table(many(args, results), [f"{args.frames:,} frames", *columns]))
        return
    columns = ["error %", "by speaker", "fit s", "ms each"]
    for part in args.parts:
        if part == "strings":
            counts = ["accuracy %", "words", "substitutions", "deletions", "insertions"]
            print(table(connected(args, results), ["connected digits", *counts]), end="\n\n", flush=True)
        elif part == "probabilities":
            columns_of = ["right %", "sure %", "log-loss", "slope"]
            print(table(probabilities(args, results), ["probabilities", *columns_of]), end="\n\n", flush=True)
        else:
            rows = japanese(args, results) if part == "vowels" else isolated(args, results, part)
            print(table(rows, [part, *columns]), end="\n\n", flush=True)


if __name__ == "__main__":
    main()
