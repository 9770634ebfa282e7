"""Kernel machines: the tables of Mika (2002), leave-one-out by steps, wrong labels, and the time of solvers.

--data DIR  test error and share of zero coefficients of SVM, KFD, SKFD and LSKFD on sets of the IDA collection,
            everything default (Tables 5.3 to 5.5; there 100 partitions, here those of the archives)
--loo       the left-out criterion at the chosen alpha against refitting without each row, and the error of
            leave-one-out outputs for every loss and penalty
--flips     error with a fifth of the labels wrong, for each loss
--speed     LSKFD against linprog and SKFD against PIQP on the whole program
--passes    smooth losses on many rows: passes and time; logistic loss against Nystroem and LogisticRegression
"""

import argparse
import importlib
import re
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.optimize
from common import heading, table, timed
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.kernel_approximation import Nystroem
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer import KernelFisherClassifier, KernelMachineClassifier
from mercer._fitting.programs.in_memory import LossChoice
from mercer._scores.criteria import classification_criterion
from mercer._solvers.programs import Program, solve
from mercer._solvers.programs.losses import EpsilonInsensitive, Squared
from mercer.datasets import make_banana, make_ringnorm, make_twonorm, make_waveform, read_ida
from mercer.kernels import RBF

METHODS: dict[str, dict[str, str]] = {
    "SVM": {"loss": "hinge"},
    "KFD": {},
    "SKFD": {"loss": "squared", "penalty": "l1"},
    "LSKFD": {"loss": "absolute", "penalty": "l1"},
    "logistic": {"loss": "logistic"},
}
# Test error in %, and zero coefficients in %, of SVM, KFD, SKFD, LSKFD: Mika (2002), Tables 5.3, 5.4, 5.5.
PUBLISHED = {
    "banana": ((11.5, 10.8, 11.2, 10.6), (78, 0, 86, 92)),
    "breast-cancer": ((26.0, 25.8, 25.2, 25.8), (42, 0, 88, 88)),
    "diabetis": ((23.5, 23.2, 23.1, 23.6), (57, 0, 97, 97)),
    "flare-solar": ((32.4, 33.2, 33.4, 34.4), (9, 0, 67, 99)),
    "german": ((23.6, 23.7, 23.6, 24.1), (58, 0, 96, 98)),
    "heart": ((16.0, 16.1, 16.4, 16.0), (51, 0, 88, 96)),
    "ringnorm": ((1.7, 1.5, 1.6, 1.5), (62, 0, 85, 94)),
    "thyroid": ((4.8, 4.2, 4.3, 4.7), (79, 0, 88, 89)),
    "titanic": ((22.4, 23.2, 22.6, 22.5), (10, 0, 8, 95)),
    "waveform": ((9.9, 9.9, 10.1, 10.2), (60, 0, 81, 96)),
}
PROBLEMS: dict[str, Callable[..., Any]] = {
    "banana": make_banana,
    "ringnorm": make_ringnorm,
    "twonorm": make_twonorm,
    "waveform": make_waveform,
}


def model_of(method: str) -> Any:
    how = METHODS[method]
    machine = KernelMachineClassifier(random_state=0, **how) if how else KernelFisherClassifier(random_state=0)
    return make_pipeline(StandardScaler(), machine)


def on_part(method: str, X: Any, y: Any, X_test: Any, y_test: Any) -> tuple[float, float, float]:
    """Test error and zero coefficients in %, seconds to fit."""
    start = time.perf_counter()
    model = model_of(method).fit(X, y)
    seconds = time.perf_counter() - start
    zero = 100.0 * (1.0 - len(model[-1].support_) / len(np.unique(X, axis=0)))
    return 100.0 * float(np.mean(model.predict(X_test) != y_test)), zero, seconds


