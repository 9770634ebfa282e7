"""Sparse estimators: few centers, stages, widths, one selection for all classes or one for each."""

import numpy as np
import pytest
import skops.io
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import roc_auc_score

from mercer import KernelFisherClassifier, SparseFisherClassifier, SparseKernelRegressor
from mercer._fitting.memory import SearchStage
from mercer._fitting.selection.search import neighbors
from mercer.datasets import make_banana, make_ringnorm, make_sinc, make_two_spirals, make_twonorm
from mercer.errors import MemoryBudgetError
from mercer.files import TRUSTED_TYPES
from mercer.kernels import RBF, Linear, Precomputed
from mercer.kernels._base import grid_shape
from mercer.rows._distinct import distinct_rows

NARROW = RBF(gamma=2.0)
FEW_ROWS = "mercer._fitting.sparse.problem.MOST_FOR_EVIDENCE"


@pytest.fixture(scope="module")
def banana():
    return make_banana(200, random_state=0)


@pytest.fixture(scope="module")
def three_classes():
    rng = np.random.default_rng(0)
    label = np.repeat(np.arange(3), 50)
    angle = 2.0 * np.pi * label / 3.0
    return np.column_stack([np.cos(angle), np.sin(angle)]) + 0.3 * rng.normal(size=(150, 2)), label


@pytest.mark.slow
def test_few_centers_do_as_well_as_all():
    share, loss = [], []
    for seed in range(5):
        X, y = make_ringnorm(400, random_state=seed)
        X_new, y_new = make_ringnorm(4000, random_state=100 + seed)
        sparse, full = SparseFisherClassifier(random_state=0).fit(X, y), KernelFisherClassifier().fit(X, y)
        share.append(len(sparse.support_) / len(y))
        loss.append(full.score(X_new, y_new) - sparse.score(X_new, y_new))
    assert np.mean(share) <= 0.15
    assert np.mean(loss) <= 0.003


@pytest.mark.slow
def test_left_out_accuracy_is_honest():
    X, y = make_twonorm(300, random_state=0)
    X_new, y_new = make_twonorm(4000, random_state=1)
    model = SparseFisherClassifier(random_state=0).fit(X, y)
    assert model.loo_score_ == pytest.approx(model.score(X_new, y_new), abs=0.02)


@pytest.mark.slow
@pytest.mark.parametrize("penalty", ["diagonal", "orthogonal"])
@pytest.mark.parametrize("make", [make_twonorm, make_ringnorm])
def test_the_pseudodiscriminant_and_orthogonal_least_squares_do_as_well_as_all_rows(make, penalty):
    errors, kernel = [], RBF(gamma=0.005)
    for seed in range(3):
        X, y = make(300, random_state=seed)
        X_new, y_new = make(3000, random_state=100 + seed)
        sparse = SparseFisherClassifier(kernel, selection="residual", penalty=penalty, random_state=0).fit(X, y)
        full = KernelFisherClassifier(kernel, random_state=0).fit(X, y)
        errors.append(full.score(X_new, y_new) - sparse.score(X_new, y_new))
    assert np.mean(errors) < 0.01
    assert max(errors) < 0.02


@pytest.mark.slow
def test_held_out_rows_choose_the_alpha_of_orthogonal_least_squares(banana):
    X, y = banana
    model = SparseFisherClassifier(RBF(gamma=1.0), selection="residual", penalty="orthogonal").fit(X, y)
    compared = model.tuning_paths_[-1]
    assert compared.alphas.shape == (1, 8)
    assert model.alpha_ == compared.alphas[0, compared.scores[0].argmin()]
    estimated = SparseFisherClassifier(RBF(gamma=1.0), selection="residual", penalty="orthogonal", alpha="gcv")
    assert estimated.fit(X, y).alpha_ not in compared.alphas


@pytest.mark.slow
@pytest.mark.parametrize(
    "options", [{}, {"selection": "residual"}, {"penalty": "diagonal"}, {"prune": True}], ids=str
)
def test_centers_chosen_by_labels_do_not_tell_them(options):
    """Nothing can be known about labels that are noise; no kernel, alpha or number of centers is chosen here."""
    right = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(200, 5)), rng.integers(0, 2, 200)
        model = SparseFisherClassifier(RBF(gamma=0.1), alpha=0.1, max_centers=20, stop=None, **options).fit(X, y)
        right.append(roc_auc_score(y, model.loo_outputs_[:, 0]))
    assert abs(np.mean(right) - 0.5) < 2.0 * np.std(right, ddof=1) / np.sqrt(10)


