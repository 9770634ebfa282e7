"""Kernels on ordered trees with labels."""

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer._types import Array, Floats, Indices
from mercer.errors import KernelError
from mercer.kernels._parameters import positive
from mercer.kernels._structured.base import Objects, Ragged, Structured, starts

# Pairs of nodes that are held at a time.
NODE_SLAB = 2**22

# A label and the labels of the children.
Production = tuple[Hashable, ...]


@dataclass(frozen=True)
class Forest(Ragged):
    """The N nodes of n trees, children before parents and tree after tree.

    ``start`` (n + 1,) are the first nodes of the trees, whose roots are their last nodes. A node has a production,
    numbered by ``numbers``, or -1 if it is a leaf or its production is unknown, and a height. The positions of the
    children of node i are ``children[first[i] : first[i + 1]]``.
    """

    start: Indices
    production: Indices
    height: Indices
    first: Indices
    children: Indices
    numbers: dict[Production, int]

    @classmethod
    def of(cls, X: Objects, numbers: dict[Production, int] | None = None) -> "Forest":
        """With the productions of another forest, or with its own."""
        known: dict[Production, int] = {} if numbers is None else numbers
        nodes: list[tuple[int, int, list[int]]] = []
        start = [0]
        for tree in X:
            _add(tree, nodes, known, new=numbers is None)
            start.append(len(nodes))
        first = starts([len(children) for *_, children in nodes])
        below = np.array([position for *_, children in nodes for position in children], np.intp)
        production, height = (np.array([node[i] for node in nodes], np.intp) for i in (0, 1))
        return cls(np.array(start), production, height, first, below, known)

    def trees(self, some: slice) -> "Forest":
        """Some of the trees."""
        a, b = self.start[some.start], self.start[some.stop]
        first = self.first[a : b + 1]
        below = self.children[first[0] : first[-1]] - a
        parts = (self.production[a:b], self.height[a:b], first - first[0], below)
        return Forest(self.start[some.start : some.stop + 1] - a, *parts, self.numbers)

    def child(self, nodes: Indices, i: int) -> Indices:
        """The positions of child i of some nodes."""
        return self.children[self.first[nodes] + i]

    def arity(self) -> NDArray[np.intp]:
        """The number of children (n_productions,) of each production."""
        return np.array([len(production) - 1 for production in self.numbers], np.intp)


def _add(tree: Any, nodes: list[tuple[int, int, list[int]]], numbers: dict[Production, int], *, new: bool) -> None:
    """Append the nodes of a tree, children before parents; trees may be deeper than calls."""
    # From the root down: label, children to come, and positions and labels of children that are there.
    path: list[tuple[Hashable, Iterator[Any], list[tuple[int, Hashable]]]] = [(*_parsed(tree), [])]
    while path:
        label, children, below = path[-1]
        for child in children:
            path.append((*_parsed(child), []))
            break
        else:
            path.pop()
            production: Production = (label, *(name for _, name in below))
            number = -1
            if below:
                number = numbers.setdefault(production, len(numbers)) if new else numbers.get(production, -1)
            height = max((nodes[position][1] + 1 for position, _ in below), default=0)
            nodes.append((number, height, [position for position, _ in below]))
            if path:
                path[-1][2].append((len(nodes) - 1, label))


def _parsed(tree: Any) -> tuple[Hashable, Iterator[Any]]:
    """Label and children of the root: of a tuple, or of a leaf that is its label."""
    if not isinstance(tree, tuple | list):
        return tree, iter(())
    if len(tree) == 0:
        raise KernelError('a tree is an empty tuple; write ("label", child, child, ...), and a leaf as "label"')
    return tree[0], iter(tree[1:])


class Subtrees(Structured):
    """k(S, T) = sum over nodes s of S and t of T of c(s, t): the subtrees that two ordered trees share.

    c(s, t) = decay prod_i (1 + c(s_i, t_i)) over the children s_i, t_i if both nodes have the same production: the
    label of a node and those of its children, in order. Otherwise, and for leaves, it is 0. With decay 1 the
    kernel is the number of common subtrees in which every node has all or none of its children: the parse-tree
    kernel. With ``rooted=True``, it is c of the two roots: co-rooted subtrees. O(pairs of nodes with the same
    production).

    A tree is a tuple ``("label", child, child, ...)``, and a leaf just ``"label"``. Large trees have much larger
    values with themselves than with others: lower ``decay``, and compare ``Normalized(Subtrees())``.

    Collins and Duffy (2002), "Convolution kernels for natural language"; Shawe-Taylor and Cristianini (2004),
    section 11.6.

    Parameters
    ----------
    decay : float
        Weight of each production, above 0.
    rooted : bool
        Whether to compare roots only.

    Examples
    --------
    >>> np_cat = ("NP", ("D", "the"), ("N", "cat"))
    >>> np_dog = ("NP", ("D", "the"), ("N", "dog"))
    >>> Subtrees().block([np_cat], [np_cat, np_dog])
    array([[6., 3.]])
    """

    def __init__(self, decay: float = 1.0, rooted: bool = False) -> None:
        self.decay = decay
        self.rooted = rooted

    def evaluator(self, Z: Objects) -> Callable[..., Floats]:
        return partial(self._evaluate, Forest.of(Z))

    def diag(self, X: Objects) -> Floats:
        return np.array([self.block([tree], [tree])[0, 0] for tree in X], np.float64)

    def _evaluate(self, centers: Forest, X: Objects, workspace: Floats | None = None) -> Floats:
        """Few trees at a time."""
        rows, decay = Forest.of(X, centers.numbers), positive("decay", self.decay)
        K = np.zeros((rows.n_objects, centers.n_objects))
        for some in rows.cuts(NODE_SLAB // max(len(centers.production), 1)):
            part = rows.trees(some)
            C = _common(part, centers, decay)
            if self.rooted:
                K[some] = C[np.ix_(part.start[1:] - 1, centers.start[1:] - 1)]
            elif centers.n_objects:
                K[some] = np.add.reduceat(np.add.reduceat(C, part.start[:-1]), centers.start[:-1], axis=1)
        return K


def _common(rows: Forest, centers: Forest, decay: float) -> Array:
    """c (N, M) for all pairs of nodes, those of low height first: children come before their parents."""
    C = np.zeros((len(rows.production), len(centers.production)))
    order, arity = np.argsort(centers.production, kind="stable"), centers.arity()
    for height in range(1, int(rows.height.max(initial=0)) + 1):
        nodes = np.flatnonzero((rows.height == height) & (rows.production >= 0))
        for n in np.unique(arity[rows.production[nodes]]):
            s, t = _matches(nodes[arity[rows.production[nodes]] == n], rows, centers, order)
            value = np.full(len(s), decay)
            for i in range(n):
                value *= 1.0 + C[rows.child(s, i), centers.child(t, i)]
            C[s, t] = value
    return C


def _matches(nodes: Indices, rows: Forest, centers: Forest, order: Indices) -> tuple[Indices, Indices]:
    """Pairs (s, t) of some nodes of the rows and all nodes of the centers with the same production."""
    sought, among = rows.production[nodes], centers.production[order]
    first, last = (np.searchsorted(among, sought, side=side) for side in ("left", "right"))
    n = last - first
    offset = np.arange(n.sum()) - np.repeat(np.cumsum(n) - n, n)
    return np.repeat(nodes, n), order[np.repeat(first, n) + offset]
