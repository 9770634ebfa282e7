"""Numbers too large or small for their squares, and matrices that cannot be factored: an answer or a remedy."""

import re
from contextlib import nullcontext

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from mercer import (
    KernelFisherClassifier,
    KernelRidgeRegressor,
    OnlineFisherClassifier,
    OnlineKernelRegressor,
    PairwiseClassifier,
    SparseFisherClassifier,
    SparseKernelRegressor,
)
from mercer.errors import KernelError, MercerError, NumericalError, NumericalWarning, ScaleWarning
from mercer.kernels import RBF, Linear, Normalized, Polynomial, Sigmoid

N = 40
# Rows of searches whose outcome does not matter, if only it is the same.
FEW = 16
REGRESSORS = [
    KernelRidgeRegressor(),
    KernelRidgeRegressor(centers=8, random_state=0),
    SparseKernelRegressor(random_state=0),
    SparseKernelRegressor(selection="orthogonal", random_state=0),
    OnlineKernelRegressor(),
]
CLASSIFIERS = [
    KernelFisherClassifier(),
    KernelFisherClassifier(centers=8, random_state=0),
    SparseFisherClassifier(random_state=0),
    SparseFisherClassifier(selection="orthogonal", random_state=0),
    SparseFisherClassifier(penalty="diagonal", random_state=0),
    OnlineFisherClassifier(),
    PairwiseClassifier(),
]
every_regressor = pytest.mark.parametrize("model", REGRESSORS, ids=str)
every_model = pytest.mark.parametrize("model", [*REGRESSORS, *CLASSIFIERS], ids=str)


@pytest.fixture
def rows(rng, frozen):
    """X (40, 2), labels in {0, 1}, targets that are close to them."""
    y = np.arange(N) % 2
    X = rng.normal(size=(N, 2)) + y[:, None]
    return frozen(X), frozen(y), frozen(y + 0.1 * rng.normal(size=N))


def with_kernel(model, kernel):
    new = type(model)(**model.get_params(deep=False))
    return (
        new.set_params(estimator=KernelFisherClassifier(kernel))
        if hasattr(new, "estimator")
        else new.set_params(kernel=kernel)
    )


def tolerance_of(model):
    """Powers of two are exact factors; what a search for alpha ends with is known to 1e-5 of its logarithm."""
    return 1e-6 if getattr(model, "selection", None) == "orthogonal" else 1e-10


def targets_of(model, rows):
    return rows[2] if model in REGRESSORS else rows[1]


@every_regressor
@pytest.mark.parametrize(
    ("scale", "words"), [(1e-200, "multiply y by a constant"), (1e200, "divide y by a constant")]
)
def test_targets_whose_squares_are_lost_are_refused(rows, model, scale, words):
    X, _, y = rows
    with pytest.raises(ValueError, match=words):
        model.fit(X, scale * y)
    with pytest.raises(ValueError, match=words):
        model.fit(X, np.column_stack([y, scale * y]))


@pytest.mark.slow
@every_regressor
@pytest.mark.parametrize("exponent", [-400, 400])
def test_the_unit_of_the_targets_does_not_matter(rows, model, exponent):
    X, y = rows[0][:FEW], rows[2][:FEW]
    # Kernels are searched with one of the units.
    model = model if exponent > 0 else with_kernel(model, RBF(gamma="median"))
    plain = model.fit(X, y).predict(X)
    score = getattr(model, "loo_score_", None)
    assert_allclose(model.fit(X, 2.0**exponent * y).predict(X) / 2.0**exponent, plain, atol=tolerance_of(model))
    if score is not None:
        assert_allclose(model.loo_score_, score, rtol=tolerance_of(model))


@pytest.mark.sampled(2)
@every_regressor
@pytest.mark.parametrize("value", [0.0, 1e-200, 3.0], ids=str)
def test_zero_is_not_too_small(rows, model, value):
    X, _, _ = rows
    if value == 1e-200:
        with pytest.raises(ValueError, match="multiply y"):
            model.fit(X, np.full(N, value))
    else:
        assert_allclose(model.fit(X, np.full(N, value)).predict(X), value, atol=1e-12)


