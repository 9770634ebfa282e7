"""What rounding does to outputs, in units of their spread, before and after sums of coordinates.

"kernel values": sums of products of kernel values, without centers that depend on others to 1e-8 of their norm;
"mercer": what the models do. The same rows in other blocks: --rows rows with three features, 300 centers, outputs
of 2000 rows from blocks of 8192 rows in order and of 5000 rows in another. Dependent centers: 40 rows, six
centers and six more at a distance of about 1e-3, against the normal equations in 60 digits. Offset:
probabilities of 300 rows of four features with 1e6 added to all of them, against those without.
"""

import argparse
from decimal import Decimal, localcontext
from typing import Any

import numpy as np
from common import heading, table

from mercer import KernelFisherClassifier, KernelRidgeRegressor
from mercer._gram.moments import MomentsOf
from mercer._solvers.moments.ridge import decompose_moments
from mercer.centers import Given
from mercer.kernels import RBF, Kernel, Linear
from mercer.rows import MemoryRows

PROMISED = 1e-6
Case = tuple[str, float, float, float]


class FixedLinear(Linear):
    """The linear kernel without an origin of its own."""

    def centered_on(self, X: Any) -> Kernel:
        return self


def largest(a: Any, b: Any, unit: float) -> float:
    return float(np.abs(a - b).max() / unit)


def other_blocks(n: int) -> list[Case]:
    """Differences of outputs for several alphas, the last chosen by leave-one-out."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    y = np.sin(2 * X[:, 0]) + X[:, 1] + 0.5 * rng.normal(size=n)
    kernel, Z = RBF(gamma=0.2), X[:300]
    orders = (np.arange(n), 8192), (rng.permutation(n), 5000)
    plain = [
        decompose_moments(
            MemoryRows(X[order], y[order], block_rows=size).reduce(MomentsOf(kernel, Z)), kernel.block(Z, Z)
        )
        for order, size in orders
    ]
    chosen = KernelRidgeRegressor(kernel, centers=Given(Z), random_state=0).fit(X, y).alpha_
    cases = []
    for words, alpha in (
        ("alpha 0.001", 1e-3),
        ("alpha 0.1", 0.1),
        ("alpha 1e-7 of the trace", 1e-7 * plain[0].trace),
        ('alpha="loo"', chosen),
    ):
        before = [kernel.block(X[:2000], Z) @ c + b for c, b in (spectrum.solve(alpha) for spectrum in plain)]
        models = [in_blocks(kernel, Z, alpha, X[order], y[order], size) for order, size in orders]
        after = [model.predict(X[:2000]) for model in models]
        bound = max(model.report_.error for model in models)
        case = f"other blocks, {words}"
        cases.append((case, largest(*before, before[0].std()), largest(*after, after[0].std()), bound))
    return cases


def in_blocks(kernel: Kernel, Z: Any, alpha: float, X: Any, y: Any, size: int) -> KernelRidgeRegressor:
    model = KernelRidgeRegressor(kernel, alpha=alpha, centers=Given(Z))
    for start in range(0, len(X), size):
        model.partial_fit(X[start : start + size], y[start : start + size])
    return model


def dependent_centers() -> list[Case]:
    """Distance of outputs, fitted and left out, from those in 60 digits."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    y = np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=40)
    Z = np.vstack([X[:6], X[:6] + 1e-3 * rng.normal(size=(6, 2))])
    kernel, alpha, cases = RBF(gamma=0.4), 1e-2, []
    plain = decompose_moments(MemoryRows(X, y).reduce(MomentsOf(kernel, Z)), kernel.block(Z, Z))
    coef, intercept = plain.solve(alpha)
    K = kernel.block(X, Z)
    loo = plain.loo_map(np.array([alpha]))(K, y[:, None], np.ones(40))[0, :, 0]
    before = (K @ coef + intercept)[:, 0], loo
    model = KernelRidgeRegressor(kernel, alpha=alpha, centers=Given(Z)).fit(X, y)
    after = model.predict(X), model.loo_prediction_
    exact = in_sixty_digits(X, Z, y, 0.4, alpha)
    for words, old, new, truth in zip(("fit", "leave-one-out"), before, after, exact):
        case = f"dependent centers, {words}"
        cases.append((case, largest(old, truth, y.std()), largest(new, truth, y.std()), model.report_.error))
    return cases


def in_sixty_digits(X: Any, Z: Any, y: Any, gamma: float, alpha: float) -> tuple[Any, Any]:
    """Outputs fitted and left out of the normal equations."""
    with localcontext() as context:
        context.prec = 60
        X, Z, y = (np.vectorize(lambda a: Decimal(float(a)), otypes=[object])(A) for A in (X, Z, y))

        def values(A: Any) -> Any:
            return np.array([[(-Decimal(gamma) * ((a - b) ** 2).sum()).exp() for b in Z] for a in A], dtype=object)

        F = np.column_stack([values(X), np.full(len(X), Decimal(1))])
        A, b = F.T @ F, F.T @ y
        A[:-1, :-1] += Decimal(alpha) * values(Z)
        left = [f @ solved(A - np.outer(f, f), b - f * t) for f, t in zip(F, y)]
        return (F @ solved(A, b)).astype(float), np.array(left, dtype=float)


def solved(A: Any, b: Any) -> Any:
    """A^-1 b by elimination; A is positive definite."""
    A = np.column_stack([A, b])
    for k in range(len(A)):
        A[k] = A[k] / A[k, k]
        others = np.arange(len(A)) != k
        A[others] -= np.outer(A[others, k], A[k])
    return A[:, -1]


def offset() -> list[Case]:
    """Differences of probabilities."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    y = X[:, 0] + 0.5 * rng.normal(size=300) > 0
    cases = []
    for words, centers in (("every row a center", "all"), ("60 centers", 60)):
        found = []
        for kernel in (FixedLinear(), Linear()):
            models = [
                KernelFisherClassifier(kernel, centers=centers, random_state=0).fit(X + far, y)
                for far in (0.0, 1e6)
            ]
            found.append(largest(models[0].predict_proba(X), models[1].predict_proba(X + 1e6), 1.0))
        cases.append((f"linear kernel, offset 1e6, {words}", *found, models[1].report_.error))
    return cases


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=100_000)
    rows = parser.parse_args().rows
    print(heading())
    cases = [*other_blocks(rows), *dependent_centers(), *offset()]
    lines = [
        (name, *(f"{number:.1e}" for number in (before, after, bound, PROMISED)))
        for name, before, after, bound in cases
    ]
    print(table(lines, ("case", "kernel values", "mercer", "its bound", "promised")))


if __name__ == "__main__":
    main()
