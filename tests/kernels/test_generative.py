"""Kernels from generative models, against sums over all hidden states and differences of log-likelihoods."""

import tracemalloc
from dataclasses import fields, replace
from itertools import pairwise, product

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import norm
from sklearn.mixture import GaussianMixture

from mercer import KernelFisherClassifier
from mercer.errors import KernelError
from mercer.kernels import FisherKernel, HiddenMarkov, MarginalizedKernel, MeanMap, Mixture, Normalized

TWO = Mixture([0.3, 0.7], [[0.0, 1.0], [2.0, -1.0]], [[1.0, 0.5], [0.25, 2.0]])
# The example of the lecture notes; characters are "012".
MARKOV = HiddenMarkov([0.6, 0.4], [[0.7, 0.3], [0.4, 0.6]], [[0.5, 0.3, 0.2], [0.1, 0.2, 0.7]], "012")
ZEROS = HiddenMarkov([0.9, 0.1], [[0.0, 1.0], [0.5, 0.5]], [[1.0, 0.0, 0.0], [0.2, 0.3, 0.5]], "012")
STRINGS = ["0211", "2201", "", "0", "21", "00000", "12"]


@pytest.fixture
def X():
    return np.random.default_rng(0).normal(size=(12, 2))


def differences(model, X, step=1e-6):
    """Slopes of the log-likelihood along every parameter of a model, by central differences."""
    slopes = []
    for field in fields(model)[:3]:
        table = np.asarray(getattr(model, field.name), float)
        for place in np.ndindex(table.shape):
            moved = [table.copy(), table.copy()]
            moved[0][place] += step
            moved[1][place] -= step
            up, down = (replace(model, **{field.name: each}).log_likelihood(X) for each in moved)
            slopes.append((up - down) / (2 * step))
    return np.stack(slopes, axis=1)


def test_log_likelihood_of_a_mixture_is_that_of_scikit_learn(X):
    twin = GaussianMixture(2, covariance_type="diag")
    twin.weights_, twin.means_, twin.covariances_ = map(np.asarray, (TWO.weights, TWO.means, TWO.variances))
    twin.precisions_cholesky_ = 1.0 / np.sqrt(twin.covariances_)
    assert_allclose(TWO.log_likelihood(X), twin.score_samples(X), rtol=1e-12)


def test_scores_of_a_mixture_are_slopes_of_the_log_likelihood(X):
    slopes = differences(TWO, X)
    # The derivative by a standard deviation s is that by the variance, times 2s.
    slopes[:, 6:] *= 2.0 * np.sqrt(np.ravel(TWO.variances))
    assert_allclose(TWO.scores(X), slopes, rtol=1e-6, atol=1e-6)


def test_scores_of_one_gaussian_are_those_of_the_lecture():
    x, mu, sigma = np.array([[0.3], [2.0]]), 0.5, 2.0
    one = Mixture([1.0], [[mu]], [[sigma**2]])
    expected = np.hstack([np.ones_like(x), (x - mu) / sigma**2, (x - mu) ** 2 / sigma**3 - 1.0 / sigma])
    assert_allclose(one.scores(x), expected, rtol=1e-12)
    # The information of a Gaussian is diag(1/sigma², 2/sigma²).
    kernel = FisherKernel(one, whiten=[0.0, sigma, sigma / np.sqrt(2.0)])
    information = np.diag([sigma**2, sigma**2 / 2.0])
    assert_allclose(kernel.block(x, x), expected[:, 1:] @ information @ expected[:, 1:].T, rtol=1e-12)


def paths(model, string):
    """P(h) and P(string | h) for every sequence h of hidden states."""
    states = range(len(model.start))
    digit = [model.alphabet.index(c) for c in string]
    for h in product(states, repeat=len(string)):
        prior = np.prod([model.start[h[0]], *(model.transition[a][b] for a, b in pairwise(h))]) if h else 1.0
        yield prior, np.prod([model.emission[a][d] for a, d in zip(h, digit)])


