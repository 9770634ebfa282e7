"""Pairs become one distribution: the one they come from, where there is one."""

from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from scipy.special import log_softmax

from mercer._scores.probabilities.coupling import couple_least_squares, couple_odds


def rule_odds(S):
    return np.exp(couple_odds(S))


def rule_least_squares(S):
    return np.exp(couple_least_squares(S))


RULES = [rule_odds, rule_least_squares]
every_logarithm = pytest.mark.parametrize("couple", [couple_odds, couple_least_squares])
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
@settings(max_examples=40, deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**32 - 1), k=st.integers(2, 8), scale=st.sampled_from([0.1, 3.0, 50.0, 1e4]))
def test_any_pairs_give_a_distribution(rule, seed, k, scale):
    P = rule(antisymmetric(np.random.default_rng(seed), 5, k, scale))
    assert (P >= 0).all()
    assert_allclose(P.sum(axis=1), 1.0)


@pytest.mark.parametrize("couple", [couple_odds, couple_least_squares])
@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 2**32 - 1), k=st.integers(1, 8), scale=st.sampled_from([0.0, 1.0, 50.0, 1e4, 1e16, 1e300])
)
def test_logarithms_of_any_pairs_are_finite(couple, seed, k, scale):
    """Also where many pairs are undecided, and those who lose directly win by way of others."""
    rng = np.random.default_rng(seed)
    S = np.triu(scale * rng.normal(size=(5, k, k)) * (rng.random((5, k, k)) < 0.6), 1)
    log_p = couple(S - S.transpose(0, 2, 1))
    assert np.isfinite(log_p).all()
    assert_allclose(np.exp(log_p).sum(axis=1), 1.0)


@every_logarithm
@pytest.mark.parametrize("k", [2, 3, 6, 10])
@pytest.mark.parametrize("spread", [1.0, 30.0, 40.0, 100.0, 700.0, 5000.0])
def test_small_probabilities_of_one_distribution_have_their_digits(rng, couple, k, spread):
    """The tolerance is of the order of what rounding in the log-odds does."""
    scores = spread * rng.random((50, k))
    assert_allclose(couple(pair_odds(scores)), log_softmax(scores, axis=1), rtol=0, atol=1e-13 * (1 + spread))


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
    for r, p in zip(R, rule_least_squares(S)):

        def disagreement(p, r=r):
            D = r.T * p[:, None] - r * p
            return ((D - np.diag(np.diag(D))) ** 2).sum()

        bound = [(0, 1)] * 4
        simplex = {"type": "eq", "fun": lambda p: p.sum() - 1}
        best = minimize(disagreement, np.full(4, 0.25), bounds=bound, constraints=simplex, options={"ftol": 1e-14})
        assert_allclose(p, best.x, atol=1e-5)


def log_least_squares(S):
    """Wu, Lin and Weng (2004), Eq. (21), for one row and with 400 digits: p is proportional to Q^-1 1."""
    k = len(S)
    with localcontext(prec=400):
        ratio = [[Decimal(float(s)).exp() for s in row] for row in S]
        r = [[ratio[i][j] / (1 + ratio[i][j]) for j in range(k)] for i in range(k)]
        A = [[-r[i][j] * r[j][i] for j in range(k)] + [Decimal(1)] for i in range(k)]
        for i in range(k):
            A[i][i] = sum(r[j][i] ** 2 for j in range(k) if j != i)
        for i in range(k):
            A[i] = [value / A[i][i] for value in A[i]]
            for other in set(range(k)) - {i}:
                A[other] = [a - A[other][i] * b for a, b in zip(A[other], A[i])]
        return [float((row[k] / sum(each[k] for each in A)).ln()) for row in A]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("spread", [0.0, 5.0, 40.0, 150.0])
@pytest.mark.parametrize("noise", [0.01, 0.5, 5.0, 50.0])
def test_small_probabilities_of_pairs_that_disagree_have_their_digits(rng, spread, noise):
    S = pair_odds(spread * rng.random((2, 4))) + antisymmetric(rng, 2, 4, noise)
    assert_allclose(couple_least_squares(S), [log_least_squares(row) for row in S], rtol=0, atol=1e-8)


def test_no_class_has_less_than_its_share_of_what_least_squares_leave(rng):
    """Qp = mu 1 with mu = p'Qp, Q_ii <= k - 1, and no entry of Q off its diagonal is positive."""
    S = pair_odds(100.0 * rng.random((50, 5))) + antisymmetric(rng, 50, 5, 0.5)
    p, r = rule_least_squares(S), 1 / (1 + np.exp(-S))
    differences = r.transpose(0, 2, 1) * p[:, :, None] - r * p[:, None, :]
    left = (np.triu(differences, 1) ** 2).sum(axis=(1, 2))
    # Differences have errors of 1e-16 or less.
    assert (p.min(axis=1) * (1 + 1e-9) + 1e-31 >= left / 4).all()
    assert (np.exp(couple_odds(S)).min(axis=1) < left / 4).any()


def test_a_class_may_lose_less_by_way_of_others():
    """The last loses by 1000 to the first, but only by 1 to the second, which loses by 10."""
    S = np.array([[0.0, 10.0, 1000.0], [-10.0, 0.0, 1.0], [-1000.0, -1.0, 0.0]])
    assert_allclose(couple_least_squares(S[None])[0], log_least_squares(S), rtol=1e-12)


@pytest.mark.parametrize("scale", [0.1, 1.0, 5.0])
def test_one_system_gives_the_same_probabilities(rng, scale):
    """If pairs are consistent, Q is singular: Q + 1 1' has the same solution."""
    S = antisymmetric(rng, 50, 10, scale)
    r = 1 / (1 + np.exp(-S))
    Q, own = -r * r.transpose(0, 2, 1), range(10)
    Q[:, own, own] = (r**2).sum(axis=1) - 0.25
    p = np.linalg.solve(Q + 1.0, np.ones((50, 10, 1)))[..., 0]
    assert_allclose(rule_least_squares(S), p / p.sum(axis=1, keepdims=True), atol=1e-12)


@every_logarithm
def test_log_odds_beyond_the_range_of_numbers_are_no_trouble(couple):
    S = pair_odds(np.array([[0.0, -2000.0, -5000.0]]))
    assert_allclose(couple(S), [[0.0, -2000.0, -5000.0]])


def test_pairs_must_be_of_opposite_sign(rng):
    with pytest.raises(ValueError, match="add up to zero"):
        couple_odds(np.abs(antisymmetric(rng, 2, 3, 1.0)))
    with pytest.raises(ValueError, match=r"\(n, k, k\)"):
        couple_least_squares(np.zeros((3, 3)))
