"""Readers of benchmark archives used in the literature, from a given folder."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

Split = tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]

IDA_NAMES = (
    "banana",
    "breast-cancer",
    "diabetis",
    "flare-solar",
    "german",
    "heart",
    "image",
    "ringnorm",
    "splice",
    "thyroid",
    "titanic",
    "twonorm",
    "waveform",
)

# The usual training set of data distributed as one table: its first rows.
_TRAIN_ROWS = {"optdigits": 3823, "pendigits": 7494, "satimage": 4435, "letter": 16000}

DIGITS_NAMES = ("usps", "mnist", *_TRAIN_ROWS)

_IDA_ARRAYS = {
    "X": "(n, d)",
    "y": "(n,) of -1 and +1",
    "train": "(p, n_train) row numbers",
    "test": "(p, n_test) row numbers",
}
_TABLE_ARRAYS = {"X": "(n, d), training rows first", "y": "(n,)"}
_SPLIT_ARRAYS = {
    "X_train": "(n_train, d)",
    "y_train": "(n_train,)",
    "X_test": "(n_test, d)",
    "y_test": "(n_test,)",
}
_USPS_ARRAYS = {
    "X_train_milli": "(7291, 256), thousandths",
    "y_train": "(7291,)",
    "X_test_milli": "(2007, 256), thousandths",
    "y_test": "(2007,)",
}


@dataclass(frozen=True, eq=False)
class Partitions:
    """One data set and its fixed partitions into training and test rows.

    Parameters
    ----------
    X : array (n, d)
    y : array (n,) of -1 and +1
    train : array (p, n_train)
        Row numbers of the training part of each of the p partitions.
    test : array (p, n_test)
        Row numbers of the test parts.

    Notes
    -----
    ``len(partitions)`` is p; iteration yields ``(X_train, y_train, X_test, y_test)``.
    """

    X: NDArray[Any]
    y: NDArray[Any]
    train: NDArray[Any]
    test: NDArray[Any]

    def __len__(self) -> int:
        """Return the number of partitions."""
        return len(self.train)

    def __iter__(self) -> Iterator[Split]:
        """Yield the partitions in their original order."""
        for k in range(len(self)):
            yield self.split(k)

    def split(self, k: int) -> Split:
        """Return X_train, y_train, X_test, y_test of the partition number k, counted from 0."""
        train, test = self.train[k], self.test[k]
        return self.X[train], self.y[train], self.X[test], self.y[test]


def read_ida(folder: str | PathLike[str], name: str) -> Partitions:
    """Read one of the 13 two-class problems of the IDA benchmark collection.

    Parameters
    ----------
    folder : path
        The folder that holds ``<name>.npz``.
    name : str
        One of `IDA_NAMES` (the collection writes ``diabetis``).

    Returns
    -------
    Partitions
        X is float64, y is -1 or +1.

    Notes
    -----
    The archive must contain the arrays ``X`` (n, d), ``y`` (n,) of -1 and +1, ``train`` (p, n_train) and
    ``test`` (p, n_test), the last two with row numbers counted from 0. The collection, by G. Rätsch,
    fixes 100 partitions of each set (20 of image and splice); an archive may contain fewer.

    References
    ----------
    Rätsch, Onoda, Müller (2001), "Soft margins for AdaBoost", Machine Learning 42, 287-320.
    """
    _check_name(name, IDA_NAMES)
    arrays = _read_archive(Path(folder) / f"{name}.npz", _IDA_ARRAYS)
    return Partitions(
        X=arrays["X"].astype(np.float64),
        y=arrays["y"].astype(np.int64),
        train=arrays["train"].astype(np.intp),
        test=arrays["test"].astype(np.intp),
    )


def read_digits(folder: str | PathLike[str], name: str, *, dtype: DTypeLike = np.float64) -> Split:
    """Read a problem with many classes and its usual training and test rows.

    Parameters
    ----------
    folder : path
        The folder that holds ``<name>.npz``.
    name : str
        One of `DIGITS_NAMES`: usps, mnist, optdigits, pendigits, satimage, letter.
    dtype : dtype
        Type of X.

    Returns
    -------
    X_train : array (n_train, d)
    y_train : array (n_train,) of classes 0, 1, ...
    X_test : array (n_test, d)
    y_test : array (n_test,)

    Notes
    -----
    The archives must contain

    * usps: ``X_train_milli``, ``y_train``, ``X_test_milli``, ``y_test``, the images in thousandths as
      integers; they are returned in [-1, 1] (7291 and 2007 rows of 16 x 16);
    * mnist: ``X_train``, ``y_train``, ``X_test``, ``y_test`` (60000 and 10000 rows of 28 x 28);
    * the others: ``X``, ``y`` in the order of the UCI repository, where the first 3823 rows (optdigits),
      7494 (pendigits), 4435 (satimage) or 16000 (letter) are for training.

    Values are not scaled otherwise. USPS and MNIST are public collections of scanned digits, the others
    come from the UCI repository and Statlog.
    """
    _check_name(name, DIGITS_NAMES)
    X_train, y_train, X_test, y_test = _customary_split(Path(folder) / f"{name}.npz", name)
    return X_train.astype(dtype), y_train.astype(np.int64), X_test.astype(dtype), y_test.astype(np.int64)


def _customary_split(path: Path, name: str) -> Split:
    """Read the archive of one problem and split its rows as in the literature."""
    if name == "usps":
        X_train, y_train, X_test, y_test = _read_archive(path, _USPS_ARRAYS).values()
        return X_train / 1000, y_train, X_test / 1000, y_test
    if name in _TRAIN_ROWS:
        X, y = _read_archive(path, _TABLE_ARRAYS).values()
        n = _TRAIN_ROWS[name]
        return X[:n], y[:n], X[n:], y[n:]
    X_train, y_train, X_test, y_test = _read_archive(path, _SPLIT_ARRAYS).values()
    return X_train, y_train, X_test, y_test


def _read_archive(path: Path, expected: Mapping[str, str]) -> dict[str, NDArray[Any]]:
    """Load the expected arrays of an npz archive, in the order of ``expected``."""
    need = "; ".join(f"{name} {shape}" for name, shape in expected.items())
    if not path.is_file():
        raise FileNotFoundError(f"{path} does not exist; it should be an npz archive with the arrays {need}")
    with np.load(path, allow_pickle=False) as archive:
        missing = [name for name in expected if name not in archive.files]
        if missing:
            raise ValueError(f"{path} lacks the arrays {', '.join(missing)}; it should contain {need}")
        return {name: archive[name] for name in expected}


def _check_name(name: str, names: tuple[str, ...]) -> None:
    """Reject an unknown data set."""
    if name not in names:
        raise ValueError(f"name={name!r} is not a data set; it must be one of {', '.join(names)}")
