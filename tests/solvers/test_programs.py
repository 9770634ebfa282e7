"""Every loss with every penalty agrees with another solver, and every solution carries its duality gap."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal, assert_array_less
from scipy.optimize import linprog
from sklearn.linear_model import Lasso, QuantileRegressor
from sklearn.svm import SVC, SVR

from mercer._solvers.programs import Program, solve, solve_all
from mercer._solvers.programs.leave_one_out import newton_steps, refits, removal_path
from mercer._solvers.programs.leave_one_out.newton_steps import loo_of_program
from mercer._solvers.programs.losses import (
    EpsilonInsensitive,
    Hinge,
    Huber,
    Logistic,
    NonSmoothLoss,
    Pinball,
    Rounded,
    SmoothLoss,
    Squared,
    SquaredHinge,
)
from mercer._solvers.programs.nonsmooth.intercepts import to_middle
from mercer._solvers.programs.nonsmooth.interior_point import interior_point
from mercer._solvers.programs.smooth.lasso_descent import minimize_lasso
from mercer._solvers.programs.smooth.newton import ObjectiveAt
from mercer.kernels import RBF

VALUES = {
    "squared": Squared(),
    "huber": Huber(0.3),
    "absolute": EpsilonInsensitive(),
    "epsilon": EpsilonInsensitive(0.2),
    "pinball": Pinball(0.8),
}
CLASSES = {"hinge": Hinge(), "squared_hinge": SquaredHinge(), "logistic": Logistic()}
LOSSES = VALUES | CLASSES
# Weights of ridge and lasso.
PENALTIES = {"ridge": (0.5, 0.0), "lasso": (0.0, 1.0), "both": (0.3, 0.5)}

every_loss = pytest.mark.parametrize("name", LOSSES)
every_penalty = pytest.mark.parametrize("penalty", PENALTIES)


@pytest.fixture(scope="module")
def rows():
    """A kernel matrix (n, n), its factor L, heavy-tailed targets, labels -1 and +1, and weights."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    K = np.exp(-0.3 * ((X[:, None] - X) ** 2).sum(axis=-1))
    y = np.sin(2.0 * X[:, 0]) + 0.3 * rng.standard_t(2, size=80)
    label = np.where(X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=80) > 0.0, 1.0, -1.0)
    return K, np.linalg.cholesky(K + 1e-10 * np.eye(80)), y, label, rng.uniform(0.5, 2.0, size=80)


def program_of(rows, name, penalty, **changes):
    K, _, y, label, weight = rows
    ridge, lasso = PENALTIES[penalty]
    given = {"Phi": K, "y": y if name in VALUES else label, "weight": weight, "ridge": ridge, "lasso": lasso}
    return Program(LOSSES[name], **(given | changes))


def by_cvxpy(program, name):
    """The least objective, by a conic solver."""
    cp = pytest.importorskip("cvxpy", reason="cvxpy is not installed")
    v, b = cp.Variable(program.m), cp.Variable()
    f = program.Phi @ v + (b if program.has_intercept else 0.0)
    r, z = program.y - f, cp.multiply(program.y, f)
    loss = {
        "squared": lambda: cp.square(r) / 2,
        "huber": lambda: cp.huber(r, 0.3) / 0.6,
        "absolute": lambda: cp.abs(r),
        "epsilon": lambda: cp.pos(cp.abs(r) - 0.2),
        "pinball": lambda: cp.maximum(0.8 * r, -0.2 * r),
        "hinge": lambda: cp.pos(1 - z),
        "squared_hinge": lambda: cp.square(cp.pos(1 - z)) / 2,
        "logistic": lambda: cp.logistic(-z),
    }[name]()
    penalty = program.ridge / 2 * cp.sum_squares(v) + program.lasso * cp.norm1(v)
    return cp.Problem(cp.Minimize(program.weight @ loss + penalty)).solve(solver=cp.CLARABEL)


@pytest.mark.slow
@every_loss
@every_penalty
@pytest.mark.parametrize("has_intercept", [True, False])
def test_every_loss_with_every_penalty_agrees_with_a_conic_solver(rows, name, penalty, has_intercept):
    program = program_of(rows, name, penalty, has_intercept=has_intercept)
    found = solve(program)
    assert found.converged
    assert_allclose(found.objective, by_cvxpy(program, name), rtol=1e-6)
    if not has_intercept:
        assert found.intercept == 0.0


