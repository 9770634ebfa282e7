"""Where there are no data: probabilities far away, classes that were never seen, and what knowing it costs.

Far away: the mean of the largest probability at 1000 rows ten spreads from the mean of the data, in random
directions, beside the largest share of a class; a calibrated SVC for comparison. Unknown classes: trained on some
of the classes of a set, how well the largest probability, or `novelty`, tells test rows of these classes from
those of the others (area under the ROC curve), beside a calibrated SVC and a Gaussian process classifier.
"""

import argparse
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from common import best_in_turn, heading, svc_search, table
from numpy.typing import NDArray
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from mercer import KernelFisherClassifier
from mercer.datasets import make_banana, make_ringnorm, read_digits, read_ida

IDA = ("diabetis", "heart", "thyroid", "titanic", "waveform")
FAR_ROWS = 1000
SPREADS = 10.0


def far_rows(X: NDArray[Any], rng: np.random.Generator) -> NDArray[Any]:
    """Rows whose distance from the mean is ten times the root mean square distance of the rows X."""
    direction = rng.normal(size=(FAR_ROWS, X.shape[1]))
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    centered = X - X.mean(axis=0)
    return X.mean(axis=0) + SPREADS * np.sqrt((centered**2).sum(axis=1).mean()) * direction


def calibrated_svc(X: NDArray[Any], y: NDArray[Any]) -> CalibratedClassifierCV:
    """An SVC with gamma and C of a small search, and probabilities by 5 folds."""
    search = svc_search(X)
    grid = {name: list(values)[::4] for name, values in search.param_grid.items()}
    best = search.set_params(param_grid=grid).fit(X, y).best_params_
    return CalibratedClassifierCV(SVC(**best), ensemble=False).fit(X, y)


def standardized(X: NDArray[Any]) -> NDArray[Any]:
    return np.asarray(StandardScaler().fit_transform(X))


def sets(data: Path | None) -> dict[str, tuple[NDArray[Any], NDArray[Any]]]:
    (iris, flower), (wine, grower), digits = (
        load(return_X_y=True) for load in (load_iris, load_wine, load_digits)
    )
    found = {
        "iris": (iris, flower),
        "iris, petals": (iris[:, 2:], flower),
        "wine, standardized": (standardized(wine), grower),
        "digits": digits,
        "banana": make_banana(400, random_state=0),
    }
    if data is not None:
        for name in IDA:
            X, y, *_ = next(iter(read_ida(data / "ida", name)))
            found[name] = standardized(X), y
    return found


def far_away(data: Path | None) -> list[list[object]]:
    rows: list[list[object]] = []
    for name, (X, y) in sets(data).items():
        new = far_rows(X, np.random.default_rng(0))
        model = KernelFisherClassifier(random_state=0).fit(X, y)
        ours, theirs = (m.predict_proba(new).max(axis=1).mean() for m in (model, calibrated_svc(X, y)))
        rows.append([name, *(f"{value:.3f}" for value in (model.priors_.max(), ours, theirs))])
        print(*rows[-1], flush=True)
    return rows


def roc_of(known: NDArray[Any], certainty: NDArray[Any]) -> str:
    return f"{roc_auc_score(known, certainty):.3f}"


def unknown(data: Path, name: str, classes: int, n: int | None, gaussian_process: bool) -> list[object]:
    """Trained on the first classes of a set, or n rows of them."""
    X, y, X_test, y_test = read_digits(data / name, name)
    labels = np.unique(y)
    rows = np.flatnonzero(np.isin(y, labels[:classes]))
    rows = np.random.default_rng(0).permutation(rows)[:n]
    X, y, known = X[rows], y[rows], np.isin(y_test, labels[:classes])
    model = KernelFisherClassifier(random_state=0).fit(X, y)
    found = [roc_of(known, model.predict_proba(X_test).max(axis=1)), roc_of(known, -model.novelty(X_test))]
    found.append(roc_of(known, calibrated_svc(X, y).predict_proba(X_test).max(axis=1)))
    if gaussian_process:
        kernel = ConstantKernel(10.0) * RBF(length_scale=np.sqrt(0.5 / float(model.gamma_)))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            process = GaussianProcessClassifier(kernel, random_state=0).fit(X, y)
        found.append(roc_of(known, process.predict_proba(X_test).max(axis=1)))
    row = [f"{name}, {classes} of {len(labels)} classes", len(y), *found]
    print(*row, flush=True)
    return row if gaussian_process else [*row, "-"]


def cost() -> str:
    """Seconds of probabilities, and of outputs and their calibration alone, with 1000 centers."""
    X, y = make_ringnorm(20_000, random_state=0)
    model = KernelFisherClassifier(centers=1000, random_state=0).fit(X, y)
    seconds = best_in_turn(
        5,
        probabilities=lambda: model.predict_proba(X),
        outputs=lambda: model.rule_.probabilities(model.transform(X)),
    )
    ratio = seconds["probabilities"] / seconds["outputs"]
    return f"predict_proba of 20,000 rows, 1000 centers: {ratio:.2f} times outputs and their calibration"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="folder with ida, usps/usps.npz and letter/letter.npz")
    parser.add_argument("--few", type=int, default=500, help="training rows of the Gaussian process")
    choices = parser.parse_args()
    print(heading(), flush=True)
    print(cost(), flush=True)
    far = far_away(choices.data)
    print("\n" + table(far, ("largest probability, far away", "share", "mercer", "calibrated SVC")), flush=True)
    if choices.data is None:
        return
    lines = [
        unknown(choices.data, name, classes, n, n is not None)
        for name, classes in (("usps", 5), ("letter", 13))
        for n in (None, choices.few)
    ]
    print("\n" + table(lines, ("known or unknown", "rows", "largest", "novelty", "SVC", "GPC")))


if __name__ == "__main__":
    main()
