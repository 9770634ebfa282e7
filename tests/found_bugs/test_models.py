"""Sentences about the estimators that are not true yet."""

import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC

from mercer import KernelFisherClassifier, KernelRidgeRegressor
from mercer.errors import ScaleWarning
from mercer.kernels import RBF, FromCallable, Sigmoid, pairwise
from mercer.rows import distinct_rows
from mercer.scores import THRESHOLDS, calibrate, threshold_at

FIXED = {"kernel": RBF(gamma=0.5), "alpha": 1.0}


@pytest.fixture
def X(rng, frozen):
    return frozen(rng.normal(size=(60, 2)) + (np.arange(60) % 2)[:, None])


@pytest.fixture
def y(frozen):
    return frozen(np.arange(60) % 2)


def shared_letters(a, b):
    return float(len(set(a) & set(b)))


@pytest.mark.parametrize("threshold", ["bayes", *THRESHOLDS])
def test_isotonic_probabilities_are_numbers_far_away(X, y, threshold):
    model = KernelFisherClassifier("linear", alpha=1.0, calibration="isotonic", threshold=threshold).fit(X, y)
    P = model.predict_proba(1e6 * X)
    assert np.isfinite(P).all()
    assert np.isfinite(model.decision_function(1e6 * X)).all()


def test_weight_zero_is_a_row_absent_under_isotonic_calibration(X, y):
    weight = np.where(np.arange(60) % 5 == 2, 0.0, 1.0)
    used = weight > 0
    weighted = KernelFisherClassifier(calibration="isotonic", **FIXED).fit(X, y, sample_weight=weight)
    absent = KernelFisherClassifier(calibration="isotonic", **FIXED).fit(X[used], y[used])
    assert_allclose(weighted.predict_proba(X), absent.predict_proba(X), rtol=1e-8)


@pytest.mark.parametrize("rule", ["equal_error", "soft_margin", "error"])
def test_weight_zero_is_a_row_absent_under_every_threshold(rule):
    # Two weightless rows lie in the gap, and one beyond all others.
    r, y = np.array([-2.0, -1.0, 1.0, 2.0, 0.6, 0.8, 9.0]), np.array([-1.0, -1.0, 1.0, 1.0, -1.0, -1.0, -1.0])
    label, weight = (y > 0).astype(int), np.array([1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0])
    from mercer.scores import ClassFit, make_rule

    def cut(rows):
        fit = ClassFit(r[rows, None], r[rows, None], y[rows, None], label[rows], weight[rows])
        return make_rule(
            fit, n_components=1, calibration="logistic", threshold=rule, prior_shift=np.zeros(1)
        ).posterior.threshold()

    assert_allclose(cut(slice(None)), cut(slice(4)), atol=1e-6)


def test_gaussian_map_increases_where_left_out_scores_run_against_the_labels():
    label = np.arange(20) % 2
    R = np.where(label == 1, -1.0, 1.0)[:, None] + 0.1 * np.linspace(-1, 1, 20)[:, None]
    posterior = calibrate("gaussian", R, label, np.ones(20))
    assert (np.diff(posterior.logits(np.linspace(-2, 2, 9)[:, None])[:, 0]) > 0).all()


def test_sparse_rows_have_standard_deviations_and_intervals(X, y):
    rows = sparse.csr_matrix(np.where(X > 0, X, 0.0))
    sparse_model = KernelRidgeRegressor(**FIXED).fit(rows, X[:, 0])
    dense_model = KernelRidgeRegressor(**FIXED).fit(rows.toarray(), X[:, 0])
    assert_allclose(sparse_model.predict(rows, return_std=True)[1], dense_model.predict(rows, return_std=True)[1])
    assert_allclose(sparse_model.predict_interval(rows), dense_model.predict_interval(rows), rtol=1e-6)


def test_series_of_objects_is_read_by_position():
    words = pd.Series(["abc", "abd", "bcd", "xyz", "xyw", "yzw"], index=[5, 4, 3, 2, 1, 0], dtype=object)
    kernel = FromCallable(pairwise(shared_letters), psd=True)
    model = KernelFisherClassifier(kernel, alpha=0.1).fit(words, [0, 0, 0, 1, 1, 1])
    assert list(model.X_fit_) == list(words)
    assert model.predict(words).tolist() == [0, 0, 0, 1, 1, 1]


