"""Sparse models at default settings beside the tables of Andelić (2007): error, share of rows kept, time.

Table 5.3: the 13 sets of the IDA collection, test error in % and share of rows that are centers. Table 5.2: five
sets of characters and pixels; all classes share the centers here, in the thesis each class has its own, and the
share is the mean over classes. Table 5.4: sinc, 50 training rows, RMSE to the function without noise. Table 5.5:
mean squared error on Boston (481/25 rows) and Abalone (3000/1177 rows), random partitions. Fig. 3.2 (--tables
ripley): Ripley's mixture with ten centers. --tables generated: twonorm, ringnorm and waveform, 20 draws (--parts)
of 400 rows, by the default model and by the algorithms of the thesis; needs no data.

With --selection, --penalty and --own the algorithms of the theses: "residual" with "diagonal" is the nonlinear
pseudodiscriminant, with "orthogonal" order-recursive orthogonal least squares; with --own each class has its own
centers. Mika (2002), Table 5.1: --tables characters --sets usps --own --selection gain --centers 500.

Results are written to --out after every set and read from there: a run that was stopped goes on where it was.
"""

import argparse
import json
import subprocess
import tempfile
import time
import timeit
from collections.abc import Callable
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from common import heading, table
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer import KernelFisherClassifier, SparseFisherClassifier, SparseKernelRegressor
from mercer._expansion import Expansion
from mercer.datasets import IDA_NAMES, make_ringnorm, make_sinc, make_twonorm, make_waveform, read_digits, read_ida
from mercer.export import to_c, to_python
from mercer.kernels import RBF

# Test error and share of rows kept in %, of OROLS, NPD and OLS (Billings and Lee 2002): Table 5.3.
IDA = {
    "banana": ((10.6, 10), (10.5, 13), (10.7, 7)),
    "breast-cancer": ((26.8, 5), (26.8, 5), (25.8, 4)),
    "diabetis": ((23.1, 7), (23.0, 9), (23.1, 2)),
    "flare-solar": ((33.6, 5), (33.5, 6), (33.6, 1)),
    "german": ((23.8, 9), (23.9, 11), (24.0, 1)),
    "heart": ((16.1, 9), (16.2, 9), (15.8, 2)),
    "image": ((2.9, 23), (2.8, 26), (2.8, 22)),
    "ringnorm": ((1.8, 5), (1.8, 6), (1.6, 2)),
    "splice": ((11.7, 45), (11.7, 50), (11.7, 33)),
    "thyroid": ((4.2, 17), (4.1, 18), (4.6, 16)),
    "titanic": ((22.4, 10), (22.3, 27), (22.4, 7)),
    "twonorm": ((2.7, 15), (2.6, 25), (2.7, 3)),
    "waveform": ((10.0, 40), (10.0, 49), (10.0, 4)),
}
# The same of SVM, OROLS and NPD: Table 5.2.
CHARACTERS = {
    "optdigits": ((2.73, 12.1), (1.11, 10.2), (1.2, 10.4)),
    "satimage": ((7.8, 5.5), (8.2, 7.5), (8.1, 10.3)),
    "pendigits": ((2.5, 3.2), (1.66, 1.9), (1.95, 2.5)),
    "usps": ((4.3, 3.9), (4.4, 9.7), (4.4, 10.0)),
    "letter": ((2.75, 7.0), (2.61, 4.3), (2.65, 6.3)),
}
# RMSE of SVM and OROLS on sinc, MSE of QR, OROLS and NPD: Tables 5.4 and 5.5.
REGRESSION = {"sinc": (0.0519, 0.0431, None), "boston": (8.35, 7.92, 7.66), "abalone": (4.53, 4.32, 4.34)}
REPEATS = {"sinc": 100, "boston": 100, "abalone": 10}
TRAINING_ROWS = {"boston": 481, "abalone": 3000}
FILES = {"boston": "boston_housing.npz", "abalone": "abalone.npz"}

# Numbers of centers at which the test error is noted, and the end of the name under which it is.
CENTERS = (100, 200, 400, 700, 1000, 1500, 2000, 2500)
BY_CENTERS = " by centers"

# Sets of at most 468 training rows without many equal ones.
SMALL_SETS = ("banana", "breast-cancer", "diabetis", "heart", "ringnorm", "thyroid", "twonorm", "waveform")

# The default, and the algorithms of the thesis.
METHODS = {
    "default": {},
    "NPD": {"selection": "residual", "penalty": "diagonal"},
    "OROLS": {"selection": "residual", "penalty": "orthogonal"},
}

# Parameters of the model that are not default.
Options = dict[str, Any]
# (error, share of rows kept in %, seconds of processor time to fit) of every partition.
Result = list[tuple[float, float, float]]


