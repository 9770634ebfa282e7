"""From user input to a kernel."""

from collections.abc import Sequence
from typing import Any

from numpy.typing import ArrayLike

from mercer.errors import KernelError
from mercer.kernels._algebra.choice import OneOf
from mercer.kernels._base import Kernel, check_parts
from mercer.kernels._precomputed import FromCallable, Precomputed
from mercer.kernels._vectors.anova import ANOVA, AllSubsets
from mercer.kernels._vectors.compact_support import Wendland
from mercer.kernels._vectors.dot_product import Linear, Polynomial, Sigmoid
from mercer.kernels._vectors.stationary import RBF, InverseMultiquadric, Laplacian, Matern, RationalQuadratic
from mercer.kernels._vectors.units import RankNormal, Standardized

NAMES: dict[str, type[Kernel]] = {
    "all_subsets": AllSubsets,
    "anova": ANOVA,
    "inverse_multiquadric": InverseMultiquadric,
    "laplacian": Laplacian,
    "linear": Linear,
    "matern": Matern,
    "poly": Polynomial,
    "polynomial": Polynomial,
    "precomputed": Precomputed,
    "rational_quadratic": RationalQuadratic,
    "rbf": RBF,
    "sigmoid": Sigmoid,
    "wendland": Wendland,
}


def automatic() -> OneOf:
    """Gaussian and Laplacian kernels, of features in their standard deviations, in their units, and by rank."""
    plain: list[type[Any]] = [RBF, Laplacian]
    return OneOf([wrap(kind()) for wrap in (Standardized, lambda k: k, RankNormal) for kind in plain])


def automatic_for_table(ranked: Sequence[int]) -> OneOf:
    """The same for features of a table, in one unit already, some of which are ranked."""
    plain: list[Kernel] = [RBF(), Laplacian()]
    return OneOf([*plain, *([RankNormal(kind, features=list(ranked)) for kind in plain] if ranked else [])])


def as_kernel(kernel: Any) -> Kernel:
    """The kernel of this name with its default parameters, the kernel itself, or a callable as a kernel.

    A list of these is a choice among them.

    Examples
    --------
    >>> as_kernel("rbf")
    RBF()
    >>> as_kernel("matern") + as_kernel("linear")
    Sum(parts=[('matern', Matern()), ('linear', Linear())])
    """
    if isinstance(kernel, Kernel):
        check_parts(kernel)
        return kernel
    if isinstance(kernel, list | tuple) and kernel:
        return OneOf([as_kernel(each) for each in kernel])
    if isinstance(kernel, type):
        raise KernelError(f"kernel is the class {kernel.__name__}; pass an object, {kernel.__name__}()")
    if callable(kernel):
        return FromCallable(kernel)
    if isinstance(kernel, str) and kernel == "auto":
        return automatic()
    if isinstance(kernel, str) and kernel in NAMES:
        return NAMES[kernel]()
    raise KernelError(
        f"kernel is {kernel!r}; pass a Kernel, a callable k(X, Z), one of the names {', '.join(NAMES)}, or a list "
        "of these to choose from"
    )


def without_targets(kernel: Any, X: Any, weight: ArrayLike | None) -> Kernel:
    """The kernel that a user has written, with numbers as parameters; the Gaussian one has its median width."""
    if isinstance(kernel, str) and kernel == "auto":
        raise ValueError(
            'kernel="auto": there are no targets by which leave-one-out could choose; pass "rbf", or '
            'RankNormal(RBF(gamma="median")) where features have different units'
        )
    found = RBF(gamma="median") if isinstance(kernel, str) and kernel == "rbf" else as_kernel(kernel).copy()
    candidates = found.candidates(X, weight)
    if len(candidates) > 1:
        raise ValueError(
            f"kernel={found!r}: there are no targets by which leave-one-out could choose; set a number, or "
            'gamma="median"'
        )
    return candidates[0]
