"""Every estimator answers alike, whatever holds the rows to be predicted."""

from functools import cache

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import is_classifier

from mercer import (
    KernelFisherClassifier,
    KernelRidgeRegressor,
    OnlineFisherClassifier,
    OnlineKernelRegressor,
    PairwiseClassifier,
    SparseFisherClassifier,
    SparseKernelRegressor,
)
from mercer.datasets import make_waveform
from mercer.kernels import RBF, FromCallable
from mercer.rows._distinct import distinct_rows

GAMMA = 0.05
NAMES = [f"x{j}" for j in range(21)]
N_FITTED = 90


def estimators(kernel):
    """Every estimator, by its name; those with two ways to fit have two."""
    few = {"alpha": 1.0, "centers": 15, "random_state": 0}
    sparse = {"alpha": 1.0, "max_centers": 10, "random_state": 0}
    return {
        "KernelFisherClassifier": KernelFisherClassifier(kernel, alpha=1.0),
        "KernelFisherClassifier, centers": KernelFisherClassifier(kernel, **few),
        "KernelRidgeRegressor": KernelRidgeRegressor(kernel, alpha=1.0),
        "KernelRidgeRegressor, centers": KernelRidgeRegressor(kernel, **few),
        "SparseFisherClassifier": SparseFisherClassifier(kernel, **sparse),
        "SparseKernelRegressor": SparseKernelRegressor(kernel, **sparse),
        "OnlineFisherClassifier": OnlineFisherClassifier(kernel, max_centers=15),
        "OnlineKernelRegressor": OnlineKernelRegressor(kernel, max_centers=15),
        "PairwiseClassifier": PairwiseClassifier(KernelFisherClassifier(kernel, **few)),
    }


def blocks_of(X):
    """Blocks of seven rows, the last of fewer."""
    return [(X[start : start + 7],) for start in range(0, len(X), 7)]


def memory_map(X, folder):
    np.save(folder / "rows.npy", X)
    return np.load(folder / "rows.npy", mmap_mode="r")


def parquet(X, folder):
    pytest.importorskip("pyarrow")
    frame(X, folder).to_parquet(folder / "rows.parquet")
    return folder / "rows.parquet"


def frame(X, folder):
    return pd.DataFrame(X, columns=NAMES)


def array_of_dask(X, folder):
    return pytest.importorskip("dask.array").from_array(X, chunks=(8, X.shape[1]))


def frame_of_dask(X, folder):
    return pytest.importorskip("dask.dataframe").from_pandas(frame(X, folder), npartitions=3)


# What may hold rows, made of an array and a folder to write to.
SOURCES = {
    "array": lambda X, folder: X.copy(),
    "array of float32": lambda X, folder: X.astype(np.float32),
    "frame": frame,
    "CSR matrix": lambda X, folder: scipy.sparse.csr_matrix(X),
    "CSR array": lambda X, folder: scipy.sparse.csr_array(X),
    "list of lists": lambda X, folder: X.tolist(),
    "objects": lambda X, folder: [tuple(row) for row in X.tolist()],
    "memory map": memory_map,
    "Parquet file": parquet,
    "function that returns blocks": lambda X, folder: lambda: iter(blocks_of(X)),
    "list of tuples": lambda X, folder: blocks_of(X),
    "array of Dask": array_of_dask,
    "frame of Dask": frame_of_dask,
}
# These know the names of their columns, and so must the model.
NAMED = {"frame", "Parquet file", "frame of Dask"}


def on_objects(A, B):
    """exp(-gamma |a - b|²) of rows that are tuples of numbers."""
    return RBF(gamma=GAMMA).block(np.array(list(A)), np.array(list(B)))


@cache
def rows():
    """Rows to fit and rows to predict, exact in float32, and labels; the first feature is a target, too.

    Rows to fit are in the order in which an array of them is compared: objects are compared as they come.
    """
    X, y = make_waveform(N_FITTED + 30, random_state=0)
    X = np.round(64.0 * X) / 64.0
    order = distinct_rows(X[:N_FITTED]).first
    return X[order], X[N_FITTED:], y[order]


def fitted(name, source):
    """The estimator, fitted to an array, to a frame if the source has names, or to a list of objects."""
    X, _, y = rows()
    objects = source == "objects"
    model = estimators(FromCallable(on_objects, psd=True) if objects else RBF(gamma=GAMMA))[name]
    targets = y if is_classifier(model) else X[:, 0]
    if source in NAMED:
        return model.fit(frame(X, None), targets)
    return model.fit([tuple(row) for row in X.tolist()] if objects else X, targets)


fitted_once = cache(fitted)


def methods_of(model):
    """All public methods from rows to answers."""
    return [
        name for name in dir(model) if name.startswith("predict") or name in ("decision_function", "transform")
    ]


def tolerance(source):
    """The fits are the same to rounding; float32 has kernel values with 24 bits, which coefficients enlarge."""
    return 1e-3 if source == "array of float32" else 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("name", estimators(None))
def test_answers_do_not_depend_on_what_holds_the_rows(name, source, tmp_path):
    _, Z, _ = rows()
    plain, model = (
        fitted_once(name, "array"),
        fitted_once(name, source if source in NAMED | {"objects"} else "array"),
    )
    methods = methods_of(plain)
    assert set(methods) == set(methods_of(model))
    assert len(methods) > (3 if is_classifier(plain) else 0)
    for method in methods:
        found = np.asarray(getattr(model, method)(SOURCES[source](Z, tmp_path)))
        expected = getattr(plain, method)(Z)
        assert found.shape == expected.shape
        if expected.dtype.kind == "f":
            assert_allclose(found, expected, rtol=tolerance(source), atol=tolerance(source), err_msg=method)
        else:
            assert_array_equal(found, expected, err_msg=method)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", estimators(None))
def test_blocks_with_other_columns_are_refused(name):
    _, Z, _ = rows()
    model, other = fitted_once(name, "frame"), frame(Z, None)[NAMES[::-1]]
    with pytest.raises(ValueError, match="the same columns in the same order"):
        model.predict([(other[:7],), (other[7:],)])
