"""Estimators take collections of an engine, and their outputs for those of Dask are lazy."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from threadpoolctl import threadpool_limits

from mercer import (
    KernelFisherClassifier,
    KernelMachineClassifier,
    KernelRidgeRegressor,
    OnlineFisherClassifier,
    OrientedKernelPCA,
)
from mercer._linalg import blas_threads
from mercer.datasets import make_banana
from mercer.kernels import RBF

pytestmark = pytest.mark.timeout(240)

GRID = np.stack(np.meshgrid(np.linspace(-2, 2, 5), np.linspace(-2, 2, 5)), axis=-1).reshape(-1, 2)


@pytest.fixture(scope="module")
def banana():
    return make_banana(900, random_state=0)


@pytest.fixture
def arrays(banana):
    da = pytest.importorskip("dask.array")
    X, y = banana
    return da.from_array(X, chunks=(200, 2)), da.from_array(y, chunks=200)


@pytest.fixture
def frame(banana):
    dd, pd = pytest.importorskip("dask.dataframe"), pytest.importorskip("pandas")
    X, y = banana
    return dd.from_pandas(pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "label": y}), npartitions=4)


def test_arrays_of_dask_give_the_model_of_memory_and_lazy_outputs(banana, arrays):
    expected = KernelFisherClassifier(RBF(gamma=2.0), centers=GRID).fit(*banana)
    model = KernelFisherClassifier(RBF(gamma=2.0), centers=GRID).fit(*arrays)
    for method in ("predict", "predict_proba", "predict_log_proba", "decision_function", "transform"):
        lazy = getattr(model, method)(arrays[0])
        assert hasattr(lazy, "compute")
        assert_allclose(lazy.compute(), getattr(expected, method)(banana[0]), atol=1e-10)


def test_noise_is_measured_where_the_rows_are(banana, arrays):
    Z = 0.1 * banana[0][:200]
    model = OrientedKernelPCA(3, RBF(gamma=2.0), noise=[np.sinh, (Z, 0.5)], centers=GRID)
    expected = model.fit(banana[0]).transform(banana[0])
    there = model.set_params(noise=[np.sinh, (arrays[0][:200] * 0.1, 0.5)]).fit(arrays[0])
    assert_allclose(there.transform(arrays[0]).compute(), expected, atol=1e-9)


def test_online_models_keep_the_names_of_a_dask_frame(frame):
    model = OnlineFisherClassifier(RBF(gamma=2.0)).fit(frame, "label")
    assert list(model.feature_names_in_) == ["a", "b"]


def test_frames_of_dask_keep_their_names(banana, frame):
    model = KernelFisherClassifier(RBF(gamma=2.0), centers=GRID).fit(frame, "label")
    assert list(model.feature_names_in_) == ["a", "b"]
    labels = model.predict(frame[["a", "b"]]).compute()
    assert_array_equal(
        labels, KernelFisherClassifier(RBF(gamma=2.0), centers=GRID).fit(*banana).predict(banana[0])
    )


def test_regression_on_dask(banana, arrays):
    X, _ = banana
    model = KernelRidgeRegressor(RBF(gamma=2.0), alpha=0.1, centers=GRID).fit(arrays[0], arrays[0][:, 0])
    expected = KernelRidgeRegressor(RBF(gamma=2.0), alpha=0.1, centers=GRID).fit(X, X[:, 0])
    assert_allclose(model.predict(arrays[0]).compute(), expected.predict(X), atol=1e-9)


def test_a_machine_on_dask_is_that_of_memory(banana, arrays):
    machine = KernelMachineClassifier(RBF(gamma=2.0), loss="logistic", alpha=0.1, centers=GRID)
    expected = machine.fit(*banana).decision_function(banana[0])
    assert_allclose(machine.fit(*arrays).decision_function(arrays[0]).compute(), expected, atol=0.01)


def test_lazy_outputs_computed_in_threads_leave_no_limit_of_blas_threads_behind(arrays):
    model = KernelFisherClassifier(RBF(gamma=2.0), centers=GRID).fit(*arrays)
    lazy = model.decision_function(arrays[0].rechunk((20, 2)))
    with threadpool_limits(2, user_api="blas"):
        for _ in range(5):
            lazy.compute(scheduler="threads", num_workers=4)
        assert blas_threads() == 2