def fitted(model, X, y) -> tuple[float, float]:
    """Share of rows kept in %, seconds of processor time."""
    start = time.process_time()
    model.fit(X, y)
    return 100.0 * len(model[-1].support_) / len(y), time.process_time() - start


def ida(folder: Path, name: str, most: int | None, options: Options) -> Result:
    results = []
    for X, y, X_test, y_test in list(read_ida(folder / "ida", name))[:most]:
        model = make_pipeline(StandardScaler(), SparseFisherClassifier(random_state=0, **options))
        kept, seconds = fitted(model, X, y)
        results.append((100.0 * float(np.mean(model.predict(X_test) != y_test)), kept, seconds))
    return results


def generated(draws: int) -> str:
    """Test error in % of the default and of NPD and OROLS by name, and what these have more than the default."""
    rows = []
    for make in (make_twonorm, make_ringnorm, make_waveform):
        errors = np.array([errors_by_name(make, seed) for seed in range(draws)])
        more = errors[:, 1:] - errors[:, :1]
        spread = 2.0 * more.std(axis=0, ddof=1) / np.sqrt(draws)
        means = [f"{error:.2f}" for error in errors.mean(axis=0)]
        gaps = [f"{mean:+.2f} ± {s:.2f}" for mean, s in zip(more.mean(axis=0), spread)]
        rows.append([make.__name__.removeprefix("make_"), draws, *means, *gaps])
    header = ["set", "draws", *METHODS, *(f"{name} - default" for name in list(METHODS)[1:])]
    return table(rows, header)


def errors_by_name(make: Callable[..., Any], seed: int) -> list[float]:
    """Test errors in % on 5000 new rows, of fits to 400."""
    X, y = make(400, random_state=seed)
    X_test, y_test = make(5000, random_state=10**6 + seed)
    models = (SparseFisherClassifier(random_state=0, **options) for options in METHODS.values())
    return [100.0 * float(np.mean(model.fit(X, y).predict(X_test) != y_test)) for model in models]


def ripley(folder: Path, options: Options) -> str:
    """Test error with ten centers, with as many as leave-one-out wants, and with all rows."""
    archive = np.load(folder / "ripley_synth" / "ripley_synth.npz")
    X, y, X_test, y_test = (archive[name] for name in ("X_train", "y_train", "X_test", "y_test"))
    ten = SparseFisherClassifier(random_state=0, **(options | {"max_centers": 10, "stop": None}))
    models = {
        "ten centers": ten,
        "by leave-one-out": SparseFisherClassifier(random_state=0, **options),
        "every row": KernelFisherClassifier(random_state=0),
    }
    rows = [
        [words, 100.0 * float(np.mean(model.fit(X, y).predict(X_test) != y_test)), len(model.X_fit_)]
        for words, model in models.items()
    ]
    return table(rows, ["Ripley's mixture", "error %", "centers"])


def characters(folder: Path, name: str, quick: bool, file: Path, options: Options) -> Result:
    """Features share one unit and are taken as they are. The error with fewer centers is written to the file."""
    X, y, X_test, y_test = read_digits(folder / name, name)
    rows = np.random.default_rng(0).permutation(len(y))[:2000] if quick else slice(None)
    model = make_pipeline(SparseFisherClassifier(random_state=0, **options))
    kept, seconds = fitted(model, X[rows], y[rows])
    if model[-1].shared:
        remembered(file, name + BY_CENTERS, lambda: error_by_centers(model[-1], X_test, y_test))
    return [(100.0 * float(np.mean(model.predict(X_test) != y_test)), kept, seconds)]


def error_by_centers(model, X_test, y_test) -> Result:
    """Test error in % of the first centers, their number, the mean square of left-out residuals."""
    coef, intercept, stage = np.zeros(model.dual_coef_.shape), np.zeros(model.intercept_.shape), model.stages_[0]
    found = []
    for m in [m for m in CENTERS if m < len(coef)] + [len(coef)]:
        coef[:] = 0.0
        stage.model(m, coef, intercept)
        F = Expansion(model.kernel_, model.X_fit_, coef, intercept)(X_test)
        wrong = model.classes_[model.rule_.probabilities(F).argmax(axis=1)] != y_test
        found.append((100.0 * float(wrong.mean()), float(m), float(model.center_path_.loo[m - 1])))
    return found


def centers_table(stored: dict[str, Result]) -> str:
    names = [name.removesuffix(BY_CENTERS) for name in stored if name.endswith(BY_CENTERS)]
    rows = []
    for name in names:
        errors = {int(m): error for error, m, _ in stored[name + BY_CENTERS]}
        last = max(errors)
        rows.append([name, *(errors.get(m) if m < last else None for m in CENTERS), last, errors[last]])
    return table(rows, ["centers", *map(str, CENTERS), "all", "error"])


