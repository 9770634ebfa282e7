"""How honest scores and probabilities are where rows are few: many small draws of problems with known laws.

For every problem, number of rows and model: what `loo_score_` and `nested_score()` say, the score on new rows,
and the log-loss of classifiers beside that of the class shares. With --before FILE, log-losses of an earlier
version on the same draws, written there by --write, stand beside them.
"""

import argparse
import json
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from common import heading, table
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.metrics import log_loss

from mercer import KernelFisherClassifier, KernelRidgeRegressor, SparseFisherClassifier
from mercer.datasets import make_banana, make_ringnorm, make_twonorm, make_waveform

Draw = tuple[NDArray[Any], NDArray[Any]]
# Rows by which a fitted model is scored.
NEW_ROWS = 4000


def logistic(n: int, *, random_state: int) -> Draw:
    """Eight normal features, of which two matter: log-odds 2 x_1 - x_2."""
    rng = np.random.default_rng(random_state)
    X = rng.normal(size=(n, 8))
    return X, (rng.random(n) < 1.0 / (1.0 + np.exp(X[:, 1] - 2.0 * X[:, 0]))).astype(int)


def imbalanced(n: int, *, random_state: int) -> Draw:
    """One row in ten is of the second class, two standard deviations away."""
    rng = np.random.default_rng(random_state)
    y = (np.arange(n) % 10 == 0).astype(int)
    X = rng.normal(size=(n, 5))
    X[:, 0] += 2.0 * y
    return X, y


def noise(k: int) -> Callable[..., Draw]:
    def draw(n: int, *, random_state: int) -> Draw:
        rng = np.random.default_rng(random_state)
        X, y = rng.normal(size=(n, 5)), rng.integers(k, size=n)
        y[: 2 * k] = np.repeat(np.arange(k), 2)
        return X, y

    return draw


def signal(function: Callable[[NDArray[Any]], NDArray[Any]], d: int, scale: float) -> Callable[..., Draw]:
    """A function of d uniform features on [-1, 1] with normal noise."""

    def draw(n: int, *, random_state: int) -> Draw:
        rng = np.random.default_rng(random_state)
        X = rng.uniform(-1.0, 1.0, size=(n, d))
        return X, function(X) + scale * rng.normal(size=n)

    return draw


CLASSES = {
    "banana": make_banana,
    "ringnorm": make_ringnorm,
    "twonorm": make_twonorm,
    "waveform": make_waveform,
    "logistic": logistic,
    "imbalanced": imbalanced,
    "noise, 2 classes": noise(2),
    "noise, 3 classes": noise(3),
}
VALUES = {
    "sine": signal(lambda X: np.sin(4.0 * X[:, 0]), 1, 0.3),
    "linear": signal(lambda X: X[:, 0] - X[:, 1], 6, 0.5),
    "product": signal(lambda X: 3.0 * X[:, 0] * X[:, 1], 3, 0.5),
    "noise": signal(lambda X: 0.0 * X[:, 0], 4, 1.0),
}
MODELS = {
    "classifier": (KernelFisherClassifier, CLASSES),
    "sparse": (SparseFisherClassifier, CLASSES),
    "regressor": (KernelRidgeRegressor, VALUES),
}


@dataclass(frozen=True)
class Line:
    """A model on draws of a problem: scores (draws,) of the best choice, honest, on new rows; log-losses."""

    model: str
    problem: str
    n: int
    best: NDArray[Any]
    honest: NDArray[Any]
    new: NDArray[Any]
    loss: NDArray[Any]
    shares: NDArray[Any]

    @property
    def bias(self) -> float:
        return float((self.honest - self.new).mean())

    @property
    def error(self) -> float:
        """Two standard errors of the bias."""
        difference = self.honest - self.new
        return 2.0 * float(difference.std(ddof=1)) / len(difference) ** 0.5

    @property
    def is_honest(self) -> bool:
        """Whether the bias is within two standard errors of zero, or within one point."""
        return abs(self.bias) <= max(self.error, 0.01)

    @property
    def key(self) -> str:
        return f"{self.model}, {self.problem}, {self.n}"