def test_probability_of_a_string_is_a_sum_over_all_paths():
    expected = [np.log(sum(prior * given for prior, given in paths(MARKOV, s))) for s in STRINGS]
    assert_allclose(MARKOV.log_likelihood(STRINGS), expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(
    "model",
    [MARKOV, HiddenMarkov([0.9, 0.1], [[0.0, 1.0], [0.5, 0.5]], [[1.0, 0.0, 0.0], [0.2, 0.3, 0.5]], "012")],
)
def test_scores_of_a_hidden_markov_model_are_slopes_of_the_log_likelihood(model):
    strings = ["0211", "", "0", "01", "0202", "01021"]
    # Parameters that are zero cannot be less.
    inside = np.concatenate([np.ravel(a) for a in (model.start, model.transition, model.emission)]) > 0.0
    slopes = differences(replace(model, **lifted(model)), strings)
    assert_allclose(replace(model, **lifted(model)).scores(strings), slopes, rtol=1e-6, atol=1e-6)
    assert_allclose(model.scores(strings)[:, inside], slopes[:, inside], rtol=1e-3, atol=1e-3)


def lifted(model):
    """Arrays without zeros, for differences in both directions."""
    return {name: np.maximum(getattr(model, name), 1e-5) for name in ("start", "transition", "emission")}


def test_characters_outside_the_alphabet_are_not_observed():
    given = sum(np.exp(MARKOV.log_likelihood([f"0{c}1"])) for c in "012")
    assert_allclose(np.exp(MARKOV.log_likelihood(["0x1"])), given, rtol=1e-12)


def test_marginalization_kernel_of_strings_is_a_sum_over_all_paths():
    kernel = MarginalizedKernel(MARKOV)
    for s in STRINGS:
        for t in STRINGS:
            both = sum(p * a * b for (p, a), (_, b) in zip(paths(MARKOV, s), paths(MARKOV, t)))
            assert_allclose(kernel.block([s], [t]), [[both if len(s) == len(t) else 0.0]], rtol=1e-12)
    assert_allclose(kernel.block(["0211"], ["2201"]), [[1.0653552e-4]], rtol=1e-12)


def test_marginalization_kernel_of_a_mixture_is_a_sum_over_components(X):
    densities = [norm.pdf(X, mu, np.sqrt(v)).prod(axis=1) for mu, v in zip(TWO.means, TWO.variances)]
    expected = sum(w * np.outer(p, p) for w, p in zip(TWO.weights, densities))
    assert_allclose(MarginalizedKernel(TWO).block(X, X), expected, rtol=1e-10)


def test_normalized_values_survive_where_densities_do_not():
    far = Mixture([0.5, 0.5], np.zeros((2, 3000)), np.stack([np.full(3000, 1.0), np.full(3000, 1.5)]))
    X = np.random.default_rng(0).normal(size=(4, 3000))
    assert (MarginalizedKernel(far).block(X, X) == 0.0).all()
    assert_allclose(np.diag(Normalized(MarginalizedKernel(far)).block(X, X)), 1.0, rtol=1e-12)
    long = ["021" * 500, "012" * 500, "0" * 1500]
    assert (MarginalizedKernel(MARKOV).diag(long) == 0.0).all()
    K = Normalized(MarginalizedKernel(MARKOV)).block(long, long)
    assert_allclose(np.diag(K), 1.0, rtol=1e-9)
    assert np.isfinite(K).all()


def test_learned_mixture_is_at_least_as_likely_as_that_of_scikit_learn():
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(m, s, size=(80, 2)) for m, s in ((0.0, 1.0), (6.0, 0.5), (-5.0, 2.0))])
    theirs = GaussianMixture(3, covariance_type="diag", random_state=0).fit(X)
    assert Mixture.learned(X, 3).log_likelihood(X).mean() >= theirs.score(X) - 1e-3


@pytest.mark.parametrize(
    "rows", [np.random.default_rng(1).normal(size=(30, 2)), ["0212", "20", "111", "0", "0102"] * 6]
)
def test_weight_is_repetition(rows):
    kind = HiddenMarkov if isinstance(rows, list) else Mixture
    weight = np.arange(30) % 3
    twice = [x for x, w in zip(rows, weight) for _ in range(w)]
    weighted, repeated = kind.learned(rows, 1, weight), kind.learned(twice, 1)
    assert_allclose(weighted.scores(rows), repeated.scores(rows), rtol=1e-8, atol=1e-10)


@pytest.mark.slow
def test_learned_markov_model_finds_the_one_that_made_the_strings():
    rng = np.random.default_rng(0)
    stay = HiddenMarkov([0.5, 0.5], [[0.9, 0.1], [0.1, 0.9]], [[0.9, 0.1], [0.2, 0.8]], "ab")
    strings = []
    for _ in range(150):
        state, string = rng.integers(2), ""
        for _ in range(30):
            string += rng.choice(list("ab"), p=stay.emission[state])
            state = rng.choice(2, p=stay.transition[state])
        strings.append(string)
    learned = HiddenMarkov.learned(strings, 2)
    true, found, alone = (
        m.log_likelihood(strings).sum() for m in (stay, learned, HiddenMarkov.learned(strings, 1))
    )
    assert found > true > alone + 50.0


def test_likelihood_of_a_mixture_keeps_one_component_at_a_time():
    X, k = np.zeros((500, 40)), 50
    model = Mixture(np.full(k, 1.0 / k), np.ones((k, 40)), np.ones((k, 40)))
    tracemalloc.start()
    model.log_likelihood(X)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # All components at once are k tables of the size of X.
    assert peak < 20 * X.nbytes


def test_many_characters_are_taken_from_all_rows(monkeypatch):
    monkeypatch.setattr("mercer.kernels._generative.densities.MOST_CHARACTERS", 60)
    model = HiddenMarkov.learned(["aab"] * 30 + ["cd"] * 30, 2)
    assert model.alphabet == "abcd"