@pytest.mark.parametrize("centers", ["all", 8])
@pytest.mark.parametrize(("scale", "words"), [(1e-35, "multiply y"), (1e35, "divide y")])
def test_targets_that_float32_cannot_hold_are_refused_with_rows_in_float32(rows, centers, scale, words):
    X, _, y = rows
    with pytest.raises(ValueError, match=words):
        KernelRidgeRegressor(RBF(gamma=0.5), centers=centers).fit(X.astype(np.float32), scale * y)


def test_targets_of_a_stream_that_are_too_large_are_refused(rows):
    X, _, y = rows
    with pytest.raises(ValueError, match="divide y by a constant"):
        KernelRidgeRegressor(RBF(gamma=0.5), centers=8).fit([(X, y), (X, 1e200 * y)])


def in_given_units(model):
    """The model with a kernel that sees features in their own units."""
    key = "estimator" if isinstance(model, PairwiseClassifier) else "kernel"
    return clone(model).set_params(**{key: KernelFisherClassifier("rbf") if key == "estimator" else "rbf"})


@every_model
@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_rows_whose_distances_are_lost_are_refused(rows, model, scale):
    with pytest.raises(
        KernelError, match=r"squares of their distances overflow or underflow in float64.*StandardScaler"
    ):
        in_given_units(model).fit(scale * rows[0], targets_of(model, rows))


@pytest.mark.parametrize(
    "model", [KernelFisherClassifier("rbf"), KernelRidgeRegressor("rbf", centers=8), SparseFisherClassifier()]
)
@pytest.mark.parametrize("scale", [1e-30, 1e30])
def test_rows_in_float32_whose_gamma_is_lost_are_refused(rows, model, scale):
    X = (scale * rows[0]).astype(np.float32)
    with pytest.raises(KernelError, match=r"cannot be represented in float32.*StandardScaler, or pass float64"):
        model.fit(X, targets_of(model, rows) if model in REGRESSORS else rows[1])


@pytest.mark.sampled(2)
@every_model
@pytest.mark.parametrize("exponent", [-300, 300])
def test_the_unit_of_the_rows_does_not_matter(rows, model, exponent):
    X, y = rows[0][:FEW], targets_of(model, rows)[:FEW]
    plain, other = model.fit(X, y).predict(X), model.fit(2.0**exponent * X, y).predict(2.0**exponent * X)
    assert_allclose(other, plain, atol=tolerance_of(model))


@pytest.mark.sampled(9)
@every_model
@pytest.mark.parametrize("kernel", [RBF(gamma=0.5), "linear", Polynomial(degree=2)], ids=str)
def test_kernels_that_are_constant_are_warned_of(rows, model, kernel):
    X, y = 1e-200 * rows[0], targets_of(model, rows)
    with pytest.warns(NumericalWarning, match="the same value, .*the model is a constant.*StandardScaler"):
        found = with_kernel(model, kernel).fit(X, y)
    assert len(np.unique(found.predict(X))) == 1


@pytest.mark.sampled(13)
@every_model
@pytest.mark.parametrize("scale", [1e-160, 1e-60, 1e60, 1e100, 1e200])
def test_kernel_values_whose_products_are_lost_are_refused(rows, model, scale):
    with pytest.raises(KernelError, match=r"StandardScaler|scale the inputs"):
        with_kernel(model, "linear").fit(scale * rows[0], targets_of(model, rows))


@pytest.mark.sampled(1)
@every_model
@pytest.mark.parametrize("exponent", [-130, 130])
def test_the_unit_of_kernel_values_does_not_matter(rows, model, exponent):
    X, y = rows[0], targets_of(model, rows)
    if "Online" in str(model) or getattr(model, "penalty", "rkhs") == "diagonal":
        pytest.skip("what is added to the kernel has the unit of the kernel")
    plain, other = with_kernel(model, "linear").fit(X, y), with_kernel(model, "linear").fit(2.0**exponent * X, y)
    assert_allclose(other.predict(2.0**exponent * X), plain.predict(X), atol=tolerance_of(model))


@every_model
@pytest.mark.parametrize("alpha", [1e-200, 1e200])
def test_penalties_whose_squares_are_lost_are_refused(rows, model, alpha):
    if hasattr(model, "estimator"):
        pytest.skip("the estimator of the pairs has the penalty")
    with pytest.raises(ValueError, match=re.escape(f"alpha={alpha}; it must be between 1e-100 and 1e+100")):
        type(model)(alpha=alpha).fit(rows[0], targets_of(model, rows))


