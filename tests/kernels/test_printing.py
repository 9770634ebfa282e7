"""``str`` of a kernel is for reading, ``repr`` for writing it again."""

import re

import numpy as np
import pytest

import mercer
from mercer import KernelFisherClassifier, SparseFisherClassifier
from mercer.datasets import make_banana
from mercer.kernels import RBF, Linear, Matern, Normalized, Precomputed

# More digits than a reader wants.
LONG = re.compile(r"\.\d{7,}")
THIRD = 1.0 / 3.0


@pytest.mark.parametrize(
    ("kernel", "written"),
    [
        (RBF(gamma=THIRD), "RBF(gamma=0.3333)"),
        (RBF(gamma=THIRD * 1e-9), "RBF(gamma=3.333e-10)"),
        (RBF(gamma=[THIRD, 0.0, 12345.678]), "RBF(gamma=[0.3333, 0.0, 12350.0])"),
        (RBF(gamma=np.array([THIRD, 1.0])), "RBF(gamma=[0.3333, 1.0])"),
        (RBF(gamma=np.float64(THIRD)), "RBF(gamma=0.3333)"),
        (RBF(gamma="median"), "RBF(gamma='median')"),
        (RBF(), "RBF()"),
        (Matern(nu=float("inf"), gamma=2.0), "Matern(gamma=2.0, nu=inf)"),
        (
            THIRD * RBF(gamma=THIRD) + Linear(),
            "Sum(parts=[('rbf', Scaled(kernel=RBF(gamma=0.3333), scale=0.3333)), ('linear', Linear())])",
        ),
        (Normalized(RBF(gamma=THIRD)), "Normalized(kernel=RBF(gamma=0.3333))"),
        (Precomputed(psd=True), "Precomputed(psd=True)"),
    ],
)
def test_str_has_four_digits_and_one_line(kernel, written):
    assert str(kernel) == written


@pytest.mark.parametrize("kernel", [RBF(gamma=THIRD), THIRD * RBF(gamma=[THIRD, 2.0 / 3.0]) + Linear()], ids=str)
def test_repr_writes_the_same_kernel_again(kernel):
    again = eval(repr(kernel), vars(mercer.kernels))
    assert repr(again.get_params()) == repr(kernel.get_params())


def test_printing_leaves_the_kernel_as_it_is():
    kernel = RBF(gamma=THIRD)
    str(kernel)
    assert kernel.gamma == THIRD


@pytest.mark.sampled(1)
@pytest.mark.parametrize("model", [KernelFisherClassifier(), SparseFisherClassifier(random_state=0)], ids=str)
def test_reports_have_no_numbers_of_seventeen_digits(model):
    X, y = make_banana(100, random_state=0)
    model.fit(X, y)
    assert LONG.search(repr(model.kernel_))
    assert f"{model.kernel_}" in str(model.report_)
    assert not LONG.search(str(model.report_))