def test_full_information_whitens_the_scores_of_the_rows():
    X = np.random.default_rng(0).normal(size=(400, 2))
    (kernel,) = FisherKernel(size=2, whiten="full").candidates(X)
    F = kernel.whiten.applied(kernel.model.scores(X))
    values = np.linalg.eigvalsh(F.T @ F / len(X))
    # Scores of free weights depend on each other, so that one direction is empty up to the ridge.
    assert values.max() <= 1.0
    assert np.sum(values > 0.9) >= F.shape[1] - 2


@pytest.mark.parametrize("model", ["mixture", TWO], ids=str)
def test_means_of_scores_compare_bags(model):
    rng = np.random.default_rng(0)
    bags = [rng.normal(i % 2, 1.0, size=(size, 2)) for i, size in enumerate(rng.integers(2, 9, 30))]
    (kernel,) = MeanMap(FisherKernel(model, size=2)).candidates(bags)
    inner = kernel.kernel
    means = np.stack([inner.whiten.applied(inner.model.scores(bag)).mean(axis=0) for bag in bags])
    assert_allclose(kernel.block(bags, bags), means @ means.T, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("kernel", [FisherKernel(size=3), Normalized(MarginalizedKernel(size=3))], ids=str)
def test_classifiers_learn_the_mixture_from_their_rows(kernel):
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(m, 0.7, size=(40, 2)) for m in ([0, 0], [4, 0], [0, 4])])
    y = np.repeat([0, 1, 1], 40)
    model = KernelFisherClassifier(kernel, alpha=1e-2).fit(X, y)
    assert model.kernel_.resolved
    assert model.score(X, y) > 0.95


@pytest.mark.parametrize(
    ("kernel", "rows", "words"),
    [
        (FisherKernel("forest"), [[0.0]], "model='forest'"),
        (FisherKernel(), [[0.0]], "is learned from data"),
        (FisherKernel(TWO), [[0.0, 1.0]], "determined from data"),
        (FisherKernel(TWO, whiten=None), [[0.0]], "X has 1 features and the Mixture 2"),
        (FisherKernel(TWO, whiten=[1.0]), [[0.0, 1.0]], "10 parameters"),
        (FisherKernel(Mixture([1.0], [[0.0]], [[0.0]]), whiten=None), [[0.0]], "not positive"),
        (FisherKernel(Mixture([1.0], [0.0], [[0.0]]), whiten=None), [[0.0]], "shapes must be"),
        (FisherKernel(replace(MARKOV, alphabet="01"), whiten=None), ["0"], "2 characters"),
        (FisherKernel(replace(MARKOV, emission=-np.ones((2, 3))), whiten=None), ["0"], "negative"),
        (FisherKernel(replace(MARKOV, emission=np.eye(3)[:2]), whiten=None), ["01", "2"], "row 1 has"),
    ],
)
def test_models_that_make_no_kernel_are_refused(kernel, rows, words):
    with pytest.raises(KernelError, match=words):
        kernel.block(rows, rows)


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (Mixture([0.5, 0.4], TWO.means, TWO.variances), r"weights of a Mixture.*sum to 0\.9"),
        (replace(TWO, means=[[0.0, np.nan], [0.0, 0.0]]), "means of a Mixture has NaN"),
        (replace(TWO, variances=[[1.0, np.inf], [1.0, 1.0]]), "variances of a Mixture has NaN or infinity"),
        (replace(TWO, means=[[0.0], [0.0, 0.0]]), "means of a Mixture is no array"),
        (replace(MARKOV, start=1.0), r"start \(\)"),
        (replace(MARKOV, start=[0.6, np.nan]), "start of a HiddenMarkov has NaN"),
        (
            replace(MARKOV, transition=[[0.7, 0.3], [0.4, 0.5]]),
            r"transition of a HiddenMarkov, row 1, sum to 0\.9",
        ),
        (replace(MARKOV, emission=2.0 * np.asarray(MARKOV.emission)), "emission of a HiddenMarkov, row 0"),
        (replace(MARKOV, alphabet="010"), "alphabet='010'"),
        (replace(MARKOV, alphabet=["0", "1", "2"]), "must be a string"),
    ],
)
def test_models_that_are_no_densities_are_refused(model, words):
    rows = STRINGS if isinstance(model, HiddenMarkov) else [[0.0, 1.0]]
    marginalized = MarginalizedKernel(model)
    for evaluated in (FisherKernel(model, whiten=None), marginalized, Normalized(marginalized)):
        with pytest.raises(KernelError, match=words):
            evaluated.block(rows, rows)
    with pytest.raises(KernelError, match=words):
        model.log_likelihood(rows)


@pytest.mark.parametrize(
    ("kernel", "rows", "words"),
    [
        (FisherKernel(whiten="half"), [[0.0], [1.0]], 'whiten="half"'),
        (FisherKernel("markov"), ["", ""], "all strings are empty"),
        (MarginalizedKernel(size=0), [[0.0]], "size=0"),
        (MarginalizedKernel(), np.zeros((0, 1)), "from no rows"),
    ],
)
def test_models_that_cannot_be_learned_are_refused(kernel, rows, words):
    with pytest.raises(KernelError, match=words):
        kernel.candidates(rows)