@pytest.mark.sampled(2)
@every_loss
@every_penalty
def test_the_gap_is_that_of_the_solution_returned(rows, name, penalty):
    program = program_of(rows, name, penalty)
    found = solve(program)
    assert_allclose(found.objective, program.objective(found.coef, found.intercept))
    assert_allclose(found.gap, found.objective - program.dual(found.beta), atol=1e-12 * program.scale)
    assert -1e-12 * program.scale <= found.gap <= 1e-7 * program.scale


@every_loss
@every_penalty
def test_no_dual_value_exceeds_any_objective(rows, name, penalty):
    program, rng = program_of(rows, name, penalty), np.random.default_rng(1)
    for _ in range(20):
        coef, b = rng.normal(size=program.m) / 10.0, float(rng.normal())
        beta = program.slopes(program.outputs(*(rng.normal(size=program.m) / 10.0, float(rng.normal()))))
        assert program.dual(beta) <= program.objective(coef, b)


@every_loss
def test_slopes_are_derivatives_and_conjugates_touch_them(rows, name):
    loss = LOSSES[name]
    rng = np.random.default_rng(2)
    y = rng.normal(size=500) if name in VALUES else rng.choice([-1.0, 1.0], size=500)
    f = 2.0 * rng.normal(size=500)
    ahead, behind = loss.value(y, f + 1e-6), loss.value(y, f - 1e-6)
    # Within 1e-6 of a corner the difference quotient is a mean of both slopes; none of 500 points is there.
    assert_allclose(loss.slope(y, f), (ahead - behind) / 2e-6, atol=1e-5)
    g = loss.slope(y, f)
    # Fenchel and Young: equality for the slope at f, inequality for all others.
    assert_allclose(loss.value(y, f) + loss.conjugate(y, g), g * f, atol=1e-12)
    assert_array_less(g * f[::-1], loss.value(y, f[::-1]) + loss.conjugate(y, g) + 1e-12)


@pytest.mark.parametrize("name", [name for name, loss in LOSSES.items() if isinstance(loss, SmoothLoss)])
def test_curvatures_are_second_derivatives_below_their_parabola(name):
    loss = LOSSES[name]
    rng = np.random.default_rng(3)
    y = rng.normal(size=500) if name in VALUES else rng.choice([-1.0, 1.0], size=500)
    f, other = 2.0 * rng.normal(size=(2, 500))
    change = loss.slope(y, f + 1e-6) - loss.slope(y, f - 1e-6)
    assert_allclose(loss.curvature(y, f), change / 2e-6, atol=1e-4)
    assert (loss.curvature(y, f) <= loss.steepest + 1e-12).all()
    way = other - f
    above = loss.value(y, f) + loss.slope(y, f) * way + 0.5 * loss.majorant(y, f) * way**2
    assert_array_less(loss.value(y, other), above + 1e-12)


@pytest.mark.parametrize("name", [name for name, loss in LOSSES.items() if isinstance(loss, SmoothLoss)])
def test_the_objective_at_a_point_has_its_derivatives(rows, name):
    evaluate = partial(ObjectiveAt.of, program_of(rows, name, "ridge"))
    rng = np.random.default_rng(4)
    theta, way = rng.normal(size=(2, 81)) / 20.0
    ahead, behind = evaluate(theta + 1e-5 * way), evaluate(theta - 1e-5 * way)
    here = evaluate(theta)
    assert_allclose(here.gradient @ way, (ahead.value - behind.value) / 2e-5, rtol=1e-5)
    if name not in ("huber", "squared_hinge"):
        assert_allclose(here.hessian @ way, (ahead.gradient - behind.gradient) / 2e-5, rtol=1e-5, atol=1e-5)


def test_sparse_discriminants_are_the_lasso(rows):
    K, _, _, label, _ = rows
    found = solve(Program(Squared(), K, label, np.ones(80), 0.0, 2.0))
    lasso = Lasso(alpha=2.0 / 80, tol=1e-12, max_iter=10**6).fit(K, label)
    assert_allclose(found.coef, lasso.coef_, atol=1e-6)
    assert_allclose(found.intercept, lasso.intercept_, atol=1e-6)
    # |K'xi| <= C, with equality and the sign of the coefficient on the support.
    slope = K @ (label - K @ found.coef - found.intercept)
    used = found.coef != 0.0
    assert 0 < used.sum() < 40
    assert_allclose(slope[used], 2.0 * np.sign(found.coef[used]), rtol=1e-9)
    assert np.abs(slope).max() <= 2.0 + 1e-8


