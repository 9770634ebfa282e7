"""Kernels on vectors, strings, sets and trees, from functions and matrices, and combinations of kernels."""

from mercer.kernels._algebra.choice import OneOf
from mercer.kernels._algebra.compositions import After, Bilinear, Conformal, Constant, Exp, GaussianOf
from mercer.kernels._algebra.weighted_sum import WeightedSum
from mercer.kernels._base import Kernel, Normalized, Power, Product, Scaled, Sum
from mercer.kernels._columns import Nominal, OnColumns
from mercer.kernels._generative.densities import HiddenMarkov, Mixture
from mercer.kernels._generative.kernels import FisherKernel, MarginalizedKernel, Whitening
from mercer.kernels._precomputed import FromCallable, Precomputed, pairwise
from mercer.kernels._resolve import as_kernel
from mercer.kernels._structured.feature_weights import feature_weights
from mercer.kernels._structured.sets import Intersection, MeanMap, SharedSubsets, Tanimoto
from mercer.kernels._structured.strings import KmerSpectrum, Mismatch
from mercer.kernels._structured.subsequences import LocalAlignment, Subsequence, Substrings
from mercer.kernels._structured.text import BagOfWords, TermTopics, TermWeights
from mercer.kernels._structured.trees import Subtrees
from mercer.kernels._vectors.anova import ANOVA, AllSubsets
from mercer.kernels._vectors.compact_support import Wendland
from mercer.kernels._vectors.dot_product import Linear, Polynomial, Sigmoid
from mercer.kernels._vectors.stationary import RBF, InverseMultiquadric, Laplacian, Matern, RationalQuadratic
from mercer.kernels._vectors.units import RankNormal, Standardized

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
    "RankNormal",
    "RationalQuadratic",
    "Scaled",
    "SharedSubsets",
    "Sigmoid",
    "Standardized",
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
