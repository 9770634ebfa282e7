"""Kernel machines are the methods they are named after, choose for themselves, and say how well they solved."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import Lasso, LogisticRegression, QuantileRegressor
from sklearn.metrics import d2_pinball_score, log_loss
from sklearn.svm import SVC, SVR

from mercer import KernelFisherClassifier, KernelMachineClassifier, KernelMachineRegressor, KernelRidgeRegressor
from mercer._fitting.spec import LossChoice
from mercer._scores.criteria import classification_criterion
from mercer._solvers.programs import Program, solve
from mercer.centers import Uniform
from mercer.datasets import make_banana, make_sinc, make_twonorm, make_waveform
from mercer.errors import NumericalWarning, WeightWarning
from mercer.kernels import RBF, FromCallable, Sigmoid

GAMMA = 0.5
CLASS_LOSSES = ["logistic", "squared", "huber", "absolute", "epsilon_insensitive", "hinge", "squared_hinge"]
PENALTIES = ["rkhs", "coef", "l1", "elastic_net"]


@pytest.fixture(scope="module")
def banana():
    return make_banana(120, random_state=0)


@pytest.fixture(scope="module")
def sinc():
    return make_sinc(80, random_state=0)


def outputs(model, X):
    return np.ravel(model._outputs(X))


def test_squared_loss_is_the_kernel_fisher_discriminant(banana):
    X, y = banana
    fisher = KernelFisherClassifier(RBF(gamma=GAMMA), alpha=0.3).fit(X, y)
    machine = KernelMachineClassifier(RBF(gamma=GAMMA), loss="squared", alpha=0.3).fit(X, y)
    assert_allclose(outputs(machine, X), outputs(fisher, X), atol=1e-7)
    assert_allclose(machine.loo_outputs_, fisher.loo_outputs_, atol=1e-7)
    assert_allclose(machine.degrees_of_freedom_, fisher.degrees_of_freedom_, rtol=1e-6)


def test_hinge_loss_is_the_support_vector_machine(banana):
    X, y = banana
    svc = SVC(C=1 / 0.3, gamma=GAMMA, tol=1e-8).fit(X, y)
    machine = KernelMachineClassifier(RBF(gamma=GAMMA), loss="hinge", alpha=0.3).fit(X, y)
    assert_allclose(outputs(machine, X), svc.decision_function(X), atol=2e-3)
    # Dual variables that are zero for one are tiny for the other.
    assert set(svc.support_) <= set(machine.support_)
    assert len(machine.support_) <= len(svc.support_) + 2


def test_epsilon_insensitive_loss_is_support_vector_regression(sinc):
    X, y = sinc
    svr = SVR(C=1 / 0.3, gamma=GAMMA, epsilon=0.1, tol=1e-8).fit(X, y)
    machine = KernelMachineRegressor(RBF(gamma=GAMMA), loss="epsilon_insensitive", epsilon=0.1, alpha=0.3).fit(
        X, y
    )
    assert_allclose(machine.predict(X), svr.predict(X), atol=2e-3)
    assert set(svr.support_) <= set(machine.support_)


@pytest.mark.slow
def test_absolute_penalty_is_the_lasso_on_kernel_values(sinc):
    X, y = sinc
    K = RBF(gamma=GAMMA).block(X, X)
    lasso = Lasso(alpha=0.5 / 80, tol=1e-12, max_iter=10**6).fit(K, y)
    machine = KernelMachineRegressor(RBF(gamma=GAMMA), loss="squared", penalty="l1", alpha=0.5).fit(X, y)
    assert_allclose(machine.predict(X), lasso.predict(K), atol=1e-6)


@pytest.mark.slow
def test_pinball_loss_with_an_absolute_penalty_is_the_quantile_regressor(sinc):
    X, y = (each[:40] for each in sinc)
    K = RBF(gamma=GAMMA).block(X, X)
    other = QuantileRegressor(quantile=0.8, alpha=0.5 / 40, solver="highs").fit(K, y)
    machine = KernelMachineRegressor(RBF(gamma=GAMMA), loss="pinball", quantile=0.8, penalty="l1", alpha=0.5).fit(
        X, y
    )

    def objective(f, coef):
        r = y - f
        return np.maximum(0.8 * r, -0.2 * r).sum() + 0.5 * np.abs(coef).sum()

    ours, theirs = objective(machine.predict(X), machine.dual_coef_), objective(other.predict(K), other.coef_)
    assert_allclose(ours, theirs, rtol=1e-6)


@pytest.mark.slow
def test_logistic_loss_is_logistic_regression_in_the_feature_space(banana):
    X, y = banana
    values, vectors = np.linalg.eigh(RBF(gamma=GAMMA).block(X, X))
    Phi = vectors[:, values > 1e-10] * np.sqrt(values[values > 1e-10])
    other = LogisticRegression(C=1 / 0.3, tol=1e-10, max_iter=10**5).fit(Phi, y)
    machine = KernelMachineClassifier(RBF(gamma=GAMMA), alpha=0.3).fit(X, y)
    assert_allclose(outputs(machine, X), other.decision_function(Phi), atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("loss", CLASS_LOSSES)
@pytest.mark.parametrize("penalty", PENALTIES)
def test_every_loss_and_penalty_classifies_and_chooses_for_itself(loss, penalty):
    X, y = make_banana(100, random_state=1)
    new, labels = make_banana(2000, random_state=2)
    # Widths are searched with a smooth loss and with one that has a corner.
    searched = penalty == "rkhs" and loss in ("logistic", "hinge")
    kernel = "rbf" if searched else RBF(gamma="median")
    model = KernelMachineClassifier(kernel, loss=loss, penalty=penalty, random_state=0).fit(X, y)
    assert model.score(new, labels) > 0.82
    assert log_loss(labels, model.predict_proba(new)) < 0.45
    assert model.gap_ <= 1e-7
    assert abs(model.loo_score_ - model.score(new, labels)) < 0.08
    if penalty == "l1":
        assert len(model.support_) < 60


@pytest.mark.slow
def test_several_classes_are_told_apart():
    rng = np.random.default_rng(0)
    y = np.repeat(["a", "b", "c"], 40)
    X = rng.normal(size=(120, 2)) + 2.5 * np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]]).repeat(40, axis=0)
    model = KernelMachineClassifier(RBF(gamma="median"), loss="squared_hinge", random_state=0).fit(X, y)
    P = model.predict_proba(X)
    assert model.score(X, y) > 0.75
    assert_allclose(P.sum(axis=1), 1.0)
    assert_array_equal(model.classes_[P.argmax(axis=1)], model.predict(X))
    assert_allclose(model.predict_proba([[300.0, 300.0]]), 1.0 / 3.0, atol=0.01)
    assert not hasattr(model, "transform")


@pytest.mark.slow
def test_robust_losses_ignore_outliers(sinc):
    X, y = make_sinc(100, random_state=0)
    y = y.copy()
    y[::10] += 5.0
    new, truth = make_sinc(1000, random_state=1)
    kernel = RBF(gamma=GAMMA)
    ridge = KernelRidgeRegressor(kernel).fit(X, y).score(new, truth)
    for loss in ("huber", "absolute", "epsilon_insensitive"):
        model = KernelMachineRegressor(kernel, loss=loss, random_state=0).fit(X, y)
        assert model.score(new, truth) > max(ridge, 0.0) + 0.3


@pytest.mark.slow
def test_quantiles_cover_their_share_and_do_not_cross():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2.0, 2.0, size=(300, 1))
    y = np.sin(2.0 * X[:, 0]) + (0.2 + 0.2 * np.abs(X[:, 0])) * rng.normal(size=300)
    new = rng.uniform(-2.0, 2.0, size=(2000, 1))
    truth = np.sin(2.0 * new[:, 0]) + (0.2 + 0.2 * np.abs(new[:, 0])) * rng.normal(size=2000)
    model = KernelMachineRegressor(RBF(gamma=1.0), loss="pinball", quantile=[0.9, 0.1, 0.5], random_state=0).fit(
        X, y
    )
    high, low, middle = model.predict(new).T
    assert (low <= middle).all()
    assert (middle <= high).all()
    for share, f in ((0.1, low), (0.5, middle), (0.9, high)):
        assert abs(np.mean(truth <= f) - share) < 0.06
    scores = [d2_pinball_score(truth, f, alpha=a) for a, f in ((0.9, high), (0.1, low), (0.5, middle))]
    assert_allclose(model.score(new, truth), np.mean(scores), atol=2e-3)
    assert model.loo_prediction_.shape == (300, 3)


@pytest.mark.slow
def test_leave_one_out_quantiles_do_not_cross_either():
    X, y = make_sinc(60, random_state=0)
    levels = [0.55, 0.1, 0.5]
    model = KernelMachineRegressor(RBF(gamma=1.0), loss="pinball", alpha=0.01, quantile=levels).fit(X, y)
    order = np.argsort(levels)
    crossing = np.diff(model._outputs(X)[:, order], axis=1) < 0.0
    assert crossing.any()
    assert (np.diff(model.loo_prediction_[:, order], axis=1) >= 0.0).all()
    scores = [d2_pinball_score(y, f, alpha=a) for a, f in zip(levels, model.loo_prediction_.T)]
    assert_allclose(model.loo_score_, np.mean(scores), atol=1e-9)


def test_left_out_outputs_are_those_of_refitting(banana):
    X, y = banana
    model = KernelMachineClassifier(RBF(gamma=GAMMA), alpha=0.3).fit(X, y)
    for i in (0, 17, 60):
        without = KernelMachineClassifier(RBF(gamma=GAMMA), alpha=0.3).fit(np.delete(X, i, 0), np.delete(y, i))
        assert_allclose(model.loo_outputs_[i], without._outputs(X[i : i + 1])[0], atol=0.02)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("loss", ["squared", "huber", "logistic", "squared_hinge", "hinge", "absolute"])
@pytest.mark.parametrize(("scale", "alpha", "weight"), [(1.0, 1e-9, 1.0), (1.0, 0.01, 1e8), (1e10, 1.0, 1.0)])
def test_noise_is_not_learned_however_little_is_penalized(loss, scale, alpha, weight):
    rng = np.random.default_rng(0)
    y, X = rng.integers(0, 2, 60), rng.normal(size=(60, 300))
    model = KernelMachineClassifier(scale * RBF(gamma=0.5), loss=loss, alpha=alpha)
    score = model.fit(X, y, sample_weight=np.full(60, weight)).loo_score_
    assert abs(score - 0.5) < 2.0 * 0.5 / np.sqrt(60)


@pytest.mark.slow
@pytest.mark.parametrize("penalty", ["l1", "coef", "elastic_net"])
@pytest.mark.parametrize("loss", ["hinge", "absolute", "epsilon_insensitive"])
def test_losses_with_corners_do_not_lose_labels_at_a_given_alpha(loss, penalty):
    X, y = make_banana(100, random_state=0)
    new, truth = make_banana(2000, random_state=1)
    model = KernelMachineClassifier(RBF(gamma=1.0), loss=loss, penalty=penalty, alpha=0.1).fit(X, y)
    sign = model.classes_[(np.ravel(model._outputs(new)) > 0.0).astype(int)]
    assert model.score(new, truth) > np.mean(sign == truth) - 0.01
    assert np.abs(model.loo_outputs_).max() < 20.0


def refitted(model, loss, X, y, rows):
    """Outputs (rows, 1) of some rows, each for the program without it."""
    label = np.where(y == model.classes_[1], 1.0, -1.0)
    values, vectors = np.linalg.eigh(model.kernel_.block(X, X))
    Phi = vectors * np.sqrt(np.maximum(values, 0.0))
    Phi, every, outputs = Phi[:, values > 1e-12], np.arange(len(y)), []
    start = solve(Program(loss, Phi, label, np.ones(len(y)), model.alpha_))
    for i in rows:
        keep, near = every != i, np.append(start.coef, start.intercept)
        found = solve(Program(loss, Phi[keep], label[keep], np.ones(len(y) - 1), model.alpha_), near)
        outputs.append([Phi[i] @ found.coef + found.intercept])
    return np.array(outputs)


# Draws and widths for which the smallest alphas look best if rows are left out by single steps.
DRAWS = {
    "waveform": (make_waveform, 150, 0.0033),
    "banana": (make_banana, 100, 0.96),
    "twonorm": (make_twonorm, 100, 0.00017),
}


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "huber", "hinge"])
@pytest.mark.parametrize("draw", DRAWS)
def test_the_left_out_criterion_at_the_chosen_alpha_is_that_of_refitting(draw, loss):
    make, n, gamma = DRAWS[draw]
    X, y = make(n, random_state=1)
    model = KernelMachineClassifier(RBF(gamma=gamma), loss=loss, random_state=0).fit(X, y)
    label = np.searchsorted(model.classes_, y)
    left_out = np.arange(0, n, 3)
    sign = np.where(label == 1, 1.0, -1.0)[left_out, None]
    judge = classification_criterion("brier", label[left_out], np.ones(len(left_out)), sign)
    again = refitted(model, LossChoice(loss).losses(np.ones(1))[0], X, y, left_out)
    step, exact = (float(judge(F[None])[0]) for F in (model.loo_outputs_[left_out], again))
    assert abs(step / exact - 1.0) < 0.02


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["hinge", "absolute"])
def test_left_out_outputs_are_near_those_of_the_fit_where_labels_contradict_each_other(loss):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(20, 2))[rng.integers(20, size=400)]
    y = np.where(rng.random(400) < 0.55 + 0.1 * np.sign(X[:, 0]), 1, -1)
    model = KernelMachineClassifier(RBF(gamma=0.001), loss=loss, random_state=0).fit(X, y)
    # A function that is nearly constant: arcs in place of corners would move it by 0.13.
    moved = np.ravel(model.loo_outputs_) - model.kernel_.block(X, model.X_fit_) @ np.ravel(model.dual_coef_)
    assert abs(float(np.mean(moved - model.intercept_))) < 0.01


def noisy(seed, n=300):
    """Two classes that overlap, and labels that mean nothing."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    return X, (X[:, 0] * X[:, 1] + rng.normal(size=n) > 0.0).astype(int), rng.integers(0, 3, n)


