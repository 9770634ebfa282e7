"""A sum of kernels whose weights are to be learned."""

from collections.abc import Mapping, Sequence

from mercer._types import Floats
from mercer._validation import check_choice, check_number
from mercer.errors import KernelError
from mercer.kernels._base import Kernel, Parted, Parts, Sum, check_kernels, check_names, check_pairs
from mercer.kernels._matrices import Matrix

RULES = ("auto", "alignment", "loo", "equal")


class WeightedSum(Parted):
    """k(x, z) = sum_p w_p k_p(x, z) with weights w_p >= 0 that a fit learns (multiple kernel learning, MKL).

    Weights are learned from at most 1000 rows, after all kernels have been scaled to the same variance in feature
    space; the fit is made with their sum. After it, ``kernel_weights_`` are the shares of the kernels in the
    variance of the sum, and ``kernel_`` is that sum, without kernels of weight zero. Parameters of
    kernels are chosen first, for each kernel alone.

    Parameters
    ----------
    parts : dict, or list of (str, Kernel)
        Names and kernels; parameters of a kernel can be set and searched as ``name__parameter``.
    weights : "auto", "alignment", "loo", "equal" or float, default="auto"
        "alignment": the sum of kernels that is most like the targets (Cortes, Mohri and Rostamizadeh 2012, JMLR
        13, Proposition 9); many weights are zero. "loo": the least sum of squared leave-one-out residuals (PRESS),
        by its gradient. "equal": all the same. "auto": equal weights, unless held-out rows are predicted
        better, by more than two standard errors, with those of alignment or of leave-one-out; then the better
        of the two. A number p
        >= 1: the norm of weights in the primal problem (Kloft, Brefeld, Sonnenburg and Zien 2011, JMLR 12): 1 is
        sparse, with large values weights are nearly equal.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import KernelRidgeRegressor
    >>> from mercer.kernels import RBF
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> kernel = WeightedSum({"first": RBF(gamma=[1.0, 0.0]), "second": RBF(gamma=[0.0, 1.0])})
    >>> model = KernelRidgeRegressor(kernel, random_state=0).fit(X, np.sin(2 * X[:, 0]))
    >>> max(model.kernel_weights_, key=model.kernel_weights_.get)
    'first'
    """

    def __init__(
        self, parts: Mapping[str, Kernel] | Sequence[tuple[str, Kernel]], weights: str | float = "auto"
    ) -> None:
        self.parts = parts
        self.weights = weights

    @property
    def named(self) -> list[tuple[str, Kernel]]:
        """Names and kernels, checked."""
        parts = self._named()
        check_names("WeightedSum", [name for name, _ in parts], ("parts", "weights"))
        check_kernels("WeightedSum", [kernel for _, kernel in parts])
        return parts

    @property
    def rule(self) -> str | float:
        """How weights are learned, checked."""
        if isinstance(self.weights, str):
            return check_choice("weights", self.weights, allowed=RULES)
        return check_number("weights", self.weights, "a norm of at least 1, or a word", least=1.0)

    def of(self, kernels: Sequence[Kernel], weights: Floats) -> Sum:
        """The sum with these kernels and weights (p,), without those of weight zero."""
        parts = zip(self.named, kernels, weights)
        return Sum([(name, kernel * float(weight)) for (name, _), kernel, weight in parts if weight > 0.0])

    def _named(self) -> Parts:
        parts = list(self.parts.items()) if isinstance(self.parts, Mapping) else self.parts
        return check_pairs("WeightedSum", parts, 'names and kernels, such as {"smooth": RBF(), "line": Linear()}')

    def _rename(self, parts: Parts) -> None:
        self.parts = dict(parts) if isinstance(self.parts, Mapping) else parts

    def _kernels(self) -> list[Kernel]:
        return [kernel for _, kernel in self.named]

    @property
    def resolved(self) -> bool:
        return False

    def block(self, X: Matrix, Z: Matrix) -> Floats:
        raise self._not_learned

    def diag(self, X: Matrix) -> Floats:
        raise self._not_learned

    @property
    def _not_learned(self) -> KernelError:
        return KernelError(
            "the weights of WeightedSum are learned by KernelFisherClassifier and KernelRidgeRegressor, if it is "
            "the whole kernel and not a part of one; elsewhere write the sum with weights, such as 2.0 * k + l"
        )
