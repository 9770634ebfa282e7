"""Kernels on vectors, strings, sets and trees, from functions and matrices, and combinations of kernels."""

from mercer.kernels.base import Kernel, Normalized, Power, Product, Scaled, Sum
from mercer.kernels.compact import Wendland
from mercer.kernels.precomputed import FromCallable, Precomputed, pairwise
from mercer.kernels.resolve import as_kernel
from mercer.kernels.sets import Intersection, MeanMap, SharedSubsets, Tanimoto
from mercer.kernels.strings import KmerSpectrum, Mismatch
from mercer.kernels.subsequences import LocalAlignment, Subsequence, Substrings
from mercer.kernels.text import BagOfWords, TermWeights
from mercer.kernels.trees import Subtrees
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
    "BagOfWords",
    "FromCallable",
    "Intersection",
    "InverseMultiquadric",
    "Kernel",
    "KmerSpectrum",
    "Laplacian",
    "Linear",
    "LocalAlignment",
    "Matern",
    "MeanMap",
    "Mismatch",
    "Normalized",
    "Polynomial",
    "Power",
    "Precomputed",
    "Product",
    "RationalQuadratic",
    "Scaled",
    "SharedSubsets",
    "Sigmoid",
    "Subsequence",
    "Substrings",
    "Subtrees",
    "Sum",
    "Tanimoto",
    "TermWeights",
    "Wendland",
    "as_kernel",
    "pairwise",
]
