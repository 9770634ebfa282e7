"""Folds for the tests of engines, in a module that the workers can import."""

import os
import signal
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Sums:
    """What the moments of a fit are made of: K'WK, K'WY, K'w and the number of rows."""

    G: np.ndarray
    C: np.ndarray
    s: np.ndarray
    n_rows: int

    def __add__(self, other):
        return Sums(self.G + other.G, self.C + other.C, self.s + other.s, self.n_rows + other.n_rows)


@dataclass(frozen=True)
class SumsOf:
    """The fold block -> Sums."""

    kernel: Any
    centers: np.ndarray

    def __call__(self, block):
        K = self.kernel.block(block.X, self.centers)
        w = np.ones(len(K)) if block.weight is None else block.weight
        Y = np.eye(3)[block.y.astype(int)]
        return Sums(K.T @ (w[:, None] * K), K.T @ (w[:, None] * Y), w @ K, len(K))


def products(block):
    """Sums of products of features."""
    return block.X.T @ block.X


@dataclass(frozen=True)
class Killing:
    """A fold in whose process the signal 9 ends the first ``times`` tasks that reach row ``row``; no more.

    Every death leaves a file, so that who comes after it knows how many there were.
    """

    fold: Any
    folder: Path
    row: int
    times: int

    def __call__(self, block):
        if block.first <= self.row < block.first + block.n_rows:
            for k in range(self.times):
                file = self.folder / f"death-{k}"
                if not file.exists():
                    file.write_text(str(os.getpid()))
                    os.kill(os.getpid(), signal.SIGKILL)
        return self.fold(block)


@dataclass(frozen=True)
class UnreadableOnce:
    """A fold that cannot read what it needs, the first time one is called."""

    folder: Path

    def __call__(self, block):
        file = self.folder / "tried"
        if not file.exists():
            file.touch()
            raise OSError("the disk is away for a moment")
        return block.n_rows


@dataclass(frozen=True)
class Slow:
    """A fold that says that it began and takes its time."""

    folder: Path
    seconds: float

    def __call__(self, block):
        (self.folder / f"begun-{block.first}").touch()
        time.sleep(self.seconds)
        return block.n_rows


def labels(block):
    return Counter(dict(zip(*(part.tolist() for part in np.unique(block.y, return_counts=True)))))


def firsts(block):
    return [block.first]


def rows_of(block):
    return block.n_rows


def blas_threads(block):
    from threadpoolctl import threadpool_info

    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


def largest_memory(block):
    """Most bytes this process has held so far, in a list."""
    import resource

    return [resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024]


def refused(block):
    raise ValueError("no such rows")


def disturbed(X):
    """X and noise that is other noise in every pass."""
    return X + 1e-9 * np.random.default_rng().normal(size=X.shape)


def fewer_each_time(X, folder):
    """(X,) with a row less for every call before, each of which leaves a file."""
    calls = len(list(folder.iterdir()))
    (folder / f"call-{calls}").touch()
    return (X[: len(X) - calls],)