@pytest.mark.parametrize("scale", [1e-150, 1e-200])
def test_features_whose_spread_is_lost_are_warned_of(rows, scale):
    X = rows[0] * [1e-30, 1e-30 * scale]
    with pytest.warns(ScaleWarning, match="1 of 2 varying features account for all but 1e-06"):
        KernelFisherClassifier(RBF(gamma=1e60), alpha=0.1).fit(X, rows[1])


TOO_HEAVY = "divide all weights by a constant"
TOO_LIGHT = "multiply all weights by a constant"


@every_model
@pytest.mark.parametrize(("scale", "words"), [(1e300, TOO_HEAVY), (1e35, TOO_HEAVY), (1e-35, TOO_LIGHT)])
def test_weights_whose_sums_are_lost_are_refused(rows, model, scale, words):
    weight = scale * (1.0 + np.arange(N) % 3)
    with pytest.raises(ValueError, match=f"weight.*{words}"):
        model.fit(rows[0], targets_of(model, rows), sample_weight=weight)


@every_model
@pytest.mark.parametrize("least", [1e-300, 5e-324])
def test_weights_so_small_that_they_cannot_count_are_refused(rows, model, least):
    weight = np.where(np.arange(N) == 1, least, 1.0)
    with pytest.raises(ValueError, match=rf"sample_weight .*{least:.1e}.*set them to zero"):
        model.fit(rows[0], targets_of(model, rows), sample_weight=weight)


@every_model
@pytest.mark.parametrize("heavy", [1e14, 1e18])
def test_a_row_that_outweighs_all_others_is_refused(rows, model, heavy):
    weight = np.where(np.arange(N) == 1, heavy, 1.0)
    with pytest.raises(ValueError, match=re.escape(f"row 1 has a sample_weight of {heavy:.1e}")):
        model.fit(rows[0], targets_of(model, rows), sample_weight=weight)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("model", CLASSIFIERS, ids=str)
@pytest.mark.parametrize("heavy", [1e16, 1e25])
def test_classes_that_are_outweighed_get_finite_answers_or_are_named(rows, model, heavy):
    X, y = rows[0][:FEW], rows[1][:FEW]
    lost = getattr(model, "centers", None) == 8
    with pytest.raises(ValueError, match="class 0 has no training rows") if lost else nullcontext():
        assert np.isfinite(model.fit(X, y, sample_weight=np.where(y == 1, heavy, 1.0)).predict_proba(X)).all()


@pytest.mark.sampled(1)
@every_model
@pytest.mark.filterwarnings("ignore::mercer.errors.NumericalWarning")
def test_small_and_large_weights_of_rows_are_no_accident(rows, model):
    weight = np.resize([0.0, 1e-99, 1e-40, 1.0, 2.0, 1e3, 1.0, 2.0], N)
    assert np.isfinite(model.fit(rows[0], targets_of(model, rows), sample_weight=weight).predict(rows[0])).all()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("model", [KernelRidgeRegressor, KernelFisherClassifier])
@pytest.mark.parametrize("value", [1e300, 1e35, 1e-300, -1.0, np.nan], ids=str)
def test_weights_of_blocks_are_those_of_arrays(rows, model, value):
    X, y, _ = rows
    model, weight = model(RBF(gamma=0.5), centers=8), np.where(np.arange(N) == N - 1, value, 1.0)
    blocks = [(X[:20], y[:20], weight[:20]), (X[20:], y[20:], weight[20:])]
    with pytest.raises(ValueError, match="weight") as from_arrays:
        model.fit(X, y, sample_weight=weight)
    with pytest.raises(ValueError, match="weight") as from_blocks:
        model.fit(blocks)
    assert str(from_blocks.value) == str(from_arrays.value)
    model.fit(X, y)
    with pytest.raises(ValueError, match="weight"):
        model.partial_fit(blocks)
    with pytest.raises(ValueError, match="weight"):
        model.remove(blocks)


@pytest.mark.parametrize("model", [KernelRidgeRegressor, KernelFisherClassifier])
@pytest.mark.parametrize("scale", [0.0, 1e-35])
def test_blocks_without_weight_to_speak_of_are_refused(rows, model, scale):
    X, y, _ = rows
    with pytest.raises(ValueError, match=TOO_LIGHT if scale else "zero"):
        model(RBF(gamma=0.5), centers=8).fit([(X[:20], y[:20], np.full(20, scale))])


