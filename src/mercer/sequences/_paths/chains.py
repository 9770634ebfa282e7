"""Markov chains of states: which state follows which, where paths start and end."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from mercer._types import Array, Indices

TOPOLOGIES = ("left_right", "ergodic")


@dataclass(frozen=True)
class Chain:
    """Weights of starting in a state (k,), of a step to another (k, k), and of ending after it (k,).

    Each row of ``step`` with its ``end`` sums to one for probabilities; Viterbi's algorithm and the forward
    algorithm do not need that.
    """

    start: Array
    step: Array
    end: Array


def left_right(k: int) -> Chain:
    """What is allowed (0 or 1) from the first of k states to the last, without skipping any."""
    first, last = np.eye(k)[0], np.eye(k)[-1]
    return Chain(first, np.eye(k) + np.eye(k, k=1), last)


def ergodic(k: int) -> Chain:
    """Everything allowed: any state first, any next, any last."""
    return Chain(np.ones(k), np.ones((k, k)), np.ones(k))


def hasty(k: int) -> Chain:
    """For sequences of fewer than k frames, which cannot visit all states: every frame is in a later state."""
    weight = 1.0 / k
    return Chain(np.full(k, weight), np.triu(np.full((k, k), weight), 1), np.full(k, weight))


def allowed(topology: str, k: int) -> Chain:
    """What a topology allows for k states."""
    return left_right(k) if topology == "left_right" else ergodic(k)


def counted(paths: Iterable[Indices], limits: Chain) -> Chain:
    """Relative frequencies of steps along paths, within what is allowed; each allowed step counts once more."""
    start, step, end = limits.start.copy(), limits.step.copy(), limits.end.copy()
    for path in paths:
        start[path[0]] += limits.start[path[0]]
        end[path[-1]] += limits.end[path[-1]]
        np.add.at(step, (path[:-1], path[1:]), limits.step[path[:-1], path[1:]])
    leaving = step.sum(axis=1) + end
    return Chain(start / start.sum(), step / leaving[:, None], end / leaving)


def divided(T: int, k: int) -> Indices:
    """The path (T,) that divides T frames equally among k states."""
    return ((2 * np.arange(T) + 1) * k // (2 * T)).astype(np.intp)
