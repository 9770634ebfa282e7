"""scikit-learn estimators: they validate, call one function, and store."""

from mercer.models.fisher import KernelFisherClassifier
from mercer.models.regression import KernelRidgeRegressor

__all__ = ["KernelFisherClassifier", "KernelRidgeRegressor"]
