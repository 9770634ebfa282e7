"""Backward elimination of centers."""

import numpy as np

from mercer._solvers.orthogonal.path import Steps
from mercer._types import Indices


def prune(steps: Steps, m: int) -> Indices:
    """The first m centers, ordered so that the least important comes last: candidates (m,).

    Without center j the objective increases by sum_q c_jq² / t_j, with t_j the j-th diagonal element of (A'A +
    alpha P'P)^-1 = V V'. The center with the smallest increase is removed repeatedly: O(m³). Following the result
    as an order gives the fits of all stages of the elimination. Couvreur, Bresler (2000), "On the optimality of
    the backward greedy algorithm for the subset selection problem".
    """
    V = steps.V[:m, :m] * np.sqrt(steps.scale(m))
    B, c = V @ V.T, steps.coefficients(m)
    staying, leaving = list(range(m)), []
    while staying:
        t = B.diagonal()
        j = int(((c**2).sum(axis=1) / t).argmin())
        c = np.delete(c - np.outer(B[:, j], c[j] / t[j]), j, axis=0)
        B = np.delete(np.delete(B - np.outer(B[:, j], B[j] / t[j]), j, axis=0), j, axis=1)
        leaving.append(staying.pop(j))
    return np.asarray(steps.order[leaving[::-1]])
