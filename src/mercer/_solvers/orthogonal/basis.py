"""An orthonormal basis that grows column by column, with the triangular factor."""

import numpy as np

from mercer._types import Array

# Columns allocated initially; doubled when full.
FIRST_COLUMNS = 32


class OrthogonalBasis:
    """Q (n, p) with orthonormal columns and R (p, p) upper triangular, of columns A = Q R appended one by one.

    Each column is projected twice, which keeps |Q'Q - I| at rounding error however ill-conditioned A is; a column
    is rejected if less than ``tolerance`` of its length is new. O(n p) per column. Giraud, Langou, Rozložník, van
    den Eshof (2005), "Rounding error analysis of the classical Gram-Schmidt orthogonalization process", Theorem 2:
    twice is enough. The recursion of Andelić (2007), Eq. (3.62), for the pseudo-inverse projects once and loses a
    factor in every step.
    """

    def __init__(self, n: int, tolerance: float) -> None:
        self._Q = np.empty((n, FIRST_COLUMNS), order="F")
        self._R = np.zeros((FIRST_COLUMNS, FIRST_COLUMNS))
        self.tolerance = tolerance
        self.size = 0

    @property
    def Q(self) -> Array:
        return self._Q[:, : self.size]

    @property
    def R(self) -> Array:
        return self._R[: self.size, : self.size]

    def reduce(self, A: Array) -> tuple[Array, Array]:
        """Residuals of columns A (n, b) after projection onto the basis, and their coordinates (p, b) in it."""
        coordinates = self.Q.T @ A
        left = A - self.Q @ coordinates
        again = self.Q.T @ left
        return left - self.Q @ again, coordinates + again

    def append(self, column: Array, *, length: float | None = None) -> bool:
        """Add a column (n,) if more than tolerance * length of it is new; length defaults to its norm."""
        left, coordinates = self.reduce(column[:, None])
        new = float(np.linalg.norm(left))
        if new <= self.tolerance * (float(np.linalg.norm(column)) if length is None else length):
            return False
        self._make_room()
        p = self.size
        self._Q[:, p] = left[:, 0] / new
        self._R[:p, p] = coordinates[:, 0]
        self._R[p, p] = new
        self.size += 1
        return True

    def _make_room(self) -> None:
        p = self._Q.shape[1]
        if self.size < p:
            return
        Q, R = np.empty((len(self._Q), 2 * p), order="F"), np.zeros((2 * p, 2 * p))
        Q[:, :p], R[:p, :p] = self._Q, self._R
        self._Q, self._R = Q, R
