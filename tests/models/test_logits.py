"""Probabilities of KernelFisherClassifier by the logistic loss: when they are taken, and what they change."""

import pickle

import numpy as np
import pytest
from scipy.special import expit
from sklearn.base import clone
from sklearn.metrics import log_loss

from mercer import KernelFisherClassifier
from mercer._fitting import class_probabilities
from mercer.errors import NumericalError
from mercer.export import to_python
from mercer.kernels import RBF, KmerSpectrum, Sigmoid


def draw(n, seed):
    """Two classes whose log-odds are far from linear in what least squares finds."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    return X, (rng.uniform(size=n) < expit(6.0 * np.sin(X[:, 0]) + 3.0 * X[:, 1] - 5.0)).astype(int)


@pytest.fixture(scope="module")
def rows():
    return draw(300, 0)


@pytest.fixture(scope="module")
def models(rows):
    """The fit with probabilities from the discriminant, and with those of the logistic loss."""
    made = [KernelFisherClassifier("rbf", probabilities=how) for how in ("discriminant", "logistic")]
    return [model.fit(*rows) for model in made]


def test_new_rows_are_predicted_better(rows, models):
    X, y = draw(4000, 99)
    plain, logistic = (log_loss(y, model.predict_proba(X)) for model in models)
    assert logistic < 0.99 * plain
    assert "by the logistic loss" in models[1].report_.probabilities
    assert models[0].report_.probabilities == ""


def test_left_out_probabilities_are_like_those_of_new_rows():
    """The mean over draws: one draw of 200 rows differs from new rows by much more."""
    X, y = draw(2000, 99)
    gaps = []
    for seed in range(8):
        own = draw(200, seed)
        model = KernelFisherClassifier(RBF(gamma=0.3), probabilities="logistic").fit(*own)
        gaps.append(log_loss(own[1], model.loo_proba_) - log_loss(y, model.predict_proba(X)))
    assert abs(np.mean(gaps)) < 2.5 * np.std(gaps, ddof=1) / len(gaps) ** 0.5


def test_the_discriminant_stays(rows, models):
    plain, logistic = models
    X = rows[0]
    for name in ("dual_coef_", "intercept_", "alpha_", "loo_outputs_", "scalings_", "eigenvalues_", "threshold_"):
        np.testing.assert_array_equal(getattr(plain, name), getattr(logistic, name))
    np.testing.assert_array_equal(plain.transform(X), logistic.transform(X))
    assert plain.logit_coef_ is None
    assert plain.logit_intercept_ is None
    assert logistic.logit_coef_.shape == logistic.dual_coef_.shape
    assert np.abs(plain.predict_proba(X) - logistic.predict_proba(X)).max() > 0.01


def test_all_answers_agree(rows, models):
    X, model = rows[0], models[1]
    P = model.predict_proba(X)
    np.testing.assert_array_equal(model.predict(X), P.argmax(axis=1))
    np.testing.assert_allclose(expit(model.decision_function(X)), P[:, 1], atol=1e-12)
    np.testing.assert_allclose(np.exp(model.predict_log_proba(X)), P, atol=1e-12)
    np.testing.assert_allclose(expit(model.loo_decision_), model.loo_proba_[:, 1], atol=1e-12)


def test_labels_without_signal():
    """New rows are predicted as by the discriminant, whether the second fit is taken by chance or not."""
    taken, differences = [], []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(500, 3)), rng.integers(2, size=500)
        made = KernelFisherClassifier(RBF(gamma=0.1), probabilities="logistic")
        model, plain = (
            each.fit(X[:120], y[:120]) for each in (made, clone(made).set_params(probabilities="discriminant"))
        )
        taken.append(model.logit_coef_ is not None)
        losses = [log_loss(y[120:], each.predict_proba(X[120:])) for each in (model, plain)]
        differences.append(losses[0] - losses[1])
    assert np.mean(taken) < 0.5
    assert np.mean(differences) < 0.005 + 2.0 * np.std(differences, ddof=1) / len(differences) ** 0.5


def test_several_classes_have_the_discriminant():
    X, _ = draw(300, 0)
    y = np.digitize(X[:, 0] + X[:, 1] ** 2 + np.random.default_rng(0).exponential(size=300), [0.5, 2.0])
    model = KernelFisherClassifier("rbf", probabilities="logistic").fit(X, y)
    assert model.logit_coef_ is None
    plain = clone(model).set_params(probabilities="discriminant").fit(X, y)
    np.testing.assert_array_equal(model.predict_proba(X), plain.predict_proba(X))


def test_a_weight_of_two_is_the_row_twice():
    X, y = draw(150, 1)
    weight = np.where(np.arange(150) < 40, 2, 1)
    twice = np.repeat(np.arange(150), weight)
    made = KernelFisherClassifier(RBF(gamma=0.3), alpha=0.1, weights="counts", probabilities="logistic")
    weighted, repeated = clone(made).fit(X, y, sample_weight=weight), clone(made).fit(X[twice], y[twice])
    assert weighted.logit_coef_ is not None
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-8)
    np.testing.assert_allclose(
        weighted.loo_proba_[np.repeat(np.arange(150), weight)], repeated.loo_proba_, atol=1e-8
    )


@pytest.mark.parametrize("seed", range(6))
def test_large_counts_are_repeated_rows(seed):
    """Also where the gain is not much larger than its error, of which each copy has a share."""
    X, y = draw(120, seed)
    weight = np.where(np.arange(120) < 30, 6, 1)
    rows = np.repeat(np.arange(120), weight)
    made = KernelFisherClassifier(RBF(gamma=0.3), alpha=0.1, weights="counts", probabilities="logistic")
    weighted, repeated = clone(made).fit(X, y, sample_weight=weight), clone(made).fit(X[rows], y[rows])
    assert (weighted.logit_coef_ is None) == (repeated.logit_coef_ is None)
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-6)


def test_rows_without_weight_do_not_matter():
    X, y = draw(200, 0)
    weight = (np.arange(200) < 160).astype(float)
    made = KernelFisherClassifier(RBF(gamma=0.3), probabilities="logistic", weights="importance")
    some, alone = clone(made).fit(X, y, sample_weight=weight), clone(made).fit(X[:160], y[:160])
    assert some.logit_coef_ is not None
    np.testing.assert_allclose(some.predict_proba(X), alone.predict_proba(X), atol=1e-8)
    assert some.loo_proba_.shape == (200, 2)


def test_groups_are_held_out_together():
    X, y = draw(100, 0)
    three = np.repeat(np.arange(100), 3)
    X = X[three] + 1e-3 * np.random.default_rng(0).normal(size=(300, 2))
    made = KernelFisherClassifier(RBF(gamma=0.3), probabilities="logistic")
    alone, together = clone(made).fit(X, y[three]), clone(made).fit(X, y[three], groups=three)
    first, second = (log_loss(y[three], model.loo_proba_) for model in (alone, together))
    assert first < 0.8 * second


def test_added_rows_have_probabilities_of_the_discriminant(rows):
    X, y = rows
    model = KernelFisherClassifier("rbf", probabilities="logistic").fit(X, y)
    assert model.logit_coef_ is not None
    model.partial_fit(*draw(50, 5))
    assert model.logit_coef_ is None
    assert model.predict_proba(X).shape == (300, 2)


def test_copies_of_a_model(rows, models):
    X, model = rows[0], models[1]
    expected = model.predict_proba(X)
    for other in (pickle.loads(pickle.dumps(model)), model.lean(), clone(model).fit(*rows)):
        np.testing.assert_array_equal(other.predict_proba(X), expected)


def test_exported_source(rows, models):
    X, model = rows[0], models[1]
    space: dict = {}
    exec(to_python(model), space)
    found = np.array([space["probabilities"](row) for row in X[:20].tolist()])
    np.testing.assert_allclose(found, model.predict_proba(X[:20]), atol=1e-9)


def test_the_default(rows):
    """Tried with the default kernel, and not with others, unless asked for."""
    X, y = rows
    assert "log-loss" in KernelFisherClassifier().fit(X, y).report_.probabilities
    for choices in ({"kernel": "rbf"}, {"probabilities": "discriminant"}):
        assert KernelFisherClassifier(**choices).fit(X, y).report_.probabilities == ""


def reason_of(model):
    """Why there was no second fit, as the report says."""
    before, reason = model.report_.probabilities.split(", without a fit by the logistic loss: ")
    assert before == "of the discriminant"
    assert f"{before}, without" in str(model.report_)
    assert model.logit_coef_ is None
    return reason


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("penalty", "coef"),
        ("threshold", "error"),
        ("calibration", "isotonic"),
        ("criterion", "squared"),
        ("invariances", [np.negative]),
        ("n_components", 1),
    ],
)
def test_the_report_names_the_parameter_that_is_about_the_discriminant(rows, parameter, value):
    model = KernelFisherClassifier(**{parameter: value}).fit(*(each[:60] for each in rows))
    assert reason_of(model) == f"{parameter} is about the discriminant"


LOGISTIC = KernelFisherClassifier(RBF(gamma=0.3), alpha=0.1, probabilities="logistic")
ALL_AT_ONCE = "it needs all rows at once, each of them a center"


def test_the_report_names_what_there_is_too_little_of(rows, monkeypatch):
    X, y = rows
    assert reason_of(clone(LOGISTIC).fit(X[:99], y[:99])) == "fewer than 100 rows"
    assert "log-loss" in clone(LOGISTIC).fit(X[:100], y[:100]).report_.probabilities
    monkeypatch.setattr(class_probabilities, "MORE_MATRICES", 10**9)
    assert reason_of(clone(LOGISTIC).fit(X, y)) == "the memory is too small for one more matrix"


@pytest.mark.parametrize("model", [LOGISTIC, KernelFisherClassifier()], ids=["asked", "default"])
def test_the_report_names_several_classes(rows, model):
    X, y = rows[0][:120], np.arange(120) % 3
    assert reason_of(clone(model).fit(X, y)) == "more than two classes"
    assert reason_of(clone(model).set_params(centers=20).fit(X, y)) == "more than two classes"


def test_the_report_names_sums_over_the_rows(rows):
    X, y = rows[0][:120], rows[1][:120]
    few = clone(LOGISTIC).set_params(centers=20)
    assert reason_of(few.fit(X, y)) == ALL_AT_ONCE
    assert reason_of(clone(LOGISTIC).fit([(X, y)])) == ALL_AT_ONCE
    assert reason_of(clone(LOGISTIC).fit(X, y).partial_fit(X, y)) == ALL_AT_ONCE
    assert few.set_params(probabilities="discriminant").fit(X, y).report_.probabilities == ""


@pytest.mark.filterwarnings("ignore::mercer.errors.NumericalWarning")
def test_the_report_names_kernels_that_are_not_known_to_be_definite(rows):
    X, y = rows
    K = RBF(gamma=0.3).block(X, X)
    assert reason_of(clone(LOGISTIC).set_params(kernel="precomputed").fit(K, y)) == "the kernel is precomputed"
    sigmoid = clone(LOGISTIC).set_params(kernel=Sigmoid(gamma=0.01))
    assert reason_of(sigmoid.fit(X, y)) == "the kernel may be indefinite"


def test_the_report_names_folds_of_rows_without_weight(rows):
    X, y = rows
    weight, groups = (np.arange(300) % 10 > 0).astype(float), np.arange(300) // 3
    assert "log-loss" in clone(LOGISTIC).fit(X, y, groups=groups).report_.probabilities
    model = clone(LOGISTIC).fit(X, y, sample_weight=weight, groups=groups)
    assert reason_of(model) == "rows that are held out in folds have no weight"


def test_the_report_states_what_a_second_fit_failed_of(rows, monkeypatch):
    def no_minimum(self, alpha, start=None):
        raise NumericalError("no minimum")

    monkeypatch.setattr(class_probabilities.LogisticFits, "at", no_minimum)
    assert reason_of(clone(LOGISTIC).fit(*rows)) == "no minimum"


def test_few_rows():
    X, y = draw(80, 0)
    assert KernelFisherClassifier("rbf", probabilities="logistic").fit(X, y).logit_coef_ is None


def test_kernels_on_other_rows():
    rng = np.random.default_rng(0)
    words = ["".join(rng.choice(list("ab"), size=12)) for _ in range(120)]
    y = np.array(["aba" in word for word in words])
    model = KernelFisherClassifier(KmerSpectrum(3), probabilities="logistic").fit(words, y)
    assert "log-loss" in model.report_.probabilities
    assert model.predict_proba(words[:5]).shape == (5, 2)


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"probabilities": "platt"}, "probabilities"),
        (
            {"probabilities": "logistic", "threshold": "error"},
            "needs threshold=.bayes.; .error. is about the disc",
        ),
        ({"probabilities": "logistic", "n_components": 1}, "needs n_components=None; 1 is about"),
        ({"probabilities": "logistic", "penalty": "coef"}, "needs penalty=.rkhs."),
    ],
)
def test_what_cannot_be(rows, choices, message):
    with pytest.raises(ValueError, match=message):
        KernelFisherClassifier(**choices).fit(*rows)
