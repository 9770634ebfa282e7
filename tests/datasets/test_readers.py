"""The readers return the rows of the archives, in the customary parts."""

import numpy as np
import pytest

from mercer.datasets import DIGITS_NAMES, IDA_NAMES, Partitions, read_digits, read_ida

SIZES = {
    "usps": (7291, 2007, 256, 10),
    "mnist": (60000, 10000, 784, 10),
    "optdigits": (3823, 1797, 64, 10),
    "pendigits": (7494, 3498, 16, 10),
    "satimage": (4435, 2000, 36, 6),
    "letter": (16000, 4000, 16, 26),
}


@pytest.fixture
def small_ida(tmp_path):
    """A folder with a tiny heart.npz."""
    np.savez(
        tmp_path / "heart.npz",
        X=np.arange(12.0).reshape(6, 2),
        y=np.array([1, -1, 1, -1, 1, -1], dtype=np.int8),
        train=np.array([[0, 1, 2, 3], [5, 4, 3, 2]], dtype=np.uint16),
        test=np.array([[4, 5], [1, 0]], dtype=np.uint16),
    )
    return tmp_path


def test_partitions_are_the_rows_the_archive_names(small_ida):
    partitions = read_ida(small_ida, "heart")
    assert isinstance(partitions, Partitions)
    assert len(partitions) == 2
    X_train, y_train, X_test, y_test = partitions.split(1)
    np.testing.assert_array_equal(X_train, [[10, 11], [8, 9], [6, 7], [4, 5]])
    np.testing.assert_array_equal(y_train, [-1, 1, -1, 1])
    np.testing.assert_array_equal(X_test, [[2, 3], [0, 1]])
    np.testing.assert_array_equal(y_test, [-1, 1])


def test_iteration_goes_through_all_splits(small_ida):
    partitions = read_ida(small_ida, "heart")
    for k, split in enumerate(partitions):
        for part, expected in zip(split, partitions.split(k)):
            np.testing.assert_array_equal(part, expected)
    assert k == 1


def test_a_missing_file_is_named_with_its_arrays(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"banana\.npz.*X \(n, d\).*train.*test"):
        read_ida(tmp_path, "banana")
    with pytest.raises(FileNotFoundError, match=r"usps\.npz.*X_train_milli"):
        read_digits(tmp_path, "usps")


def test_a_missing_array_is_named(tmp_path):
    np.savez(tmp_path / "letter.npz", X=np.zeros((3, 2)))
    with pytest.raises(ValueError, match="lacks the arrays y"):
        read_digits(tmp_path, "letter")


@pytest.mark.parametrize("read", [read_ida, read_digits])
def test_an_unknown_name_is_answered_with_the_known_ones(tmp_path, read):
    with pytest.raises(ValueError, match="name='iris' is not a data set; it must be one of"):
        read(tmp_path, "iris")


def test_usps_values_are_thousandths(tmp_path):
    X, y = np.array([[-1000, 250]], dtype=np.int16), np.array([3], dtype=np.uint8)
    np.savez(tmp_path / "usps.npz", X_train_milli=X, y_train=y, X_test_milli=-X, y_test=y)
    X_train, y_train, X_test, _ = read_digits(tmp_path, "usps")
    np.testing.assert_array_equal(X_train, [[-1, 0.25]])
    np.testing.assert_array_equal(X_test, [[1, -0.25]])
    assert y_train.dtype == np.int64


@pytest.mark.parametrize("name", IDA_NAMES)
def test_ida_partitions_cover_every_row_once(data_folder, name):
    partitions = read_ida(data_folder / "ida", name)
    n = len(partitions.X)
    assert set(partitions.y.tolist()) == {-1, 1}
    for train, test in zip(partitions.train, partitions.test):
        np.testing.assert_array_equal(np.sort(np.concatenate([train, test])), np.arange(n))


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", DIGITS_NAMES)
def test_digits_have_the_customary_sizes(data_folder, name):
    n_train, n_test, d, n_classes = SIZES[name]
    X_train, y_train, X_test, y_test = read_digits(data_folder / name, name, dtype=np.float32)
    assert X_train.shape == (n_train, d)
    assert X_test.shape == (n_test, d)
    assert X_train.dtype == X_test.dtype == np.float32
    assert sorted(set(y_train.tolist())) == sorted(set(y_test.tolist())) == list(range(n_classes))


def test_usps_lies_between_minus_one_and_one(data_folder):
    X_train, _, _, _ = read_digits(data_folder / "usps", "usps")
    assert X_train.min() == -1
    assert X_train.max() == 1


def test_generated_twonorm_and_archived_twonorm_are_equally_far_apart(data_folder):
    partitions = read_ida(data_folder / "ida", "twonorm")
    X, y = partitions.X, partitions.y
    # The archive is scaled to unit variance; the t-like distance of class means per feature is 2 a / 1.
    spread = np.sqrt((X[y > 0].var(axis=0) + X[y < 0].var(axis=0)) / 2)
    gap = (X[y > 0].mean(axis=0) - X[y < 0].mean(axis=0)) / spread
    np.testing.assert_allclose(gap, 4 / np.sqrt(20), atol=5 * 2 / np.sqrt(len(y)))