@pytest.mark.slow
def test_labels_that_are_noise_are_not_believed():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 5)), rng.integers(0, 2, 200)
    assert SparseFisherClassifier().fit(X, y).loo_score_ < 0.62


@pytest.mark.slow
def test_noise_is_not_fitted_by_the_regressor():
    rng = np.random.default_rng(0)
    model = SparseKernelRegressor().fit(rng.normal(size=(150, 4)), rng.normal(size=150))
    assert model.loo_score_ < 0.1


@pytest.mark.slow
def test_evidence_spares_the_regressor_wild_fits_of_few_rows(monkeypatch):
    with_evidence, without = [], []
    for most, errors in ((600, with_evidence), (0, without)):
        monkeypatch.setattr(FEW_ROWS, most)
        for seed in range(12):
            X, y = make_sinc(50, random_state=seed)
            X_new, y_new = make_sinc(1000, noise=0.0, random_state=100 + seed)
            model = SparseKernelRegressor().fit(X, y)
            errors.append(np.sqrt(np.mean((model.predict(X_new) - y_new) ** 2)))
    assert np.mean(with_evidence) < np.mean(without)
    assert max(with_evidence) < 0.1


@pytest.mark.slow
def test_evidence_stays_within_a_standard_error_of_the_least_left_out_error(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (120, 2))
    y = np.sign(X[:, 0] * X[:, 1]) + 0.1 * rng.standard_t(2, 120)
    evidence = SparseKernelRegressor(stop=None).fit(X, y)
    monkeypatch.setattr(FEW_ROWS, 0)
    loo = SparseKernelRegressor(stop=None).fit(X, y)
    least = min(path.least.min() for path in loo.tuning_paths_)
    (path,) = evidence.tuning_paths_
    g = [kernel.gamma for kernel in path.kernels].index(evidence.gamma_)
    (chosen,) = path.scores[g, path.alphas[g] == evidence.alpha_]
    assert chosen <= least * (1.0 + np.sqrt(2.0 / 120))


@pytest.fixture
def small_comparison(monkeypatch):
    """Kernels are compared with 30 random centers on 60 points, the best by sparse fits of 60 candidates to 90."""
    monkeypatch.setattr(FEW_ROWS, 0)
    monkeypatch.setattr(
        "mercer._fitting.memory.SEARCH_STAGES", (SearchStage(60, 30), SearchStage(120, 60), SearchStage(240, 120))
    )
    for module in ("sparse.paths", "sparse.kernels", "sparse.problem"):
        monkeypatch.setattr(f"mercer._fitting.{module}.COMPARED_ROWS_AND_CANDIDATES", (90, 60))


@pytest.mark.sampled(1)
@pytest.mark.usefixtures("small_comparison")
@pytest.mark.parametrize("model", [SparseFisherClassifier, SparseKernelRegressor])
@pytest.mark.parametrize(
    "kernel", [RBF(gamma="loo"), RBF(gamma="loo") + Linear(), RBF(gamma="loo") * RBF(gamma="loo")], ids=str
)
def test_sparse_fits_decide_between_few_kernels_until_no_neighbor_is_better(banana, model, kernel):
    X, y = banana
    fitted = model(kernel, max_centers=20, random_state=0).fit(X, y)
    first, then, last = fitted.tuning_paths_
    assert [(path.n_points, path.n_centers) for path in fitted.tuning_paths_] == [(60, 30), (90, 20), (200, 20)]
    candidates = kernel.candidates(X)
    position = {repr(each): g for g, each in enumerate(candidates)}
    tried = {position[repr(each)] for each in then.kernels}
    best = position[repr(then.kernels[then.best[0]])]
    assert tried >= neighbors(best, grid_shape(candidates))
    assert position[repr(first.kernels[first.best[0]])] in tried
    assert len(tried) < len(first.kernels) < 100
    assert last.kernels == [then.kernels[then.best[0]]] == [fitted.kernel_]