def tables(folder: Path, jobs: int) -> str:
    rows, errors, zeros = [], [], []
    for name, (published, sparse) in PUBLISHED.items():
        parts = list(read_ida(folder, name))
        found = {
            method: np.array(Parallel(jobs)(delayed(on_part)(method, *part) for part in parts)).mean(axis=0)
            for method in METHODS
        }
        errors.append([values[0] for values in found.values()])
        zeros.append([values[1] for values in found.values()])
        pairs = [f"{found[m][0]:.1f} ({p})" for m, p in zip(METHODS, (*published, "-"))]
        share = [f"{found[m][1]:.0f} ({p})" for m, p in zip(METHODS, (*sparse, "-"))]
        rows.append([name, len(parts), *pairs, *share, " ".join(f"{v[2]:.1f}" for v in found.values())])
        print(f"  {name}: {pairs} {share}", flush=True)
    of = np.mean([published for published, _ in PUBLISHED.values()], axis=0)
    also = np.mean([sparse for _, sparse in PUBLISHED.values()], axis=0)
    means = [f"{v:.2f} ({p})" for v, p in zip(np.mean(errors, axis=0), (*np.round(of, 2), "-"))]
    share = [f"{v:.0f} ({p})" for v, p in zip(np.mean(zeros, axis=0), (*np.round(also, 0), "-"))]
    rows.append(["mean", "", *means, *share, ""])
    header = ["set", "parts", *METHODS, *(f"zero {m}" for m in METHODS), "fit s"]
    return table(rows, header)


def refitted(model: KernelMachineClassifier, X: NDArray[Any], y: NDArray[Any]) -> NDArray[Any]:
    """Outputs (n, 1) of each row for the machine without it, with the same kernel and alpha."""
    again = KernelMachineClassifier(model.kernel_, loss=model.loss, penalty=model.penalty, alpha=model.alpha_)
    outputs = []
    for i in range(len(y)):
        keep = np.arange(len(y)) != i
        outputs.append(again.fit(X[keep], y[keep])._outputs(X[i : i + 1])[0])
    return np.array(outputs)


def left_out(n: int, jobs: int) -> str:
    """The mean Brier score of left-out rows, by steps and by refitting, at the chosen alpha."""
    losses = ("logistic", "squared_hinge", "huber", "hinge")
    draws = [(name, make, seed) for name, make in PROBLEMS.items() for seed in (0, 1)]

    def one(name: str, make: Callable[..., Any], seed: int, loss: str) -> list[object]:
        X, y = make(n, random_state=seed)
        model = KernelMachineClassifier(loss=loss, random_state=0).fit(X, y)
        label = np.searchsorted(model.classes_, y)
        judge = classification_criterion("brier", label, np.ones(n), np.where(label == 1, 1.0, -1.0)[:, None])
        step, again = (float(judge(F[None])[0]) for F in (model.loo_outputs_, refitted(model, X, y)))
        return [f"{name} {seed}", loss, f"{step:.4f}", f"{again:.4f}", f"{100.0 * (step / again - 1.0):+.1f}"]

    rows = Parallel(jobs)(delayed(one)(*draw, loss) for draw in draws for loss in losses)
    return table(rows, ["draw", "loss", "steps", "refitted", "difference %"])


def without(model: KernelMachineClassifier, X: NDArray[Any], y: NDArray[Any], i: int) -> float:
    """The output of row i by the program of the other rows."""
    keep = np.arange(len(y)) != i
    K, ridge = model.kernel_.block(X, X[keep]), float(model.alpha_)
    if model.penalty == "rkhs":
        values, vectors = np.linalg.eigh(K[keep])
        kept = values > 1e-14 * values[-1]
        K = K @ vectors[:, kept] / np.sqrt(values[kept])
    share = {"l1": 1.0, "elastic_net": model.l1_ratio}.get(model.penalty, 0.0)
    label, loss = np.where(y == model.classes_[1], 1.0, -1.0), LossChoice(model.loss).losses(np.ones(1))[0]
    program = Program(loss, K[keep], label[keep], np.ones(keep.sum()), (1.0 - share) * ridge, share * ridge)
    found = solve(program)
    return float(K[i] @ found.coef + found.intercept)