@pytest.mark.parametrize("model", [KernelFisherClassifier, SparseFisherClassifier])
@pytest.mark.parametrize("factor", [1e-35, 1e35, 1e300])
def test_weights_of_classes_have_the_range_of_weights(rows, model, factor):
    with pytest.raises(ValueError, match=r"the weight of class 1.*between 1e-30 and 1e\+30"):
        model(RBF(gamma=0.5), class_weight={0: 1.0, 1: factor}).fit(*rows[:2])


@pytest.mark.sampled(6)
@every_model
@pytest.mark.filterwarnings("ignore::mercer.errors.NumericalWarning", "ignore::mercer.errors.ScaleWarning")
@pytest.mark.parametrize("kernel", [Polynomial(3), Polynomial(5), "linear"], ids=str)
@pytest.mark.parametrize("offset", [1e3, 1e6])
def test_features_far_from_zero_give_finite_answers(rows, model, kernel, offset):
    X, y = rows[0] + offset, targets_of(model, rows)
    answers = with_kernel(model, kernel).fit(X, y).predict(X)
    assert np.isfinite(answers).all()


@pytest.mark.parametrize("model", [SparseFisherClassifier, SparseKernelRegressor])
def test_sparse_fits_that_have_no_criterion_say_what_to_do(rows, model):
    with pytest.raises(NumericalError, match="scale the features with a StandardScaler"):
        # Rows so far apart that a kernel value at distance zero is rounding.
        model(RBF(gamma=0.5), selection="orthogonal", alpha="gcv").fit(1e100 * rows[0], rows[1])


@pytest.mark.parametrize("model", [SparseFisherClassifier, SparseKernelRegressor])
def test_columns_that_depend_on_others_where_rows_are_missing_are_left_out(rows, model):
    X, y, _ = rows
    fitted = model(RBF(gamma=0.5), selection="orthogonal").fit(1e100 * X, y)
    assert np.isfinite(fitted.predict(X)).all()


@pytest.mark.parametrize("model", [SparseFisherClassifier, SparseKernelRegressor])
def test_sparse_fits_on_a_kernel_that_admits_no_center_say_what_to_do(model):
    K = np.array([[0.3, 0.8], [0.3, -1.3]])
    with pytest.raises(NumericalError, match=r"no row can become a center.*positive semidefinite"):
        model("precomputed", alpha=1.0).fit(K, [0, 1])


@pytest.mark.parametrize("kernel", [Normalized(Linear()), Polynomial(degree=3), RBF(gamma=0.01)], ids=str)
@pytest.mark.filterwarnings("ignore::mercer.errors.NumericalWarning")
def test_rows_in_float32_have_intervals_also_where_alpha_is_tiny(rows, kernel):
    X, _, y = rows
    model = KernelRidgeRegressor(kernel, alpha=1e-12).fit(X.astype(np.float32), y)
    assert np.isfinite(model.predict_interval(X.astype(np.float32))).all()
    assert np.isfinite(model.predict_std(X.astype(np.float32))).all()


def test_numerical_errors_are_errors_of_the_library_and_of_values():
    assert issubclass(NumericalError, MercerError)
    assert issubclass(NumericalError, ValueError)
    assert issubclass(NumericalError, np.linalg.LinAlgError)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("model", [KernelFisherClassifier, KernelRidgeRegressor])
@pytest.mark.filterwarnings("ignore:the kernel matrix of Sigmoid:mercer.errors.NumericalWarning")
def test_kernels_that_are_positive_nowhere_are_warned_of(rows, model):
    X = 1e-3 * rows[0]
    with pytest.warns(NumericalWarning, match="no positive eigenvalue, so the model is a constant"):
        found = model(Sigmoid(gamma=1.0, coef0=-1.0), centers=4, alpha=1e-12).fit(X, rows[1])
    assert len(np.unique(found.predict(X))) == 1
    if model is KernelRidgeRegressor:
        assert np.isfinite(found.predict_std(X)).all()
        assert np.isfinite(found.predict_interval(X)).all()


def test_rows_that_all_coincide_are_no_fault_of_the_kernel():
    X, y = np.ones((10, 2)), np.arange(10) % 2
    with pytest.warns(NumericalWarning, match="^all features are constant: the 10 rows are equal") as record:
        model = KernelFisherClassifier(RBF(gamma=0.5)).fit(X, y)
    assert len(record) == 1
    assert_array_equal(model.predict_proba(X), 0.5)
