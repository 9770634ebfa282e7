"""Dense linear algebra that reports what it did: rank, clipped part, shift."""

from mercer.linalg.cholesky import CholeskyFactor, factor_spd
from mercer.linalg.eigen import SymmetricEigen, eigen_psd, singular
from mercer.linalg.householder import Reflector
from mercer.linalg.pivoted import largest_pivots, rejection_cholesky, supervised_pivots
from mercer.linalg.threads import blas_threads, limit_threads, map_in_threads

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
