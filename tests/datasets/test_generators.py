"""Laws of the generators: what their docstrings promise about means, spreads and Bayes errors."""

import time

import numpy as np
import pytest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from mercer import datasets

CLASSIFIERS = [
    datasets.make_banana,
    datasets.make_clusters,
    datasets.make_ringnorm,
    datasets.make_two_spirals,
    datasets.make_twonorm,
    datasets.make_waveform,
    datasets.make_fisher_worst_case,
]
GENERATORS = [*CLASSIFIERS, datasets.make_sinc]
N = 20_000


def four_sigmas(p):
    """Four standard deviations of a relative frequency over N rows."""
    return 4 * np.sqrt(p * (1 - p) / N)


@pytest.mark.parametrize("make", GENERATORS)
def test_equal_seeds_give_equal_data(make):
    for first, second in zip(make(200, random_state=7), make(200, random_state=7)):
        np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("make", [make for make in GENERATORS if make is not datasets.make_two_spirals])
def test_other_seeds_give_other_data(make):
    assert not np.array_equal(make(200, random_state=7)[0], make(200, random_state=8)[0])


@pytest.mark.parametrize("make", GENERATORS)
@pytest.mark.parametrize("source", [np.random.default_rng, np.random.RandomState])
def test_every_source_of_randomness_is_reproducible(make, source):
    np.testing.assert_array_equal(make(200, random_state=source(3))[1], make(200, random_state=source(3))[1])


def test_a_generator_is_used_up(rng):
    assert not np.array_equal(
        datasets.make_twonorm(50, random_state=rng)[0], datasets.make_twonorm(50, random_state=rng)[0]
    )


