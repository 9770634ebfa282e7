"""Digits, letters and pixels: test error and probabilities with every row a center on the customary split.

Features of each set share one unit (grey values, pen positions, counts), so they are taken as they are, without
standardizing, and nothing is tuned by hand. Where the kernel matrix of all training rows does not fit --max-rows,
a random part of them is used, and the table says so. Published: SVM, OROLS and NPD from Andelić (2007), Table 5.2.

The second table is about probabilities of the same fits: log-loss and expected calibration error (15 bins of the
largest probability) on the test part. "Platt" is one slope with targets smoothed by one more row on each side in
every class; "reached" is the log-loss of the kind of map that the library chooses, fitted to the test part itself.
"""

import argparse
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from common import heading, table
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import log_softmax

from mercer import KernelFisherClassifier
from mercer._scores import Posterior, Rule
from mercer._scores.decision_rule import scores_in
from mercer._scores.probabilities.calibration import cross_calibrate, moderated
from mercer._scores.probabilities.logit_maps import parts
from mercer.datasets import read_digits

PUBLISHED = {
    # name: SVM, OROLS, NPD
    "optdigits": (2.73, 1.11, 1.2),
    "satimage": (7.8, 8.2, 8.1),
    "usps": (4.3, 4.4, 4.4),
    "pendigits": (2.5, 1.66, 1.95),
    "letter": (2.75, 2.61, 2.65),
}
BINS = 15
Array = NDArray[np.float64]
Labels = NDArray[np.intp]


def log_loss(P: Array, label: Labels) -> float:
    return float(-np.log(P[np.arange(len(label)), label]).mean())


def calibration_error(P: Array, label: Labels) -> float:
    """Mean distance between the largest probability and the share of right labels, over bins of the former."""
    sure, right = P.max(axis=1), P.argmax(axis=1) == label
    place = np.minimum((sure * BINS).astype(int), BINS - 1)
    return float(np.abs(np.bincount(place, sure - right)).sum() / len(label))


def platt(R: Array, label: Labels) -> Posterior:
    """One slope and offsets; a class of n rows has targets (n + 1) / (n + 2)."""
    k = R.shape[1] + 1
    count = np.bincount(label, minlength=k)[label]
    T = np.repeat(1.0 / ((count + 2.0) * (k - 1)), k).reshape(-1, k)
    T[np.arange(len(label)), label] = (count + 1.0) / (count + 2.0)

    def loss(theta: Array) -> tuple[float, Array]:
        log_p = log_softmax(np.column_stack([np.zeros(len(R)), theta[0] * R + theta[1:]]), axis=1)
        E = (np.exp(log_p) - T)[:, 1:]
        return float(-(T * log_p).sum()), np.append((E * R).sum(), E.sum(axis=0))

    theta = minimize(loss, np.append(1.0, np.zeros(k - 1)), jac=True, options={"maxiter": 1000}).x
    odds = np.log(np.bincount(label, minlength=k))
    return Posterior(theta[0] * np.eye(k - 1), theta[1:], odds=odds[1:] - odds[0])


def calibrated(method: str, R: Array, label: Labels, weight: Array) -> Posterior:
    return cross_calibrate(method, R, label, weight, parts(R, label)).posterior


def judge(name: str, model: Any, y: Any, X_test: Any, y_test: Any) -> list[object]:
    """A line of the second table."""
    rule: Rule = model.rule_
    label, truth = np.searchsorted(model.classes_, y), np.searchsorted(model.classes_, y_test)
    R, weight = scores_in(rule.reliable, model.loo_outputs_), np.ones(len(label))
    F, trust = model._evidence(X_test)
    maps = {"platt": platt(R, label), "isotonic": calibrated("isotonic", R, label, weight)}
    P = {
        key: replace(rule, posterior=moderated(m, R, label, weight)).probabilities(F, trust)
        for key, m in maps.items()
    }
    P["now"] = rule.probabilities(F, trust)
    S = scores_in(rule.reliable, F)
    reached = calibrated("logistic", S, truth, np.ones(len(truth))).probabilities(S)
    loss = {key: log_loss(p, truth) for key, p in P.items()}
    error = {key: f"{calibration_error(P[key], truth):.4f}" for key in ("platt", "now")}
    wrong = {key: float(100 * np.mean(P[key].argmax(axis=1) != truth)) for key in ("platt", "now")}
    line = [f"{value:.4f}" for value in (loss["platt"], loss["isotonic"], loss["now"], log_loss(reached, truth))]
    change = f"{100 * (loss['now'] / loss['platt'] - 1):.0f} %"
    return [name, *line[:3], change, line[3], error["platt"], error["now"], wrong["platt"], wrong["now"]]


def measure(folder: Path, name: str, max_rows: int) -> tuple[list[object], list[object]]:
    X, y, X_test, y_test = read_digits(folder / name, name)
    rows = np.sort(np.random.default_rng(0).permutation(len(y))[:max_rows])
    start = time.perf_counter()
    model = KernelFisherClassifier(centers="all", random_state=0).fit(X[rows], y[rows])
    seconds = time.perf_counter() - start
    wrong = 100.0 * np.mean(model.predict(X_test) != y_test)
    left_out = 100.0 * (1.0 - model.loo_score_)
    share = "all" if len(rows) == len(y) else f"{len(rows)} of {len(y)}"
    print(f"  {name}: {wrong:.2f} %\n{model.report_}", flush=True)
    errors: list[object] = [name, share, float(wrong), float(left_out), *PUBLISHED[name], seconds]
    return errors, judge(name, model, y[rows], X_test, y_test)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with usps/usps.npz … letter/letter.npz")
    parser.add_argument("--sets", nargs="+", default=list(PUBLISHED), choices=list(PUBLISHED))
    parser.add_argument("--max-rows", type=int, default=16000)
    args = parser.parse_args()
    errors, probabilities = zip(*(measure(args.data, name, args.max_rows) for name in args.sets))
    header = ["set", "training rows", "mercer", "left out", "SVM", "OROLS", "NPD", "fit s"]
    print("\n" + heading() + "\nTest error in %\n" + table(errors, header))
    header = [
        "set",
        "Platt",
        "isotonic",
        "mercer",
        "change",
        "reached",
        "ECE Platt",
        "mercer",
        "error Platt",
        "mercer",
    ]
    print("\nLog-loss, expected calibration error, error in %\n" + table(probabilities, header))


if __name__ == "__main__":
    main()