def sinc(most: int | None) -> Result:
    results = []
    for seed in range(most or REPEATS["sinc"]):
        X, y = make_sinc(50, noise=0.1, random_state=seed)
        X_test, y_test = make_sinc(1000, noise=0.0, random_state=10**6 + seed)
        model = make_pipeline(SparseKernelRegressor(random_state=0))
        kept, seconds = fitted(model, X, y)
        results.append((float(np.sqrt(np.mean((model.predict(X_test) - y_test) ** 2))), kept, seconds))
    return results


def regression(folder: Path, name: str, most: int | None) -> Result:
    """Continuous features are standardized by the training part, three columns for the sex stay 0 and 1."""
    archive = np.load(folder / "regression" / FILES[name])
    X, y, n = archive["X"].astype(float), archive["y"].astype(float), TRAINING_ROWS[name]
    if "sex" in archive:
        X = np.column_stack([np.eye(3)[archive["sex"].astype(int)], X])
    moving = np.array([len(np.unique(column)) > 2 for column in X.T])
    results = []
    for seed in range(most or REPEATS[name]):
        order = np.random.default_rng(seed).permutation(len(y))
        train, test = order[:n], order[n:]
        scaler = StandardScaler().fit(X[train])
        Z = np.where(moving, scaler.transform(X), X)
        model = make_pipeline(SparseKernelRegressor(random_state=0))
        kept, seconds = fitted(model, Z[train], y[train])
        results.append((float(np.mean((model.predict(Z[test]) - y[test]) ** 2)), kept, seconds))
    return results


def remembered(file: Path, name: str, measure: Callable[[], Result]) -> Result:
    """The result of that name in the file, or measured and written there."""
    if name not in all_remembered(file):
        result = measure()
        file.write_text(json.dumps({**all_remembered(file), name: result}))
    result = all_remembered(file)[name]
    if not name.endswith(BY_CENTERS):
        error, kept, seconds = np.mean(result, axis=0)
        print(f"  {name}: {error:.4g}, {kept:.1f} % kept, {seconds:.2f} s", flush=True)
    return result


def all_remembered(file: Path) -> dict[str, Result]:
    return json.loads(file.read_text()) if file.exists() else {}


def class_table(results: dict[str, Result], published, names: tuple[str, str, str]) -> str:
    rows, numbers = [], []
    for name, result in results.items():
        error, kept, seconds = np.mean(result, axis=0)
        spread = float(np.std([r[0] for r in result], ddof=1) / np.sqrt(len(result))) if len(result) > 1 else None
        theirs = [value for pair in published[name] for value in map(float, pair)]
        rows.append([name, len(result), float(error), spread, float(kept), *theirs, float(seconds)])
        numbers.append([error, kept, *theirs])
    mean = [float(value) for value in np.mean(numbers, axis=0)]
    rows.append(["mean", "", mean[0], None, mean[1], *mean[2:], None])
    header = [column for name in names for column in (name, "kept")]
    return table(rows, ["set", "parts", "mercer", "s.e.", "kept %", *header, "fit s"])


def regression_table(results: dict[str, Result]) -> str:
    rows = []
    for name, result in results.items():
        error, kept, seconds = np.mean(result, axis=0)
        spread = float(np.std([r[0] for r in result], ddof=1)) if len(result) > 1 else 0.0
        theirs = ["-" if value is None else f"{value:.4g}" for value in REGRESSION[name]]
        rows.append([name, len(result), f"{error:.4f}", f"{spread:.4f}", float(kept), *theirs, float(seconds)])
    return table(rows, ["set", "parts", "mercer", "s.d.", "kept %", "SVM, QR", "OROLS", "NPD", "fit s"])


def held_out_table(folder: Path, parts: int = 2) -> str:
    """Error and log-loss of held-out rows and of the test part, means over the small sets."""
    rows = []
    for words, options in METHODS.items():
        found = [
            held_out_scores(options, *part)
            for name in SMALL_SETS
            for part in islice(read_ida(folder / "ida", name), parts)
        ]
        rows.append(
            [
                words,
                *(
                    f"{value:.2f}" if i % 2 == 0 else f"{value:.3f}"
                    for i, value in enumerate(np.mean(found, axis=0))
                ),
            ]
        )
    return table(rows, ["model", "held out %", "log-loss", "test %", "log-loss"])


def held_out_scores(options: Options, X, y, X_test, y_test) -> tuple[float, ...]:
    model = make_pipeline(StandardScaler(), SparseFisherClassifier(random_state=0, **options)).fit(X, y)
    classes = model[-1].classes_
    found: list[float] = []
    for P, label in ((model[-1].loo_proba_, y), (model.predict_proba(X_test), y_test)):
        found += [100.0 * float(np.mean(classes[P.argmax(axis=1)] != label)), float(log_loss(label, P))]
    return tuple(found)


