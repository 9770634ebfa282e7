"""Tables of numbers in their own units: the default, and the defaults of what people use instead.

At most --rows training rows of each set, --splits random splits (of the IDA collection its partitions, and more if
there are fewer); test error and log-loss of classifiers, root mean squared error of regressors in units of the
spread of the test targets; seconds, on one thread. Then the mean rank of each method, its mean ratio to the first
one, and its mean score between the worst method (0) and the best (1) of each set, with standard errors over sets.
--scaled   standardizes features for all methods, and compares other kernels, relevances and searches
--store    keeps single figures in a file of comma-separated values, and goes on from those it has
--picture  draws mean ranks into a file
--million  what relevances add to the time of a fit to a million rows
--honesty  labels without signal, and few relevant features: left-out scores of relevances against new rows
"""

import argparse
import csv
import time
import warnings
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import scipy.linalg
import scipy.optimize
from common import heading, read_adult, table, timed
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy.stats import loguniform, rankdata
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.svm import SVC, SVR
from threadpoolctl import threadpool_limits

from mercer import KernelFisherClassifier, KernelRidgeRegressor
from mercer.centers import Uniform
from mercer.datasets import IDA_NAMES, read_ida
from mercer.kernels import RBF

Array = NDArray[Any]
Split = tuple[Array, Array, Array, Array]
MOST_TEST = 5000
SMALL_UCI = ("glass", "ionosphere", "magic", "musk", "pima", "sonar", "spambase", "vehicle")
REGRESSION = (
    "abalone",
    "boston_housing",
    "california_houses",
    "cpu_act",
    "evans10_airfoil",
    "evans10_elevators",
    "evans10_kin40k",
    "evans10_pol",
    "evans10_protein",
    "evans10_pumadyn32nm",
    "friedman_fried",
    "gal20_bostonHousing",
    "gal20_concrete",
    "gal20_energy",
    "gal20_kin8nm",
    "gal20_power_plant",
    "gal20_wine_quality_red",
    "gal20_yacht",
    "puma8NH",
)
# Archives of one table, by name: folder and how X is made of their arrays.
TABLES: dict[str, tuple[str, Callable[[Any], Array]]] = {
    "madelon": ("madelon", lambda d: d["X"]),
    "higgs_sample": ("higgs_sample", lambda d: np.vstack([d["X_train"], d["X_test"]])),
    "covtype_20k": (
        "covtype_20k",
        lambda d: np.hstack([d["X_quant"], np.unpackbits(d["X_bits"], axis=1)[:, :44]]),
    ),
    "shuttle": ("shuttle", lambda d: d["X"]),
    "isolet": ("isolet", lambda d: d["X_e4"]),
    "mnist": ("mnist", lambda d: np.vstack([d["X_train"], d["X_test"]])),
    "satimage": ("satimage", lambda d: d["X"]),
    "letter": ("letter", lambda d: d["X"]),
    "colon": ("gene_expression", lambda d: d["X"]),
    "leukemia": ("gene_expression", lambda d: d["X"]),
    **{name: ("small_uci", lambda d: d["X"]) for name in SMALL_UCI},
}
CLASSIFICATION = (*(f"ida/{name}" for name in IDA_NAMES), *TABLES, "adult")
# Kernels to choose from; "plain" and "relevance" have the first one.
KINDS = ["rbf", "laplacian"]
# gamma in units of 1 / (d Var X).
GRID = {"C": 10.0 ** np.arange(-1, 4), "gamma": [0.1, 1.0, 10.0]}
OURS = (
    "mercer",
    "alike",
    "discriminant",
    "rbf",
    "plain",
    "choice",
    "relevance",
    "both",
    "press",
    "directions",
    "4000 centers",
)
# Rows as they come, and nothing but defaults; "alike", without relevances, and "discriminant", without the
# logistic loss, are measured if they are named.
DEFAULTS = ("mercer", "rbf", "LightGBM", "CatBoost", "boosting", "SVC", "SVR", "xRFM")
# Standardized rows; other methods are measured if they are named.
SCALED = (
    "plain",
    "choice",
    "relevance",
    "both",
    "boosting",
    "boosting, search",
    "SVC, grid",
    "SVR, grid",
    "linear",
)
# A search of so many settings, by three folds.
SETTINGS, FOLDS = 30, 3
BOOSTING = {
    "learning_rate": loguniform(0.01, 0.5),
    "max_leaf_nodes": [7, 15, 31, 63],
    "min_samples_leaf": [2, 5, 10, 20, 40],
    "l2_regularization": loguniform(1e-6, 10.0),
    "max_iter": [50, 100, 200, 400],
}


