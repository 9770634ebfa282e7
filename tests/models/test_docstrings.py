"""What a newcomer looks for stands in the first lines of a class docstring."""

import inspect
import re

import numpy as np
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
    kind = getattr(mercer, name)
    opening = inspect.getdoc(kind).split("Parameters\n")[0]
    word = "" if next(iter(inspect.signature(kind).parameters)) == "kernel" else "kernel="
    assert f"``{name}({word}RBF(gamma=0.1))``" in " ".join(opening.split())


def test_both_ways_to_give_gamma_are_the_same():
    X, y = make_banana(60, random_state=0)
    first = KernelFisherClassifier(RBF(gamma=0.1)).fit(X, y)
    second = KernelFisherClassifier().set_params(kernel__gamma=0.1).fit(X, y)
    assert first.gamma_ == second.gamma_ == 0.1
    assert (first.predict_proba(X) == second.predict_proba(X)).all()


def entries(documented, section):
    """Names in a section of a numpydoc docstring."""
    found = re.search(
        rf"^{section}\n-+\n(.*?)(?=^\S[^\n]*\n---|\Z)", inspect.getdoc(documented) or "", re.S | re.M
    )
    lines = [] if found is None else [line for line in found[1].splitlines() if re.match(r"\w", line)]
    return [name.strip() for line in lines for name in line.split(" : ")[0].split(",")]


def described():
    """Estimators and their public methods whose docstrings have parameters."""
    kinds = [kind for name in mercer.__all__ if hasattr(kind := getattr(mercer, name), "fit")]
    methods = [
        getattr(kind, name)
        for kind in kinds
        for name in ("fit", "partial_fit", "remove")
        if inspect.isfunction(inspect.getattr_static(kind, name, None))
    ]
    return [(each.__qualname__, each) for each in kinds + methods]


@pytest.mark.parametrize(("name", "documented"), described())
def test_parameters_are_documented_one_by_one(name, documented):
    taken = [parameter for parameter in inspect.signature(documented).parameters if parameter != "self"]
    assert sorted(entries(documented, "Parameters")) == sorted(taken), name


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", [name for name in mercer.__all__ if hasattr(getattr(mercer, name), "fit")])
def test_documented_attributes_exist_after_fitting(name):
    kind = getattr(mercer, name)
    given = {"centers": 5, "noise": np.negative, "kernel": RBF(gamma=0.5)}
    model = kind(**{key: value for key, value in given.items() if key in inspect.signature(kind).parameters})
    X, y = make_banana(30, random_state=0)
    model.fit(X, y)
    missing = [entry for entry in entries(kind, "Attributes") if not hasattr(model, entry)]
    if missing:
        # What only fits to raw tables, or with every row a center, have.
        table = np.column_stack([X, y == y[0]]).astype(object)
        table[0, 2] = None
        model = kind(kernel=RBF(gamma=0.5)).fit(table, y)
    assert [entry for entry in missing if not hasattr(model, entry)] == []


SEEDED = [kind for _, kind in described() if "random_state : int" in (inspect.getdoc(kind) or "")]


@pytest.mark.parametrize("kind", SEEDED, ids=lambda kind: kind.__name__)
def test_a_docstring_says_what_no_seed_means(kind):
    assert "None is seed 0: equal rows give equal models, to the bit." in " ".join(inspect.getdoc(kind).split())
