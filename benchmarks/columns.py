"""Adult, a table of numbers and names: kernels over columns of the raw frame beside pipelines that encode names.

--rows training rows, --draws times at random from the customary training part; error and log-loss on the customary
test part, seconds of fit and of prediction. The archive has names as integers, which are made strings here.
"""

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from common import ADULT_CATEGORIES, ADULT_TRAIN, heading, table
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from threadpoolctl import threadpool_limits

from mercer import KernelFisherClassifier
from mercer.kernels import RBF, Nominal, OnColumns, Sum

NAMES = (
    *("age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation"),
    *("relationship", "race", "sex", "capital-gain", "capital-loss", "hours-per-week", "native-country"),
)


def adult_frame(folder: Path) -> tuple[pd.DataFrame, NDArray[np.int64]]:
    """The census data as a frame of six columns of numbers and eight of names, and labels; training rows first."""
    with np.load(folder / "adult" / "adult.npz") as archive:
        X, y = archive["X"], archive["y"].astype(np.int64)
    columns = {name: X[:, j] for j, name in enumerate(NAMES)}
    for j in ADULT_CATEGORIES:
        columns[NAMES[j]] = np.array([f"{NAMES[j]} {code}" for code in X[:, j]], dtype=object)
    return pd.DataFrame(columns), y


def with_categories(frame: pd.DataFrame) -> pd.DataFrame:
    """Names as categories of pandas, which gradient boosting takes."""
    return frame.astype({NAMES[j]: "category" for j in ADULT_CATEGORIES})


def encoder(*, sparse: bool) -> Any:
    """Numbers standardized, names as indicators."""
    numbers, names = make_column_selector(dtype_include="number"), make_column_selector(dtype_exclude="number")
    hot = OneHotEncoder(handle_unknown="ignore", sparse_output=sparse)
    return make_column_transformer((StandardScaler(), numbers), (hot, names))


def models() -> dict[str, Any]:
    """Kernels over columns, and what people use instead."""
    numbers, names = OnColumns(RBF(), "numbers"), OnColumns(Nominal(), "names")
    alone = [name for j, name in enumerate(NAMES) if j not in ADULT_CATEGORIES]
    each = Sum([(name, OnColumns(RBF("median"), [name])) for name in alone]) + OnColumns(Nominal(None), "names")
    boosting = HistGradientBoostingClassifier(categorical_features="from_dtype", random_state=0)
    return {
        "numbers * names": KernelFisherClassifier(numbers * names, random_state=0),
        "numbers + names": KernelFisherClassifier(numbers + names, random_state=0),
        "each column alone, summed": KernelFisherClassifier(each, random_state=0),
        "pipeline, KernelFisherClassifier": make_pipeline(
            encoder(sparse=False), KernelFisherClassifier(random_state=0)
        ),
        "pipeline, LogisticRegression": make_pipeline(encoder(sparse=True), LogisticRegression(max_iter=1000)),
        "HistGradientBoostingClassifier": make_pipeline(FunctionTransformer(with_categories), boosting),
    }


def measured(model: Any, train: Any, y: Any, test: Any, truth: Any) -> list[float]:
    """Error in %, log-loss, seconds of the fit and of the prediction."""
    start = time.perf_counter()
    model.fit(train, y)
    fitted = time.perf_counter()
    P = model.predict_proba(test)
    done = time.perf_counter()
    error = 100 * float(np.mean(model.classes_[P.argmax(axis=1)] != truth))
    return [error, float(log_loss(truth, P)), fitted - start, done - fitted]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with the archives")
    parser.add_argument("--rows", type=int, default=4000, help="training rows")
    parser.add_argument("--draws", type=int, default=3, help="random sets of training rows")
    arguments = parser.parse_args()
    print(heading())
    frame, y = adult_frame(arguments.data)
    split = ADULT_TRAIN if len(y) > ADULT_TRAIN else len(y) // 2
    test, truth = frame[split:], y[split:]
    draws = [np.random.default_rng(d).permutation(split)[: arguments.rows] for d in range(arguments.draws)]
    print(f"adult, {len(draws[0])} training rows, {len(test)} test rows, mean of {len(draws)} draws")
    rows = []
    with threadpool_limits(1):
        for name, model in models().items():
            runs = [measured(clone(model), frame.iloc[some], y[some], test, truth) for some in draws]
            error, loss, fit, predict = np.mean(runs, axis=0)
            rows.append([name, float(error), f"{loss:.4f}", float(fit), float(predict)])
    print(table(rows, ["model", "error in %", "log-loss", "fit s", "predict s"]))


if __name__ == "__main__":
    main()
