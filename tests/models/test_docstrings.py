"""What a newcomer looks for stands in the first lines of a class docstring."""

import inspect

import pytest

import mercer
from mercer import KernelFisherClassifier
from mercer.datasets import make_banana
from mercer.kernels import RBF


def estimators():
    """Names of all estimators that take a kernel."""
    found = {name: getattr(mercer, name) for name in mercer.__all__ if inspect.isclass(getattr(mercer, name))}
    return [name for name, kind in found.items() if "kernel" in inspect.signature(kind).parameters]


@pytest.mark.parametrize("name", estimators())
def test_a_docstring_shows_before_the_parameters_how_gamma_is_given(name):
    opening = inspect.getdoc(getattr(mercer, name)).split("Parameters\n")[0]
    assert f"``{name}(RBF(gamma=0.1))``" in " ".join(opening.split())


def test_both_ways_to_give_gamma_are_the_same():
    X, y = make_banana(60, random_state=0)
    first = KernelFisherClassifier(RBF(gamma=0.1)).fit(X, y)
    second = KernelFisherClassifier().set_params(kernel__gamma=0.1).fit(X, y)
    assert first.gamma_ == second.gamma_ == 0.1
    assert (first.predict_proba(X) == second.predict_proba(X)).all()