def test_linear_sparse_discriminants_are_penalized_median_regression(rows):
    K, _, _, label, _ = rows
    found = solve(Program(EpsilonInsensitive(), K, label, np.ones(80), 0.0, 2.0))
    median = QuantileRegressor(quantile=0.5, alpha=2.0 / 160, solver="highs").fit(K, label)
    program = Program(EpsilonInsensitive(), K, label, np.ones(80), 0.0, 2.0)
    assert_allclose(found.objective, program.objective(median.coef_, float(median.intercept_)), rtol=1e-9)


def test_column_generation_solves_the_whole_linear_program(rows):
    K, _, _, label, _ = rows
    found = solve(Program(EpsilonInsensitive(), K, label, np.ones(80), 0.0, 1.0))
    whole = linprog(
        -label, A_ub=np.vstack([K, -K]), b_ub=np.ones(160), A_eq=np.ones((1, 80)), b_eq=[0.0], bounds=(-1.0, 1.0)
    )
    assert_allclose(found.objective, -whole.fun, rtol=1e-9)


def test_columns_that_hardly_differ_do_not_come_and_go_for_ever():
    rng = np.random.default_rng(7)
    points = np.unique(rng.integers(0, 3, size=(60, 4)).astype(float), axis=0)
    row, label = np.divmod(np.arange(2 * len(points)), 2)
    share = 1.0 / (1.0 + np.exp(-points @ rng.normal(size=4)))
    weight = rng.integers(1, 20, size=len(row)) * np.column_stack([1.0 - share, share]).ravel()
    K = RBF(gamma=7e-4).block(points, points)[row]
    found = solve(Program(EpsilonInsensitive(), K, 2.0 * label - 1.0, weight, 0.0, 0.06))
    assert found.converged


def test_a_program_whose_gap_rounding_hides_ends_when_nothing_is_gained():
    """Separable rows with kernel values of 1e8: hardly any curvature is left, and slopes are rounding errors."""
    X = np.random.default_rng(0).normal(size=(22, 3))
    K = 1e8 * np.exp(-6.5 * ((X[:, None] - X) ** 2).sum(axis=-1))
    found = solve(Program(Logistic(), K, np.sign(X[:, 0]), np.ones(22), 2e-4, 2e-4))
    assert not found.converged
    assert found.steps < 30
    assert found.objective < 1e-6


def test_robust_discriminants_are_support_vector_regression_without_tolerance(rows):
    K, L, _, label, _ = rows
    found = solve(Program(EpsilonInsensitive(), L, label, np.ones(80), 0.5))
    svr = SVR(kernel="precomputed", C=2.0, epsilon=0.0, tol=1e-9).fit(K, label)
    assert_allclose(L @ found.coef + found.intercept, svr.predict(K), atol=1e-4)


