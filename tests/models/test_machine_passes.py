"""Machines with smooth losses in passes over rows: the same fits as in memory, from any source."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.metrics import log_loss

from mercer import KernelMachineClassifier, KernelMachineRegressor
from mercer.centers import Uniform
from mercer.datasets import make_ringnorm
from mercer.errors import NumericalWarning
from mercer.kernels import RBF

KERNEL = RBF(gamma=0.05)


@pytest.fixture(scope="module")
def rows():
    """Features, two classes, three classes, real targets with outliers, and counts."""
    rng = np.random.default_rng(0)
    X, y = make_ringnorm(2500, random_state=0)
    three = np.where(X[:, 0] > 1.0, 7, y).astype(int)
    real = np.sin(X[:, 0]) + 0.3 * rng.standard_t(2, 2500)
    return X, y, three, real, rng.integers(1, 4, 2500).astype(float)


@pytest.fixture
def in_passes(monkeypatch):
    """Passes over all rows, with a sample that is smaller."""
    monkeypatch.setattr("mercer._estimators.programs.machine.LOO_ROWS", 600)


def outputs(model, X):
    return model._outputs(X)


@pytest.mark.slow
@pytest.mark.parametrize("penalty", ["rkhs", "coef"])
@pytest.mark.parametrize(
    ("kind", "loss", "target"),
    [
        (KernelMachineClassifier, "logistic", 1),
        (KernelMachineClassifier, "logistic", 2),
        (KernelMachineClassifier, "huber", 1),
        (KernelMachineClassifier, "squared_hinge", 1),
        (KernelMachineClassifier, "squared", 2),
        (KernelMachineRegressor, "huber", 3),
    ],
)
def test_passes_find_the_fit_in_memory(rows, monkeypatch, kind, loss, target, penalty):
    X, y, weight = rows[0], rows[target], rows[4]
    model = kind(KERNEL, loss=loss, penalty=penalty, alpha=0.5, centers=X[:80], delta=0.5, weights="counts")
    with monkeypatch.context() as patch:
        patch.setattr("mercer._fitting.run.MOST_IN_PROGRAM", len(X))
        memory = model.fit(X, y, weight)
    expected, status = outputs(memory, X), memory.report_.status
    assert "passes" not in status
    monkeypatch.setattr("mercer._estimators.programs.machine.LOO_ROWS", 600)
    model.fit(X, y, weight)
    assert "passes for moments" in model.report_.status
    assert model.report_.n_rows == 2500
    assert_allclose(outputs(model, X), expected, atol=2e-4 * np.ptp(expected))
    assert model.gap_ <= 1e-6


@pytest.mark.slow
def test_a_weight_of_two_is_two_equal_rows(rows, in_passes):
    X, y, _, _, weight = rows
    model = KernelMachineClassifier(KERNEL, alpha=0.5, centers=X[:80], weights="counts")
    weighted = outputs(model.fit(X, y, weight), X)
    again = np.repeat(np.arange(len(X)), weight.astype(int))
    assert_allclose(outputs(model.fit(X[again], y[again]), X), weighted, atol=1e-4 * np.ptp(weighted))


@pytest.mark.slow
def test_left_out_rows_are_those_of_refitting(rows, in_passes):
    X, y = rows[0], rows[1]
    model = KernelMachineClassifier(KERNEL, alpha=0.5, centers=X[:80], random_state=0).fit(X, y)
    assert len(model.loo_index_) == 600
    fitted = outputs(model, X[model.loo_index_])
    # Rows without which f changes most.
    for place in np.argsort(np.abs(model.loo_outputs_ - fitted)[:, 0])[-3:]:
        i = model.loo_index_[place]
        rest = np.arange(len(X)) != i
        again = outputs(clone(model).fit(X[rest], y[rest]), X[i : i + 1])
        assert_allclose(model.loo_outputs_[place] - fitted[place], again[0] - fitted[place], rtol=0.2)


@pytest.mark.slow
def test_alpha_and_kernel_are_chosen(rows, in_passes):
    X, y = rows[0], rows[1]
    model = KernelMachineClassifier(random_state=0).fit(X, y)
    assert model.tuning_paths_[-1].alphas.size > 5
    new, truth = make_ringnorm(2000, random_state=1)
    assert model.score(new, truth) > 0.97
    assert model.predict_proba(new).shape == (2000, 2)
    assert model.novelty(new + 100.0).min() > model.novelty(new).max()


def test_the_width_of_huber_follows_from_the_noise(rows, in_passes):
    X, real = rows[0][:, :2], rows[3]
    model = KernelMachineRegressor(RBF(gamma=0.3), random_state=0).fit(X, real)
    assert "width" in str(model.report_)
    truth = np.sin(X[:, 0])
    assert np.mean((model.predict(X) - truth) ** 2) < 0.1 * np.var(truth)


@pytest.mark.slow
def test_parquet_blocks_and_memory_give_one_model(rows, in_passes, tmp_path):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    X, y = rows[0], rows[1]
    names = [f"x{j}" for j in range(X.shape[1])]
    pandas.DataFrame(X, columns=names).assign(label=y).to_parquet(tmp_path / "rows.parquet")
    model = KernelMachineClassifier(KERNEL, centers=60, random_state=0)
    expected = outputs(model.fit(X, y), X)
    cut = np.array_split(np.arange(len(X)), 7)
    blocks = outputs(model.fit([(X[part], y[part]) for part in cut]), X)
    model.fit(tmp_path / "rows.parquet", "label")
    assert list(model.feature_names_in_) == names
    assert_allclose(blocks, expected, atol=1e-6 * np.ptp(expected))
    assert_allclose(model._expansion()(X), expected, atol=1e-6 * np.ptp(expected))


@pytest.mark.slow
def test_single_and_double_precision_agree(rows, in_passes):
    X, y = rows[0], rows[1]
    model = KernelMachineClassifier(KERNEL, alpha=0.5, centers=X[:80])
    double = outputs(model.fit(X, y), X)
    single = outputs(model.fit(X.astype(np.float32), y), X.astype(np.float32))
    assert_allclose(single, double, atol=1e-3 * np.ptp(double))


@pytest.mark.parametrize(
    ("settings", "what"),
    [
        ({"loss": "hinge"}, "loss='hinge', which is not smooth, needs the rows in memory"),
        ({"penalty": "l1"}, "penalty='l1' needs the rows in memory"),
        ({"centers": "all"}, 'centers="all" needs the rows in memory'),
    ],
)
def test_what_needs_memory_says_so(rows, settings, what):
    X, y = rows[0], rows[1]
    with pytest.raises(ValueError, match=what):
        KernelMachineClassifier(KERNEL, **settings).fit([(X, y)])


def test_rows_that_change_between_passes_raise(rows, in_passes):
    X, y = rows[0], rows[1]
    rng = np.random.default_rng(0)

    def stream():
        yield X + 1e-3 * rng.normal(size=X.shape), y

    with pytest.raises(ValueError, match="must find the same rows"):
        KernelMachineClassifier(KERNEL, centers=20).fit(stream)


@pytest.mark.slow
def test_logistic_losses_stay_in_memory_if_centers_are_not_far_fewer_than_rows(in_passes):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1200, 5))
    y = X[:, 0] * X[:, 1] + rng.normal(size=1200) > 0.0
    new = rng.normal(size=(4000, 5))
    truth = new[:, 0] * new[:, 1] + rng.normal(size=4000) > 0.0
    model = KernelMachineClassifier(RBF(gamma=0.3), centers=Uniform(400), random_state=0).fit(X, y)
    assert "duality gap" in model.report_.status
    assert len(model.loo_index_) == 1200
    assert abs(log_loss(y, model.loo_proba_) - log_loss(truth, model.predict_proba(new))) < 0.05
    blocks = KernelMachineClassifier(RBF(gamma=0.3), centers=Uniform(400), alpha=0.5, random_state=0).fit([(X, y)])
    assert "passes" in blocks.report_.status


@pytest.mark.slow
def test_other_losses_of_many_rows_stay_in_memory(rows, in_passes):
    X, y = rows[0][:1200], rows[1][:1200]
    model = KernelMachineClassifier(KERNEL, loss="hinge", alpha=1.0, centers=X[:40]).fit(X, y)
    assert "duality gap" in model.report_.status
    assert_array_equal(model.classes_, np.unique(y))


@pytest.mark.slow
def test_rows_in_single_precision_are_solved():
    """Centers that nearly depend on each other: products in float32 would end the steps too early."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2100, 3))
    y = np.sin(2.0 * X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=2100) > 0.0
    model = KernelMachineClassifier(RBF(gamma=0.3), centers=50, random_state=0).fit(X.astype(np.float32), y)
    assert model.report_.status.startswith("solved")


@pytest.mark.slow
def test_a_machine_that_is_not_solved_warns(rows, in_passes, monkeypatch):
    monkeypatch.setattr("mercer._fitting.programs.in_passes.MOST_STEPS", 1)
    monkeypatch.setattr("mercer._fitting.programs.in_passes.LAST_STEP_GAIN", 1e-30)
    with pytest.warns(NumericalWarning, match="another one would still lower the loss"):
        KernelMachineClassifier(KERNEL, alpha=0.5, centers=20).fit(rows[0], rows[1])


def test_kernel_values_need_memory(rows):
    with pytest.raises(ValueError, match="a precomputed kernel needs the rows in memory"):
        KernelMachineClassifier("precomputed").fit([(rows[0], rows[1])])
