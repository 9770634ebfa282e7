"""Transformations of images."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from mercer.invariances import (
    AffineWarp,
    ElasticWarp,
    Thickness,
    distortions,
    rotations,
    scalings,
    shears,
    shifts,
    thicknesses,
)

EVERY = [*shifts(), *rotations(), *scalings(), *shears(), *thicknesses(), *distortions()]


@pytest.fixture(scope="module")
def images():
    """A bar on a background of -1, in 5 x 5 images."""
    X = np.full((2, 5, 5), -1.0)
    X[0, 1:4, 2] = 1.0
    X[1, 2, 2] = 3.0
    return X.reshape(2, 25)


def picture(row):
    return row.reshape(5, 5)


def test_shifts_move_pixels_and_fill_with_the_background(images):
    up, down, left, right = (f(images)[0] for f in shifts())
    assert_array_equal(picture(up)[0:3, 2], 1.0)
    assert_array_equal(picture(down)[2:5, 2], 1.0)
    assert_array_equal(picture(left)[1:4, 1], 1.0)
    assert_array_equal(picture(right)[1:4, 3], 1.0)
    for moved in (up, down, left, right):
        assert (moved == 1.0).sum() == 3
        assert (moved == -1.0).sum() == 22


def test_a_quarter_turn_makes_a_vertical_bar_horizontal(images):
    assert_allclose(picture(AffineWarp(rotation=90)(images)[0])[2, 1:4], 1.0)


def test_rotation_is_counterclockwise():
    X = np.zeros((5, 5))
    X[2, 4] = 1.0
    assert_allclose(picture(AffineWarp(rotation=90)(X.reshape(1, -1))[0])[0, 2], 1.0)


def test_transformations_and_their_inverses_cancel_in_the_middle(images):
    there = AffineWarp(scale=2.0)(images)
    assert_allclose(picture(AffineWarp(scale=0.5)(there)[1])[2, 2], 3.0)


@pytest.mark.parametrize("transform", EVERY, ids=repr)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_transformations_keep_shape_type_and_range_and_can_be_pickled(images, transform, dtype):
    X = images.astype(dtype)
    found = transform(X)
    assert found.shape == X.shape
    assert found.dtype == dtype
    assert found.min() >= -1.0 - 1e-6
    assert found.max() <= 3.0 + 1e-6
    again = pickle.loads(pickle.dumps(transform))
    assert again == transform
    assert_array_equal(again(X), found)
    # Row by row: the same whatever the block.
    assert_array_equal(transform(X[1:]), found[1:])


def test_an_empty_image_stays_empty():
    X = np.full((1, 16), 7.0)
    for transform in EVERY:
        assert_array_equal(transform(X), X)


def test_thickness_adds_and_takes_bright_pixels(images):
    assert Thickness(1.0)(images)[0].sum() > images[0].sum() > Thickness(-1.0)(images)[0].sum()
    assert_array_equal(Thickness(0.0)(images), images)


def test_elastic_displacements_have_their_amplitude():
    still = np.indices((28, 28)).reshape(2, -1).T
    assert_allclose((ElasticWarp(2.0, 4.0).sources((28, 28)) - still).std(), 2.0, rtol=0.05)


def test_shapes_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match=r"24 columns, which are not images of shape \(5, 5\)"):
        AffineWarp(down=1)(np.ones((1, 24)))
    assert AffineWarp(down=1, shape=(4, 6))(np.ones((1, 24))).shape == (1, 24)


def test_integers_are_interpolated_and_sparse_rows_are_images_too():
    X = np.array([[0, 0, 0, 0, 200, 0, 0, 0, 0]], dtype=np.uint8)
    assert_allclose(AffineWarp(right=0.5)(X)[0, 3:6], [0.0, 100.0, 100.0])
    assert_array_equal(AffineWarp(right=1)(sparse.csr_matrix(X.astype(float)))[0, 5], 200.0)
    assert AffineWarp(right=1)(np.empty((0, 9))).shape == (0, 9)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: AffineWarp(rotation=np.nan),
        lambda: AffineWarp(scale=0.0),
        lambda: AffineWarp(shape=24),
        lambda: AffineWarp(fill=np.inf),
        lambda: ElasticWarp(width=-1.0),
        lambda: ElasticWarp(seed=None),
        lambda: Thickness(2.0),
        lambda: scalings(0.0),
        lambda: AffineWarp(right="a"),
        lambda: distortions(-1),
    ],
)
def test_parameters_are_checked(wrong):
    with pytest.raises(ValueError, match=r"must be|pass a tuple"):
        wrong()
