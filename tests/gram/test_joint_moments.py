"""Moments of several views side by side are those of one row that holds all coordinates."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from mercer._gram.coordinates import Coordinates
from mercer._gram.joint_moments import JointMomentsOf
from mercer._gram.moments import MomentsOf
from mercer.errors import KernelError
from mercer.kernels import RBF, Linear
from mercer.rows import Block, MemoryRows


def test_moments_of_views_are_those_of_their_coordinates_and_add(rng):
    X = {"a": rng.normal(size=(50, 3)), "b": rng.normal(size=(50, 2))}
    weight = rng.uniform(0.5, 2.0, size=50)
    R = np.triu(rng.normal(size=(2, 2))) + 3.0 * np.eye(2)
    kernels, centers = (RBF(gamma=0.5), Linear()), (X["a"][:4], X["b"][:2])
    where = Coordinates.at(R, np.array([0.5, -1.0]))
    fold = JointMomentsOf(
        ["a", "b"], (MomentsOf(kernels[0], centers[0]), MomentsOf(kernels[1], centers[1], coordinates=where))
    )
    K = [kernel.block(X[name], Z) for kernel, name, Z in zip(kernels, X, centers)]
    rows = np.hstack([K[0], (K[1] - where.origin) @ np.linalg.inv(R)])
    assert_allclose(fold.columns(Block(X, None, None, 0)), rows, rtol=1e-12)
    whole, blocks = (MemoryRows(X, None, weight, block_rows=b).reduce(fold) for b in (50, 7))
    for found in (whole, blocks):
        assert_allclose(found.G, (weight[:, None] * rows).T @ rows, rtol=1e-10)
        assert_allclose(found.s, weight @ rows, rtol=1e-10)
        assert found.n_rows == 50


def test_sums_that_are_not_finite_name_the_kernel_of_their_view():
    X = {"a": np.ones((5, 2)), "b": np.full((5, 2), 1e160)}
    fold = JointMomentsOf(["a", "b"], (MomentsOf(RBF(gamma=0.5), X["a"][:1]), MomentsOf(Linear(), X["b"][:1])))
    with pytest.raises(KernelError, match="Linear"):
        fold(Block(X, None, None, 0))
