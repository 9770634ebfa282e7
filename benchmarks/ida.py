"""The thirteen two-class sets of the IDA collection: error, log-loss, Brier score and time, everything default.

Beside it stand the published figures (test error in %, mean over 100 partitions, 20 for image and splice) and
an SVC searched over as many pairs of gamma and C by 5-fold cross-validation on the same partitions, with
probabilities from CalibratedClassifierCV(ensemble=False); its scores are stored, since they take an hour.
Published: KFD, SVM, SKFD, LSKFD from Mika (2002), Tables 5.3 and 5.4 (image, splice, twonorm: Andelić 2007,
Table 5.3); OROLS, NPD from Andelić (2007), Table 5.3.
"""

import argparse
import json
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from common import default_model, heading, svc_search, table
from joblib import Parallel, delayed
from sklearn.calibration import CalibratedClassifierCV
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from mercer import KernelFisherClassifier
from mercer._scores import CLASSIFICATION_CRITERIA
from mercer.datasets import IDA_NAMES, read_ida

SVC_SCORES = Path(__file__).parents[1] / "docs" / "benchmarks" / "results" / "ida_svc.json"

PUBLISHED = {
    # name: KFD, SVM, SKFD, LSKFD, OROLS, NPD
    "banana": (10.8, 11.5, 11.2, 10.6, 10.6, 10.5),
    "breast-cancer": (25.8, 26.0, 25.2, 25.8, 26.8, 26.8),
    "diabetis": (23.2, 23.5, 23.1, 23.6, 23.1, 23.0),
    "flare-solar": (33.2, 32.4, 33.4, 34.4, 33.6, 33.5),
    "german": (23.7, 23.6, 23.6, 24.1, 23.8, 23.9),
    "heart": (16.1, 16.0, 16.4, 16.0, 16.1, 16.2),
    "image": (4.8, 3.0, None, None, 2.9, 2.8),
    "ringnorm": (1.5, 1.7, 1.6, 1.5, 1.8, 1.8),
    "splice": (10.5, 10.9, None, None, 11.7, 11.7),
    "thyroid": (4.2, 4.8, 4.3, 4.7, 4.2, 4.1),
    "titanic": (23.2, 22.4, 22.6, 22.5, 22.4, 22.3),
    "twonorm": (2.6, 3.0, None, None, 2.7, 2.6),
    "waveform": (9.9, 9.9, 10.1, 10.2, 10.0, 10.0),
}


@dataclass(frozen=True)
class Score:
    """Test error (%), log-loss, Brier score (sum over both classes), seconds to fit."""

    error: float
    log_loss: float
    brier: float
    seconds: float


def judge(y, labels, P, seconds: float) -> Score:
    brier = 2.0 * np.mean((P[:, 1] - (y > 0)) ** 2)
    return Score(100.0 * float(np.mean(labels != y)), float(log_loss(y, P)), float(brier), seconds)


def ours(model, X, y, X_test, y_test) -> Score:
    start = time.perf_counter()
    model.fit(X, y)
    seconds = time.perf_counter() - start
    return judge(y_test, model.predict(X_test), model.predict_proba(X_test), seconds)


def svc(X, y, X_test, y_test) -> Score:
    """Labels of the searched SVC, probabilities of its calibrated twin."""
    scaler = StandardScaler().fit(X)
    X, X_test = scaler.transform(X), scaler.transform(X_test)
    start = time.perf_counter()
    search = svc_search(X).fit(X, y)
    best = SVC(**search.best_params_)
    calibrated = CalibratedClassifierCV(best, ensemble=False).fit(X, y)
    seconds = time.perf_counter() - start
    return judge(y_test, search.predict(X_test), calibrated.predict_proba(X_test), seconds)


def mean(scores: list[Score], field: str) -> float:
    return float(np.mean([getattr(score, field) for score in scores]))


def standard_error(scores: list[Score]) -> float | None:
    errors = [score.error for score in scores]
    return float(np.std(errors, ddof=1) / np.sqrt(len(errors))) if len(errors) > 1 else None