def accuracy(n: int, jobs: int) -> str:
    """Errors of leave-one-out outputs in % of what leaving a row out changes, root mean squares over some rows."""
    X, y = make_banana(n, random_state=0)
    losses = ("squared", "huber", "absolute", "epsilon_insensitive", "hinge", "squared_hinge", "logistic")

    def one(loss: str, penalty: str, alpha: float) -> str:
        model = KernelMachineClassifier(RBF(gamma=1.0), loss=loss, penalty=penalty, alpha=alpha).fit(X, y)
        some = np.arange(0, n, 2)
        again = np.array([without(model, X, y, int(i)) for i in some])
        error, effect = model.loo_outputs_[some, 0] - again, model._outputs(X[some])[:, 0] - again
        return f"{100.0 * np.sqrt(np.mean(error**2) / np.mean(effect**2)):.2f}"

    penalties, alphas = ("rkhs", "coef", "l1", "elastic_net"), (0.1, 3.0)
    cells = [(loss, penalty, alpha) for loss in losses for penalty in penalties for alpha in alphas]
    found = dict(zip(cells, Parallel(jobs)(delayed(one)(*cell) for cell in cells)))
    rows = [[loss, *(" ".join(found[loss, p, a] for a in alphas) for p in penalties)] for loss in losses]
    return table(rows, ["loss", *penalties])


def flips(draws: int, jobs: int) -> str:
    """Test error in % with a fifth of the labels wrong."""
    losses = {
        "KFD": {},
        "huber": {"loss": "huber"},
        "absolute": {"loss": "absolute"},
        "logistic": {"loss": "logistic"},
        "SVC": {"loss": "hinge"},
    }

    def one(make: Callable[..., Any], seed: int, share: float, how: dict[str, str]) -> float:
        X, y = make(200, random_state=seed)
        wrong = np.random.default_rng(seed).random(200) < share
        y = np.where(wrong, y.max() + y.min() - y, y)
        new, truth = make(3000, random_state=1000 + seed)
        machine = KernelMachineClassifier(random_state=0, **how) if how else KernelFisherClassifier(random_state=0)
        return 100.0 * float(np.mean(machine.fit(X, y).predict(new) != truth))

    rows = []
    for name in ("banana", "ringnorm", "twonorm", "waveform"):
        for share in (0.0, 0.2):
            found = [
                np.mean(Parallel(jobs)(delayed(one)(PROBLEMS[name], s, share, how) for s in range(draws)))
                for how in losses.values()
            ]
            rows.append([name, f"{100 * share:.0f}", *(f"{value:.1f}" for value in found)])
            print("  " + " ".join(rows[-1]), flush=True)
    return table(rows, ["set", "wrong %", *losses])


def speed(n: int) -> str:
    """Seconds of LSKFD and SKFD, and of whole programs by linprog and PIQP."""
    X, y = make_waveform(n, random_state=0)
    y = np.where(y == y.max(), 1.0, -1.0)
    K = RBF(gamma=0.01).block(X, X)
    linear = Program(EpsilonInsensitive(), K, y, np.ones(n), 0.0, 1.0)
    quadratic = Program(Squared(), K, y, np.ones(n), 0.0, 1.0)
    rows = []
    for name, program, other in (("LSKFD", linear, whole_linear), ("SKFD", quadratic, whole_quadratic)):
        ours = min(timed(partial(solve, program)) for _ in range(2))
        theirs, objective = other(program)
        found = solve(program)
        rows.append(
            [
                name,
                n,
                f"{ours:.2f}",
                f"{theirs:.2f}",
                f"{theirs / ours:.1f}",
                f"{found.objective / objective - 1:.0e}",
            ]
        )
    return table(rows, ["program", "rows", "s", "whole program s", "ratio", "objective, relative difference"])


def passes(n: int, m: int) -> str:
    """Passes over n rows with m centers, and the time of each loss."""
    X, y = make_waveform(n, random_state=0, dtype=np.float32)
    rows = []
    for loss in ("logistic", "huber", "squared_hinge"):
        model = KernelMachineClassifier(RBF(gamma=0.02), loss=loss, centers=m, random_state=0)
        seconds = timed(partial(model.fit, X, y))
        moments, gradients = re.findall(r"(\d+) passes for moments and (\d+)", model.report_.status)[0]
        rows.append([loss, n, m, moments, gradients, f"{model.gap_:.0e}", f"{seconds:.0f}"])
    return table(rows, ["loss", "rows", "centers", "passes for moments", "for the gradient", "last gain", "s"])


