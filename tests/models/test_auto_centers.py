"""centers="auto": all rows where they are few or matter, and otherwise as many centers as are enough."""

import numpy as np
import pytest

import mercer.models.resumable as resumable
import mercer.tuning.memory as memory
from mercer import KernelFisherClassifier
from mercer.datasets import make_ringnorm
from mercer.tuning.memory import Rung


@pytest.fixture
def small(monkeypatch):
    """The question is asked from 300 rows on, with few rows and centers on every rung."""
    monkeypatch.setattr(resumable, "EVERY_ROW", 300)
    monkeypatch.setattr(memory, "RUNGS", (Rung(400, 60), Rung(600, 120), Rung(800, 240)))


def checkerboard(rng, n, side):
    X = rng.uniform(size=(n, 2))
    return X, (side * X).astype(int).sum(axis=1) % 2


def test_ringnorm_needs_few_centers(small):
    X, y = make_ringnorm(700, random_state=0)
    model = KernelFisherClassifier(random_state=0).fit(X, y)
    assert len(model.X_fit_) <= 700 / 4


def test_a_checkerboard_needs_all_rows(small, rng):
    X, y = checkerboard(rng, 700, 8)
    assert len(KernelFisherClassifier(random_state=0).fit(X, y).X_fit_) == 700


def test_few_rows_are_all_centers_and_nobody_asks(small):
    X, y = make_ringnorm(300, random_state=0)
    assert len(KernelFisherClassifier(random_state=0).fit(X, y).X_fit_) == 300


def test_a_fit_with_enough_centers_is_repeated_to_the_bit(small):
    X, y = make_ringnorm(700, random_state=0)
    once, again = (KernelFisherClassifier(random_state=0).fit(X, y) for _ in range(2))
    np.testing.assert_array_equal(once.X_fit_, again.X_fit_)
    np.testing.assert_array_equal(once.dual_coef_, again.dual_coef_)