@pytest.mark.slow
def test_centers_selected_by_targets_do_not_make_leave_one_out_too_good():
    model = KernelMachineClassifier(RBF(gamma=0.3), centers=60, random_state=0)
    X_new, y_new, _ = noisy(100, 3000)
    by_chance, more = [], []
    for seed in range(4):
        X, y, noise = noisy(seed)
        by_chance.append(model.fit(X, noise).loo_score_)
        expected = log_loss(y, model.fit(X, y).loo_proba_)
        more.append(log_loss(y_new, model.predict_proba(X_new)) - expected)
    # Two standard errors of 1200 rows; 0.45 and 0.2 if a row is left out, but not its part in the selection.
    assert np.mean(by_chance) < 0.36 + 2.0 * 0.014
    assert np.mean(more) < 0.05


@pytest.mark.slow
def test_centers_selected_by_targets_predict_as_well_as_random_ones():
    X_new, y_new, _ = noisy(100, 3000)
    losses = {}
    for centers in (60, Uniform(60)):
        model = KernelMachineClassifier(RBF(gamma=0.3), centers=centers, random_state=0)
        fits = [model.fit(*noisy(seed)[:2]).predict_proba(X_new) for seed in range(4)]
        losses[type(centers)] = np.mean([log_loss(y_new, P) for P in fits])
    # By 0.05 worse if alpha were chosen with centers that know the rows.
    assert losses[int] < losses[Uniform] + 0.01


