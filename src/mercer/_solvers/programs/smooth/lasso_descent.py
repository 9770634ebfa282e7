r"""Smooth losses with the penalty lasso |v|_1 + ridge / 2 |v|²: few columns at a time, exactly.

Only columns whose slope exceeds lasso can enter. Outer steps work on the columns that have coefficients and those
that violate this most; on them the loss is replaced by its parabola (for the squared loss itself), and

    min over v   v'Hv / 2 - q'v + lasso |v|_1

is solved by an active set: signs are guessed, the linear system for them is solved, and if a sign changes on the
way, the best point before is kept (feature-sign search: Lee, Battle, Raina and Ng, 2006). Each change lowers the
objective, so it ends with the solution, not with a tolerance.
"""

import numpy as np

from mercer._linalg import factor_spd
from mercer._solvers.programs.program import SOLVED_GAP, Program, Solution, concluded
from mercer._solvers.programs.smooth.newton import curvatures
from mercer._types import Array, Indices

MOST_LASSO_ROUNDS = 200
# Changes of signs: at most, and for each column.
MOST_SIGNS, SIGNS_A_COLUMN = 500, 10
MOST_LASSO_HALVINGS = 30
# Rounds in a row that lower the objective by less than this share of its scale end without a proof.
STALLED_ROUNDS, STALLED_GAIN = 2, 1e-12
# Columns that enter at once, as a share of those that have coefficients, and at least.
ENTERING_SHARE, LEAST_ENTERING = 0.5, 10
# What is added to the diagonal, as a share of its sum and of lasso.
LASSO_DIAGONAL = 1e-13
# A slope may exceed lasso by this share.
SLOPE_SLACK = 1e-9


def descend(program: Program, start: Array | None = None) -> Solution:
    """The solution from ``start`` (m + 1,), coefficients and intercept; O(n m + n a²) a round for a columns."""
    theta, best = np.zeros(program.m + 1) if start is None else np.array(start), None
    if program.has_intercept:
        theta = _round(program, theta, np.zeros(0, dtype=np.intp))
    stalled = 0
    for rounds in range(1, MOST_LASSO_ROUNDS + 1):
        found = concluded(program, theta[:-1], float(theta[-1]), None, rounds)
        gained = best is None or best.objective - found.objective > STALLED_GAIN * program.scale
        stalled = 0 if gained else stalled + 1
        if best is None or found.objective <= best.objective:
            best = found
        if stalled == STALLED_ROUNDS:
            break
        if found.gap <= SOLVED_GAP * program.scale:
            return found
        some = _working(program, theta)
        new = _round(program, theta, some)
        if np.array_equal(new, theta):
            break
        theta = new
    assert best is not None
    return best


def _working(program: Program, theta: Array) -> Indices:
    """Columns with coefficients, and those that violate optimality most."""
    coef = theta[:-1]
    beta = program.slopes(program.outputs(coef, float(theta[-1])))
    excess = np.abs(program.Phi.T @ beta) - program.lasso
    own = coef != 0.0
    excess[own] = np.inf
    enter = max(LEAST_ENTERING, int(ENTERING_SHARE * own.sum()))
    order = np.argsort(-excess, kind="stable")[: int(own.sum()) + enter]
    return np.sort(order[excess[order] > SLOPE_SLACK * program.lasso])


def _round(program: Program, theta: Array, some: Indices) -> Array:
    """theta after steps on some columns and the intercept, until their parabola is exact."""
    for _ in range(MOST_LASSO_ROUNDS):
        coef, b = theta[:-1], float(theta[-1])
        f = program.outputs(coef, b)
        step = _step(program, f, coef[some], some)
        way = program.Phi[:, some] @ step[:-1] + step[-1]
        length = _length(program, f, coef, some, step, way)
        if length == 0.0:
            return theta
        theta = theta.copy()
        theta[some] += length * step[:-1]
        theta[-1] += length * step[-1]
        moved = program.objective_of(f, coef) - program.objective(theta[:-1], float(theta[-1]))
        if moved <= STALLED_GAIN * program.scale:
            return theta
    return theta


