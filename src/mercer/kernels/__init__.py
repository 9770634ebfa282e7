"""Kernels on vectors, strings, sets and trees, from functions and matrices, and combinations of kernels."""

from mercer.kernels.base import Kernel, Normalized, Power, Product, Scaled, Sum
from mercer.kernels.compact import Wendland
from mercer.kernels.precomputed import FromCallable, Precomputed, pairwise
from mercer.kernels.resolve import as_kernel
from mercer.kernels.strings import KmerSpectrum, Mismatch
from mercer.kernels.subsequences import LocalAlignment, Subsequence, Substrings
from mercer.kernels.vector import (
    ANOVA,
    RBF,
    InverseMultiquadric,
    Laplacian,
    Linear,
    Matern,
    Polynomial,
    RationalQuadratic,
    Sigmoid,
)

__all__ = [
    "ANOVA",
    "RBF",
    "FromCallable",
    "InverseMultiquadric",
    "Kernel",
    "KmerSpectrum",
    "Laplacian",
    "Linear",
    "LocalAlignment",
    "Matern",
    "Mismatch",
    "Normalized",
    "Polynomial",
    "Power",
    "Precomputed",
    "Product",
    "RationalQuadratic",
    "Scaled",
    "Sigmoid",
    "Subsequence",
    "Substrings",
    "Sum",
    "Wendland",
    "as_kernel",
    "pairwise",
]