@pytest.mark.slow
def test_alphas_of_the_logistic_loss_are_compared_by_fits_to_the_end():
    # Fits without folds that ended early were those of a larger alpha: the smallest alpha seemed to be best.
    X, y = make_waveform(200, random_state=2)
    X_new, y_new = make_waveform(3000, random_state=102)
    chosen = KernelMachineClassifier(RBF(gamma=0.02), loss="logistic").fit(X, y)
    usual = KernelMachineClassifier(RBF(gamma=0.02), loss="logistic", alpha=0.1).fit(X, y)
    assert chosen.alpha_ > 1e-3
    assert chosen.score(X_new, y_new) >= usual.score(X_new, y_new) - 0.005


def test_few_alphas_are_compared_with_the_logistic_loss(banana):
    model = KernelMachineClassifier(RBF(gamma=GAMMA), random_state=0).fit(*banana)
    assert 4 <= np.isfinite(model.tuning_paths_[-1].scores).sum() <= 9
    assert "holding out folds" in str(model.report_)


def test_given_centers_are_the_only_ones(banana):
    X, y = banana
    centers = X[:20].copy()
    model = KernelMachineClassifier(RBF(gamma=GAMMA), alpha=0.3, centers=centers).fit(X, y)
    assert model.support_ is None
    assert_array_equal(model.X_fit_, centers)
    some = KernelMachineClassifier(RBF(gamma=GAMMA), alpha=0.3, centers=30, random_state=0).fit(X, y)
    assert_array_equal(some.X_fit_, X[some.support_])
    assert len(some.support_) <= 30


