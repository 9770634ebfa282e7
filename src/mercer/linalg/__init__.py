"""Dense linear algebra that reports what it did: rank, clipped part, shift."""

from mercer.linalg.cholesky import CholeskyFactor, factor_spd
from mercer.linalg.eigen import SymmetricEigen, eigen_psd, singular
from mercer.linalg.pivoted import rejection_cholesky, supervised_pivots
from mercer.linalg.reflect import Reflector
from mercer.linalg.threads import map_in_threads, modest_threads

__all__ = [
    "CholeskyFactor",
    "Reflector",
    "SymmetricEigen",
    "eigen_psd",
    "factor_spd",
    "map_in_threads",
    "modest_threads",
    "rejection_cholesky",
    "singular",
    "supervised_pivots",
]