def test_data_frame_is_a_matrix_to_a_function(X, y):
    frame = pd.DataFrame(X, columns=["a", "b"])
    model = KernelFisherClassifier(rbf_kernel, alpha=1.0).fit(frame, y)
    exact = KernelFisherClassifier(rbf_kernel, alpha=1.0).fit(X, y)
    assert_array_equal(model.predict_proba(frame), exact.predict_proba(X))


@pytest.mark.parametrize(
    "rows", [[("a", [1]), ("a", [1])], [(np.ones(2),), (np.ones(2),)]], ids=["lists", "arrays"]
)
def test_tuples_that_can_not_be_hashed_are_compared_by_identity(rows):
    assert distinct_rows([*rows, rows[0]]).point.tolist() == [0, 1, 0]


def test_arrays_of_different_shape_are_different_rows():
    assert distinct_rows([np.ones((2, 2)), np.ones((4, 1)), np.ones((2, 2))]).point.tolist() == [0, 1, 0]


def test_rows_that_all_coincide_can_be_fitted():
    model = KernelFisherClassifier().fit(np.ones((10, 2)), np.arange(10) % 2)
    assert_allclose(model.predict_proba(np.ones((1, 2))), 0.5)


def test_warning_points_to_the_line_that_called_fit(X, y):
    with pytest.warns(ScaleWarning) as record:
        KernelFisherClassifier().fit(X * [1.0, 1e4], y)
    assert record[0].filename == __file__


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-11), (np.float32, 5e-4)])
def test_prediction_at_new_rows_keeps_directions_that_vanish_at_the_training_rows(rng, dtype, tolerance):
    X, new = rng.uniform(-3, 3, size=(100, 1)), rng.uniform(-4, 4, size=(50, 1))
    y, alpha = np.sin(2 * X[:, 0]) + 0.2 * rng.normal(size=100), 1e-2
    K, Kx = (np.exp(-0.5 * (A - X.T) ** 2) for A in (X, new))
    exact = Kx @ np.linalg.solve(K + alpha * np.eye(100), y)
    model = KernelRidgeRegressor(RBF(gamma=0.5), alpha=alpha, fit_intercept=False).fit(X.astype(dtype), y)
    # Where K u = lambda u, k(x)'u may be as large as sqrt(lambda): dropping lambda < eps costs sqrt(eps) / alpha.
    assert_allclose(model.predict(new.astype(dtype)), exact, rtol=0, atol=tolerance)


def test_soft_margin_is_a_support_vector_machine_on_the_score_as_it_is(rng):
    y = np.resize([-1.0, 1.0], 100)
    r = np.r_[rng.normal(size=99) + y[:99], 12.0]
    svm = SVC(kernel="linear", C=1.0, tol=1e-8).fit(r[:, None], y)
    exact = -svm.intercept_[0] / svm.coef_[0, 0]
    assert_allclose(threshold_at("soft_margin", r, y, np.ones(100)), exact, atol=1e-3)


def test_standard_deviation_of_an_indefinite_kernel_is_a_number(X):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = KernelRidgeRegressor(Sigmoid(gamma=1.0, coef0=-1.0), alpha=0.1).fit(X, X[:, 0])
    assert np.isfinite(model.predict(X, return_std=True)[1]).all()


def test_small_weights_leave_the_noise_finite(X, rng):
    y = X[:, 0] + 0.1 * rng.normal(size=60)
    model = KernelRidgeRegressor().fit(X, y, sample_weight=np.full(60, 1 / 60))
    assert model.noise_std_ < 1.0


def test_folds_left_without_weight_are_refused(X):
    weight = np.where(np.arange(60) < 30, 1.0, 0.0)
    with pytest.raises(ValueError, match="groups"):
        KernelRidgeRegressor(**FIXED).fit(X, X[:, 0], sample_weight=weight, groups=np.arange(60) // 30)


def test_one_row_of_positive_weight_is_refused(X):
    with pytest.raises(ValueError, match="at least 2 rows"):
        KernelRidgeRegressor(**FIXED).fit(X, X[:, 0], sample_weight=np.eye(60)[0])


@pytest.mark.parametrize(
    "choice", [{"n_components": 5}, {"priors": [0.2, 0.2, 0.6]}, {"class_weight": {0: -1.0}}], ids=str
)
def test_wrong_choice_is_refused_before_anything_is_computed(X, y, choice):
    def never(A, B):
        raise AssertionError("the kernel was evaluated")

    with pytest.raises(ValueError, match=next(iter(choice))):
        KernelFisherClassifier(never, **choice).fit(X, y)