def test_precomputed_values_give_the_same_machine(banana):
    X, y = banana
    kernel = RBF(gamma=GAMMA)
    rows = KernelMachineClassifier(kernel, loss="huber", alpha=0.3).fit(X, y)
    given = KernelMachineClassifier("precomputed", loss="huber", alpha=0.3).fit(kernel.block(X, X), y)
    assert_allclose(given.predict_proba(kernel.block(X, X)), rows.predict_proba(X), atol=1e-6)


@pytest.mark.slow
def test_counts_are_repeated_rows_in_every_choice(banana):
    X, y = (each[:30] for each in banana)
    count = np.random.default_rng(0).integers(1, 3, 30)
    for penalty in ("rkhs", "l1"):
        model = KernelMachineClassifier(loss="huber", penalty=penalty, weights="counts", random_state=0)
        weighted = model.fit(X, y, sample_weight=count).predict_proba(X)
        again = model.set_params(weights="auto").fit(np.repeat(X, count, axis=0), np.repeat(y, count))
        assert_allclose(again.predict_proba(X), weighted, atol=1e-6)


@pytest.mark.slow
def test_weights_in_doubt_are_warned_of():
    X, y = make_banana(40, random_state=0)
    weight = np.where(np.arange(40) < 20, 9, 1)
    with pytest.warns(WeightWarning):
        KernelMachineClassifier(random_state=0).fit(X, y * (-1) ** (np.arange(40) % 3), sample_weight=weight)


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (KernelMachineClassifier(loss="pinball"), "loss='pinball'"),
        (KernelMachineRegressor(loss="hinge"), "loss='hinge'"),
        (KernelMachineClassifier(penalty="l2"), "penalty='l2'"),
        (KernelMachineClassifier(delta=0.0), "delta"),
        (KernelMachineClassifier(penalty="elastic_net", l1_ratio=2.0), "l1_ratio"),
        (KernelMachineRegressor(loss="pinball", quantile=1.5), "quantile=1.5"),
        (KernelMachineRegressor(loss="pinball", quantile=[]), "quantile"),
    ],
)
def test_parameters_are_named_in_errors(model, words, banana):
    with pytest.raises(ValueError, match=words.replace("[", r"\[")):
        model.fit(*banana)


