"""Models with m centers: the same from every source of rows, in any batching, and honest about rows left out."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_blobs

from mercer import KernelFisherClassifier, KernelRidgeRegressor
from mercer._fitting import ALPHAS
from mercer._fitting.moments import PassState
from mercer._scores.uncertainty.unexplained_variance import _packed, _unpacked
from mercer.centers import ForwardSelection, KMeans, RPCholesky, Uniform
from mercer.datasets import make_banana, make_sinc, make_waveform
from mercer.kernels import RBF, FromCallable
from mercer.rows import MemoryRows, ParquetRows, StreamRows

# Centers so far apart that their kernel matrix has a condition number of a hundred: sums in another order then
# change the last digits only.
KERNEL = RBF(gamma=2.0)
GRID = np.stack(np.meshgrid(np.linspace(-2, 2, 5), np.linspace(-2, 2, 5)), axis=-1).reshape(-1, 2)
LINE = np.linspace(-9, 9, 13)[:, None]


@pytest.fixture(scope="module")
def banana():
    return make_banana(900, random_state=0)


@pytest.fixture(scope="module")
def sinc():
    return make_sinc(900, random_state=0)


def batches(X, y, size):
    return [(X[i : i + size], y[i : i + size]) for i in range(0, len(X), size)]


def parquet(tmp_path, X, y, files=3):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    for k, rows in enumerate(np.array_split(np.arange(len(X)), files)):
        columns = {f"x{j}": X[rows, j] for j in range(X.shape[1])}
        pq.write_table(pa.table({**columns, "label": y[rows]}), tmp_path / f"part{k}.parquet")
    return str(tmp_path)


def memory_map(tmp_path, X):
    np.save(tmp_path / "X.npy", X)
    return np.load(tmp_path / "X.npy", mmap_mode="r")


def assert_same_classifier(found, expected, X, tolerance=1e-10):
    assert_allclose(found.decision_function(X), expected.decision_function(X), rtol=tolerance, atol=tolerance)
    assert_array_equal(found.predict(X), expected.predict(X))


def test_every_row_a_center_is_the_exact_fit(banana):
    X, y = banana[0][:80], banana[1][:80]
    exact = KernelFisherClassifier(KERNEL, alpha=0.5).fit(X, y)
    passes = KernelFisherClassifier(KERNEL, alpha=0.5, centers=Uniform(80)).fit(X, y)
    # Moments square the condition of the kernel matrix; alpha keeps what is left of its digits.
    assert_allclose(passes.transform(X), exact.transform(X), rtol=1e-6, atol=1e-6)
    assert_allclose(passes.loo_outputs_, exact.loo_outputs_, rtol=1e-6, atol=1e-6)
    assert_allclose(passes.predict_proba(X), exact.predict_proba(X), atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("alpha", [0.01, 1.0])
@pytest.mark.parametrize("intercept", [True, False])
def test_outputs_left_out_are_those_of_refitting(sinc, alpha, intercept):
    X, y = sinc[0][:40], sinc[1][:40]
    Z = np.linspace(-8, 8, 12)[:, None]
    model = KernelRidgeRegressor(RBF(gamma=0.3), alpha=alpha, centers=Z, fit_intercept=intercept)
    left_out = model.fit(X, y).loo_prediction_
    for i in range(0, 40, 4):
        without = np.arange(40) != i
        assert_allclose(left_out[i], model.fit(X[without], y[without]).predict(X[i : i + 1])[0], atol=1e-8)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("source", ["map", "parquet", "stream", "function", "rows", "csr", "frame", "list"])
def test_every_source_gives_the_same_model(banana, tmp_path, source):
    X, y = banana
    model = KernelFisherClassifier(KERNEL, centers=GRID).fit(X, y)
    other = KernelFisherClassifier(KERNEL, centers=GRID)
    if source == "map":
        other.fit(memory_map(tmp_path, X), y)
    elif source == "parquet":
        other.fit(parquet(tmp_path, X, y), "label")
    elif source == "stream":
        other.fit(batches(X, y, 77))
    elif source == "function":
        other.fit(lambda: iter(batches(X, y, 130)))
    elif source == "rows":
        other.fit(MemoryRows(X, y, block_rows=50))
    elif source == "csr":
        other.set_params(centers=sparse.csr_matrix(GRID)).fit(sparse.csr_matrix(X), y)
    elif source == "frame":
        other.fit(pytest.importorskip("pandas").DataFrame(X, columns=["a", "b"]), y)
    else:
        other.fit(X.tolist(), y.tolist())
    new = X[:50] + 0.1
    new = sparse.csr_matrix(new) if source == "csr" else new
    if source in ("frame", "parquet"):
        new = pytest.importorskip("pandas").DataFrame(new, columns=list(other.feature_names_in_))
    assert_allclose(other.predict_proba(new), model.predict_proba(X[:50] + 0.1), atol=1e-10)


def test_shuffled_rows_give_the_same_model(banana, rng):
    X, y = banana
    order = rng.permutation(len(X))
    model = KernelFisherClassifier(KERNEL, alpha=0.1, centers=GRID).fit(X, y)
    shuffled = KernelFisherClassifier(KERNEL, alpha=0.1, centers=GRID).fit(X[order], y[order])
    assert_same_classifier(shuffled, model, X)


@pytest.mark.slow
@pytest.mark.parametrize("size", [7, 100, 300])
def test_partial_fit_in_any_batching_is_fit(banana, size):
    X, y = banana[0][:300], banana[1][:300]
    for alpha, tolerance in (("loo", 1e-10), (0.1, 1e-10)):
        model = KernelFisherClassifier(KERNEL, alpha=alpha, centers=GRID).fit(X, y)
        parts = KernelFisherClassifier(KERNEL, alpha=alpha, centers=GRID)
        for rows, labels in batches(X, y, size):
            parts.partial_fit(rows, labels, classes=[-1, 1])
        assert_same_classifier(parts, model, X, tolerance)
        assert_allclose(parts.loo_outputs_, model.loo_outputs_, atol=tolerance)
        assert parts.report_.n_rows == 300


@pytest.mark.parametrize("weighted", [False, True])
def test_rows_that_joined_can_leave_again(sinc, rng, weighted):
    X, y = sinc
    w = rng.integers(1, 4, 900).astype(float) if weighted else None
    some, more = slice(None, 600), slice(600, None)
    model = KernelRidgeRegressor(RBF(gamma=0.3), centers=LINE)
    model.fit(X[some], y[some], None if w is None else w[some])
    before, residuals = model.predict(X), model.loo_prediction_.copy()
    model.partial_fit(X[more], y[more], None if w is None else w[more])
    assert np.abs(model.predict(X) - before).max() > 1e-4
    model.remove(X[more], y[more], None if w is None else w[more])
    assert_allclose(model.predict(X), before, rtol=1e-8, atol=1e-8)
    assert_allclose(model.loo_prediction_, residuals, rtol=1e-8, atol=1e-8)


@pytest.mark.slow
def test_fit_can_be_continued(banana):
    X, y = banana
    model = KernelFisherClassifier(KERNEL, alpha=0.1, centers=GRID).fit(X, y)
    two = KernelFisherClassifier(KERNEL, alpha=0.1, centers=GRID).fit(X[:500], y[:500])
    two.partial_fit(X[500:], y[500:])
    assert_same_classifier(two, model, X)


def test_lean_models_predict_and_can_not_go_on(banana):
    X, y = banana
    model = KernelFisherClassifier(KERNEL, centers=GRID).fit(X[:500], y[:500]).partial_fit(X[500:], y[500:])
    lean = model.lean()
    assert_array_equal(lean.predict_proba(X), model.predict_proba(X))
    assert len(pickle.dumps(lean)) < len(pickle.dumps(model))
    with pytest.raises(AttributeError, match="moments_"):
        lean.moments_
    assert model.moments_.n_rows == 900


def test_decay_weighs_what_was_before(sinc):
    X, y = sinc
    weight = np.r_[np.full(450, 0.25), np.ones(450)]
    model = KernelRidgeRegressor(RBF(gamma=0.3), alpha=0.1, centers=LINE).fit(X, y, weight)
    stream = KernelRidgeRegressor(RBF(gamma=0.3), alpha=0.1, centers=LINE)
    stream.partial_fit(X[:450], y[:450]).partial_fit(X[450:], y[450:], decay=0.25)
    assert_allclose(stream.predict(X), model.predict(X), rtol=1e-9, atol=1e-10)
    assert_allclose(stream.loo_prediction_, model.loo_prediction_, rtol=1e-9, atol=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("penalty", ["rkhs", "coef"])
def test_folds_that_leave_are_left_out_of_the_fit(banana, penalty):
    X, y = banana[0][:200], banana[1][:200]
    groups = np.arange(200) % 4
    model = KernelFisherClassifier(KERNEL, alpha=0.3, centers=X[:20], penalty=penalty)
    outputs = model.fit(X, y, groups=groups).loo_outputs_
    for g in range(4):
        model.fit(X[groups != g], y[groups != g])
        assert_allclose(outputs[groups == g], model.transform(X[groups == g]), rtol=1e-8, atol=1e-8)


def test_weights_are_counts(sinc, rng):
    X, y = sinc[0][:200], sinc[1][:200]
    count = rng.integers(0, 4, 200)
    model = KernelRidgeRegressor(RBF(gamma=0.3), alpha=0.1, centers=LINE)
    weighted = clone(model).fit(X, y, count)
    repeated = clone(model).fit(X.repeat(count, 0), y.repeat(count))
    assert_allclose(weighted.predict(X), repeated.predict(X), rtol=1e-8, atol=1e-8)
    assert_allclose(weighted.loo_prediction_.repeat(count), repeated.loo_prediction_, rtol=1e-8, atol=1e-8)
    assert_allclose(weighted.noise_std_, repeated.noise_std_, rtol=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("centers", [20, ForwardSelection(), KMeans(), RPCholesky(), Uniform()], ids=str)
def test_classes_are_told_apart_whoever_chooses(centers):
    X, y = make_blobs(600, centers=3, n_features=4, cluster_std=2.0, random_state=0)
    model = KernelFisherClassifier(centers=centers, random_state=0).fit(X[:400], y[:400])
    assert model.score(X[400:], y[400:]) > 0.9
    assert model.transform(X).shape == (600, 2)
    assert "centers" in str(model.report_)


@pytest.mark.slow
def test_many_rows_get_centers_by_themselves(monkeypatch, banana):
    monkeypatch.setattr("mercer._fitting.run.EXACT_ROWS", 300)
    model = KernelFisherClassifier(KERNEL, random_state=0).fit(*banana)
    assert "Uniform on 900 rows" in model.report_.centers
    # At most half of the rows, and no more than the kernel can tell apart.
    assert 50 < len(model.X_fit_) <= 450
    assert len(KernelFisherClassifier(KERNEL, centers="all").fit(*banana).X_fit_) == 900


def test_left_out_rows_may_be_a_sample(banana):
    X, y = banana
    every = KernelFisherClassifier(KERNEL, alpha=1.0, centers=GRID).fit(X, y)
    some = KernelFisherClassifier(KERNEL, alpha=1.0, centers=GRID, loo_rows=200, random_state=0).fit(X, y)
    assert len(some.loo_index_) == 200 == len(some.loo_outputs_)
    assert_allclose(some.loo_outputs_, every.loo_outputs_[some.loo_index_], atol=1e-12)
    assert "holding out each of 200 rows" in str(some.report_)


def test_rare_classes_are_in_every_sample(rng):
    X, y = rng.normal(size=(3000, 2)), np.zeros(3000, int)
    y[:4], X[:4, 0] = 2, 6.0
    y[4:1500], X[4:1500, 1] = 1, X[4:1500, 1] + 4.0
    model = KernelFisherClassifier(KERNEL, centers=ForwardSelection(40), loo_rows=60, random_state=0).fit(X, y)
    assert (model.predict(X[:4]) == 2).all()
    assert np.isfinite(model.predict_proba(X)).all()


def test_single_precision_is_close(banana):
    X, y = banana
    double = KernelFisherClassifier(KERNEL, centers=GRID).fit(X, y)
    single = KernelFisherClassifier(KERNEL, centers=GRID).fit(X.astype(np.float32), y)
    assert single.transform(X.astype(np.float32)).dtype == np.float32
    assert_allclose(single.predict_proba(X), double.predict_proba(X), atol=1e-3)


@pytest.mark.slow
def test_rows_in_float32_have_as_many_centers_of_a_wide_kernel_as_matter():
    """Values of a wide kernel are nearly equal: those in float32 are equal for all but a few centers."""
    X = np.random.default_rng(0).normal(size=(1500, 12)).astype(np.float32)
    y = X[:, 0] * X[:, 1] + X[:, 2] > 0.0
    model = KernelFisherClassifier(RBF(gamma=2e-3), centers=200, random_state=0).fit(X, y)
    assert len(model.X_fit_) == 200
    assert model.X_fit_.dtype == model.dual_coef_.dtype == np.float64
    assert model.transform(X).dtype == np.float32
    for rows in (X, sparse.csr_matrix(X)):
        assert_allclose(model.decision_function(rows), model.decision_function(X.astype(np.float64)), rtol=1e-6)
    again = KernelFisherClassifier(model.kernel_, centers=model.X_fit_, alpha=model.alpha_).fit(X.astype(float), y)
    assert_allclose(model.transform(X), again.transform(X), atol=1e-4)
    # Held-out rows, too, are predicted with as many centers, in float64.
    double = KernelFisherClassifier(RBF(gamma=2e-3), centers=200, alpha=model.alpha_, random_state=0)
    assert np.abs(model.loo_outputs_ - double.fit(X.astype(float), y).loo_outputs_).mean() < 0.1


@pytest.mark.slow
def test_a_kernel_matrix_in_float32_has_the_rounding_errors_of_float32(banana):
    X, y = banana
    K = RBF(gamma=2e-4).block(X, X)
    model = KernelFisherClassifier("precomputed", centers=100, random_state=0)
    double, single = (clone(model).fit(values, y) for values in (K, K.astype(np.float32)))
    stated = [float(str(each.report_).split("at most ")[1].split(" ")[0]) for each in (double, single)]
    assert stated[1] > 100.0 * stated[0]


@pytest.mark.slow
def test_a_narrow_kernel_keeps_float32(banana):
    X, y = banana
    model = KernelFisherClassifier(KERNEL, centers=40, random_state=0).fit(X.astype(np.float32), y)
    assert model.X_fit_.dtype == np.float32


@pytest.mark.slow
def test_groups_of_rows_that_are_read_in_part(banana):
    X, y = banana
    groups = np.arange(len(y)) // 100
    expected = KernelFisherClassifier(KERNEL, centers=GRID).fit(X, y, groups=groups)
    found = KernelFisherClassifier(KERNEL, centers=GRID).fit(MemoryRows(X, y), groups=groups)
    assert_array_equal(found.loo_proba_, expected.loo_proba_)
    assert found.alpha_ == expected.alpha_
    with pytest.raises(ValueError, match="cv and groups need the rows in memory"):
        KernelFisherClassifier(KERNEL, centers=GRID).fit(StreamRows([(X, y)]), groups=groups)
    with pytest.raises(ValueError, match="positive weight are in one fold"):
        KernelFisherClassifier(KERNEL, centers=GRID).fit(MemoryRows(X, y, groups == 0.0), groups=groups)
    with pytest.raises(ValueError, match="groups has 899 labels for 900 rows"):
        KernelFisherClassifier(KERNEL, centers=GRID).fit(MemoryRows(X, y), groups=groups[:-1])


def test_predictions_for_rows_elsewhere(banana, tmp_path):
    X, y = banana
    folder = parquet(tmp_path, X, y)
    model = KernelFisherClassifier(KERNEL, centers=GRID).fit(folder, "label")
    assert list(model.feature_names_in_) == ["x0", "x1"]
    frame = pytest.importorskip("pandas").DataFrame(X, columns=["x0", "x1"])
    assert_array_equal(model.predict(folder), model.predict(frame))
    assert_array_equal(model.predict(ParquetRows(folder, columns=["x0", "x1"])), model.predict(frame))


def test_objects_as_rows():
    words = [f"{'ab'[i % 2] * (i % 7 + 1)}{i % 5}" for i in range(60)]
    y = np.arange(60) % 2

    def shared(a, b):
        return np.array([[len(set(s) & set(t)) + 1.0 * (s == t) for t in b] for s in a])

    model = KernelFisherClassifier(FromCallable(shared, psd=True), alpha=0.1, centers=10, random_state=0)
    model.fit(words, y)
    assert model.score(words, y) == 1.0
    assert set(model.X_fit_) <= set(words)


def test_precomputed_kernels_take_positions(banana):
    X, y = banana[0][:150], banana[1][:150]
    K = KERNEL.block(X, X)
    direct = KernelFisherClassifier(KERNEL, alpha=0.2, centers=X[[3, 40, 77, 90]]).fit(X, y)
    model = KernelFisherClassifier("precomputed", alpha=0.2, centers=np.array([3, 40, 77, 90])).fit(K, y)
    assert_allclose(model.transform(K), direct.transform(X), atol=1e-10)
    chosen = KernelFisherClassifier("precomputed", centers=12, random_state=0).fit(K, y)
    assert_array_equal(chosen.X_fit_, chosen.support_)
    assert chosen.score(K, y) > 0.8


def test_uncertainty_with_centers_is_that_of_all_rows_where_all_are(sinc):
    X, y = sinc[0][:60], sinc[1][:60]
    exact = KernelRidgeRegressor(RBF(gamma=3.0), alpha=0.1).fit(X, y)
    passes = KernelRidgeRegressor(RBF(gamma=3.0), alpha=0.1, centers=Uniform(60)).fit(X, y)
    new = np.linspace(-12, 12, 9)[:, None]
    for method in ("predict", "predict_std"):
        found, expected = getattr(passes, method)(new), getattr(exact, method)(new)
        assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.slow
def test_intervals_with_centers_cover(sinc):
    X, y = sinc
    model = KernelRidgeRegressor(centers=20, random_state=0).fit(X[:600], y[:600])
    low, high = model.predict_interval(X[600:], coverage=0.8).T
    # 300 rows: a standard deviation of 0.023.
    assert abs(((y[600:] >= low) & (y[600:] <= high)).mean() - 0.8) < 0.08


@pytest.mark.slow
def test_leave_one_out_of_chosen_centers_is_honest():
    X, y = make_waveform(3000, random_state=1)
    model = KernelFisherClassifier(centers=40, random_state=0).fit(X[:1000], y[:1000])
    # Standard deviation 0.01 of both; centers chosen by the same labels may add a little.
    assert model.loo_score_ - model.score(X[1000:], y[1000:]) < 0.04


@pytest.mark.parametrize(
    ("arguments", "call", "words"),
    [
        ({"centers": 0}, "fit", "centers=0"),
        ({"centers": "some"}, "fit", "centers='some'"),
        ({"centers": 10, "loo_rows": 1}, "fit", "loo_rows=1"),
        ({"centers": "all"}, "partial_fit", 'centers="all"'),
        ({"centers": 10, "cv": 3}, "partial_fit", "cv=3"),
    ],
    ids=str,
)
def test_what_can_not_be_is_named(banana, arguments, call, words):
    with pytest.raises(ValueError, match=words):
        getattr(KernelFisherClassifier(**arguments), call)(*banana)


def test_sources_refuse_what_they_can_not_do(banana, tmp_path):
    X, y = banana
    with pytest.raises(ValueError, match="in memory"):
        KernelFisherClassifier(centers="all").fit(batches(X, y, 100))
    with pytest.raises(ValueError, match="cv and groups"):
        KernelFisherClassifier(cv=3).fit(batches(X, y, 100))
    with pytest.raises(ValueError, match="function that returns"):
        KernelFisherClassifier(KERNEL, centers=X[:5]).fit(iter(batches(X, y, 100)))
    with pytest.raises(ValueError, match="no labels"):
        KernelFisherClassifier(KERNEL, centers=X[:5]).fit([(X,)])
    with pytest.raises(ValueError, match="label 7"):
        KernelFisherClassifier(KERNEL, centers=X[:5]).fit(X, y).partial_fit(X[:3], [7, 7, 7])
    with pytest.raises(ValueError, match="cannot remove rows"):
        KernelFisherClassifier(KERNEL, centers=X[:5]).fit(X[:50], y[:50]).remove(X, y)
    with pytest.raises(ValueError, match="NaN"):
        KernelFisherClassifier(KERNEL, centers=X[:5]).fit(StreamRows([(np.where(X > 1, np.nan, X), y)]))


@pytest.mark.slow
def test_probabilities_of_rare_classes_are_as_rare(rng):
    X = rng.normal(size=(20_000, 2))
    y = (rng.random(20_000) < 0.002).astype(int)
    model = KernelFisherClassifier(KERNEL, alpha=10.0, centers=GRID, loo_rows=1000, random_state=0).fit(X, y)
    # Ten rows of the class are drawn where two are its share; smoothing adds one row in a thousand.
    assert model.predict_proba(X)[:, 1].mean() < 0.004


def test_nothing_is_solved_while_rows_join(banana, monkeypatch):
    X, y = banana
    model = KernelFisherClassifier(KERNEL, centers=GRID)
    with monkeypatch.context() as patch:
        patch.setattr(PassState, "solved", lambda self: pytest.fail("solved"))
        for rows, labels in batches(X, y, 300):
            model.partial_fit(rows, labels, classes=[-1, 1])
    assert model.score(X, y) > 0.8


def test_classes_that_were_told_and_not_seen_are_waited_for(banana):
    X, y = banana
    model = KernelFisherClassifier(KERNEL, centers=GRID).partial_fit(X[y < 0], y[y < 0], classes=[-1, 1])
    for _ in range(2):
        with pytest.raises(ValueError, match="class 1 has no training rows"):
            model.predict(X)
    assert model.partial_fit(X[y > 0], y[y > 0]).score(X, y) > 0.8


def test_rows_without_weight_are_not_drawn(banana):
    X, y = banana
    weight = np.zeros(900)
    weight[:100] = 1.0
    model = KernelFisherClassifier(KERNEL, centers=GRID, loo_rows=60, random_state=0).fit(X, y, weight)
    assert (weight[model.loo_index_] > 0).all()


def test_a_part_of_a_row_can_leave(sinc):
    X, y = sinc
    half = np.full(900, 0.5)
    model = KernelRidgeRegressor(RBF(gamma=0.3), alpha=0.1, centers=LINE)
    expected = clone(model).fit(X, y, half).loo_prediction_
    assert_allclose(model.fit(X, y).remove(X, y, half).loo_prediction_, expected, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("weight", [-1.0, np.nan, np.inf])
def test_weights_of_streams_are_checked(banana, weight):
    X, y = banana
    with pytest.raises(ValueError, match="finite, nonnegative"):
        KernelFisherClassifier(KERNEL, centers=GRID).fit([(X, y, np.full(900, weight))])


def test_columns_in_another_order_are_refused(banana, tmp_path):
    X, y = banana
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    one, two = parquet(tmp_path / "one", X, y), parquet(tmp_path / "two", X, y)
    model = KernelFisherClassifier(KERNEL, centers=GRID).fit(one, "label")
    table = pytest.importorskip("pyarrow.parquet")
    for file in (tmp_path / "two").iterdir():
        table.write_table(table.read_table(file).select(["x1", "label", "x0"]), file)
    with pytest.raises(ValueError, match="same columns in the same order"):
        model.partial_fit(two, "label")


@pytest.mark.slow
def test_clusters_are_found_once_for_all_kernels(banana, monkeypatch):
    sizes, select = [], KMeans.select

    def counted(self, kernel, sample, n_centers, rng, moments=None):
        sizes.append(n_centers)
        return select(self, kernel, sample, n_centers, rng, moments)

    monkeypatch.setattr(KMeans, "select", counted)
    centers = ForwardSelection(20, n_candidates=100, n_means=50)
    model = KernelFisherClassifier(centers=centers, random_state=0).fit(*banana)
    assert len(model.tuning_paths_[0].kernels) > 2
    # Once for the model, and once without each third of the rows, whatever the number of kernels.
    assert sizes == [40, 10] * 4


@pytest.mark.sampled(1)
@pytest.mark.parametrize("copies", [None, [lambda X: X + 0.05]])
@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float32, 1e-3), (np.float64, 1e-6)])
def test_with_many_centers_the_factor_of_the_best_alpha_is_that_of_a_fit_with_it(
    monkeypatch, copies, dtype, tolerance
):
    for module in ("centers", "alpha_of_moments"):
        monkeypatch.setattr(f"mercer._fitting.selection.{module}.MANY_CENTERS", 20)
    X, y = make_waveform(400, random_state=1)
    X = X.astype(dtype)
    centers = Uniform(60)
    model = KernelFisherClassifier(RBF(gamma=0.02), centers=centers, invariances=copies, random_state=0).fit(X, y)
    alphas, scores = model.tuning_paths_[0].alphas[0], model.tuning_paths_[0].scores[0]
    assert len(alphas) < len(ALPHAS)
    assert model.alpha_ == alphas[scores.argmin()]
    again = KernelFisherClassifier(
        RBF(gamma=0.02), centers=model.X_fit_, alpha=model.alpha_, invariances=copies
    ).fit(X, y)
    assert_allclose(model.decision_function(X), again.decision_function(X), rtol=tolerance, atol=tolerance)
    assert_allclose(model.loo_proba_, again.loo_proba_, atol=tolerance)
    assert_allclose(model.degrees_of_freedom_, again.degrees_of_freedom_, rtol=tolerance)


@pytest.mark.slow
def test_a_lean_copy_holds_centers_coefficients_and_what_is_known_of_rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 10))
    y = (np.abs(X[:, 0]) + X[:, 1] > 0.5) + (X[:, 2] > 0.5).astype(int)
    model = KernelFisherClassifier(RBF(gamma=0.1), alpha=1.0).fit(X, y)
    lean = pickle.loads(pickle.dumps(model.lean()))
    assert_array_equal(lean.predict_proba(X), model.predict_proba(X))
    assert_array_equal(lean.novelty(X), model.novelty(X))
    # The triangles of two matrices of 200 centers, and these.
    known = 8 * (200 * 201 + 200 * 10)
    assert len(pickle.dumps(model.lean())) < known + model.X_fit_.nbytes + model.dual_coef_.nbytes + 8000
    with pytest.raises(AttributeError, match="a lean copy has no loo_proba_; read it from the model"):
        lean.loo_proba_


def test_triangles_that_are_stored_packed_are_the_same_matrices(rng):
    A = np.triu(rng.normal(size=(7, 7)))
    assert_array_equal(_unpacked(_packed(A)), A)
    assert_array_equal(_unpacked(_packed(A[:1, :1])), A[:1, :1])