def read(folder: Path, name: str, seed: int, rows: int) -> Split:
    """Training and test rows of a split, with targets."""
    if name.startswith("ida/"):
        parts = list(read_ida(folder / "ida", name[4:]))
        return parts[seed] if seed < len(parts) else divided(parts[0], seed)
    X, y = read_adult(folder) if name == "adult" else _archive(folder, name)
    return split(X, y, seed, rows, classes=name in CLASSIFICATION)


def split(X: Any, y: Array, seed: int, rows: int, *, classes: bool) -> tuple[Any, Array, Any, Array]:
    """At most so many training rows and MOST_TEST test rows of an array or a frame, with targets."""
    if classes:
        # Classes that have at least five training rows.
        least = max(20.0, 5.0 * len(y) / rows)
        common = np.isin(y, [label for label, count in zip(*np.unique(y, return_counts=True)) if count >= least])
        X, y = X[common], y[common]
    n = min(rows, int(0.7 * len(y)))
    X, X_test, y, y_test = train_test_split(
        X,
        y,
        train_size=n,
        test_size=min(len(y) - n, MOST_TEST),
        random_state=seed,
        stratify=y if classes else None,
    )
    return X, y, X_test, y_test


def divided(part: Split, seed: int) -> Split:
    """All rows of a partition, divided anew into parts of the same sizes."""
    X, y = np.concatenate(part[::2]), np.concatenate(part[1::2])
    X, X_test, y, y_test = train_test_split(X, y, train_size=len(part[1]), random_state=seed, stratify=y)
    return X, y, X_test, y_test


def _archive(folder: Path, name: str) -> tuple[Array, Array]:
    """Rows and targets of a table."""
    where, make = TABLES.get(name, ("regression", lambda d: d["X"]))
    with np.load(folder / where / f"{name}.npz") as archive:
        X = make(archive).astype(np.float64)
        y = archive["y"] if "y" in archive else np.concatenate([archive["y_train"], archive["y_test"]])
    return X, np.ravel(y)


def classifiers() -> dict[str, Any]:
    boosted = HistGradientBoostingClassifier(random_state=0)
    return {
        "mercer": KernelFisherClassifier(random_state=0),
        "alike": KernelFisherClassifier(relevance=None, random_state=0),
        "discriminant": KernelFisherClassifier(probabilities="discriminant", random_state=0),
        "rbf": KernelFisherClassifier("rbf", random_state=0),
        "plain": KernelFisherClassifier("rbf", random_state=0),
        "choice": KernelFisherClassifier(KINDS, random_state=0),
        "relevance": KernelFisherClassifier("rbf", relevance="diagonal", random_state=0),
        "both": KernelFisherClassifier(KINDS, relevance="diagonal", random_state=0),
        "press": Press(KernelFisherClassifier),
        "directions": Directions(KernelFisherClassifier),
        "4000 centers": KernelFisherClassifier("rbf", centers=Uniform(4000), random_state=0),
        "xRFM": RecursiveFeatures(classes=True),
        "LightGBM": Elsewhere("lightgbm", "LGBMClassifier", n_jobs=1, random_state=0, verbose=-1),
        "CatBoost": Elsewhere(
            "catboost", "CatBoostClassifier", thread_count=1, random_state=0, verbose=0, allow_writing_files=False
        ),
        "SVC": make_pipeline(StandardScaler(), SVC(probability=True, random_state=0)),
        "boosting": boosted,
        "boosting, search": RandomizedSearchCV(
            boosted, BOOSTING, n_iter=SETTINGS, cv=FOLDS, scoring="neg_log_loss", random_state=0
        ),
        "SVC, grid": Scaled(SVC(probability=True, random_state=0), GRID),
        "linear": LogisticRegression(max_iter=2000),
    }


