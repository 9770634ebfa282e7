"""Pairs become one distribution: the one they come from, where there is one."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.optimize import minimize

from mercer.scores.coupling import couple_least_squares, couple_odds


def rule_odds(S):
    return np.exp(couple_odds(S))


RULES = [rule_odds, couple_least_squares]
every_rule = pytest.mark.parametrize("rule", RULES)


def pair_odds(log_scores):
    """Log-odds (n, k, k) of all pairs from logarithms (n, k) of probabilities."""
    return log_scores[:, :, None] - log_scores[:, None, :]


def antisymmetric(rng, n, k, scale):
    S = scale * rng.normal(size=(n, k, k))
    return S - S.transpose(0, 2, 1)


@every_rule
@pytest.mark.parametrize("k", [2, 3, 7])
def test_pairs_of_one_distribution_give_it_back(rng, rule, k):
    P = rng.dirichlet(np.ones(k), size=20)
    assert_allclose(rule(pair_odds(np.log(P))), P, atol=1e-10)


@pytest.mark.parametrize("rule", RULES)
@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), k=st.integers(2, 8), scale=st.sampled_from([0.1, 3.0, 50.0, 1e4]))
def test_any_pairs_give_a_distribution(rule, seed, k, scale):
    P = rule(antisymmetric(np.random.default_rng(seed), 5, k, scale))
    assert (P >= 0).all()
    assert_allclose(P.sum(axis=1), 1.0)


@every_rule
def test_two_classes_are_their_one_pair(rng, rule):
    S = antisymmetric(rng, 10, 2, 2.0)
    assert_allclose(rule(S)[:, 0], 1 / (1 + np.exp(-S[:, 0, 1])))


@every_rule
def test_classes_may_be_renamed(rng, rule):
    S, order = antisymmetric(rng, 6, 5, 2.0), rng.permutation(5)
    assert_allclose(rule(S[:, order][:, :, order]), rule(S)[:, order], atol=1e-12)


def test_the_sum_of_reciprocals_is_the_same_rule(rng):
    S = antisymmetric(rng, 8, 6, 1.0)
    r = 1 / (1 + np.exp(-S))
    others = ~np.eye(6, dtype=bool)
    direct = 1 / (np.array([(1 / r[i][:, :])[others].reshape(6, 5).sum(axis=1) for i in range(8)]) - (6 - 2))
    assert_allclose(rule_odds(S), direct / direct.sum(axis=1, keepdims=True), atol=1e-12)


def test_the_number_of_pairs_in_place_of_classes_gives_negative_values(rng):
    """Andelić (2007) below Eq. (4.8) calls T the number of classification problems, 15 for six classes."""
    p = rng.dirichlet(np.ones(6))
    r = p[:, None] / (p[:, None] + p)
    reciprocals = (1 / r).sum(axis=1) - 2
    assert_allclose(1 / (reciprocals - (6 - 2)), p)
    assert (1 / (reciprocals - (15 - 2)) < 0).any()


def test_least_squares_is_the_minimum_over_distributions(rng):
    S = antisymmetric(rng, 4, 4, 1.5)
    R = 1 / (1 + np.exp(-S))
    for r, p in zip(R, couple_least_squares(S)):

        def disagreement(p, r=r):
            D = r.T * p[:, None] - r * p
            return ((D - np.diag(np.diag(D))) ** 2).sum()

        bound = [(0, 1)] * 4
        simplex = {"type": "eq", "fun": lambda p: p.sum() - 1}
        best = minimize(disagreement, np.full(4, 0.25), bounds=bound, constraints=simplex, options={"ftol": 1e-14})
        assert_allclose(p, best.x, atol=1e-5)


def test_log_odds_beyond_the_range_of_numbers_are_no_trouble():
    S = pair_odds(np.array([[0.0, -2000.0, -5000.0]]))
    assert_allclose(couple_odds(S), [[0.0, -2000.0, -5000.0]])
    assert_allclose(couple_least_squares(S), [[1.0, 0.0, 0.0]])


def test_pairs_must_be_of_opposite_sign(rng):
    with pytest.raises(ValueError, match="add up to zero"):
        couple_odds(np.abs(antisymmetric(rng, 2, 3, 1.0)))
    with pytest.raises(ValueError, match=r"\(n, k, k\)"):
        couple_least_squares(np.zeros((3, 3)))
