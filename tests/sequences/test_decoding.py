"""Paths and sums over paths: given true posteriors they are those of the true densities; words along them."""

import itertools
import time

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import logsumexp
from scipy.stats import norm

from mercer._scores.probabilities.coupling import scaled_likelihoods
from mercer.sequences import bigrams, word_errors
from mercer.sequences._paths.chains import Chain, counted, divided, hasty, left_right
from mercer.sequences._paths.decoding import follow, network, words_along
from mercer.sequences._paths.hmm import best_path, log_likelihood


@pytest.fixture
def chain(rng):
    rows = rng.dirichlet(np.ones(5), size=4)
    return Chain(rng.dirichlet(np.ones(4)), rows[:, :4], rows[:, 4])


def all_paths(chain, L):
    """Log-weights of all paths, one by one."""
    with np.errstate(divide="ignore"):
        start, step, end = np.log(chain.start), np.log(chain.step), np.log(chain.end)
    k = len(start)
    paths = np.array(list(itertools.product(range(k), repeat=len(L))))
    weights = start[paths[:, 0]] + step[paths[:, :-1], paths[:, 1:]].sum(axis=1) + end[paths[:, -1]]
    return paths, weights + L[np.arange(len(L)), paths].sum(axis=1)


@pytest.mark.parametrize("make", [None, left_right, hasty], ids=["full", "left_right", "hasty"])
def test_best_path_and_sum_over_paths_are_those_of_all_paths(make, chain, rng):
    chain = chain if make is None else make(4)
    L = rng.normal(size=(6 if make is not hasty else 3, 4))
    paths, weights = all_paths(chain, L)
    value, path = best_path(chain, L)
    assert_array_equal(path, paths[weights.argmax()])
    assert_allclose(value, weights.max(), rtol=1e-12)
    assert_allclose(log_likelihood(chain, L), logsumexp(weights), rtol=1e-12)


def test_true_posteriors_give_the_true_path_and_likelihood_ratios(chain, rng):
    means, shares = np.arange(4.0), rng.dirichlet(np.full(4, 5.0))
    X = rng.choice(4, size=300) + rng.normal(size=300)
    density = norm.logpdf(X[:, None], means)
    joint = density + np.log(shares)
    log_p = joint - logsumexp(joint, axis=1, keepdims=True)
    scaled = scaled_likelihoods(log_p, shares)
    assert_array_equal(best_path(chain, scaled)[1], best_path(chain, density)[1])
    other = Chain(chain.start[::-1], chain.step[::-1], chain.end[::-1])
    ratio = log_likelihood(chain, density) - log_likelihood(other, density)
    assert_allclose(log_likelihood(chain, scaled) - log_likelihood(other, scaled), ratio, atol=1e-10)


def test_scaled_likelihoods_have_a_floor_and_shapes():
    with np.errstate(divide="ignore"):
        log_p = np.log([[1.0, 0.0]])
    assert_allclose(scaled_likelihoods(log_p, np.array([1.0, 0.0]), floor=0.01), [[0.0, 0.0]])
    with pytest.raises(ValueError, match=r"\(1, 2\) and shares of shape \(3,\)"):
        scaled_likelihoods(log_p, np.ones(3))


@pytest.mark.slow
def test_many_frames_and_states_take_seconds(rng):
    k = 50
    chain = counted([], Chain(np.ones(k), np.ones((k, k)), np.ones(k)))
    L = rng.normal(size=(100_000, k))
    start = time.process_time()
    _, path = best_path(chain, L)
    # Without preferences of the chain the best path takes the best state of each frame.
    assert_array_equal(path, L.argmax(axis=1))
    assert time.process_time() - start < 20.0


def test_chains_count_steps_within_what_is_allowed():
    chain = counted([np.array([0, 0, 1]), np.array([0, 1, 1])], left_right(2))
    assert_allclose(chain.start, [1, 0])
    # One step each of 0 -> 0 and two of 0 -> 1, one of 1 -> 1 and two ends; each counts once more.
    assert_allclose(chain.step, [[2 / 5, 3 / 5], [0, 2 / 5]])
    assert_allclose(chain.end, [0, 3 / 5])


def test_frames_are_divided_equally():
    assert_array_equal(divided(6, 3), [0, 0, 1, 1, 2, 2])
    assert_array_equal(divided(2, 5), [1, 3])


# Two words of two states; "ab" is a path through states 0 1 2 3.
SIZES = (2, 2)


def decoded(grammar, L, penalty=0.0):
    chains = [counted([], left_right(k)) for k in SIZES]
    path = best_path(network(chains, follow(grammar, ["a", "b"]), penalty), L)[1]
    return "".join("ab"[w] for w, _ in words_along(path, SIZES))


def emissions(states, sure=5.0):
    return sure * np.eye(4)[states]


