"""Kernels on vectors, strings, sets and trees, from functions and matrices, and combinations of kernels."""

from mercer.kernels.algebra.choice import OneOf
from mercer.kernels.algebra.compositions import After, Bilinear, Conformal, Constant, Exp, GaussianOf
from mercer.kernels.algebra.weighted_sum import WeightedSum
from mercer.kernels.base import Kernel, Normalized, Power, Product, Scaled, Sum
from mercer.kernels.columns import Nominal, OnColumns
from mercer.kernels.generative.densities import HiddenMarkov, Mixture
from mercer.kernels.generative.kernels import FisherKernel, MarginalizedKernel, Whitening
from mercer.kernels.precomputed import FromCallable, Precomputed, pairwise
from mercer.kernels.resolve import as_kernel
from mercer.kernels.structured.feature_weights import feature_weights
from mercer.kernels.structured.sets import Intersection, MeanMap, SharedSubsets, Tanimoto
from mercer.kernels.structured.strings import KmerSpectrum, Mismatch
from mercer.kernels.structured.subsequences import LocalAlignment, Subsequence, Substrings
from mercer.kernels.structured.text import BagOfWords, TermTopics, TermWeights
from mercer.kernels.structured.trees import Subtrees
from mercer.kernels.vectors.anova import ANOVA, AllSubsets
from mercer.kernels.vectors.compact_support import Wendland
from mercer.kernels.vectors.dot_product import Linear, Polynomial, Sigmoid
from mercer.kernels.vectors.stationary import RBF, InverseMultiquadric, Laplacian, Matern, RationalQuadratic

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
