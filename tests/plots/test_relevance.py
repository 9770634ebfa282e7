"""Bars of relevances."""

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from mercer import KernelRidgeRegressor
from mercer.plots import RelevanceDisplay

pd = pytest.importorskip("pandas")


@pytest.fixture(scope="module")
def rows():
    X = np.random.default_rng(0).normal(size=(150, 4))
    return pd.DataFrame(X, columns=["a", "b", "c", "d"]), np.sin(3.0 * X[:, 2])


def words(display):
    return [label.get_text() for label in display.ax_.get_yticklabels()]


@pytest.mark.slow
def test_bars_are_the_relevances_in_order(rows):
    model = KernelRidgeRegressor("rbf", relevance="diagonal", random_state=0).fit(*rows)
    display = RelevanceDisplay.from_estimator(model)
    widths = [bar.get_width() for bar in display.bars_]
    np.testing.assert_allclose(widths, np.sort(model.relevance_)[::-1])
    assert words(display)[0] == "c"


def test_other_features_share_a_bar():
    display = RelevanceDisplay(relevance=[0.1, 0.5, 0.15, 0.25]).plot(most=2)
    assert words(display) == ["1", "3", "2 others, together"]
    np.testing.assert_allclose([bar.get_width() for bar in display.bars_], [0.5, 0.25, 0.25])
    assert words(RelevanceDisplay(relevance=[0.1, 0.5, 0.4]).plot(most=2))[-1] == "the other one"


@pytest.mark.slow
def test_a_pipeline_knows_the_names(rows):
    model = KernelRidgeRegressor("rbf", relevance="diagonal", random_state=0)
    display = RelevanceDisplay.from_estimator(make_pipeline(StandardScaler(), model).fit(*rows))
    assert words(display)[0] == "c"
    nameless = make_pipeline(FunctionTransformer(np.asarray), model).fit(*rows)
    assert words(RelevanceDisplay.from_estimator(nameless))[0] == "2"


def test_a_model_without_relevances_is_refused(rows):
    with pytest.raises(ValueError, match="fit it with relevance"):
        RelevanceDisplay.from_estimator(KernelRidgeRegressor().fit(*rows))


def test_no_bars_are_refused():
    with pytest.raises(ValueError, match="at least 1"):
        RelevanceDisplay(relevance=[0.5, 0.5]).plot(most=0)
