"""Kernels of different kinds, one of which is to be chosen."""

from collections.abc import Sequence

from numpy.typing import ArrayLike

from mercer._types import Floats
from mercer.errors import KernelError
from mercer.kernels._base import Kernel, Parted, Parts, check_kernels, distinctly_named, name_of
from mercer.kernels._matrices import Matrix


class OneOf(Parted):
    """One of several kernels: the first one, unless another is better by leave-one-out by a standard error.

    Its candidates are those of all of them; after a fit, ``kernel_`` is the chosen one. A list of kernels or names
    as the ``kernel`` of a model means the same. Kernels are named after their classes, as in sums:
    ``rbf__gamma`` or ``rbf_2__gamma`` can be set and searched.

    Parameters
    ----------
    kernels : list of Kernel
        On the same kind of rows.

    Examples
    --------
    >>> from mercer.kernels import RBF, Laplacian
    >>> OneOf([RBF(), Laplacian("median")]).candidates([[0.0], [2.0]])[-1]
    Laplacian(gamma=0.5)
    >>> OneOf([RBF(), Laplacian()]).set_params(rbf__gamma=2.0).kernels[0]
    RBF(gamma=2.0)
    """

    def __init__(self, kernels: Sequence[Kernel]) -> None:
        self.kernels = kernels

    def _kernels(self) -> list[Kernel]:
        if not isinstance(self.kernels, list | tuple) or not self.kernels:
            raise KernelError(
                f"OneOf({self.kernels!r}) has no kernels to choose from; pass a list of at least one"
            )
        return check_kernels("OneOf", list(self.kernels))

    def _named(self) -> Parts:
        return distinctly_named([(name_of(each), each) for each in self.kernels if isinstance(each, Kernel)])

    def _rename(self, parts: Parts) -> None:
        self.kernels = [kernel for _, kernel in parts]

    @property
    def resolved(self) -> bool:
        return False

    def candidates(self, X: Matrix, weight: ArrayLike | None = None) -> list[Kernel]:
        """Those of each kernel, one kernel after the other."""
        return [candidate for kernel in self.kernels for candidate in kernel.candidates(X, weight)]

    def block(self, X: Matrix, Z: Matrix) -> Floats:
        raise self._not_chosen

    def diag(self, X: Matrix) -> Floats:
        raise self._not_chosen

    @property
    def _not_chosen(self) -> KernelError:
        return KernelError(f"{self} is a choice, not a kernel; call fit, or use one of kernel.candidates(X)")


def distinct_kinds(kernel: Kernel, X: Matrix, weight: ArrayLike | None) -> list[Sequence[Kernel]]:
    """The candidates of each kernel of a choice, without those that others have, or that
    these rows do not determine; those of another kernel alone.
    """
    if not isinstance(kernel, OneOf):
        return [kernel.candidates(X, weight)]
    found: dict[str, Sequence[Kernel]] = {}
    problems: list[KernelError] = []
    for each in kernel.kernels:
        try:
            candidates = each.candidates(X, weight)
        except KernelError as problem:
            problems.append(problem)
        else:
            found.setdefault(repr(candidates[0]), candidates)
    if not found:
        raise problems[0]
    return list(found.values())