def test_the_hinge_loss_is_a_support_vector_machine(rows):
    K, L, _, label, weight = rows
    found = solve(Program(Hinge(), L, label, weight, 0.5))
    svc = SVC(kernel="precomputed", C=2.0, tol=1e-9).fit(K, label, sample_weight=weight)
    assert_allclose(L @ found.coef + found.intercept, svc.decision_function(K), atol=1e-4)
    # The dual variables are those of the machine, times y / C.
    assert_allclose(found.beta[svc.support_] / 0.5, svc.dual_coef_[0], atol=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("penalty", PENALTIES)
def test_huber_lies_between_the_absolute_and_the_squared_loss(rows, penalty):
    near = solve(_with(rows, Huber(1e-4), penalty))
    absolute = solve(program_of(rows, "absolute", penalty))
    assert_allclose(near.objective, absolute.objective, rtol=1e-3)
    ridge, lasso = PENALTIES[penalty]
    K, _, y, _, weight = rows
    wide = solve(Program(Huber(1e3), K, y, weight, ridge / 1e3, lasso / 1e3))
    squared = solve(Program(Squared(), K, y, weight, ridge, lasso))
    assert_allclose(1e3 * wide.objective, squared.objective, rtol=1e-6)


def _with(rows, loss, penalty):
    K, _, y, _, weight = rows
    return Program(loss, K, y, weight, *PENALTIES[penalty])


@pytest.mark.slow
def test_rows_without_weight_do_not_matter(rows):
    K, _, y, _, weight = rows
    some = weight.copy()
    some[::5] = 0.0
    kept = np.flatnonzero(some)
    for loss in VALUES.values():
        for penalty in PENALTIES.values():
            every = solve(Program(loss, K, y, some, *penalty))
            part = solve(Program(loss, K[kept], y[kept], some[kept], *penalty))
            assert_allclose(every.objective, part.objective, rtol=1e-6)


def test_a_solution_for_all_rows_of_a_class_is_constant(rows):
    K, _, _, _, weight = rows
    for loss in (Hinge(), SquaredHinge()):
        found = solve(Program(loss, K, np.ones(80), weight, 0.5))
        # The objective of the solution zero is zero, so what is left of the penalty is at most the gap.
        assert 0.25 * found.coef @ found.coef <= found.gap + 1e-12
        assert found.intercept >= 1.0 - 1e-3


@pytest.mark.sampled(11)
@pytest.mark.parametrize("seed", range(20))
def test_a_lasso_of_random_quadratics_is_optimal(seed):
    rng = np.random.default_rng(seed)
    a = int(rng.integers(1, 30))
    A = rng.normal(size=(max(1, a - 3), a))
    H = A.T @ A + 1e-9 * np.eye(a)
    q = A.T @ rng.normal(size=len(A))
    start = rng.normal(size=a) * (rng.random(a) < 0.5)
    v = minimize_lasso(H, q, 0.3, start)
    slope = q - H @ v
    assert_array_less(np.abs(slope), 0.3 + 1e-6)
    assert_allclose(slope[v != 0.0], 0.3 * np.sign(v[v != 0.0]), atol=1e-6)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", [name for name, loss in LOSSES.items() if isinstance(loss, NonSmoothLoss)])
def test_the_interior_point_method_solves_linear_programs_too(rows, name):
    program = program_of(rows, name, "lasso")
    inner, outer = interior_point(program), solve(program)
    assert inner.converged
    assert_allclose(inner.objective, outer.objective, rtol=1e-6)
    assert (inner.coef != 0.0).sum() < 40


def refitted(program, *, columns=False, every=1):
    """Outputs of each, or every so many, row for the program without it, and without its column."""
    n, outputs = len(program.y), []
    for i in range(0, n, every):
        keep, some = np.arange(n) != i, np.arange(program.m) != (i if columns else -1)
        part = Program(
            program.loss,
            program.Phi[keep][:, some],
            program.y[keep],
            program.weight[keep],
            program.ridge,
            program.lasso,
        )
        found = solve(part)
        outputs.append(program.Phi[i, some] @ found.coef + found.intercept)
    return np.array(outputs)


@pytest.mark.slow
@pytest.mark.parametrize("columns", [False, True])
def test_squared_loss_is_exact(rows, columns):
    program = program_of(rows, "squared", "ridge")
    own = np.arange(80) if columns else None
    left = loo_of_program(program, solve(program), program.weight, own)
    assert_allclose(left.outputs, refitted(program, columns=columns), atol=1e-7)


def test_part_of_a_weight_leaves(rows):
    program = program_of(rows, "squared", "ridge")
    left = loo_of_program(program, solve(program), 0.5 * program.weight)
    i, weight = 7, program.weight.copy()
    weight[i] *= 0.5
    found = solve(Program(program.loss, program.Phi, program.y, weight, program.ridge))
    assert_allclose(left.outputs[i], program.Phi[i] @ found.coef + found.intercept, atol=1e-9)


def ridge_without_each(program):
    """Outputs of each row for least squares without it, by singular values: exact however small the ridge is."""
    outputs = []
    for i in range(len(program.y)):
        keep = np.arange(len(program.y)) != i
        s, Phi, share = np.sqrt(program.weight[keep]), program.Phi[keep], program.weight[keep]
        share = program.has_intercept * share / share.sum()
        mean, target = share @ Phi, share @ program.y[keep]
        U, values, V = np.linalg.svd(s[:, None] * (Phi - mean), full_matrices=False)
        v = V.T @ (values / (values**2 + program.ridge) * (U.T @ (s * (program.y[keep] - target))))
        outputs.append((program.Phi[i] - mean) @ v + target)
    return np.array(outputs)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("has_intercept", [True, False])
@pytest.mark.parametrize("weight", [1e-8, 1.0, 1e8])
@pytest.mark.parametrize("ridge", [1e-12, 1e-9, 1e-3, 1e6])
@pytest.mark.parametrize("dims", [2, 300])
def test_squared_loss_is_exact_however_small_the_ridge_is(dims, ridge, weight, has_intercept):
    rng = np.random.default_rng(0)
    X, weight = rng.normal(size=(40, dims)), np.full(40, weight)
    values, vectors = np.linalg.eigh(RBF(gamma=0.5).block(X, X))
    kept = values > 1e-13 * values[-1]
    Phi, y = vectors[:, kept] * np.sqrt(values[kept]), rng.choice([-1.0, 1.0], size=40)
    program = Program(Squared(), Phi[:, ::-1], y, weight, ridge, has_intercept=has_intercept)
    left, exact = loo_of_program(program, solve(program), weight).outputs, ridge_without_each(program)
    # The least singular value of two features is 1e-7 of the largest: so many digits of outputs are lost.
    assert_allclose(left, exact, atol=1e-5 * max(1.0, np.abs(exact).max()), rtol=0)
    if dims == 300:
        # Rows without neighbors know nothing of each other: the mean of the others is their output.
        assert np.abs(left).max() < 0.5


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", ["squared", "huber", "squared_hinge", "hinge", "absolute"])
def test_rows_leave_programs_without_intercept(rows, name):
    program = program_of(rows, name, "ridge", Phi=rows[1], has_intercept=False)
    corner = isinstance(program.loss, NonSmoothLoss)
    start = replace(program, loss=Rounded(program.loss, 0.2)) if corner else program
    left = loo_of_program(start, solve(start), program.weight, with_kinks=True).outputs
    for i in range(0, 80, 11):
        without = solve(replace(program, weight=program.weight * (np.arange(80) != i)))
        assert_allclose(left[i], program.Phi[i] @ without.coef, atol=2e-3)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["hinge", "absolute", "epsilon"])
