"""Kernels on vectors, kernels from functions and matrices, and combinations of kernels."""

from mercer.kernels.base import Kernel, Normalized, Power, Product, Scaled, Sum
from mercer.kernels.choice import OneOf
from mercer.kernels.columns import Nominal, OnColumns
from mercer.kernels.compact import Wendland
from mercer.kernels.precomputed import FromCallable, Precomputed, pairwise
from mercer.kernels.resolve import as_kernel
from mercer.kernels.vector import (
    ANOVA,
    RBF,
    AllSubsets,
    InverseMultiquadric,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    RationalQuadratic,
    Sigmoid,
)
from mercer.kernels.weighted_sum import WeightedSum
from mercer.kernels.wrap import After, Bilinear, Conformal, Constant, Exp, GaussianOf

__all__ = [
    "ANOVA",
    "RBF",
    "After",
    "AllSubsets",
    "Bilinear",
    "Conformal",
    "Constant",
    "Exp",
    "FromCallable",
    "GaussianOf",
    "InverseMultiquadric",
    "Kernel",
    "Laplacian",
    "Linear",
    "Matern",
    "Nominal",
    "Normalized",
    "OnColumns",
    "OneOf",
    "Polynomial",
    "Power",
    "Precomputed",
    "Product",
    "RationalQuadratic",
    "Scaled",
    "Sigmoid",
    "Sum",
    "WeightedSum",
    "Wendland",
    "as_kernel",
    "pairwise",
]