def regressors() -> dict[str, Any]:
    boosted = HistGradientBoostingRegressor(random_state=0)
    return {
        "mercer": KernelRidgeRegressor(random_state=0),
        "alike": KernelRidgeRegressor(relevance=None, random_state=0),
        "rbf": KernelRidgeRegressor("rbf", random_state=0),
        "plain": KernelRidgeRegressor("rbf", random_state=0),
        "choice": KernelRidgeRegressor(KINDS, random_state=0),
        "relevance": KernelRidgeRegressor("rbf", relevance="diagonal", random_state=0),
        "both": KernelRidgeRegressor(KINDS, relevance="diagonal", random_state=0),
        "press": Press(KernelRidgeRegressor),
        "directions": Directions(KernelRidgeRegressor),
        "4000 centers": KernelRidgeRegressor("rbf", centers=Uniform(4000), random_state=0),
        "xRFM": RecursiveFeatures(classes=False),
        "LightGBM": Elsewhere("lightgbm", "LGBMRegressor", n_jobs=1, random_state=0, verbose=-1),
        "CatBoost": Elsewhere(
            "catboost", "CatBoostRegressor", thread_count=1, random_state=0, verbose=0, allow_writing_files=False
        ),
        "SVR": make_pipeline(StandardScaler(), SVR()),
        "boosting": boosted,
        "boosting, search": RandomizedSearchCV(boosted, BOOSTING, n_iter=SETTINGS, cv=FOLDS, random_state=0),
        "SVR, grid": Scaled(SVR(epsilon=0.05), GRID),
        "linear": RidgeCV(np.logspace(-3, 3, 13)),
    }


class Scaled:
    """A grid search whose gammas are multiples of 1 / (d Var X)."""

    def __init__(self, model: Any, grid: dict[str, Any]) -> None:
        self.model, self.grid = model, grid

    def fit(self, X: Array, y: Array) -> Any:
        unit = 1.0 / (X.shape[1] * X.var())
        grid = self.grid | {"gamma": [unit * gamma for gamma in self.grid["gamma"]]}
        return GridSearchCV(self.model, grid, cv=FOLDS).fit(X, y)


class Elsewhere:
    """A model of a package that is imported where it is fitted, since it is not one of these benchmarks."""

    def __init__(self, package: str, name: str, **choices: Any) -> None:
        self.package, self.name, self.choices = package, name, choices

    def fit(self, X: Array, y: Array) -> Any:
        return getattr(import_module(self.package), self.name)(**self.choices).fit(X, y)


class RecursiveFeatures:
    """xRFM (Beaglehole et al. 2025) at its defaults, with a fifth of the training rows for its validation."""

    def __init__(self, *, classes: bool) -> None:
        self.classes = classes

    def fit(self, X: Array, y: Array) -> "RecursiveFeatures":
        # torch, which it brings along, is not a package of these benchmarks.
        xRFM = import_module("xrfm").xRFM

        if self.classes:
            self.classes_, y = np.unique(y, return_inverse=True)
        parts = train_test_split(
            X.astype(np.float32),
            y if self.classes else y.astype(np.float32),
            test_size=0.2,
            random_state=0,
            stratify=y if self.classes else None,
        )
        self.model = xRFM(device="cpu", n_threads=1, verbose=False, random_state=0)
        self.model.fit(parts[0], parts[2], parts[1], parts[3])
        return self

    def predict(self, X: Array) -> Array:
        if self.classes:
            return np.asarray(self.classes_[self.predict_proba(X).argmax(axis=1)])
        return np.ravel(self.model.predict(X.astype(np.float32)))

    def predict_proba(self, X: Array) -> Array:
        return np.asarray(self.model.predict_proba(X.astype(np.float32)), dtype=np.float64)