def test_of_many_best_intercepts_the_middle_one_counts(rows, name):
    # With a large ridge nearly all rows are beyond their corners, and none determines the intercept.
    program = program_of(rows, name, "ridge", Phi=rows[1], ridge=100.0, weight=np.ones(80))
    found = solve(program)
    around = [program.objective(found.coef, found.intercept + move) for move in (-1e-3, 0.0, 1e-3)]
    assert around[1] <= min(around) + 1e-9
    form, f = program.loss.kinks(program.y), program.outputs(found.coef, found.intercept)
    assert abs(to_middle(form, program.weight, f)) < 1e-9
    arcs = replace(program, loss=Rounded(program.loss, 0.2))
    left = loo_of_program(arcs, solve(arcs), program.weight, with_kinks=True)
    assert left.trusted.all()
    assert_allclose(left.outputs[::4], refitted(program, every=4), atol=1e-4)


def test_the_middle_of_an_interval_and_the_end_of_a_ray():
    y = np.array([0.0, 1.0, 5.0, 7.0])
    form, zero = EpsilonInsensitive().kinks(y), np.zeros(4)
    assert to_middle(form, np.ones(4), zero) == 3.0
    assert to_middle(form, np.array([1.0, 1.0, 1.5, 1.0]), zero) == 5.0
    one_class = Hinge().kinks(np.ones(4))
    assert to_middle(one_class, np.ones(4), np.array([3.0, 0.5, 2.0, 2.0])) == 0.5
    assert to_middle(one_class, np.ones(4), np.full(4, 2.0)) == 0.0


@pytest.mark.slow
@every_loss
@every_penalty
def test_no_solution_exceeds_the_bound_of_outputs(rows, name, penalty):
    program = program_of(rows, name, penalty)
    assert (np.abs(refitted(program, every=10)) <= program.largest_outputs[::10]).all()
    steps = (
        replace(program, loss=Rounded(program.loss, 0.2)) if isinstance(program.loss, NonSmoothLoss) else program
    )
    left = loo_of_program(steps, solve(steps), program.weight, np.arange(80)).outputs
    assert (np.abs(left) <= steps.largest_outputs).all()