def export_speed(centers: int = 50, features: int = 10, calls: int = 200_000) -> str:
    """Microseconds that a row takes as C (-O2) and as plain Python."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, features))
    model = SparseFisherClassifier(RBF(gamma=0.1), alpha=1e-3, stop=None, max_centers=centers)
    model.fit(X, np.sin(X).sum(axis=1) > 0)
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "speed.c"
        row = ", ".join(map(repr, X[0].tolist()))
        source.write_text(to_c(model) + C_LOOP.format(row=row, d=features, calls=calls))
        subprocess.run(["gcc", "-std=gnu99", "-O2", "-o", f"{folder}/speed", source, "-lm"], check=True)
        in_c = min(float(subprocess.run([f"{folder}/speed"], capture_output=True).stdout) for _ in range(5))
    module: dict = {}
    exec(to_python(model), module)
    row = X[0].tolist()
    in_python = 1e6 * min(timeit.repeat(lambda: module["predict"](row), number=200, repeat=5)) / 200
    at_once = 1e6 * min(timeit.repeat(lambda: model.predict(X), number=5, repeat=5)) / 5 / len(X)
    rows = [[f"{len(model.support_)} x {features}", f"{in_c:.2f}", f"{in_python:.0f}", f"{at_once:.2f}"]]
    return table(rows, ["centers x features", "C, us a row", "Python", "predict of 400 rows"])


C_LOOP = """
#include <stdio.h>
#include <time.h>
int main(void) {{
    double x[{d}] = {{ {row} }};
    int sum = 0;
    struct timespec a, b;
    clock_gettime(CLOCK_MONOTONIC, &a);
    for (int i = 0; i < {calls}; i++) {{ x[0] += 1e-9; sum += model_predict(x); }}
    clock_gettime(CLOCK_MONOTONIC, &b);
    printf("%.6f\\n", ((b.tv_sec - a.tv_sec) * 1e9 + (b.tv_nsec - a.tv_nsec)) / 1e3 / {calls});
    return sum < 0;
}}
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder with ida/, usps/ … letter/, regression/, ripley_synth/")
    parser.add_argument("--selection", help="of the classifiers: gain, residual or orthogonal")
    parser.add_argument("--penalty", help="of the classifiers: rkhs, coef, diagonal or orthogonal")
    parser.add_argument("--own", action="store_true", help="classifiers with centers of its own for each class")
    parser.add_argument("--centers", type=int, help="at most so many, for each class if they are its own")
    parser.add_argument("--tables", nargs="+", default=["ida", "regression", "characters"])
    parser.add_argument("--sets", nargs="+", help="only these sets")
    parser.add_argument("--out", type=Path, default=Path("sparse.json"), help="where results are kept")
    parser.add_argument("--parts", type=int, help="only so many partitions of each set")
    parser.add_argument("--quick", action="store_true", help="one partition, or 2000 rows, of each set")
    parser.add_argument(
        "--held-out", action="store_true", help="compare held-out rows with test rows on small sets"
    )
    parser.add_argument("--export", action="store_true", help="measure a model as source code instead; needs gcc")
    args = parser.parse_args()
    if args.export:
        print(heading() + "\n" + export_speed())
        return
    if args.tables == ["generated"]:
        print(heading() + "\n" + generated(args.parts or 20))
        return
    if args.data is None:
        parser.error("--data is needed")
    if args.held_out:
        print(heading() + "\n" + held_out_table(args.data))
        return
    most = 1 if args.quick else args.parts
    given = {"selection": args.selection, "penalty": args.penalty, "max_centers": args.centers}
    options = {name: value for name, value in given.items() if value is not None} | {"shared": not args.own}

    def measured(names, run) -> dict[str, Result]:
        wanted = [name for name in names if args.sets is None or name in args.sets]
        return {name: remembered(args.out, name, partial(run, name)) for name in wanted}

    texts = []
    if "ida" in args.tables and (found := measured(IDA_NAMES, lambda name: ida(args.data, name, most, options))):
        texts.append("Test error in %\n" + class_table(found, IDA, ("OROLS", "NPD", "OLS")))
    if "regression" in args.tables:
        found = measured(
            REGRESSION, lambda name: sinc(most) if name == "sinc" else regression(args.data, name, most)
        )
        texts += ["RMSE of sinc, mean squared error of the others\n" + regression_table(found)] if found else []
    if "characters" in args.tables and (
        found := measured(CHARACTERS, lambda name: characters(args.data, name, args.quick, args.out, options))
    ):
        texts.append("Test error in %\n" + class_table(found, CHARACTERS, ("SVM", "OROLS", "NPD")))
        texts.append("Test error in % with the first centers\n" + centers_table(all_remembered(args.out)))
    if "ripley" in args.tables:
        texts.append(ripley(args.data, options))
    print("\n" + heading() + "\n" + "\n\n".join(texts))


if __name__ == "__main__":
    main()
