"""What a report says: where the number of centers comes from, what was compared, and by what it was chosen."""

import re

import numpy as np
import pytest

import mercer._fitting.memory as memory
import mercer._fitting.run as run
from mercer import KernelFisherClassifier, KernelRidgeRegressor, SparseFisherClassifier
from mercer._fitting.memory import SearchStage
from mercer.datasets import make_ringnorm
from mercer.kernels import RBF, Laplacian, Polynomial


@pytest.fixture
def few_rungs(monkeypatch):
    """Fewer centers than rows are tried from 300 rows on, with few rows and centers in every stage."""
    monkeypatch.setattr(run, "EVERY_ROW", 300)
    monkeypatch.setattr(
        memory, "SEARCH_STAGES", (SearchStage(400, 60), SearchStage(600, 120), SearchStage(800, 240))
    )


@pytest.fixture
def easy():
    """Classes for which few centers are enough."""
    return make_ringnorm(1500, random_state=0)


@pytest.fixture
def checkerboard(rng):
    """Classes for which no number of centers is enough."""
    X = rng.uniform(size=(700, 2))
    return X, (10 * X).astype(int).sum(axis=1) % 2


@pytest.mark.slow
@pytest.mark.usefixtures("few_rungs")
def test_no_limit_is_stated_where_all_rows_could_be_centers(easy):
    model = KernelFisherClassifier(random_state=0).fit(*easy)
    assert len(model.X_fit_) < 1500
    assert model.report_.centers.endswith(" on 1500 rows, as many as matter in leave-one-out")


@pytest.mark.slow
@pytest.mark.usefixtures("few_rungs")
def test_the_limit_is_stated_where_there_is_one(easy):
    model = KernelFisherClassifier(random_state=0).fit([easy])
    # Half of the rows of a stream.
    assert model.report_.centers.endswith(" on 1500 rows, as many as matter in leave-one-out, of at most 750")


@pytest.mark.slow
@pytest.mark.usefixtures("few_rungs")
def test_centers_at_the_limit_are_distinguished_from_centers_that_were_requested(checkerboard):
    auto = KernelFisherClassifier(random_state=0).fit([checkerboard]).report_
    assert auto.centers.endswith(" on 700 rows, at the limit of 350: more might be better")
    requested = KernelFisherClassifier(centers=350, random_state=0).fit([checkerboard]).report_
    assert requested.centers.endswith(" on 700 rows")


def test_kernels_that_differ_in_one_gamma_are_widths(two_classes):
    for kernel in (RBF(), 2.0 * Laplacian(), RBF() + Polynomial(degree=2, gamma=1.0)):
        report = KernelFisherClassifier(kernel, random_state=0).fit(*two_classes).report_
        assert report.searched.startswith("15 widths by fits with 60 centers to 60 rows, then ")


def test_kernels_that_differ_in_two_parameters_are_kernels(two_classes):
    report = KernelFisherClassifier(RBF() + Laplacian(), random_state=0).fit(*two_classes).report_
    assert re.match(r"\d+ kernels by fits with 60 centers to 60 rows, then ", report.searched)


def test_a_sparse_report_speaks_of_widths_too(two_classes):
    report = SparseFisherClassifier(random_state=0).fit(*two_classes).report_
    assert report.searched.startswith("15 widths and ")


@pytest.mark.filterwarnings("ignore::mercer.errors.NumericalWarning")
def test_one_center_and_one_row_are_singular():
    report = KernelFisherClassifier("rbf", random_state=0).fit(np.ones((8, 2)), [0, 1] * 4).report_
    assert report.searched == "15 widths by fits with 1 center to 1 row, then 35 alphas by fits to 1 row"


def test_the_squared_criterion_of_a_regression_is_one_minus_r_squared(curve):
    model = KernelRidgeRegressor(random_state=0).fit(*curve)
    np.testing.assert_allclose(model.report_.criterion_value, 1.0 - model.loo_score_, rtol=1e-9)
    said = f"squared {model.report_.criterion_value:.4g} of the variance (1 - R²), holding out each row"
    assert said in str(model.report_)


def test_only_the_squared_criterion_is_a_share_of_the_variance(two_classes):
    squared = KernelFisherClassifier(criterion="squared", random_state=0).fit(*two_classes)
    assert "of the variance (1 - R²), holding out" in str(squared.report_)
    assert "variance" not in str(KernelFisherClassifier(random_state=0).fit(*two_classes).report_)
