"""Kernels on vectors as expressions in the common syntax of C and Python."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mercer._types import Array
from mercer.errors import KernelError
from mercer.export._literals import finite
from mercer.kernels import RBF, Kernel, Laplacian, Linear, Matern, Polynomial, Wendland

# The term added to s, for features u, centers z and factors g.
SQUARE, ABSOLUTE, PRODUCT = (
    "g[j] * (u[j] - z[j]) * (u[j] - z[j])",
    "g[j] * fabs(u[j] - z[j])",
    "g[j] * u[j] * z[j]",
)
MATERN = {
    0.5: "exp(-sqrt(2.0 * s))",
    # Beyond 1e6 the exponential is zero, and an infinite s would not be.
    1.5: "(1.0 + sqrt(6.0 * fmin(s, 1e6))) * exp(-sqrt(6.0 * fmin(s, 1e6)))",
    2.5: "(1.0 + sqrt(10.0 * fmin(s, 1e6)) + 10.0 * fmin(s, 1e6) / 3.0) * exp(-sqrt(10.0 * fmin(s, 1e6)))",
    np.inf: "exp(-s)",
}


@dataclass(frozen=True)
class KernelFormula:
    """k(u, z) = value(s), where s is a width times the sum of the terms; k(u, u) = value(s) for z = u, 1 if not
    ``varies``. ``feature`` (d,) or (1,) are the factors of the terms, ``widths`` (g,) those of several kernels.
    """

    term: str
    value: str
    varies: bool = False
    feature: Array = field(default_factory=lambda: np.ones(1))
    widths: Array = field(default_factory=lambda: np.ones(1))


def kernel_formula(kernels: tuple[Kernel, ...]) -> KernelFormula:
    """The formula of kernels that differ in their widths only."""
    term, value = _expressions(kernels[0])
    gammas = [_gamma(kernel) for kernel in kernels]
    largest = np.array([gamma.max() for gamma in gammas])
    scale = np.where(largest > 0, largest, 1.0)
    return KernelFormula(term, value, term is PRODUCT, gammas[0] / scale[0], scale)


def _gamma(kernel: Any) -> Array:
    """One number, or one for each feature."""
    gamma: Array = np.atleast_1d(np.asarray(1.0 if kernel.gamma is None else kernel.gamma, dtype=np.float64))
    return gamma


def _expressions(kernel: Kernel) -> tuple[str, str]:
    """Term and value; s is the sum of the terms times the width. Subclasses may compute something else."""
    if type(kernel) is RBF:
        return SQUARE, "exp(-s)"
    if type(kernel) is Laplacian:
        return ABSOLUTE, "exp(-s)"
    if type(kernel) is Matern and kernel.nu in MATERN:
        return SQUARE, MATERN[kernel.nu]
    if type(kernel) is Wendland:
        return SQUARE, kernel.formula("fmin(sqrt(s), 1.0)")
    if type(kernel) is Polynomial:
        coef0 = finite("coef0", np.array(kernel.coef0, dtype=np.float64)).item()
        return PRODUCT, _power(f"(s + {coef0!r})", int(kernel.degree))
    if type(kernel) is Linear:
        return PRODUCT, "s"
    raise KernelError(
        f"{kernel!r} cannot be exported; use RBF, Laplacian, Matern (nu 0.5, 1.5, 2.5 or inf), Wendland, "
        "Polynomial or Linear, or RankNormal of one of these"
    )


def _power(base: str, exponent: int) -> str:
    """A power, as a product: in Python, pow raises an error where a product is infinite."""
    if exponent <= 8:
        return " * ".join([base] * exponent)
    half = exponent // 2
    return f"({_power(base, half)}) * ({_power(base, exponent - half)})"