def centered_targets(model: Any, y: Array) -> Array:
    """Indicators of the classes of a fitted classifier, or real targets (n, q), without their means."""
    Y = np.eye(len(model.classes_))[np.searchsorted(model.classes_, y)] if hasattr(model, "classes_") else y
    Y = np.reshape(Y, (len(y), -1)).astype(np.float64)
    return Y - Y.mean(axis=0)


def mapped(X: Array, A: Array) -> Array:
    return X @ A


class Directions:
    """More than a gamma for each feature: rows are mapped by the root of the mean product of all derivatives.

    As for single features, that of fits to random signs of the size of residuals is subtracted. One round.
    """

    DRAWS = 8

    def __init__(self, make: Any) -> None:
        self.make = make

    def fit(self, X: Array, y: Array) -> Any:
        plain = self.make("rbf", random_state=0).fit(X, y)
        Y = centered_targets(plain, y)
        K = RBF(gamma=plain.gamma_).block(X, X)
        B = scipy.linalg.cho_solve(scipy.linalg.cho_factor(K + plain.alpha_ * np.eye(len(K))), np.eye(len(K)))
        size = np.mean((B @ Y / np.diag(B)[:, None]) ** 2, axis=0).sum()
        signs = np.random.default_rng(0).choice([-1.0, 1.0], size=(len(Y), self.DRAWS))
        slopes = [K * c @ X - (K @ c)[:, None] * X for c in (B @ np.column_stack([Y, signs])).T]
        products = np.array([slope.T @ slope for slope in slopes])
        q = Y.shape[1]
        values, vectors = np.linalg.eigh(products[:q].sum(axis=0) - size * products[q:].mean(axis=0))
        roots = np.sqrt(np.maximum(values, 0.0))
        mapping = FunctionTransformer(mapped, kw_args={"A": vectors * (roots / roots.max())})
        return make_pipeline(mapping, self.make("rbf", random_state=0)).fit(X, y)