def one_draw(model: str, problem: str, n: int, seed: int, *, score: bool) -> list[float]:
    """Scores of the best choice, honest and on new rows; log-loss of the model and of the class shares."""
    estimator, problems = MODELS[model]
    X, y = problems[problem](n, random_state=seed)
    new, truth = problems[problem](NEW_ROWS, random_state=10_000 + seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = estimator(random_state=0).fit(X, y)
    scores = [getattr(fitted, "loo_score_", np.nan), fitted.nested_score() if score else np.nan]
    scores.append(fitted.score(new, truth))
    if model == "regressor":
        return [*scores, np.nan, np.nan]
    P, share = fitted.predict_proba(new), np.bincount(np.searchsorted(fitted.classes_, y)) / n
    return [*scores, log_loss(truth, P), log_loss(truth, np.tile(share, (NEW_ROWS, 1)), labels=fitted.classes_)]


def line(model: str, problem: str, n: int, draws: int, *, score: bool, jobs: int) -> Line:
    found = Parallel(jobs)(delayed(one_draw)(model, problem, n, seed, score=score) for seed in range(draws))
    return Line(model, problem, n, *np.array(found).T)


def printed(found: Line, before: dict[str, float]) -> list[object]:
    loss, shares = (float(values.mean()) for values in (found.loss, found.shares))
    return [
        found.problem,
        found.n,
        *(f"{values.mean():.3f}" for values in (found.best, found.honest, found.new)),
        f"{found.bias:+.3f} ± {found.error:.3f}{'' if found.is_honest else ' !'}",
        *("-" if np.isnan(value) else f"{value:.4f}" for value in (loss, shares)),
        f"{before[found.key]:.4f}" if found.key in before else "-",
    ]


def conclusion(lines: list[Line], before: dict[str, float]) -> str:
    honest = sum(found.is_honest for found in lines)
    words = [f"honest lines: {honest} of {len(lines)} ({100.0 * honest / len(lines):.0f} %)"]
    for model in ("classifier", "sparse"):
        ours = [found for found in lines if found.model == model]
        noisy = [found for found in ours if found.problem.startswith("noise")]
        worst = max((float(f.loss.mean() / f.shares.mean()) for f in noisy), default=np.nan)
        learnable = [found for found in ours if not found.problem.startswith("noise")]
        now = np.mean([found.loss.mean() for found in learnable]) if learnable else np.nan
        known = [before[found.key] for found in learnable if found.key in before]
        earlier = f", before {np.mean(known):.4f}" if known and len(known) == len(learnable) else ""
        words.append(
            f"{model}: log-loss on noise at most {worst:.4f} times that of the class shares; "
            f"mean over the other lines {now:.4f}{earlier}"
        )
    return "\n".join(words)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--rows", nargs="+", type=int, default=[50, 100, 300])
    parser.add_argument("--draws", type=int, default=50)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--before", type=Path, help="log-losses of an earlier version")
    parser.add_argument("--write", type=Path, help="write log-losses for --before, and skip nested_score()")
    choices = parser.parse_args()
    before = json.loads(choices.before.read_text()) if choices.before else {}
    lines: list[Line] = []
    print(heading(), flush=True)
    for model in choices.models:
        ours = [
            line(model, problem, n, choices.draws, score=choices.write is None, jobs=choices.jobs)
            for problem in MODELS[model][1]
            for n in choices.rows
        ]
        header = ("", "rows", "best", "nested", "new rows", "difference", "log-loss", "of shares", "before")
        print(f"{model}\n{table([printed(found, before) for found in ours], header)}\n", flush=True)
        lines += ours
    if choices.write:
        losses = {found.key: float(found.loss.mean()) for found in lines if found.model != "regressor"}
        choices.write.write_text(json.dumps(losses, indent=1) + "\n")
    print(conclusion(lines, before))


if __name__ == "__main__":
    main()
