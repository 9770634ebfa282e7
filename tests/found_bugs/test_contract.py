"""Settings that fail checks of scikit-learn today; their place is the list of tests/contract."""

import pytest
from sklearn.utils.estimator_checks import (
    check_sample_weight_equivalence_on_dense_data,
    check_sample_weight_equivalence_on_sparse_data,
)

from mercer import KernelFisherClassifier
from mercer.kernels import RBF

MEDIAN = RBF(gamma="median")


@pytest.mark.parametrize(
    "check", [check_sample_weight_equivalence_on_dense_data, check_sample_weight_equivalence_on_sparse_data]
)
@pytest.mark.parametrize(
    "estimator",
    [
        KernelFisherClassifier(calibration="isotonic"),
        KernelFisherClassifier(MEDIAN, calibration="gaussian"),
        KernelFisherClassifier(MEDIAN, criterion="error"),
        KernelFisherClassifier(MEDIAN, criterion="squared"),
        KernelFisherClassifier(criterion="error"),
        KernelFisherClassifier(criterion="squared"),
        KernelFisherClassifier(class_weight="balanced"),
    ],
    ids=str,
)
def test_weights_are_repeats_to_scikit_learn(estimator, check):
    check("KernelFisherClassifier", estimator)
