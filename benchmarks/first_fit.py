"""A first fit on an everyday table: Adult, beside other classifiers of scikit-learn as they come.

A random --rows of the training rows, categories as indicators, in five stratified folds, standardized by the
training rows of each. In every fold all models are fitted one after the other to the same rows; a fit is timed
without its preparation. Seconds are medians over folds, accuracy and log-loss means with their standard errors.
"""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from common import ADULT_TRAIN, heading, read_adult, table, timed
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from mercer import KernelFisherClassifier

MODELS = {
    "KernelFisherClassifier()": lambda: KernelFisherClassifier(random_state=0),
    "HistGradientBoostingClassifier()": lambda: HistGradientBoostingClassifier(random_state=0),
    "CalibratedClassifierCV(SVC())": lambda: CalibratedClassifierCV(SVC()),
    "LogisticRegression(max_iter=1000)": lambda: LogisticRegression(max_iter=1000),
}
PEER = "HistGradientBoostingClassifier()"
FOLDS = 5


@dataclass(frozen=True)
class Score:
    """Seconds to fit, share of test rows that are right, log-loss."""

    seconds: float
    accuracy: float
    log_loss: float


def folds(X: Any, y: Any) -> Iterator[tuple[Any, Any, Any, Any]]:
    """Training rows, labels, test rows, labels of each fold, standardized."""
    for train, test in StratifiedKFold(FOLDS, shuffle=True, random_state=0).split(X, y):
        scaler = StandardScaler().fit(X[train])
        yield scaler.transform(X[train]), y[train], scaler.transform(X[test]), y[test]


def measure(name: str, X: Any, y: Any, X_test: Any, y_test: Any) -> Score:
    model = MODELS[name]()
    seconds = timed(lambda: model.fit(X, y))
    P = model.predict_proba(X_test)
    score = Score(seconds, float(np.mean(model.predict(X_test) == y_test)), float(log_loss(y_test, P)))
    print(f"  {name}: {score.seconds:.2f} s, {score.accuracy:.4f}, {score.log_loss:.4f}", flush=True)
    return score


def line(name: str, scores: list[Score], peer: float) -> list[object]:
    seconds = float(np.median([score.seconds for score in scores]))
    accuracy = mean_and_error([score.accuracy for score in scores])
    loss = mean_and_error([score.log_loss for score in scores])
    return [name, seconds, seconds / peer, *accuracy, *loss]


def mean_and_error(values: list[float]) -> tuple[str, str]:
    """The mean over folds and its standard error."""
    return f"{np.mean(values):.4f}", f"{np.std(values, ddof=1) / np.sqrt(len(values)):.4f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with adult/adult.npz")
    parser.add_argument("--rows", type=int, default=5000)
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=list(MODELS))
    args = parser.parse_args()
    X, y = read_adult(args.data)
    some = np.random.default_rng(0).permutation(ADULT_TRAIN)[: args.rows]
    parts = list(folds(X[some], y[some]))
    for name in args.models:
        MODELS[name]().fit(*[rows[:200] for rows in parts[0][:2]])
    scores = [{name: measure(name, *part) for name in args.models} for part in parts]
    seconds = {name: float(np.median([fold[name].seconds for fold in scores])) for name in args.models}
    rows = [line(name, [fold[name] for fold in scores], seconds.get(PEER, np.nan)) for name in args.models]
    header = ["model", "fit s", "/ boosting", "accuracy", "s.e.", "log-loss", "s.e."]
    title = f"Adult, {len(some)} rows in {FOLDS} folds, {X.shape[1]} features"
    print("\n" + heading() + f"\n{title}\n" + table(rows, header))


if __name__ == "__main__":
    main()
