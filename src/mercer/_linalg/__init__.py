"""Dense linear algebra that reports what it did: rank, clipped part, shift."""

from mercer._linalg.cholesky import CholeskyFactor, factor_spd
from mercer._linalg.eigen import SymmetricEigen, eigen_psd, singular
from mercer._linalg.householder import Reflector
from mercer._linalg.pivoted import largest_pivots, rejection_cholesky, supervised_pivots
from mercer._linalg.threads import blas_threads, limit_threads, map_in_threads

__all__ = [
    "CholeskyFactor",
    "Reflector",
    "SymmetricEigen",
    "blas_threads",
    "eigen_psd",
    "factor_spd",
    "largest_pivots",
    "limit_threads",
    "map_in_threads",
    "rejection_cholesky",
    "singular",
    "supervised_pivots",
]