def measure(folder: Path, run, jobs: int) -> dict[str, list[Score]]:
    """Scores of ``run(X, y, X_test, y_test)`` on every partition of every set."""
    results = {}
    for name in IDA_NAMES:
        parts = list(read_ida(folder, name))
        results[name] = Parallel(n_jobs=jobs)(delayed(run)(*part) for part in parts)
        print(f"  {name}: {mean(results[name], 'error'):.2f} %", flush=True)
    return results


def peer_scores(folder: Path, file: Path, jobs: int) -> dict[str, list[Score]]:
    """Scores of the searched SVC, read from the file or measured and written there."""
    if not file.exists():
        scores = measure(folder, svc, jobs)
        file.write_text(json.dumps({name: [asdict(score) for score in scores[name]] for name in scores}))
    stored = json.loads(file.read_text())
    return {name: [Score(**score) for score in stored[name]] for name in IDA_NAMES}


def over_sets(results: dict[str, list[Score]], field: str) -> float:
    return float(np.mean([mean(scores, field) for scores in results.values()]))


def error_table(results, peer) -> str:
    rows = []
    for name, scores in results.items():
        other = mean(peer[name], "error")
        seconds = mean(scores, "seconds")
        rows.append(
            [name, len(scores), mean(scores, "error"), standard_error(scores), other, *PUBLISHED[name], seconds]
        )
    published = np.array([[np.nan if v is None else v for v in PUBLISHED[name]] for name in results])
    means = [float(column.mean()) for column in published.T]
    rows.append(["mean", "", over_sets(results, "error"), None, over_sets(peer, "error"), *means, None])
    ten = [name for name in results if None not in PUBLISHED[name]]
    of_ten = [float(np.mean([PUBLISHED[name][j] for name in ten])) for j in range(published.shape[1])]
    here = [float(np.mean([mean(source[name], "error") for name in ten])) for source in (results, peer)]
    rows.append(["mean of ten", "", here[0], None, here[1], *of_ten, None])
    header = ["set", "parts", "mercer", "s.e.", "SVC here", "KFD", "SVM", "SKFD", "LSKFD", "OROLS", "NPD", "fit s"]
    return table(rows, header)


def probability_table(results, peer) -> str:
    rows = []
    for name in [*results, "mean"]:
        row = [name]
        for field in ("log_loss", "brier"):
            for source in (results, peer):
                value = over_sets(source, field) if name == "mean" else mean(source[name], field)
                row.append(f"{value:.4f}")
        rows.append(row)
    return table(rows, ["set", "log-loss", "SVC calibrated", "Brier", "SVC calibrated"])


def criteria(folder: Path, jobs: int) -> str:
    """Mean error, log-loss and Brier score over the sets for each criterion of the choice."""
    rows = []
    for criterion in CLASSIFICATION_CRITERIA:
        model = make_pipeline(StandardScaler(), KernelFisherClassifier(criterion=criterion, random_state=0))
        results = measure(folder, lambda *part, model=model: ours(model, *part), jobs)
        values = [over_sets(results, field) for field in ("error", "log_loss", "brier")]
        rows.append([criterion, f"{values[0]:.2f}", f"{values[1]:.4f}", f"{values[2]:.4f}"])
    return table(rows, ["criterion", "error %", "log-loss", "Brier"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with banana.npz … waveform.npz")
    parser.add_argument(
        "--svc", type=Path, default=SVC_SCORES, help="JSON file of the SVC's scores; made if missing (an hour)"
    )
    parser.add_argument("--criteria", action="store_true", help="compare the criteria of leave-one-out instead")
    parser.add_argument("--jobs", type=int, default=1, help="partitions at once; times are honest with 1")
    args = parser.parse_args()
    text = heading()
    if args.criteria:
        print(text + "\n" + criteria(args.data, args.jobs))
        return
    results = measure(args.data, lambda *part: ours(default_model(), *part), args.jobs)
    peer = peer_scores(args.data, args.svc, args.jobs)
    print("\n" + text + "\nTest error in %\n" + error_table(results, peer))
    print("\nProbabilities on the test parts\n" + probability_table(results, peer))


if __name__ == "__main__":
    main()
