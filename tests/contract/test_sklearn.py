"""The checks that scikit-learn has for every estimator, without exceptions."""

import re

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.utils.estimator_checks import (
    check_sample_weight_equivalence_on_dense_data,
    estimator_checks_generator,
    parametrize_with_checks,
)

from mercer import (
    KernelCCA,
    KernelFisherClassifier,
    KernelMachineClassifier,
    KernelMachineRegressor,
    KernelNoveltyDetector,
    KernelPCA,
    KernelRidgeRegressor,
    LPBoostClassifier,
    OrientedKernelPCA,
    PairwiseClassifier,
    SparseFisherClassifier,
    SparseKernelRegressor,
)
from mercer.centers import Uniform
from mercer.kernels import RBF

# Searches as users have them are those of the estimators without parameters; one machine searches for both. What
# is tested of all others is what their parameters change: they have one kernel, of which leave-one-out chooses
# alpha, and few centers.
MEDIAN = RBF(gamma="median")
# One way to fit of each kind, none of which takes long.
QUICK = [
    KernelFisherClassifier(RBF(gamma=0.5), alpha=1.0),
    KernelPCA(2, MEDIAN, centers=15),
    KernelRidgeRegressor(RBF(gamma=0.5), alpha=1.0),
]
OTHERS = [
    KernelCCA(),
    KernelFisherClassifier(),
    KernelFisherClassifier("linear"),
    KernelFisherClassifier("laplacian", alpha=1.0),
    KernelFisherClassifier(MEDIAN, penalty="coef"),
    KernelFisherClassifier(MEDIAN, criterion="log_loss", calibration="gaussian"),
    KernelFisherClassifier(MEDIAN, criterion="error", calibration="isotonic"),
    KernelFisherClassifier(MEDIAN, criterion="squared", class_weight="balanced"),
    KernelFisherClassifier(MEDIAN, centers=15),
    KernelFisherClassifier(RBF(gamma=0.5), centers=Uniform(), loo_rows=None),
    KernelFisherClassifier(MEDIAN, centers=15, penalty="coef", calibration="isotonic"),
    KernelMachineClassifier(MEDIAN, loss="squared", penalty="l1", alpha=10.0),
    KernelMachineClassifier(MEDIAN),
    KernelMachineClassifier(MEDIAN, loss="hinge", alpha=0.1),
    KernelMachineClassifier(MEDIAN, loss="squared_hinge", penalty="coef", centers=15, alpha=0.1),
    KernelMachineRegressor(),
    KernelNoveltyDetector(),
    KernelPCA(),
    OrientedKernelPCA(noise=np.tanh),
    OrientedKernelPCA(2, MEDIAN, noise=np.tanh, centers=15),
    LPBoostClassifier(nu=0.5),
    KernelMachineRegressor(MEDIAN, loss="pinball", quantile=0.3, alpha=0.1),
    KernelRidgeRegressor(),
    KernelRidgeRegressor(MEDIAN, centers=15),
    KernelRidgeRegressor(MEDIAN, centers=40, fit_intercept=False),
    KernelRidgeRegressor("linear"),
    KernelRidgeRegressor("laplacian"),
    KernelRidgeRegressor(MEDIAN, penalty="coef"),
    KernelRidgeRegressor(MEDIAN, fit_intercept=False),
    PairwiseClassifier(KernelFisherClassifier(RBF(gamma=0.5), alpha=1.0)),
    SparseFisherClassifier(),
    SparseFisherClassifier(MEDIAN, selection="residual", penalty="diagonal", max_centers=5),
    SparseFisherClassifier(MEDIAN, n_candidates=20, prune=True, max_centers=5, alpha=0.1),
    SparseFisherClassifier(MEDIAN, shared=False, penalty="coef", max_centers=5),
    SparseFisherClassifier(MEDIAN, widths=[0.5, 2.0], stop="gcv", max_centers=5),
    SparseKernelRegressor(),
    SparseKernelRegressor(MEDIAN, selection="residual", max_centers=5),
    SparseKernelRegressor(MEDIAN, selection="orthogonal", alpha="evidence", stop="bic", max_centers=5),
]

# All formats become the one in which the weights of every estimator are checked.
FORMATS = ("check_estimator_sparse_array", "check_estimator_sparse_matrix")


def checks_of_all_others():
    """Estimators with each of their checks; formats of sparse rows are those of the first estimator of a class."""
    first = {type(estimator): estimator for estimator in reversed(OTHERS)}
    for estimator in OTHERS:
        for given, check in estimator_checks_generator(estimator):
            if check.func.__name__ not in FORMATS or estimator is first[type(estimator)]:
                yield given, check


def name(value):
    return re.sub(r"\s", "", str(value)) if isinstance(value, BaseEstimator) else value.func.__name__


pytestmark = [
    # The check of array API input skips itself unless scipy was told to dispatch.
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning"),
    # Labels of some checks are noise: what weights mean then makes a difference, and a warning says so.
    pytest.mark.filterwarnings("ignore::mercer.errors.WeightWarning"),
]


@parametrize_with_checks(QUICK)
def test_scikit_learn_contract(estimator, check):
    check(estimator)


@pytest.mark.slow
@pytest.mark.parametrize(("estimator", "check"), list(checks_of_all_others()), ids=name)
def test_scikit_learn_contract_of_all_others(estimator, check):
    check(estimator)


# In that check every kernel fits the left-out copies perfectly: rounding must not decide between equals.
@pytest.mark.slow
@pytest.mark.parametrize(
    "choice", [{"criterion": "error"}, {"criterion": "squared"}, {"class_weight": "balanced"}], ids=str
)
def test_weights_are_repeats_where_kernels_are_equally_good(choice):
    check_sample_weight_equivalence_on_dense_data("KernelFisherClassifier", KernelFisherClassifier(**choice))