@pytest.mark.slow
@pytest.mark.parametrize("penalty", ["ridge", "lasso"])
def test_rows_and_their_columns_are_refitted_alone_or_in_folds(rows, penalty, monkeypatch):
    program = program_of(rows, "squared", penalty)
    found, own, every = solve(program), np.arange(80), np.arange(80)
    monkeypatch.setattr(refits, "MOST_OPERATIONS", np.inf)
    alone = refits.refit_without(program, found, np.ones(80), own, every)
    exact = refitted(program, columns=True)
    assert_allclose(alone, exact, atol=1e-4)
    monkeypatch.setattr(refits, "MOST_OPERATIONS", 0.0)
    folds = refits.refit_without(program, found, np.ones(80), own, every)
    effect = exact - program.outputs(found.coef, found.intercept)
    assert 0.0 < np.mean((folds - exact) ** 2) < np.mean(effect**2)


def optimism(program, own=None):
    """The loss of every fourth training row, how much larger it is if each is left out, and the error of that."""
    found = solve(program)
    left = loo_of_program(program, found, program.weight, own).outputs[::4]
    again = refitted(program, columns=own is not None, every=4)
    outputs = program.outputs(found.coef, found.intercept)[::4], again, left
    weight, y = program.weight[::4], program.y[::4]
    trained, again, approximate = (weight @ program.loss.value(y, f) for f in outputs)
    return trained, again - trained, approximate - again


SMOOTH = {
    "logistic": Logistic(),
    "squared_hinge": SquaredHinge(),
    "huber": Huber(0.3),
    "hinge": Rounded(Hinge(), 0.2),
    "absolute": Rounded(EpsilonInsensitive(), 0.2),
    "pinball": Rounded(Pinball(0.8), 0.2),
}


# The parabola of the logistic loss is nearly the loss; where curvatures jump, steps go on until they are exact.
@pytest.mark.slow
@pytest.mark.parametrize(("name", "share"), [(name, 0.01 if name != "logistic" else 0.02) for name in SMOOTH])
def test_steps_find_the_optimism(rows, name, share):
    program = replace(program_of(rows, name, "ridge", Phi=rows[1]), loss=SMOOTH[name])
    trained, more, error = optimism(program)
    assert more > 0.1 * trained
    assert abs(error) < share * more


@pytest.mark.sampled(1)
@pytest.mark.parametrize("ridge", [1.0, 1e-2, 1e-4])
def test_logistic_programs_of_several_outputs_are_solved_together(rows, ridge):
    _, L, y, label, _ = rows
    targets = [label, np.where(y > np.median(y), 1.0, -1.0), np.where(y > np.quantile(y, 0.9), 1.0, -1.0)]
    programs = [replace(program_of(rows, "logistic", "ridge", Phi=L, y=each), ridge=ridge) for each in targets]
    for program, found in zip(programs, solve_all(programs, [None] * 3)):
        alone = solve(program)
        assert found.converged
        expected = program.outputs(alone.coef, alone.intercept)
        assert_allclose(program.outputs(found.coef, found.intercept), expected, atol=1e-4 * np.ptp(expected))


@pytest.mark.slow
@pytest.mark.parametrize("columns", [False, True])
@pytest.mark.parametrize("ridge", [1.0, 1e-2, 1e-3])
def test_fits_without_rows_of_the_logistic_loss_are_refitting(rows, ridge, columns, monkeypatch):
    monkeypatch.setattr(newton_steps, "LEAST_CHANGE", 0.0)
    program = replace(program_of(rows, "logistic", "ridge", Phi=rows[0 if columns else 1]), ridge=ridge)
    left = loo_of_program(program, solve(program), program.weight, np.arange(80) if columns else None).outputs
    again = refitted(program, columns=columns, every=4)
    assert_allclose(left[::4], again, atol=5e-3 * again.std())


