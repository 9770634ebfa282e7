"""Kernels on vectors, strings, sets and trees, from functions and matrices, and combinations of kernels."""

from mercer.kernels.base import Kernel, Normalized, Power, Product, Scaled, Sum
from mercer.kernels.choice import OneOf
from mercer.kernels.columns import Nominal, OnColumns
from mercer.kernels.compact import Wendland
from mercer.kernels.densities import HiddenMarkov, Mixture
from mercer.kernels.generative import FisherKernel, MarginalizedKernel, Whitening
from mercer.kernels.precomputed import FromCallable, Precomputed, pairwise
from mercer.kernels.resolve import as_kernel
from mercer.kernels.sets import Intersection, MeanMap, SharedSubsets, Tanimoto
from mercer.kernels.strings import KmerSpectrum, Mismatch
from mercer.kernels.subsequences import LocalAlignment, Subsequence, Substrings
from mercer.kernels.telling import feature_weights
from mercer.kernels.text import BagOfWords, TermTopics, TermWeights
from mercer.kernels.trees import Subtrees
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
    "BagOfWords",
    "Bilinear",
    "Conformal",
    "Constant",
    "Exp",
    "FisherKernel",
    "FromCallable",
    "GaussianOf",
    "HiddenMarkov",
    "Intersection",
    "InverseMultiquadric",
    "Kernel",
    "KmerSpectrum",
    "Laplacian",
    "Linear",
    "LocalAlignment",
    "MarginalizedKernel",
    "Matern",
    "MeanMap",
    "Mismatch",
    "Mixture",
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
    "SharedSubsets",
    "Sigmoid",
    "Subsequence",
    "Substrings",
    "Subtrees",
    "Sum",
    "Tanimoto",
    "TermTopics",
    "TermWeights",
    "WeightedSum",
    "Wendland",
    "Whitening",
    "as_kernel",
    "feature_weights",
    "pairwise",
]