def beside_nystroem(n: int, m: int) -> str:
    """Logistic loss with alpha by leave-one-out, and scikit-learn's pipeline for several C, all with one gamma."""
    X, y = make_waveform(n, random_state=0, dtype=np.float32)
    new, truth = make_waveform(20_000, random_state=1, dtype=np.float32)
    features = Nystroem(gamma=0.02, n_components=m, random_state=0)
    models: list[tuple[str, int, Any]] = [
        ("KernelMachineClassifier", k, KernelMachineClassifier(RBF(gamma=0.02), centers=k, random_state=0))
        for k in (7 * m // 10, m)
    ]
    for C in (0.1, 1.0, 10.0):
        theirs = make_pipeline(features, LogisticRegression(C=C, max_iter=1000))
        models.append((f"Nystroem + LogisticRegression, C={C:g}", m, theirs))
    rows = []
    for name, k, model in models:
        seconds = min(timed(partial(model.fit, X, y)) for _ in range(2))
        loss = log_loss(truth, model.predict_proba(new))
        error = 100.0 * np.mean(model.predict(new) != truth)
        rows.append([name, n, k, f"{seconds:.1f}", f"{loss:.4f}", f"{error:.2f}"])
    return table(rows, ["model", "rows", "centers", "s", "log-loss", "error %"])


def whole_linear(program: Program) -> tuple[float, float]:
    """min sum(xi) + lasso sum(plus + minus), -xi <= y - K (plus - minus) - b <= xi, by linprog."""
    n, m = program.Phi.shape
    cost = np.concatenate([np.full(2 * m, program.lasso), np.zeros(2), np.ones(n)])
    A = np.column_stack([program.Phi, -program.Phi, np.ones(n), -np.ones(n)])
    bounds = np.vstack([np.column_stack([A, -np.eye(n)]), np.column_stack([-A, -np.eye(n)])])
    start = time.perf_counter()
    found = scipy.optimize.linprog(cost, A_ub=bounds, b_ub=np.concatenate([program.y, -program.y]), method="highs")
    return time.perf_counter() - start, float(found.fun)


def whole_quadratic(program: Program) -> tuple[float, float]:
    """min |y - K (plus - minus) - b|² / 2 + lasso sum(plus + minus), by PIQP's dense interior point method."""
    piqp = importlib.import_module("piqp")
    n, m = program.Phi.shape
    A = np.column_stack([program.Phi, -program.Phi, np.ones(n)])
    solver = piqp.DenseSolver()
    solver.settings.eps_abs = solver.settings.eps_rel = 1e-6
    low = np.append(np.zeros(2 * m), -np.inf)
    cost = np.append(np.full(2 * m, program.lasso), 0.0) - A.T @ program.y
    start = time.perf_counter()
    solver.setup(A.T @ A, cost, x_l=low, x_u=np.full(2 * m + 1, np.inf))
    solver.solve()
    seconds = time.perf_counter() - start
    return seconds, float(solver.result.info.primal_obj) + 0.5 * float(program.y @ program.y)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder with banana.npz … waveform.npz")
    parser.add_argument("--loo", action="store_true")
    parser.add_argument("--flips", action="store_true")
    parser.add_argument("--speed", action="store_true")
    parser.add_argument("--passes", action="store_true")
    parser.add_argument("--rows", type=int, default=2000, help="of the programs that are timed")
    parser.add_argument("--many", type=int, default=1_000_000, help="rows of the passes")
    parser.add_argument("--draws", type=int, default=10, help="of the problems with wrong labels")
    parser.add_argument("--jobs", type=int, default=1)
    args = parser.parse_args()
    print(heading(), flush=True)
    if args.data:
        print(tables(args.data, args.jobs), flush=True)
    if args.loo:
        print("\nLeft-out Brier score, 150 rows\n" + left_out(150, args.jobs), flush=True)
        for n, how in ((60, "rows alone"), (100, "ten folds")):
            print(f"\nError of leave-one-out outputs in % of the effect, {n} rows, refits: {how}; alpha 0.1, 3")
            print(accuracy(n, args.jobs), flush=True)
    if args.flips:
        print("\nTest error in %, 200 rows\n" + flips(args.draws, args.jobs), flush=True)
    if args.speed:
        print("\nSeconds\n" + speed(args.rows), flush=True)
    if args.passes:
        print("\nBeside scikit-learn\n" + beside_nystroem(args.many // 10, 1000), flush=True)
        print("\nPasses\n" + passes(args.many, 1000), flush=True)


if __name__ == "__main__":
    main()