@pytest.mark.slow
@pytest.mark.usefixtures("small_comparison")
def test_the_report_says_how_kernels_were_compared(banana):
    model = SparseFisherClassifier(max_centers=20, random_state=0).fit(*banana)
    n = len(model.tuning_paths_[1].kernels)
    assert model.report_.searched == (
        "15 widths and 12 alphas by fits with 30 centers to 60 rows, "
        f"then {n} widths and 18 alphas by fits with 20 centers to 90 rows, "
        "then 18 alphas by fits with 20 centers to 200 rows"
    )
    alone = SparseFisherClassifier(NARROW, alpha=1.0, max_centers=20).fit(*banana)
    assert alone.report_.searched == "nothing: there is only one kernel"


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"penalty": "diagonal"}, {"alpha": "gcv"}], ids=str)
def test_kernels_compared_on_all_rows_need_no_other_comparison_for_alpha(banana, options):
    X, y = banana
    model = SparseFisherClassifier(max_centers=20, random_state=0, **options).fit(X, y)
    assert [len(path.kernels) > 1 for path in model.tuning_paths_] == [True, True]
    alone = SparseFisherClassifier(model.kernel_, max_centers=20, random_state=0, **options).fit(X, y)
    assert alone.alpha_ == model.alpha_
    assert_array_equal(alone.support_, model.support_)


@pytest.mark.slow
def test_evidence_of_sums_of_kernels_is_computed_along_axes():
    X, y = make_sinc(40, random_state=0)
    model = SparseKernelRegressor(RBF(gamma="loo") + RBF(gamma="loo")).fit(X, y)
    (path,) = model.tuning_paths_
    assert path.marginal_deviance.shape == path.scores.shape
    # At least the two lines through one kernel, at most three rounds of them; all pairs would be 225.
    assert 29 <= len(path.kernels) <= 90
    assert "by evidence" in str(model.report_)


@pytest.mark.slow
@pytest.mark.parametrize(("n", "decides"), [(600, True), (620, False)])
def test_evidence_decides_for_regressors_up_to_600_rows(n, decides):
    X, y = make_sinc(n, random_state=0)
    model = SparseKernelRegressor(max_centers=20, random_state=0).fit(X, y)
    assert (model.tuning_paths_[-1].marginal_deviance is not None) == decides


def test_alpha_by_evidence_alone_is_for_the_orthogonal_penalty():
    X, y = make_sinc(30, random_state=0)
    with pytest.raises(ValueError, match='is for penalty="orthogonal"'):
        SparseKernelRegressor(alpha="evidence").fit(X, y)


@pytest.mark.slow
@pytest.mark.parametrize("selection", ["gain", "residual", "orthogonal"])
@pytest.mark.parametrize("prune", [False, True])
def test_the_last_stage_is_the_model(banana, selection, prune):
    X, y = banana
    choices = {"alpha": 0.1, "selection": selection, "prune": prune}
    model = SparseFisherClassifier(NARROW, max_centers=25, **choices).fit(X, y)
    stages = list(model.staged_predict(X))
    assert len(stages) == len(model.support_)
    assert_array_equal(stages[-1], model.predict(X))
    x, t = make_sinc(60, random_state=0)
    regressor = SparseKernelRegressor(RBF(gamma=0.5), **choices).fit(x, t)
    assert_allclose(list(regressor.staged_predict(x))[-1], regressor.predict(x), rtol=1e-8)


def test_a_stage_is_the_model_with_so_many_centers(banana):
    X, y = banana
    whole = SparseFisherClassifier(NARROW, alpha=0.5, stop=None, max_centers=12).fit(X, y)
    short = SparseFisherClassifier(NARROW, alpha=0.5, stop=None, max_centers=5).fit(X, y)
    assert_array_equal(short.support_, whole.support_[:5])
    assert_allclose(list(whole._staged_outputs(X))[4], short._outputs(X), rtol=1e-8)


def test_centers_are_training_rows(banana):
    X, y = banana
    model = SparseFisherClassifier(NARROW).fit(X, y)
    assert_array_equal(model.X_fit_, X[model.support_])
    assert len(np.unique(model.support_)) == len(model.support_) == len(model.dual_coef_)