@pytest.mark.parametrize("make", GENERATORS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_have_the_asked_number_and_type(make, dtype):
    X, y = make(202, random_state=0, dtype=dtype)
    assert X.ndim == 2
    assert len(X) == 202
    assert y.shape == (202,)
    assert X.dtype == dtype
    assert np.all(np.isfinite(X))


@pytest.mark.parametrize("make", CLASSIFIERS)
def test_labels_are_minus_and_plus_one(make):
    y = make(202, random_state=0)[1]
    assert np.issubdtype(y.dtype, np.integer)
    assert set(y.tolist()) == {-1, 1}


@pytest.mark.parametrize("make", [make for make in CLASSIFIERS if make is not datasets.make_waveform])
def test_classes_are_balanced(make):
    y = make(N, random_state=0)[1]
    assert abs(np.mean(y > 0) - 0.5) < four_sigmas(0.5)


def test_one_third_of_two_class_waveform_is_positive():
    y = datasets.make_waveform(N, random_state=0)[1]
    assert abs(np.mean(y > 0) - 1 / 3) < four_sigmas(1 / 3)


def test_twonorm_has_the_promised_means_and_covariance():
    X, y = datasets.make_twonorm(N, random_state=0)
    for label in (-1, 1):
        rows = X[y == label]
        # Five standard errors of a mean and of a covariance over N/2 rows.
        np.testing.assert_allclose(rows.mean(axis=0), label * 2 / np.sqrt(20), atol=5 / np.sqrt(N / 2))
        np.testing.assert_allclose(np.cov(rows.T), np.eye(20), atol=5 * np.sqrt(2 / (N / 2)))


def test_twonorm_has_the_promised_bayes_error():
    X, y = datasets.make_twonorm(N, random_state=0)
    error = np.mean(np.sign(X.sum(axis=1)) != y)
    assert abs(error - 0.02275) < four_sigmas(0.02275)


def test_ringnorm_has_the_promised_means_and_covariance():
    X, y = datasets.make_ringnorm(N, random_state=0)
    ring, ball = X[y > 0], X[y < 0]
    np.testing.assert_allclose(ring.mean(axis=0), 0, atol=5 * 2 / np.sqrt(N / 2))
    np.testing.assert_allclose(np.cov(ring.T), 4 * np.eye(20), atol=5 * 4 * np.sqrt(2 / (N / 2)))
    np.testing.assert_allclose(ball.mean(axis=0), 2 / np.sqrt(20), atol=5 / np.sqrt(N / 2))
    np.testing.assert_allclose(np.cov(ball.T), np.eye(20), atol=5 * np.sqrt(2 / (N / 2)))


def test_ringnorm_has_the_promised_bayes_error():
    X, y = datasets.make_ringnorm(N, random_state=0)
    log_ring = -np.sum(X**2, axis=1) / 8 - 20 * np.log(2)
    log_ball = -np.sum((X - 2 / np.sqrt(20)) ** 2, axis=1) / 2
    assert abs(np.mean((log_ring > log_ball) != (y > 0)) - 0.013) < four_sigmas(0.013)


def test_waveform_means_are_averages_of_two_waves():
    X, y = datasets.make_waveform(N, n_classes=3, random_state=0)
    wave = {peak: np.clip(6 - np.abs(np.arange(1, 22) - peak), 0, None) for peak in (7, 11, 15)}
    for label, peaks in enumerate([(11, 15), (11, 7), (15, 7)]):
        # The variance of a feature is at most 1 + 36/12.
        mean = (wave[peaks[0]] + wave[peaks[1]]) / 2
        np.testing.assert_allclose(X[y == label].mean(axis=0), mean, atol=5 * 2 / np.sqrt(N / 3))


def test_two_class_waveform_sets_class_zero_against_the_rest():
    y3 = datasets.make_waveform(500, n_classes=3, random_state=0)[1]
    y2 = datasets.make_waveform(500, random_state=0)[1]
    np.testing.assert_array_equal(y2 > 0, y3 == 0)


def test_waveform_bayes_error_is_about_fourteen_percent():
    X, y = datasets.make_waveform(4000, n_classes=3, random_state=0)
    wave = np.array([np.clip(6 - np.abs(np.arange(1, 22) - peak), 0, None) for peak in (11, 15, 7)])
    u = np.linspace(0.005, 0.995, 100)[:, None]
    pairs = [(0, 1), (0, 2), (1, 2)]
    densities = [mean_density(X, u * wave[a] + (1 - u) * wave[b], 1.0) for a, b in pairs]
    assert abs(np.mean(np.argmax(densities, axis=0) != y) - 0.14) < 4 * np.sqrt(0.14 * 0.86 / 4000)


def test_banana_bayes_error_is_about_ten_percent():
    X, y = datasets.make_banana(4000, random_state=0)
    t = np.linspace(0, np.pi, 301)
    upper = np.column_stack([np.cos(t), np.sin(t)])
    plus, minus = mean_density(X, upper, 0.32), mean_density(X, [1, 0.5] - upper, 0.32)
    assert abs(np.mean((plus > minus) != (y > 0)) - 0.10) < 4 * np.sqrt(0.1 * 0.9 / 4000)


def mean_density(X, points, sd):
    """Average of N(x; point, sd² I) over the points, up to a factor common to all classes."""
    points = np.asarray(points)
    squared = np.sum(X**2, axis=1)[:, None] - 2 * X @ points.T + np.sum(points**2, axis=1)
    return np.exp(-squared / (2 * sd**2)).mean(axis=1)


def test_two_spirals_is_the_original_set():
    X, y = datasets.make_two_spirals()
    assert X.shape == (194, 2)
    for i in (0, 1, 40, 96):
        radius, angle = 6.5 * (104 - i) / 104, i * np.pi / 16
        np.testing.assert_allclose(X[i], [radius * np.sin(angle), radius * np.cos(angle)], atol=1e-12)
    np.testing.assert_array_equal(X[y < 0], -X[y > 0])


def test_spirals_of_any_length_cover_the_same_range():
    X, y = datasets.make_two_spirals(1001)
    assert np.sum(y > 0) == 501
    np.testing.assert_allclose(np.linalg.norm(X, axis=1).max(), 6.5)
    np.testing.assert_allclose(np.linalg.norm(X, axis=1).min(), 0.5)


def test_spiral_noise_has_the_asked_spread():
    residual = datasets.make_two_spirals(N, noise=0.3, random_state=0)[0] - datasets.make_two_spirals(N)[0]
    np.testing.assert_allclose(residual.std(), 0.3, rtol=5 / np.sqrt(4 * N))


def test_sinc_is_the_function_plus_noise():
    X, y = datasets.make_sinc(N, noise=0.2, random_state=0)
    assert X.shape == (N, 1)
    assert np.all(np.abs(X) < 10)
    x = X[:, 0]
    np.testing.assert_allclose(np.std(y - np.sin(x) / x), 0.2, rtol=5 / np.sqrt(2 * N))


def test_noise_free_sinc_is_exact():
    X, y = datasets.make_sinc(100, noise=0, random_state=0)
    np.testing.assert_allclose(y, np.sin(X[:, 0]) / X[:, 0], atol=1e-15)


def test_clusters_differ_in_the_informative_features_only():
    X, _ = datasets.make_clusters(N, random_state=0)
    variance = X.var(axis=0)
    assert np.all(variance[:10] > 2)
    np.testing.assert_allclose(variance[10:], 1, atol=5 * np.sqrt(2 / N))
    np.testing.assert_allclose(X[:, 10:].mean(axis=0), 0, atol=5 / np.sqrt(N))


def test_clusters_flip_the_promised_share_of_labels():
    clean = datasets.make_clusters(N, flip=0, random_state=0)[1]
    flipped = datasets.make_clusters(N, flip=0.01, random_state=0)[1]
    assert abs(np.mean(clean != flipped) - 0.01) < four_sigmas(0.01)


def test_far_clusters_are_told_apart_by_the_nearest_row():
    X, y = datasets.make_clusters(500, n_clusters=4, separation=50, flip=0, random_state=0)
    distances = np.linalg.norm(X[:, None] - X, axis=2)
    np.fill_diagonal(distances, np.inf)
    np.testing.assert_array_equal(y[distances.argmin(axis=1)], y)


@pytest.mark.slow
def test_a_million_rows_take_seconds():
    start = time.perf_counter()
    X, _ = datasets.make_clusters(1_000_000, random_state=0, dtype=np.float32)
    assert X.nbytes == 80_000_000
    # Half a second on one idle core; the rest is room for a busy machine.
    assert time.perf_counter() - start < 10


def threshold_errors(scores, y):
    """Training error of the rule "+1 above t" for every threshold t between sorted scores."""
    y = y[np.argsort(scores)]
    missed = np.concatenate([[0], np.cumsum(y > 0)])
    accepted = np.sum(y < 0) - np.concatenate([[0], np.cumsum(y < 0)])
    return (missed + accepted) / len(y)


def fisher_direction(X, y):
    """S_W^{-1} (m_+ - m_-)."""
    plus, minus = X[y > 0], X[y < 0]
    within = np.cov(plus.T, bias=True) * len(plus) + np.cov(minus.T, bias=True) * len(minus)
    return np.linalg.solve(within, plus.mean(axis=0) - minus.mean(axis=0))


worst_cases = pytest.mark.parametrize(
    ("eps", "n_rows"), [(0.4, 20), (0.1, 80), (0.1, 2000), (0.01, 800), (0.01, 4000)]
)


@worst_cases
@pytest.mark.parametrize("bulk", ["mixed", "reversed"])
def test_the_worst_case_is_linearly_separable(eps, n_rows, bulk):
    X, y = datasets.make_fisher_worst_case(n_rows, eps=eps, bulk=bulk, random_state=0)
    assert np.min(y * X[:, 1]) >= 1


@worst_cases
@pytest.mark.parametrize("bulk", ["mixed", "reversed"])
def test_no_threshold_saves_fisher_in_the_worst_case(eps, n_rows, bulk):
    X, y = datasets.make_fisher_worst_case(n_rows, eps=eps, bulk=bulk, random_state=0)
    assert threshold_errors(X @ fisher_direction(X, y), y).min() > 0.5 - eps


@worst_cases
def test_turning_the_direction_around_does_not_help_in_the_mixed_case(eps, n_rows):
    X, y = datasets.make_fisher_worst_case(n_rows, eps=eps, random_state=0)
    assert threshold_errors(-X @ fisher_direction(X, y), y).min() > 0.5 - eps


@worst_cases
def test_the_least_squares_threshold_errs_nearly_always_in_the_reversed_case(eps, n_rows):
    X, y = datasets.make_fisher_worst_case(n_rows, eps=eps, bulk="reversed", random_state=0)
    design = np.column_stack([X, np.ones(n_rows)])
    coef = np.linalg.lstsq(design, y, rcond=None)[0]
    error = np.mean(np.sign(design @ coef) != y)
    assert error > 1 - eps
    assert 1 - error < eps


def test_scikit_learn_finds_the_same_bad_direction():
    X, y = datasets.make_fisher_worst_case(400, eps=0.1, random_state=0)
    scores = LinearDiscriminantAnalysis(solver="eigen").fit(X, y).decision_function(X)
    assert threshold_errors(scores, y).min() > 0.4


@pytest.mark.parametrize(
    ("make", "choices", "message"),
    [
        (datasets.make_waveform, {"n_classes": 4}, "n_classes is 4"),
        (datasets.make_clusters, {"n_informative": 30}, "n_informative is 30"),
        (datasets.make_fisher_worst_case, {"eps": 0.5}, "eps is 0.5"),
        (datasets.make_fisher_worst_case, {"n_rows": 401}, "n_rows is 401"),
        (datasets.make_fisher_worst_case, {"n_rows": 40, "eps": 0.1}, "at least 80 rows"),
        (datasets.make_fisher_worst_case, {"bulk": "odd"}, "bulk is 'odd'"),
    ],
)
def test_an_error_names_the_argument_and_its_value(make, choices, message):
    with pytest.raises(ValueError, match=message):
        make(**choices)


def test_words_have_their_sounds_in_order():
    X, y = datasets.make_words(50, noise=0.0, random_state=0)
    again, _ = datasets.make_words(50, noise=0.0, random_state=0)
    assert all(np.array_equal(a, b) for a, b in zip(X, again))
    for x, word in zip(X, y):
        sound = (np.hypot(*x.T) > 1.5) + 2 * (x[:, 1] < 0)
        assert tuple(sound[np.r_[True, np.diff(sound) != 0]]) == datasets._generators.WORDS[word]
        assert np.bincount(sound)[list(datasets._generators.WORDS[word])].min() >= 3
