"""Machines with any loss and penalty: leave-one-out outputs are those of refitting, and labels are not lost.

alpha from 1e-10 to 1e6, weights from 1e-8 to 1e8. The tolerance is what a solution is known to: a duality gap g
bounds the squared distance to the solution by 2 g / alpha where the penalty is quadratic.
"""

import warnings
from typing import get_args

import numpy as np
import pytest
from hypothesis import assume, event, given, settings
from hypothesis import strategies as st

from mercer import KernelMachineClassifier, KernelMachineRegressor
from mercer._estimators.programs.machine import CLASS_LOSSES, VALUE_LOSSES
from mercer._fitting.spec import AnyPenalty
from mercer.datasets import make_banana
from mercer.errors import NumericalWarning
from mercer.kernels import RBF

pytestmark = pytest.mark.filterwarnings("ignore::mercer.errors.NumericalWarning")
# Each case of leave-one-out is several fits.
CASES = settings(settings.get_profile("hostile"), max_examples=settings.get_profile("hostile").max_examples // 2)
WIDTHS = {"huber": {"delta": 0.5}, "epsilon_insensitive": {"epsilon": 0.3}, "pinball": {"quantile": 0.3}}
# Steps of the logistic loss are near refitting, not equal: a share of what leaving out changes. With |v|_1, a
# gap bounds outputs at rows that were fitted, not those at a row that was left out.
NEAR, NEAR_L1, SPARSE = 0.1, 0.01, ("l1", "elastic_net")
CORNERS = ("hinge", "absolute", "epsilon_insensitive", "pinball")
TOLERANCE = 1e-5


def solved(model, X, y, weight):
    """The fitted model, if its program was solved."""
    with warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always")
        model.fit(X, y, sample_weight=weight)
    assume(not any(issubclass(each.category, NumericalWarning) for each in raised))
    return model


def outputs(model, X):
    return np.ravel(model._outputs(X) if hasattr(model, "classes_") else model.predict(X))


@st.composite
def machines(draw):
    """A machine with kernel and alpha, rows, targets, and weights or None."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.integers(12, 20))
    X, kind = rng.normal(size=(n, 2)), draw(st.sampled_from([KernelMachineClassifier, KernelMachineRegressor]))
    loss = draw(st.sampled_from(CLASS_LOSSES if kind is KernelMachineClassifier else VALUE_LOSSES))
    y = np.sin(2.0 * X[:, 0]) + 0.3 * rng.normal(size=n)
    if kind is KernelMachineClassifier:
        y = (y > np.median(y)).astype(int)
    weight = draw(st.sampled_from([None, np.ones(n), rng.uniform(0.2, 3.0, n)]))
    weight = None if weight is None else weight * 10.0 ** draw(st.floats(-8, 8))
    alpha, scale = 10.0 ** draw(st.floats(-10, 6)), 10.0 ** draw(st.sampled_from([0.0, -4.0, 6.0]))
    model = kind(
        scale * RBF(gamma=draw(st.sampled_from([0.3, 3.0]))),
        loss=loss,
        penalty=draw(st.sampled_from(get_args(AnyPenalty))),
        alpha=alpha,
        weights="importance",
        **(WIDTHS.get(loss, {}) if kind is KernelMachineRegressor or loss != "pinball" else {}),
    )
    return model, X, y, weight, scale


def moved(model, X, y, weight):
    """The model fitted to rows that are moved by little: linear programs may have many solutions."""
    for seed in range(4):
        again = type(model)(**model.get_params(deep=False))
        yield solved(again, X + 1e-7 * np.random.default_rng(seed).normal(size=X.shape), y, weight)


def is_determined(model, X, y, weight):
    """Whether the penalty is far above the gap, and some row determines the intercept."""
    target = 2.0 * y - 1.0 if hasattr(model, "classes_") else y
    if model.loss == "huber" and np.all(np.abs(target - outputs(model, X)) >= model.delta * (1.0 - 1e-9)):
        return False
    penalty = model.alpha * float(np.abs(model.dual_coef_).sum())
    return model.penalty not in SPARSE or penalty > 1e5 * max(model.gap_, 1e-15) * float(np.sum(weight))


def known_to(model, weight, scale, y):
    """How far outputs may be from those of the solution, for the gap that is left."""
    if model.penalty not in ("rkhs", "coef"):
        return 0.0
    total = float(np.sum(weight)) * (1.0 + float(np.mean(np.abs(y))))
    norm = np.sqrt(scale) if model.penalty == "rkhs" else scale * np.sqrt(len(weight))
    return 3.0 * norm * np.sqrt(2.0 * max(model.gap_, 1e-15) * total / model.alpha)


@pytest.mark.slow
@given(machines())
@CASES
def test_leave_one_out_outputs_are_those_of_refitting(case):
    model, X, y, weight, scale = case
    solved(model, X, y, weight)
    f, loo = (
        outputs(model, X),
        np.ravel(model.loo_outputs_ if hasattr(model, "classes_") else model.loo_prediction_),
    )
    event(f"{model.loss} {model.penalty}")
    event("compared")
    every = np.ones(len(y)) if weight is None else weight
    for i in range(0, len(y), 5):
        keep = np.arange(len(y)) != i
        again = type(model)(**model.get_params(deep=False))
        solved(again, X[keep], y[keep], None if weight is None else weight[keep])
        assume(is_determined(model, X, y, every) and is_determined(again, X[keep], y[keep], every[keep]))
        exact = outputs(again, X[i : i + 1])[0]
        share = NEAR if model.loss == "logistic" else NEAR_L1 if model.penalty in SPARSE else 0.0
        near = share * abs(exact - f[i])
        known = max(known_to(each, every, scale, y) for each in (model, again))
        if model.penalty == "l1" and model.loss in CORNERS:
            known += np.ptp(
                [outputs(each, X[i : i + 1])[0] for each in moved(again, X[keep], y[keep], every[keep])]
            )
        assert abs(loo[i] - exact) <= near + known + TOLERANCE * (1.0 + abs(exact) + abs(f[i])), (
            i,
            f[i],
            loo[i],
            exact,
            known,
        )


ROWS, NEW = make_banana(40, random_state=0), make_banana(1000, random_state=1)


def accuracies(loss, penalty, alpha, unit):
    """Of labels and of the sign of f on new rows, for weights of one size, and alpha in units of it."""
    (X, y), (new, truth) = ROWS, NEW
    model = KernelMachineClassifier(RBF(gamma=1.0), loss=loss, penalty=penalty, alpha=unit * alpha)
    model.fit(X, y, sample_weight=None if unit == 1.0 else np.full(len(y), unit))
    sign = model.classes_[(outputs(model, new) > 0.0).astype(int)]
    return np.mean(model.predict(new) == truth), np.mean(sign == truth)


def check_labels(labels, plain):
    # The threshold is known from the training rows: two standard errors of an accuracy on as many.
    assert labels >= plain - 2.0 * np.sqrt(plain * (1.0 - plain) / len(ROWS[1])), (labels, plain)


@pytest.mark.slow
@given(
    st.sampled_from(CLASS_LOSSES),
    st.sampled_from(get_args(AnyPenalty)),
    st.floats(-2, 6),
    st.sampled_from([1e-8, 1.0, 1e8]),
)
@CASES
def test_labels_are_not_worse_than_the_sign_of_f(loss, penalty, exponent, unit):
    check_labels(*accuracies(loss, penalty, 10.0**exponent, unit))


@pytest.mark.slow
def test_labels_of_overfitted_machines_are_not_worse_than_the_sign_of_f():
    for loss in CLASS_LOSSES:
        for penalty in ("coef", "l1"):
            check_labels(*accuracies(loss, penalty, 1e-3, 1.0))
