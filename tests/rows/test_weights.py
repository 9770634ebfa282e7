"""What weights mean is one decision, a statement about all rows that does not know their blocks."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from mercer.rows import MemoryRows
from mercer.rows._sampling.random_sample import Sampler, survey
from mercer.rows._sampling.weights import Reading, Tally, reading_of


def tally(*weights):
    return Tally.of(np.array(weights, dtype=np.float64), len(weights))


def assert_same(one, two):
    assert_array_equal(one.small, two.small)
    assert (one.large, one.other) == (two.large, two.other)


@pytest.mark.parametrize(
    ("weights", "counts", "doubtful"),
    [
        ([1, 1, 1], True, False),
        ([0, 1, 1], True, False),
        ([0, 1, 4], True, True),
        ([1, 10], True, True),
        ([3, 4], True, True),
        # One number for all rows is a unit.
        ([2, 2, 2], False, False),
        ([0, 7, 7], False, False),
        ([1, 11], False, True),
        ([500, 1499], False, False),
        ([1, 1.5], False, False),
        ([1, 2, 2.0**53], False, False),
    ],
)
def test_auto_takes_small_whole_numbers_for_counts(weights, counts, doubtful):
    assert reading_of("auto", tally(*weights)) == Reading(counts, doubtful)


@pytest.mark.parametrize("weights", [[1, 2], [500, 1499], [0.5]])
def test_importance_is_never_in_doubt(weights):
    assert reading_of("importance", tally(*weights)) == Reading(False)


def test_counts_are_whole_numbers():
    assert reading_of("counts", tally(1, 500, 2.0**53 - 1)) == Reading(True)
    with pytest.raises(ValueError, match=r'contains 2\.5, but .* round .* use weights="importance"'):
        reading_of("counts", tally(1, 2.5, 0.5))
    with pytest.raises(ValueError, match=r"contains 9007199254740992\.0, but"):
        reading_of("counts", tally(1, 2.0**53))


def test_rows_without_weights_have_weight_one():
    assert_same(Tally.of(None, 7), tally(*[1] * 7))


def test_tally_does_not_know_blocks(rng):
    weight = rng.choice([0, 1, 2, 10, 11, 0.5, 1e3, 2.0**60], 1000)
    rows = MemoryRows(np.zeros((1000, 1)), np.zeros(1000), weight)
    for block_rows in (1000, 64, 7):
        cut = MemoryRows(rows.X, rows.y, weight, block_rows=block_rows)
        assert_same(survey(cut, Sampler(5, 0)).tally, tally(*weight))


def test_rows_that_leave_leave_the_tally(rng):
    weight = rng.choice([1, 2], 50)
    assert_same(tally(*weight) - tally(*weight[30:]), tally(*weight[:30]))
    # Of a large weight a part may have left: what stays is as it was.
    left = tally(50, 50, 1) - tally(20, 20)
    assert left.large == 2
    # Half of a row is left where half of it went.
    assert not (tally(1, 1) - tally(0.5)).whole
    # Nothing but whole numbers is left where only such went.
    assert (tally(3, 1) - tally(2)).whole
    assert not tally(1, 2).faded().whole