def test_some_rows_are_left_out_as_all_are(rows):
    program = replace(program_of(rows, "logistic", "ridge", Phi=rows[1]), ridge=1e-2)
    found, some = solve(program), np.array([3, 0, 41, 79])
    every = loo_of_program(program, found, program.weight).outputs
    part = newton_steps.loo_of_rows(program, found, program.weight, some)
    # A row whose estimate by one step is good enough may be known better among all of them.
    assert_allclose(part, every[some], atol=2e-3 * every.std())


@pytest.mark.slow
def test_further_steps_are_refitting_where_curvatures_jump(rows):
    for name in ("huber", "squared_hinge"):
        program = program_of(rows, name, "ridge", Phi=rows[1])
        left = loo_of_program(program, solve(program), program.weight)
        assert_allclose(left.outputs[::4], refitted(program, every=4), atol=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("ridge", [1.0, 1e-2, 1e-4])
@pytest.mark.parametrize("name", ["hinge", "absolute", "pinball", "epsilon"])
def test_rows_leave_losses_with_corners_exactly(rows, name, ridge):
    program = replace(program_of(rows, name, "ridge", Phi=rows[1]), ridge=ridge)
    arcs = replace(program, loss=Rounded(program.loss, 0.2))
    left = loo_of_program(arcs, solve(arcs), program.weight, with_kinks=True).outputs
    # Refitting is exact up to a duality gap.
    assert_allclose(left[::4], refitted(program, every=4), atol=5e-3)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["hinge", "squared_hinge", "absolute", "huber"])
def test_part_of_a_weight_leaves_along_a_path(rows, name):
    program = replace(program_of(rows, name, "ridge", Phi=rows[1]), ridge=0.1)
    corner = isinstance(program.loss, NonSmoothLoss)
    start = replace(program, loss=Rounded(program.loss, 0.2)) if corner else program
    left = loo_of_program(start, solve(start), 0.5 * program.weight, with_kinks=True).outputs
    found = solve(program)
    moves = np.abs(left - program.outputs(found.coef, found.intercept))
    for i in np.argsort(-moves)[:10]:
        weight = program.weight.copy()
        weight[i] *= 0.5
        without = solve(replace(program, weight=weight))
        assert_allclose(left[i], program.Phi[i] @ without.coef + without.intercept, atol=2e-3)


def test_rows_without_slope_leave_without_a_trace(rows):
    program = replace(program_of(rows, "squared_hinge", "ridge", Phi=rows[1]), ridge=1e-3)
    found = solve(program)
    f = program.outputs(found.coef, found.intercept)
    idle = program.y * f > 1.0
    assert idle.sum() > 10
    assert_array_equal(loo_of_program(program, found, program.weight).outputs[idle], f[idle])


def test_a_path_that_ends_too_soon_goes_straight_on(rows, monkeypatch):
    program = replace(program_of(rows, "squared_hinge", "ridge", Phi=rows[1]), ridge=1e-2)
    found = solve(program)
    exact = loo_of_program(program, found, program.weight).outputs
    monkeypatch.setattr(removal_path, "MEAN_BENDS", 0)
    straight = loo_of_program(program, found, program.weight).outputs
    assert np.isfinite(straight).all()
    assert not np.allclose(straight, exact)


def test_arcs_are_below_the_corners_they_replace(rows):
    f = np.linspace(-3.0, 3.0, 80)
    for name in ("hinge", "absolute", "pinball"):
        arc = SMOOTH[name]
        y = rows[3] if name == "hinge" else rows[2]
        less = arc.loss.value(y, f) - arc.value(y, f)
        assert (less >= -1e-12).all()
        assert (less <= 0.5 * 0.2 + 1e-12).all()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["squared", "huber", "logistic", "squared_hinge"])
def test_columns_that_were_selected_leave_with_their_rows(rows, name):
    program = program_of(rows, name, "lasso")
    assert 0 < np.count_nonzero(solve(program).coef) < 60
    trained, more, error = optimism(program, np.arange(80))
    assert more > 0.1 * trained
    assert abs(error) < 0.4 * more


@pytest.mark.parametrize("name", ["squared", "huber"])
def test_degrees_of_freedom_lie_between_one_and_the_number_of_rows(rows, name):
    program = program_of(rows, name, "ridge", Phi=rows[1])
    left = loo_of_program(program, solve(program), program.weight)
    assert 1.0 < left.degrees_of_freedom < 80.0