@pytest.mark.slow
def test_classes_share_their_centers_or_have_their_own(three_classes):
    X, y = three_classes
    shared = SparseFisherClassifier(NARROW, max_centers=10).fit(X, y)
    own = SparseFisherClassifier(NARROW, max_centers=10, shared=False, stop=None).fit(X, y)
    assert (shared.dual_coef_ != 0).all()
    assert ((own.dual_coef_ != 0).sum(axis=0) == 10).all()
    assert len(own.center_path_) == 3
    assert min(shared.score(X, y), own.score(X, y)) > 0.95


def test_widths_let_every_center_choose_its_gamma(banana):
    X, y = banana
    model = SparseFisherClassifier(NARROW, widths=[0.1, 1.0, 5.0], max_centers=30, stop=None).fit(X, y)
    assert len(set(model.center_kernel_)) > 1
    F = np.zeros(len(X))
    for z, c, g in zip(model.X_fit_, model.dual_coef_[:, 0], model.center_kernel_):
        F += c * model.kernels_[g].block(X, z[None])[:, 0]
    assert_allclose(model._outputs(X)[:, 0], F + model.intercept_[0], rtol=1e-8, atol=1e-10)
    assert model.score(X, y) > 0.85


def test_a_precomputed_kernel_gives_the_same_model(banana):
    X, y = banana
    # Folds are dealt along the points: rows of values are in their own order, kernel values in that of the rows.
    first = distinct_rows(X).first
    X, y = X[first], y[first]
    K = NARROW.block(X, X)
    given = SparseFisherClassifier("precomputed", max_centers=20).fit(K, y)
    computed = SparseFisherClassifier(NARROW, max_centers=20).fit(X, y)
    assert set(given.support_) == set(computed.support_)
    assert_allclose(given.predict_proba(K), computed.predict_proba(X), rtol=1e-6)
    assert isinstance(given.kernel_, Precomputed)


@pytest.mark.slow
def test_two_spirals_are_parted_by_ninety_centers():
    X, y = make_two_spirals(194, random_state=0)
    model = SparseFisherClassifier(max_centers=90, stop=None, random_state=0).fit(X, y)
    assert len(model.support_) <= 90
    assert model.score(X, y) == 1.0


def test_report_says_why_a_path_ends():
    X, y = make_banana(200, random_state=0)
    limited = SparseFisherClassifier(NARROW, alpha=0.1, max_centers=3).fit(X, y)
    assert len(limited.support_) == 3
    assert "all of a path of 3: stop='loo' would select more; raise max_centers above 3" in str(limited.report_)
    asked = SparseFisherClassifier(NARROW, alpha=0.1, max_centers=3, stop=None).fit(X, y)
    assert "by gain, of a path of 3\n" in str(asked.report_)
    exhausted = SparseFisherClassifier("linear", alpha=1e-3, tol=0.0).fit(X[:, :1], y)
    assert "all of a path of 1: no other row would improve it" in str(exhausted.report_)


@pytest.mark.slow
def test_centers_whose_use_can_not_be_told_are_not_kept():
    """Classes that hardly overlap: one per cent of their small loss is less than its standard error."""
    X, y = make_twonorm(250, random_state=0)
    X_new, y_new = make_twonorm(4000, random_state=100)
    model = SparseFisherClassifier(random_state=0).fit(X, y)
    assert len(model.support_) <= 30
    assert len(model.center_path_) == 125
    longest = SparseFisherClassifier(model.kernel_, alpha=model.alpha_, stop=None).fit(X, y)
    assert model.score(X_new, y_new) >= longest.score(X_new, y_new) - 0.01


@pytest.mark.sampled(1)
@pytest.mark.parametrize("stop", ["loo", "gcv", "bic", "improvement"])
def test_every_rule_stops_before_the_end(stop):
    X, y = make_ringnorm(200, random_state=0)
    model = SparseFisherClassifier(RBF(gamma=0.05), stop=stop).fit(X, y)
    assert 1 <= len(model.support_) < 100


def test_the_residual_rule_keeps_all_residuals_below_its_tolerance():
    X, y = make_sinc(80, noise=0.0, random_state=0)
    model = SparseKernelRegressor(RBF(gamma=0.3), alpha=1e-10, selection="residual", stop="residual", tol=0.02)
    model.fit(X, y)
    assert np.abs(model.predict(X) - y).max() <= 0.02 + 1e-9
    assert len(model.support_) < 40