def _step(program: Program, f: Array, coef: Array, some: Indices) -> Array:
    """The step (a + 1,) of some coefficients and the intercept to the minimum of the parabola plus penalty."""
    h, slope, columns = curvatures(program, f), -program.slopes(f), program.Phi[:, some]
    mean, level = np.zeros(len(some)), 0.0
    if program.has_intercept:
        # Of centered columns the Hessian stays positive semidefinite, however few rows have curvature.
        mean, level = h @ columns / h.sum(), float(slope.sum() / h.sum())
    centered = (columns - mean) * np.sqrt(h)[:, None]
    H = centered.T @ centered
    H[np.diag_indices_from(H)] += program.ridge
    gradient = slope @ columns - slope.sum() * mean * program.has_intercept + program.ridge * coef
    step = minimize_lasso(H, H @ coef - gradient, program.lasso, coef) - coef
    return np.append(step, -(level + mean @ step) if program.has_intercept else 0.0)


def _length(program: Program, f: Array, coef: Array, some: Indices, step: Array, way: Array) -> float:
    """A length of the step that lowers the objective; zero if none does."""
    value, trial = program.objective_of(f, coef), coef.copy()
    for halving in range(MOST_LASSO_HALVINGS):
        length = 0.5**halving
        trial[some] = coef[some] + length * step[:-1]
        if program.objective_of(f + length * way, trial) < value:
            return length
    return 0.0


def minimize_lasso(H: Array, q: Array, lasso: float, start: Array) -> Array:
    """argmin v'Hv / 2 - q'v + lasso |v|_1 for positive semidefinite H (a, a), from ``start`` (a,)."""
    v, sign = np.array(start), np.sign(start)
    for _ in range(min(MOST_SIGNS, SIGNS_A_COLUMN * (len(q) + 1))):
        some = np.flatnonzero(sign)
        if len(some):
            v, converged = _along_signs(H, q, lasso, v, sign, some)
            sign = np.sign(v) if not converged else sign
            if not converged:
                continue
        slope = q - H @ v
        excess = np.where(v == 0.0, np.abs(slope) - lasso, -np.inf)
        j = int(excess.argmax()) if len(excess) else 0
        if not len(excess) or excess[j] <= SLOPE_SLACK * lasso + 1e-13 * np.abs(q).max(initial=0.0):
            break
        sign = np.sign(v)
        sign[j] = np.sign(slope[j])
    return v


def _along_signs(H: Array, q: Array, lasso: float, v: Array, sign: Array, some: Indices) -> tuple[Array, bool]:
    """The best point on the way to the minimum for given signs, and whether it is that minimum."""
    part = H[np.ix_(some, some)]
    # Without any curvature the way is long, and the line search or another solver decides.
    least = LASSO_DIAGONAL * (float(np.trace(part)) + lasso)
    target = factor_spd(part + least * np.eye(len(some))).solve(q[some] - lasso * sign[some])
    own = v[some]
    way = target - own
    crossing = np.flatnonzero(target * sign[some] < 0.0)
    new = v.copy()
    if len(crossing) == 0:
        new[some] = target
        return new, True
    with np.errstate(divide="ignore", invalid="ignore"):
        lengths = np.unique(np.append(np.clip(own[crossing] / (own[crossing] - target[crossing]), 0.0, 1.0), 1.0))
    curve, slope = 0.5 * float(way @ part @ way), float((part @ own - q[some]) @ way)
    points = own + lengths[:, None] * way
    values = curve * lengths**2 + slope * lengths + lasso * np.abs(points).sum(axis=1)
    best = int(values.argmin())
    chosen = points[best]
    if lengths[best] < 1.0:
        reached = np.isclose(
            lengths[best], own[crossing] / (own[crossing] - target[crossing]), rtol=1e-12, atol=0.0
        )
        chosen[crossing[reached]] = 0.0
    if values[best] >= lasso * np.abs(own).sum():
        # No descent: a column that entered moves the wrong way, to rounding errors; it stays out.
        chosen = own
        new[some] = chosen
        return new, True
    new[some] = chosen
    return new, False