class Press:
    """Another way to find relevances: a gamma for each feature by gradients of PRESS, alpha of a plain fit.

    With A = K + alpha I, B its inverse and centered targets y, left-out residuals are r = By / diag B. The best
    gammas on the way down are those with the least squared error on a fifth of the rows that had no part in them.
    """

    def __init__(self, make: Any) -> None:
        self.make = make

    def fit(self, X: Array, y: Array) -> Any:
        plain = self.make("rbf", random_state=0).fit(X, y)
        self.X, self.Y, self.alpha = X, centered_targets(plain, y), plain.alpha_
        order = np.random.default_rng(0).permutation(len(y))
        self.held, self.used = np.split(order, [len(y) // 5])
        start = np.full(X.shape[1], np.log(plain.gamma_))
        self.best = (np.inf, np.exp(start))
        scipy.optimize.minimize(self.press, start, jac=True, method="L-BFGS-B", options={"maxiter": 50})
        return self.make(RBF(gamma=self.best[1].tolist()), random_state=0).fit(X, y)

    def press(self, logs: Array) -> tuple[float, Array]:
        """PRESS of the rows that are used, and its gradient with respect to log gamma (d,)."""
        gamma = np.exp(np.clip(logs, -30.0, 10.0))
        X, Y = self.X[self.used], self.Y[self.used]
        K = RBF(gamma=gamma.tolist()).block(X, X)
        B = scipy.linalg.cho_solve(scipy.linalg.cho_factor(K + self.alpha * np.eye(len(K))), np.eye(len(K)))
        C = B @ Y
        lengths = np.diag(B)[:, None]
        R = C / lengths
        new = RBF(gamma=gamma.tolist()).block(self.X[self.held], X) @ C
        self.best = min(self.best, (float(np.sum((self.Y[self.held] - new) ** 2)), gamma), key=lambda b: b[0])
        U = 2.0 * R / lengths
        W = ((B * (U * R).sum(axis=1)) @ B - (B @ U) @ C.T) * K
        W = 0.5 * (W + W.T)
        slope = 2.0 * (W.sum(axis=1) @ X**2 - np.einsum("il,il->l", X, W @ X))
        return float(np.sum(R**2)), -gamma * slope


def measured(
    folder: Path, name: str, seed: int, rows: int, method: str, scaled: bool
) -> tuple[float, float, float]:
    """Error in % and log-loss, or the root mean squared error and 1 - R², and seconds."""
    X, y, X_test, y_test = read(folder, name, seed, rows)
    classes = name in CLASSIFICATION
    model = (classifiers() if classes else regressors())[method]
    scaler = StandardScaler(with_mean=scaled, with_std=scaled).fit(X)
    return figures(model, scaler.transform(X), y, scaler.transform(X_test), y_test, classes=classes)


def figures(
    model: Any, X: Any, y: Array, X_test: Any, y_test: Array, *, classes: bool
) -> tuple[float, float, float]:
    """Scores of new rows by a model fitted to others, real targets in units of their spread, and seconds."""
    if not classes:
        mean, spread = y.mean(), y.std()
        y, y_test = (y - mean) / spread, (y_test - mean) / spread
    with threadpool_limits(1), warnings.catch_warnings():
        # Defaults in given units: what they warn of is what the table shows.
        warnings.simplefilter("ignore")
        start = time.perf_counter()
        fitted = model.fit(X, y)
        seconds = time.perf_counter() - start
        return *scores(fitted, X_test, y_test, classes=classes), seconds


def scores(fitted: Any, new: Any, y: Array, *, classes: bool) -> tuple[float, float]:
    """Error in % and log-loss of new rows, or the root mean squared error in units of their spread and 1 - R²."""
    if classes:
        P = np.clip(fitted.predict_proba(new), 1e-12, 1.0)
        P /= P.sum(axis=1, keepdims=True)
        wrong = 100.0 * float(np.mean(np.ravel(fitted.predict(new)) != y))
        return wrong, log_loss(y, P, labels=fitted.classes_)
    error = float(np.mean((fitted.predict(new) - y) ** 2) / np.var(y))
    return error**0.5, error


class Store:
    """Single figures, kept in a file if there is a path: (set, --rows, split, method) -> three numbers."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.found: dict[tuple[str, int, int, str], list[float]] = {}
        if path is not None and path.exists():
            with path.open(newline="") as lines:
                self.found = {
                    (name, int(rows), int(seed), how): list(map(float, v))
                    for name, rows, seed, how, *v in csv.reader(lines)
                }

    def add(self, key: tuple[str, int, int, str], figures: tuple[float, float, float]) -> None:
        words = [f"{value:.5g}" for value in figures]
        # As they will be read: differences between methods must not come from rounding.
        self.found[key] = list(map(float, words))
        if self.path is not None:
            with self.path.open("a", newline="") as lines:
                csv.writer(lines).writerow([*key, *words])


def compare(
    folder: Path,
    names: list[str],
    methods: list[str],
    rows: int,
    splits: int,
    jobs: int,
    store: Store,
    *,
    scaled: bool,
) -> Array:
    """Figures (sets, methods, splits, 3), those that are missing measured; prints a line for each set."""
    found = []
    for name in names:
        tasks = [(name, rows, seed, method) for method in methods for seed in range(splits)]
        missing = [task for task in tasks if task not in store.found]
        run = Parallel(jobs, return_as="generator")(
            delayed(measured)(folder, name, seed, rows, method, scaled) for _, _, seed, method in missing
        )
        for task, values in zip(missing, run):
            store.add(task, values)
        figures = np.array([store.found[task] for task in tasks]).reshape(len(methods), splits, 3)
        found.append(figures)
        print("  " + " ".join(line(name, figures)), flush=True)
    return np.array(found)


def line(name: str, figures: Array) -> list[str]:
    """The first figure of every method, then the second, then seconds, as means over splits."""
    mean = figures.mean(axis=1)
    digits = ".1f" if name in CLASSIFICATION else ".3f"
    formats = (digits, ".3f", ".1f")
    return [name, *(f"{value:{form}}" for values, form in zip(mean.T, formats) for value in values)]


def summary(found: Array, methods: list[str], units: tuple[str, ...]) -> str:
    """Mean ranks, ratios and scores, and on how many sets a method is worse than the first by a standard error."""
    rows = []
    for k, unit in enumerate(units[:2]):
        mean = found[..., k].mean(axis=2)
        rank = ranks(found[..., k])
        ratio = np.log(np.maximum(mean, 1e-6) / np.maximum(mean[:, :1], 1e-6))
        worst, best = mean.max(axis=1, keepdims=True), mean.min(axis=1, keepdims=True)
        score = (worst - mean) / np.where(worst > best, worst - best, 1.0)
        worse = surely_worse(found[..., k])
        for j, method in enumerate(methods):
            ratio_, score_ = np.exp(ratio[:, j].mean()), with_error(score[:, j])
            rows.append([unit, method, with_error(rank[:, j]), f"{ratio_:.3f}", score_, int(worse[:, j].sum())])
    seconds = found[..., 2].mean(axis=2)
    for method, times in zip(methods, (seconds / seconds[:, :1]).T):
        rows.append(["s, median ratio", method, "", f"{np.median(times):.2f}", "", ""])
    of = f"sets worse than {methods[0]}, of {len(found)}"
    return table(rows, ["figure", "method", "mean rank", f"mean ratio to {methods[0]}", "mean score", of])


def surely_worse(figures: Array) -> Array:
    """Where (sets, methods) figures (sets, methods, splits) are above the first by more than a standard error.

    That of the paired differences over splits; of one split, any difference counts.
    """
    difference = figures - figures[:, :1]
    splits = figures.shape[2]
    error = difference.std(axis=2, ddof=1) / splits**0.5 if splits > 1 else 0.0
    return np.asarray(difference.mean(axis=2) > error)


def ranks(figures: Array) -> Array:
    """Ranks (sets, methods) of means over splits of figures (sets, methods, splits)."""
    return np.array([rankdata(values) for values in figures.mean(axis=2)])


def with_error(values: Array) -> str:
    """Mean and standard error over sets."""
    spread = values.std(ddof=1) / len(values) ** 0.5 if len(values) > 1 else 0.0
    return f"{values.mean():.2f} ± {spread:.2f}"


def draw(panels: list[tuple[str, list[str], Array]], path: Path) -> None:
    """A panel for each figure: mean ranks of methods with standard errors over sets, the best on top."""
    figure, axes = plt.subplots(1, len(panels), figsize=(3.6 * len(panels), 3.4), layout="constrained")
    for ax, (title, methods, rank) in zip(np.ravel(axes), panels):
        mean, error = rank.mean(axis=0), rank.std(axis=0, ddof=1) / len(rank) ** 0.5
        order = np.argsort(-mean)
        ours = np.isin(np.array(methods)[order], OURS)
        for y, (j, own) in enumerate(zip(order, ours)):
            ax.errorbar(mean[j], y, xerr=error[j], fmt="o", capsize=3, color="C0" if own else "0.5")
        ax.set_yticks(range(len(order)), np.array(methods)[order])
        ax.set(title=title, xlabel=f"mean rank over {len(rank)} sets")
        ax.grid(axis="x", alpha=0.3)
    figure.savefig(path, dpi=110)


def honesty(draws: int, jobs: int) -> str:
    """Left-out accuracy in %, of the best choice and of choices made anew, where labels are noise or not."""

    def drawn(n: int, d: int, seed: int, signal: bool) -> list[float]:
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(n + 2000, d))
        y = rng.integers(2, size=n + 2000)
        if signal:
            y = (np.sin(2.0 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.5 * rng.normal(size=len(y)) > 0).astype(int)
        plain = KernelFisherClassifier("rbf", random_state=0).fit(X[:n], y[:n])
        model = KernelFisherClassifier("rbf", relevance="diagonal", random_state=0).fit(X[:n], y[:n])
        found = plain.loo_score_, model.loo_score_, model.nested_score(), model.score(X[n:], y[n:])
        return [100.0 * float(value) for value in found]

    rows = []
    for n, d, signal in (
        (100, 10, False),
        (100, 100, False),
        (500, 10, False),
        (500, 100, False),
        (300, 50, True),
    ):
        found = np.array(Parallel(jobs)(delayed(drawn)(n, d, seed, signal) for seed in range(draws)))
        error = found.std(axis=0, ddof=1) / draws**0.5
        name = f"{n} rows, {'3 of ' if signal else 'noise, '}{d} features"
        rows.append([name, *(f"{v:.1f} ± {e:.1f}" for v, e in zip(found.mean(axis=0), error))])
        print("  " + "  ".join(rows[-1]), flush=True)
    return table(rows, ["labels", "plain, best", "relevance, best", "relevance, anew", "relevance, new rows"])


def million(n: int, m: int) -> str:
    """Seconds of a fit with m centers to n rows of 28 features, of which four matter."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 28)).astype(np.float32)
    y = (np.sin(2.0 * X[:, 0]) + X[:, 1] * X[:, 2] + X[:, 3] + rng.normal(size=n) > 0.0).astype(int)
    plain = KernelFisherClassifier("rbf", centers=m, random_state=0)
    known = KernelFisherClassifier(RBF(gamma=1.0 / 28), centers=m, alpha=1.0, random_state=0)
    learned = KernelFisherClassifier("rbf", relevance="diagonal", centers=m, random_state=0)
    new = rng.normal(size=(10_000, 28)).astype(np.float32)
    truth = np.sin(2.0 * new[:, 0]) + new[:, 1] * new[:, 2] + new[:, 3] > 0.0
    rows = []
    for name, model in (("kernel and alpha given", known), ("default", plain), ("relevance", learned)):
        seconds = timed(partial(model.fit, X, y))
        rows.append([name, f"{seconds:.0f}", f"{100.0 * np.mean(model.predict(new) != truth):.1f}"])
    return table(rows, [f"{n} rows, {m} centers", "s", "wrong side of the true boundary, %"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder with ida/, small_uci/, madelon/, regression/, ...")
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--sets", nargs="+", help="some of them; default: all")
    parser.add_argument("--methods", nargs="+", help="some of them; default: all")
    parser.add_argument("--scaled", action="store_true")
    parser.add_argument("--store", type=Path, help="file of single figures")
    parser.add_argument("--picture", type=Path, help="file of a picture of mean ranks")
    parser.add_argument("--million", action="store_true")
    parser.add_argument("--honesty", action="store_true")
    parser.add_argument("--draws", type=int, default=30)
    args = parser.parse_args()
    print(heading(), flush=True)
    if args.honesty:
        print(honesty(args.draws, args.jobs), flush=True)
    if args.million:
        print(million(1_000_000, 1000), flush=True)
    store, panels = Store(args.store), []
    for every, models, units in (
        (CLASSIFICATION, classifiers(), ("error %", "log-loss", "s")),
        (REGRESSION, regressors(), ("RMSE", "1 - R²", "s")),
    ):
        names = [name for name in every if args.sets is None or name in args.sets]
        usual = [method for method in models if method in (SCALED if args.scaled else DEFAULTS)]
        methods = usual if args.methods is None else [method for method in models if method in args.methods]
        if not args.data or not names:
            continue
        found = compare(args.data, names, methods, args.rows, args.splits, args.jobs, store, scaled=args.scaled)
        header = ["set", *(f"{unit} {method}" for unit in units for method in methods)]
        print(table([line(name, figures) for name, figures in zip(names, found)], header), end="\n\n")
        print(summary(found, methods, units), end="\n\n", flush=True)
        shown = units[:2] if every is CLASSIFICATION else units[:1]
        panels += [(unit, methods, ranks(found[..., k])) for k, unit in enumerate(shown)]
    if args.picture and panels:
        draw(panels, args.picture)


if __name__ == "__main__":
    main()
