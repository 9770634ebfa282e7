"""Kernels that are learned from rows with targets before they are compared: relevances of features, or weights."""

from dataclasses import replace
from typing import Any

import numpy as np

from mercer._fitting.kernel_learning.evidence import LearnedKernel, LearningData, in_units
from mercer._fitting.kernel_learning.relevance import (
    MOST_ROWS_FOR_RELEVANCE,
    Features,
    data_for,
    learn_relevance,
)
from mercer._fitting.kernel_learning.weights import learn_weights
from mercer._gram import Budget
from mercer.kernels._algebra.weighted_sum import WeightedSum
from mercer.kernels._base import Kernel


def learns(kernel: Kernel, features: Features | None, X: Any, most: int, budget: Budget) -> bool:
    """Whether there is something to learn, from ``most`` of rows X, before kernels are compared."""
    if isinstance(kernel, WeightedSum):
        return True
    return features is not None and features.learned_from(X, most, budget)


def learn_kernel(
    kernel: Kernel,
    features: Features | None,
    data: LearningData,
    rng: np.random.Generator,
    budget: Budget,
    *,
    has_classes: bool,
    most: int,
    verbose: int,
    best: Kernel | None = None,
    few_centers: bool = False,
) -> LearnedKernel:
    """What is learned from at most ``most`` rows, whose targets are those of ``has_classes`` or real ones.

    ``best`` is the kernel that is chosen if nothing is learned, None: that is not known; ``few_centers``: the
    final fit has far fewer centers than rows.
    """
    if not has_classes:
        data = replace(data, Y=in_units(data.Y, data.weight))
    if isinstance(kernel, WeightedSum):
        return learn_weights(kernel, data, rng, budget, most=most, verbose=verbose)
    assert features is not None
    most = min(most, MOST_ROWS_FOR_RELEVANCE if few_centers else features.most_rows)
    data = data_for(features, data)
    return learn_relevance(
        kernel, data, rng, budget, most=most, verbose=verbose, best=best, few_centers=few_centers
    )
