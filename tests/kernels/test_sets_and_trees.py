"""Kernels on sets, bags and trees equal the sums that define them."""

from itertools import product

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from mercer.errors import KernelError
from mercer.kernels import (
    RBF,
    Intersection,
    Laplacian,
    Linear,
    MeanMap,
    Normalized,
    Polynomial,
    SharedSubsets,
    Subtrees,
    Tanimoto,
)
from mercer.kernels._structured import sets, trees

DOT = ("",)
PAIR = ("", DOT, DOT)
BOOK = [("", PAIR, ("", DOT, PAIR)), ("", PAIR, DOT)]


def random_tree(rng, depth):
    if depth == 0 or rng.random() < 0.3:
        return str(rng.choice(list("xy")))
    return (str(rng.choice(list("AB"))), *(random_tree(rng, depth - 1) for _ in range(rng.integers(1, 4))))


def children(tree):
    return [] if isinstance(tree, str) else list(tree[1:])


def label(tree):
    return tree if isinstance(tree, str) else tree[0]


def nodes(tree):
    return [tree, *(node for child in children(tree) for node in nodes(child))]


def rooted(s, t, decay):
    same = label(s) == label(t) and [*map(label, children(s))] == [*map(label, children(t))]
    if not same or not children(s):
        return 0.0
    return decay * np.prod([1.0 + rooted(a, b, decay) for a, b in zip(children(s), children(t))])


def test_trees_without_labels_have_the_values_of_enumeration():
    assert_array_equal(Subtrees(rooted=True).block(BOOK, BOOK), [[6.0, 2.0], [2.0, 2.0]])
    assert_array_equal(Subtrees().block(BOOK[:1], BOOK), [[24.0, 9.0]])


@pytest.mark.parametrize("decay", [0.4, 1.0])
@pytest.mark.parametrize("slab", [1, trees.NODE_SLAB])
def test_subtrees_equal_the_recursion_over_all_pairs_of_nodes(monkeypatch, rng, decay, slab):
    monkeypatch.setattr(trees, "NODE_SLAB", slab)
    X = [random_tree(rng, 4) for _ in range(25)]
    Z = [random_tree(rng, 4) for _ in range(9)]
    roots = [[rooted(s, t, decay) for t in Z] for s in X]
    assert_allclose(Subtrees(decay, rooted=True).block(X, Z), roots, rtol=1e-12)
    every = [[sum(rooted(*pair, decay) for pair in product(nodes(s), nodes(t))) for t in Z] for s in X]
    assert_allclose(Subtrees(decay).block(X, Z), every, rtol=1e-12)


def test_order_of_children_matters():
    assert Subtrees().block([("A", "x", "y")], [("A", "y", "x")]) == 0.0


def test_sets_are_compared_by_what_they_share(rng):
    X = [frozenset(rng.choice(12, n, replace=False).tolist()) for n in (0, 1, 3, 5, 8, 12)]
    common = np.array([[len(a & b) for b in X] for a in X], float)
    expected = np.array([[len(a & b) / len(a | b) if a | b else 1.0 for b in X] for a in X])
    assert_array_equal(Intersection().block(X, X), common)
    assert_array_equal(SharedSubsets().block(X, X), 2.0**common)
    assert_array_equal(SharedSubsets(weight=0.5).block(X, X), 1.5**common)
    assert_allclose(Tanimoto().block(X, X), expected)


@pytest.mark.parametrize("collection", [set, frozenset, list, np.array])
def test_things_count_once_in_any_collection(collection):
    kernel, Z = Intersection(), [("a", "b", "b")]
    assert kernel.block([collection(["b", "a", "b", "c"])], Z) == 2.0


def test_strings_are_not_sets():
    with pytest.raises(KernelError, match="split strings first"):
        Intersection().block(["abc"], [{"a"}])


@pytest.mark.parametrize("inner", [Linear(), RBF(gamma=0.3), Laplacian(gamma=0.2), Polynomial(2)])
@pytest.mark.parametrize("slab", [1, sets.BAG_SLAB])
def test_mean_map_is_the_mean_over_pairs_of_vectors(monkeypatch, rng, inner, slab):
    monkeypatch.setattr(sets, "BAG_SLAB", slab)
    X = [rng.normal(size=(n, 3)) for n in (4, 1, 0, 7, 0, 2)]
    expected = [[inner.block(a, b).mean() if len(a) and len(b) else 0.0 for b in X] for a in X]
    assert_allclose(MeanMap(inner).block(X, X[::1]), expected, rtol=1e-12, atol=1e-14)
    assert_allclose(MeanMap(inner).diag(X), np.diagonal(expected), rtol=1e-12)


def test_width_of_a_mean_map_is_that_of_all_vectors(rng):
    X = [rng.normal(size=(n, 3)) for n in (4, 1, 7, 2)]
    (found,) = MeanMap(RBF(gamma="median")).candidates(X)
    (expected,) = RBF(gamma="median").candidates(np.vstack(X))
    assert found.kernel.gamma == expected.gamma
    assert len(Normalized(MeanMap(RBF())).candidates(X)) == len(RBF().candidates(np.vstack(X)))


@pytest.mark.parametrize("rows", [[np.ones(3)], [[["a", "b"]]], ["text"]])
def test_bags_are_tables_of_numbers(rows):
    with pytest.raises(KernelError, match="a bag is an array of numbers"):
        MeanMap(Linear()).block(rows, rows)


def test_a_tree_has_a_root():
    with pytest.raises(KernelError, match="empty tuple"):
        Subtrees().block([()], [("A", "x")])


@pytest.mark.slow
def test_trees_may_be_deeper_than_calls():
    tree = "x"
    for _ in range(3000):
        tree = ("a", tree)
    K = Subtrees(decay=0.5).block([tree, "x"], [tree])
    assert np.isfinite(K).all()
    assert K[0, 0] > K[1, 0] == 0.0


@pytest.mark.slow
def test_a_node_may_have_many_children():
    wide = ("r", *["x"] * 20_000)
    assert Subtrees().block([wide], [wide, ("r", "x")]).tolist() == [[1.0, 0.0]]
