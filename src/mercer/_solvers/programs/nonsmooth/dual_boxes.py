"""Dual variables of non-smooth losses as variables between zero and a bound, one or two for a row."""

from dataclasses import dataclass

import numpy as np

from mercer._solvers.programs.losses import Huber, NonSmoothLoss
from mercer._solvers.programs.program import Program
from mercer._types import Array, Indices


@dataclass(frozen=True)
class Boxes:
    """beta = shift + the sums of sign x at each row, 0 <= x <= bound, at costs cost x + curve beta² / 2.

    ``row``, ``sign``, ``bound``, ``cost`` and ``curve`` have N entries, ``shift`` has n. Without a tolerance
    epsilon there is one variable for a row; otherwise one above and one below the target.
    """

    row: Indices
    sign: Array
    bound: Array
    cost: Array
    curve: Array
    shift: Array

    @classmethod
    def of(cls, program: Program) -> "Boxes":
        assert isinstance(program.loss, NonSmoothLoss | Huber)
        form, weight = program.loss.kinks(program.y), program.weight
        up, down, every = weight * form.up, weight * form.down, np.arange(len(weight))
        if form.epsilon == 0.0:
            some = every[up + down > 0.0]
            ones = np.ones(len(some))
            curve = form.bend / weight[some]
            return cls(some, ones, (up + down)[some], -form.target[some], curve, -down)
        above, below = every[up > 0.0], every[down > 0.0]
        row = np.concatenate([above, below])
        sign = np.repeat([1.0, -1.0], [len(above), len(below)])
        bound = np.concatenate([up[above], down[below]])
        zero = np.zeros(len(row))
        return cls(row, sign, bound, form.epsilon - sign * form.target[row], zero, np.zeros(len(weight)))

    def beta(self, x: Array) -> Array:
        """beta (n,) for variables x (N,)."""
        return self.shift + self.at_rows(self.sign * x)

    def at_rows(self, values: Array) -> Array:
        """Sums (n,) of values (N,) at each row."""
        return np.bincount(self.row, values, minlength=len(self.shift)).astype(np.float64)

    def excess(self, f: Array, x: Array) -> Array:
        """The derivative (N,) in x (N,) of what the dual minimizes, at outputs f (n,)."""
        return self.sign * f[self.row] + self.cost + self.curve * self.beta(x)[self.row]