@pytest.mark.slow
def test_pruning_takes_no_more_centers(banana):
    X, y = banana
    plain, pruned = (SparseFisherClassifier(NARROW, prune=prune).fit(X, y) for prune in (False, True))
    assert len(pruned.support_) <= len(plain.support_)


def test_the_report_says_how_many_centers(banana):
    X, y = banana
    model = SparseFisherClassifier(NARROW).fit(X, y)
    assert f"{len(model.support_)}, by gain, of a path of" in str(model.report_)


def test_single_precision_stays_single_precision(banana):
    X, y = banana
    options = {"max_centers": 15, "alpha": 1.0, "stop": None}
    single = SparseFisherClassifier(NARROW, **options).fit(X.astype(np.float32), y)
    double = SparseFisherClassifier(NARROW, **options).fit(X, y)
    assert single.dual_coef_.dtype == np.float32
    assert_allclose(single.predict_proba(X.astype(np.float32)), double.predict_proba(X), atol=0.05)


def test_a_model_comes_back_from_a_file(three_classes):
    X, y = three_classes
    model = SparseFisherClassifier(NARROW, widths=[0.5, 2.0], max_centers=10).fit(X, y)
    again = skops.io.loads(skops.io.dumps(model), trusted=TRUSTED_TYPES)
    assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    assert str(again.report_) == str(model.report_)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"selection": "best"}, "selection"),
        ({"stop": "soon"}, "stop"),
        ({"penalty": "l1"}, "penalty"),
        ({"alpha": 0.0}, "alpha"),
        ({"alpha": "evidence"}, "orthogonal"),
        ({"n_candidates": 0}, "n_candidates"),
        ({"max_centers": 2.5}, "max_centers"),
        ({"tol": -1.0}, "tol"),
        ({"selection": "orthogonal", "penalty": "rkhs"}, "orthogonal coefficients"),
        ({"widths": [0.5, 2.0], "penalty": "rkhs"}, "no common norm"),
        ({"alpha": "evidence", "penalty": "coef"}, "not 'coef'"),
        ({"widths": [1.0, -1.0]}, "widths"),
        ({"widths": []}, "widths"),
        ({"kernel": "linear", "widths": [1.0, 2.0]}, "widths"),
    ],
)
def test_wrong_parameters_are_named(banana, parameters, message):
    X, y = banana
    with pytest.raises(ValueError, match=message):
        SparseFisherClassifier(**{"kernel": NARROW, **parameters}).fit(X, y)


def test_memory_is_asked_for_before_it_is_taken(banana):
    X, y = banana
    with pytest.raises(MemoryBudgetError, match="a path of 100 centers on 200 rows"):
        SparseFisherClassifier(NARROW, max_memory=1e-6).fit(X, y)


@pytest.mark.filterwarnings("ignore:all features are constant:mercer.errors.NumericalWarning")
def test_columns_that_are_constant_leave_the_intercept():
    X, y = np.zeros((10, 2)), np.arange(10.0)
    model = SparseKernelRegressor(RBF(gamma=1.0)).fit(X, y)
    assert_allclose(model.predict(X), 4.5)


@pytest.mark.slow
def test_rows_without_weight_do_not_decide_how_alpha_is_chosen():
    """The evidence is for at most 600 distinct rows; here 590 have weight."""
    X, y = make_sinc(620, random_state=0)
    weight = np.repeat([1.0, 0.0], [590, 30])
    model = SparseKernelRegressor(NARROW, max_centers=5, random_state=0)
    alpha = model.fit(X, y, sample_weight=weight).alpha_
    assert alpha == model.fit(X[:590], y[:590]).alpha_


@pytest.mark.parametrize("model", [SparseFisherClassifier(NARROW), SparseKernelRegressor(NARROW)])
def test_stages_read_rows_outside_memory(banana, model):
    X, y = banana
    stages = list(model.set_params(max_centers=3, stop=None).fit(X, y).staged_predict([(X[:90],), (X[90:],)]))
    assert len(stages) == 3
    for streamed, held in zip(stages, model.staged_predict(X)):
        assert_allclose(streamed, held, rtol=1e-12)


def test_stages_of_an_iterator_are_refused_with_a_remedy(banana):
    X, y = banana
    model = SparseFisherClassifier(NARROW, alpha=0.1).fit(X, y)
    with pytest.raises(ValueError, match="pass a function that returns the iterator"):
        list(model.staged_predict(iter([(X,)])))