def test_several_quantiles_are_those_of_one_target(sinc):
    X, y = sinc
    model = KernelMachineRegressor(loss="pinball", quantile=[0.1, 0.9])
    with pytest.raises(ValueError, match="several quantiles are those of one target"):
        model.fit(X, np.column_stack([y, y]))


@pytest.mark.slow
def test_the_report_says_what_was_solved(banana):
    text = str(
        KernelMachineClassifier(RBF(gamma=GAMMA), loss="huber", penalty="l1", random_state=0).fit(*banana).report_
    )
    assert (
        "huber loss of width 1.34 with the penalty l1" in text
        or "width 1.345 with" in text
        or "width 1.35" in text
    )
    assert "solved in" in text
    assert "duality gap" in text


@pytest.mark.slow
def test_a_function_as_kernel_has_a_novelty_and_an_indefinite_one_a_warning(banana):
    X, y = banana
    function = FromCallable(lambda A, B: RBF(gamma=GAMMA).block(np.asarray(A), np.asarray(B)))
    given = KernelMachineClassifier(function, alpha=0.3).fit(X, y)
    rows = KernelMachineClassifier(RBF(gamma=GAMMA), alpha=0.3).fit(X, y)
    assert_allclose(given.novelty(X), rows.novelty(X), atol=1e-4)
    with pytest.warns(NumericalWarning, match="not positive semidefinite"):
        sigmoid = KernelMachineClassifier(Sigmoid(gamma=1.0, coef0=-1.0), loss="hinge", alpha=0.3).fit(X, y)
    with pytest.raises(ValueError, match="there is no novelty"):
        sigmoid.novelty(X)
