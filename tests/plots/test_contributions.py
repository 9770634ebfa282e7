"""Bars of contributions, from the mean to the prediction."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import Ridge

from mercer import KernelFisherClassifier, KernelRidgeRegressor
from mercer.kernels import RBF
from mercer.plots import ContributionsDisplay

pd = pytest.importorskip("pandas")


@pytest.fixture(scope="module")
def rows():
    X = np.random.default_rng(0).normal(size=(80, 5))
    return pd.DataFrame(X, columns=list("abcde")), np.sin(X[:, 2]) + 0.5 * X[:, 0]


@pytest.fixture(scope="module")
def model(rows):
    return KernelRidgeRegressor(RBF(gamma=0.1), alpha=0.1).fit(*rows)


def words(display):
    return [label.get_text() for label in display.ax_.get_yticklabels()]


def test_bars_lead_from_the_mean_to_the_prediction(rows, model):
    X, _ = rows
    display = ContributionsDisplay.from_estimator(model, X, row=3)
    found = model.contributions(X[3:4])
    widths = np.array([bar.get_width() for bar in display.bars_])
    starts = np.array([bar.get_x() for bar in display.bars_])
    order = np.argsort(-np.abs(found.values[0]))
    assert_allclose(widths, found.values[0][order])
    assert_allclose(starts, found.base + np.cumsum(widths) - widths)
    assert_allclose(starts[-1] + widths[-1], model.predict(X[3:4])[0])
    assert words(display)[0] == f"{'abcde'[order[0]]} = {X.iloc[3, order[0]]:.4g}"
    assert display.ax_.get_xlabel() == "prediction"


def test_other_columns_share_a_bar(rows, model):
    found = model.contributions(rows[0])
    display = ContributionsDisplay(contributions=found).plot(row=2, most=2)
    order = np.argsort(-np.abs(found.values[2]))
    assert words(display) == [*("abcde"[j] for j in order[:2]), "3 others, together"]
    assert_allclose(display.bars_[2].get_width(), found.values[2][order[2:]].sum())
    assert words(ContributionsDisplay(contributions=found).plot(most=4))[-1] == "the other one"


def test_values_of_rows_are_labels_whatever_they_are():
    frame = pd.DataFrame(
        {
            "job": ["cook", "nurse"] * 20,
            "since": pd.date_range("2024-01-01", periods=40),
            "age": np.linspace(20.0, 60.0, 40),
            "gap": [None, 1.5] * 20,
        }
    )
    labels = np.arange(40) % 2 == 0
    model = KernelFisherClassifier(RBF("loo")).fit(frame, labels)
    shown = set(words(ContributionsDisplay.from_estimator(model, frame)))
    assert shown == {"job = cook", "since = 2024-01-01", "age = 20", "gap = missing"}
    array = frame.to_numpy(dtype=object)
    model = KernelFisherClassifier(RBF("loo")).fit(array, labels)
    assert "0 = cook" in words(ContributionsDisplay.from_estimator(model, array))


def test_one_of_several_outputs_is_drawn(rows):
    X, y = rows
    model = KernelRidgeRegressor(RBF(gamma=0.1), alpha=0.1).fit(X, np.column_stack([y, -y]))
    first, second = (ContributionsDisplay.from_estimator(model, X, target=j) for j in (0, 1))
    widths = [[bar.get_width() for bar in display.bars_] for display in (first, second)]
    assert_allclose(widths[0], np.negative(widths[1]))


def test_what_cannot_be_drawn_is_refused(rows, model):
    X, y = rows
    with pytest.raises(TypeError, match="ContributionsDisplay does not apply to Ridge"):
        ContributionsDisplay.from_estimator(Ridge().fit(X, y), X)
    with pytest.raises(ValueError, match="row=80; it must be a number from 0 to 79"):
        ContributionsDisplay.from_estimator(model, X, row=80)
    for wrong in ({"row": 2}, {"target": 1}, {"most": 0}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            ContributionsDisplay(contributions=model.contributions(X[:2])).plot(**wrong)