@pytest.mark.parametrize(
    ("grammar", "states", "words"),
    [
        (None, [0, 0, 1, 2, 3, 3, 2, 3], "abb"),
        ({"a": ["b"], "b": ["a"]}, [0, 1, 2, 3, 0, 1], "aba"),
        ({"a": ["b"], "b": ["a"]}, [0, 1, 0, 0, 1], "a"),
        ({None: ["b"], "a": ["a", "b"], "b": ["a"]}, [2, 3, 0, 1, 0, 1], "baa"),
        ({None: {"a": 0.5, "b": 0.5}, "a": {None: 1.0}, "b": {"a": 1.0}}, [2, 3, 0, 1], "ba"),
    ],
    ids=["loop", "pairs", "no repetition", "beginning", "end"],
)
def test_words_follow_the_grammar(grammar, states, words):
    assert decoded(grammar, emissions(states)) == words


def test_followers_may_come_from_an_iterator():
    given = {word: iter(["a", "b"]) for word in "ab"}
    assert decoded(given, emissions([0, 1, 2, 3, 0, 1])) == "aba"


@pytest.mark.parametrize(
    ("grammar", "message"),
    [
        ({"a": {"b": -0.5}}, "weight after 'a'=-0.5"),
        ({"a": {"b": np.nan}}, "weight after 'a'=nan"),
        ({"a": "b"}, "pass a list of words"),
    ],
    ids=["negative", "nan", "string"],
)
def test_weights_of_grammars_are_checked(grammar, message):
    with pytest.raises(ValueError, match=message):
        follow(grammar, ["a", "b"])


def test_a_word_whose_states_go_back_is_one_word():
    path = np.array([0, 1, 0, 1, 2, 0])
    assert words_along(path, [2, 1], forward=False) == [(0, 0), (1, 4), (0, 5)]
    assert [w for w, _ in words_along(path, [2, 1])] == [0, 0, 1, 0]


def test_sentences_are_lists_of_words():
    with pytest.raises(ValueError, match="split"):
        bigrams(["call home"])
    with pytest.raises(ValueError, match="discount=2"):
        bigrams([["a"]], discount=2)


def test_a_penalty_makes_words_fewer():
    L = emissions([0, 1, 0, 1, 2, 3], sure=1.5)
    lengths = [len(decoded(None, L, penalty)) for penalty in (-5.0, 0.0, 20.0)]
    assert lengths == sorted(lengths, reverse=True)
    assert lengths[0] > lengths[-1] == 1


@pytest.mark.parametrize("penalty", [0.0, 1.0])
def test_words_of_one_state_are_on_the_best_of_all_paths(penalty, rng):
    """To stay in a word, or to end it and begin it again: two paths, whose weights do not add up."""
    chains = [Chain(np.ones(1), np.array([[stay]]), np.array([1.0 - stay])) for stay in (0.5, 0.6)]
    chain, price = network(chains, follow(None, "ab"), penalty), np.exp(-penalty)
    for _ in range(20):
        L = rng.normal(size=(7, 2))
        best = -np.inf
        for path in itertools.product(range(2), repeat=7):
            value = np.log(price / 2) + np.log(chains[path[-1]].end[0]) + L[range(7), path].sum()
            for i, j in itertools.pairwise(path):
                again = chains[i].end[0] * price / 2
                value += np.log(max(chains[i].step[0, 0], again) if i == j else again)
            best = max(best, value)
        assert_allclose(best_path(chain, L)[0], best, atol=1e-12)


def test_bigrams_are_probabilities_that_favor_what_was_seen():
    grammar = bigrams([["a", "b"], ["a", "b", "b"], ["b"]])
    for after in grammar.values():
        assert_allclose(sum(after.values()), 1.0)
    assert grammar["a"]["b"] > grammar["a"]["a"] > 0
    assert grammar[None]["a"] > grammar["b"]["a"]


def test_words_without_models_are_refused():
    with pytest.raises(ValueError, match=r"without models: \[\"'c'\"\]"):
        follow({"a": ["c"]}, ["a", "b"])


def sentences(rng, n):
    return [rng.choice(list("abc"), size=rng.integers(1, 8)).tolist() for _ in range(n)]


def test_word_errors_are_those_of_jiwer(rng):
    jiwer = pytest.importorskip("jiwer")
    said, heard = sentences(rng, 60), sentences(rng, 60)
    for a, b in zip(said, heard):
        errors, output = word_errors([a], [b]), jiwer.process_words(" ".join(a), " ".join(b))
        assert errors.errors == output.substitutions + output.deletions + output.insertions
        assert errors.deletions - errors.insertions == len(a) - len(b)
        assert errors.insertions <= output.insertions
    total = word_errors(said, heard)
    assert_allclose(1.0 - total.accuracy, jiwer.wer([" ".join(a) for a in said], [" ".join(b) for b in heard]))


def test_word_errors_refuse_strings_and_unpaired_sentences():
    with pytest.raises(TypeError, match="split it"):
        word_errors(["one two"], [["one"]])
    with pytest.raises(ValueError, match="1 sentences were said and 0 recognized"):
        word_errors([["one"]], [])
    with pytest.raises(ValueError, match="no words were said"):
        word_errors([[]], [["one"]])
