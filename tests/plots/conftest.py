"""Fitted models to draw, and a fixture that closes every figure."""

import matplotlib.pyplot as plt
import pytest
from sklearn.datasets import load_iris

from mercer import KernelFisherClassifier, KernelRidgeRegressor
from mercer.datasets import make_ringnorm, make_sinc


@pytest.fixture(autouse=True)
def closed_figures():
    """No figure outlives its test."""
    yield
    plt.close("all")


@pytest.fixture(scope="session")
def two():
    """A fitted model of two classes, and its rows and labels."""
    X, y = make_ringnorm(80, random_state=0)
    return KernelFisherClassifier("rbf").fit(X, y), X, y


@pytest.fixture(scope="session")
def three():
    """A fitted model of three classes with names, and its rows and labels."""
    iris = load_iris()
    y = iris.target_names[iris.target]
    return KernelFisherClassifier().fit(iris.data, y), iris.data, y


@pytest.fixture(scope="session")
def regressor():
    """A fitted regression model."""
    return KernelRidgeRegressor().fit(*make_sinc(60, random_state=0))
