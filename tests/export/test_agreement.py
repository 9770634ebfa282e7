"""Source code answers what its model answers: every estimator x kernel x calibration x number of classes."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.base import clone, is_classifier
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.preprocessing import StandardScaler

import mercer
from mercer import (
    KernelCCA,
    KernelFisherClassifier,
    KernelMachineClassifier,
    KernelMachineRegressor,
    KernelNoveltyDetector,
    KernelPCA,
    KernelRidgeRegressor,
    LPBoostClassifier,
    OnlineFisherClassifier,
    OnlineKernelRegressor,
    OrientedKernelPCA,
    PairwiseClassifier,
    SparseFisherClassifier,
    SparseKernelRegressor,
)
from mercer._scores.uncertainty.unexplained_variance import LEAST_TRUST
from mercer.datasets import make_banana
from mercer.errors import KernelError
from mercer.export import to_c, to_python
from mercer.kernels import (
    ANOVA,
    RBF,
    AllSubsets,
    InverseMultiquadric,
    Laplacian,
    Linear,
    Matern,
    Normalized,
    Polynomial,
    RankNormal,
    RationalQuadratic,
    Wendland,
)
from mercer.kernels._vectors.units import NormalScores

RBF1 = RBF(gamma=1.0)
# Agreement with the model; probabilities, and all else in units of what it is if that is larger.
DIGITS = 1e-9
EPS = np.finfo(float).eps
# Novelty at which the least share of the evidence counts.
NOTHING_KNOWN = -np.log(LEAST_TRUST)
PAGE = Path(__file__).parents[2] / "docs" / "reference" / "export.rst"
X, Y = make_banana(26, random_state=0)
NEW = make_banana(6, random_state=1)[0]
MORE, SIGNS = make_banana(150, random_state=0)
# Training rows, new rows, and rows so far away that kernel values vanish, or that powers of distances overflow.
ROWS = np.vstack([X[:2], NEW, *(scale * np.array([[1.0, -0.7]]) for scale in (5.0, 10.0, 30.0, 1e3, 1e6, 1e11))])

KERNELS = {
    "rbf": RBF(gamma=1.0),
    "rbf, relevances": RBF(gamma=[0.0, 0.7]),
    "laplacian": Laplacian(gamma=[0.5, 0.2]),
    "matern 0.5": Matern(0.5, gamma=0.5),
    "matern 1.5": Matern(1.5, gamma=0.5),
    "matern 2.5": Matern(2.5, gamma=0.5),
    "matern inf": Matern(np.inf, gamma=0.5),
    "wendland 0": Wendland(0, gamma=0.05, dimension=2),
    "wendland 1": Wendland(1, gamma=0.05, dimension=2),
    "wendland 2": Wendland(2, gamma=0.001, dimension=60),
    "polynomial": Polynomial(degree=3, gamma=0.5),
    "polynomial 9": Polynomial(degree=9, gamma=0.01),
    "linear": Linear(),
    "linear, origin": Linear(origin=[30.0, -20.0]),
    "normal scores": RankNormal(Laplacian(gamma=0.7), NormalScores.of(X, None)),
}
OTHER_KERNELS = [
    InverseMultiquadric(gamma=1.0),
    RationalQuadratic(gamma=1.0),
    Matern(1.0, gamma=1.0),
    ANOVA(1),
    AllSubsets(),
    Normalized(Polynomial(2)),
    2.0 * RBF(gamma=1.0),
    RBF(gamma=1.0) + Linear(),
    RBF(gamma=1.0) * Linear(),
    RBF(gamma=1.0) ** 2,
    "precomputed",
]
CALIBRATIONS = ("logistic", "gaussian", "quadratic", "isotonic")
CLASSES = (2, 3)
LOSSES = ("logistic", "squared", "huber", "absolute", "epsilon_insensitive", "hinge", "squared_hinge")
QUANTILES = [0.9, 0.1, 0.5, 0.45]


@dataclass(frozen=True)
class Case:
    """A model and its targets y; None: rows alone are fitted."""

    name: str
    model: Any
    y: Any
    rows: Any = field(default_factory=lambda: X)

    def fitted(self):
        return clone(self.model).fit(self.rows, self.y)


def labels(k):
    """Integers -1 and 1 for two classes, strings for three and four."""
    if k == 2:
        return Y
    third = np.where(X[:, 0] > 1.0, "c", np.where(Y > 0, "b", "a"))
    return third if k == 3 else np.where(X[:, 1] > 1.2, "d", third)


def curve():
    return X[:, 0] ** 2 + np.sin(3.0 * X[:, 1])


def targets():
    return np.column_stack([curve(), X[:, 1] ** 2])


def classifiers():
    """Families by name: a model with a kernel, and its calibrations."""
    return {
        "Fisher": (KernelFisherClassifier(alpha=0.1), CALIBRATIONS),
        "Machine": (KernelMachineClassifier(loss="squared", alpha=0.1), CALIBRATIONS),
        "Sparse": (SparseFisherClassifier(alpha=0.1, max_centers=8), CALIBRATIONS),
        "Online": (OnlineFisherClassifier(max_centers=12), ("logistic", "isotonic")),
    }


def class_cases(family):
    """The full product for one family; of the others, each kernel and calibration has one number of classes."""
    model, calibrations = classifiers()[family]
    for i, calibration in enumerate(calibrations):
        for j, (name, kernel) in enumerate(KERNELS.items()):
            for k in CLASSES if family == "Fisher" else (CLASSES[(i + j) % 2],):
                one = clone(model).set_params(kernel=kernel, calibration=calibration)
                yield Case(f"{family}, {calibration}, {k} classes, {name}", one, labels(k))


def machine_cases():
    rbf = RBF(gamma=1.0)
    for loss in LOSSES:
        model = KernelMachineClassifier(rbf, loss=loss, alpha=0.3)
        yield Case(f"Machine, {loss}, 3 classes", model, labels(3))
        for calibration in CALIBRATIONS:
            one = clone(model).set_params(calibration=calibration)
            yield Case(f"Machine, {loss}, {calibration}", one, labels(2))
        for penalty in ("coef", "l1", "elastic_net"):
            model = KernelMachineClassifier(rbf, loss=loss, penalty=penalty, alpha=0.5)
            yield Case(f"Machine, {loss}, {penalty}", model, labels(2))
    for loss in ("huber", "squared", "absolute", "epsilon_insensitive"):
        yield Case(f"Machine, {loss}", KernelMachineRegressor(rbf, loss=loss, alpha=0.3), curve())
    for quantile in (0.3, QUANTILES):
        model = KernelMachineRegressor(rbf, loss="pinball", alpha=0.01, quantile=quantile)
        yield Case(f"Machine, quantile {quantile}", model, curve())
    yield Case("Machine, quantile of two", clone(model).set_params(quantile=0.7), targets())


def other_class_cases():
    rbf = RBF(gamma=1.0)
    for calibration in CALIBRATIONS:
        fisher = KernelFisherClassifier(rbf, alpha=0.1, calibration=calibration)
        yield Case(f"Fisher, {calibration}, 4 classes", fisher, labels(4))
        some = clone(fisher).set_params(centers=12, random_state=0)
        yield Case(f"Fisher, {calibration}, centers", some, labels(3))
        for threshold in ("error", "least_squares"):
            cut = clone(fisher).set_params(threshold=threshold)
            yield Case(f"Fisher, {calibration}, threshold {threshold}", cut, labels(2))
    yield Case("Fisher, priors", clone(fisher).set_params(priors=[0.5, 0.2, 0.3]), labels(3))
    yield Case("Fisher, one direction", clone(fisher).set_params(n_components=1), labels(3))
    yield Case("Fisher, alpha chosen", KernelFisherClassifier(RBF(gamma="median")), labels(2))
    yield Case("Machine, alpha chosen", KernelMachineClassifier(RBF(gamma="median")), labels(2))
    many = np.where(MORE[:, 0] > 1.0, "c", np.where(SIGNS > 0, "b", "a"))
    for how in ({"widths": [0.2, 3.0]}, {"shared": False}):
        sparse = SparseFisherClassifier(rbf, max_centers=9, **how)
        yield Case(f"Sparse, {how}", sparse, many, MORE)


def value_cases():
    noise = [X + [0.1, 0.0]]
    for name, kernel in KERNELS.items():
        for family, model, y in (
            ("Ridge", KernelRidgeRegressor(kernel, alpha=0.1), targets()),
            ("Sparse", SparseKernelRegressor(kernel, alpha=0.1, max_centers=8), curve()),
            ("Online", OnlineKernelRegressor(kernel, max_centers=12), targets()),
            ("Machine", KernelMachineRegressor(kernel, loss="squared", alpha=0.1), curve()),
            ("PCA", KernelPCA(2, kernel=kernel), None),
            ("Oriented PCA", OrientedKernelPCA(2, kernel=kernel, noise=noise), None),
            ("Detector, ball", KernelNoveltyDetector(kernel, rate=0.2), None),
            ("Detector, plane", KernelNoveltyDetector(kernel, form="plane", rate=0.2), None),
        ):
            yield Case(f"{family}, {name}", model, y)
    yield Case("Sparse, two widths", SparseKernelRegressor(RBF(gamma=1.0), widths=[0.2, 3.0]), targets())
    yield Case("Sparse, own centers", SparseKernelRegressor(RBF(gamma=1.0), shared=False), targets())
    yield Case("Ridge, no intercept", KernelRidgeRegressor(RBF(gamma=1.0), fit_intercept=False), curve())


GROUPS = {
    **{family: list(class_cases(family)) for family in classifiers()},
    "losses": list(machine_cases()),
    "other classifiers": list(other_class_cases()),
    "values": list(value_cases()),
}


def refused():
    """Fitted models of all other estimators, and of other kernels on vectors, by the name that the error gives."""
    for kernel in OTHER_KERNELS:
        rows = Linear().block(X, X) if isinstance(kernel, str) else X
        name = "Precomputed" if isinstance(kernel, str) else type(kernel).__name__
        yield name, KernelRidgeRegressor(kernel, alpha=1.0).fit(rows, curve())
        yield name, SparseFisherClassifier(kernel, alpha=1.0, max_centers=5).fit(rows, labels(2))
    yield "KernelCCA", KernelCCA(kernel=RBF(gamma=1.0), alpha=0.1).fit(X, X[:, :1])
    yield "LPBoostClassifier", LPBoostClassifier().fit(X, labels(2))
    yield "PairwiseClassifier", PairwiseClassifier(KernelFisherClassifier(alpha=0.1)).fit(X, labels(3))


def size_of(model):
    """Numbers of outputs and of probabilities."""
    if is_classifier(model):
        return len(model.classes_) - 1, len(model.classes_)
    return np.asarray(model.intercept_).size, 0


def outputs_of(model, X):
    """What the function outputs stands for: log-odds against the first class, predictions, scores."""
    if is_classifier(model):
        logs = model.predict_log_proba(X)
        return logs[:, 1:] - logs[:, :1]
    answer = next(
        getattr(model, name) for name in ("decision_function", "predict", "transform") if hasattr(model, name)
    )
    return answer(X).reshape(len(X), -1)


def unit_of(model, X, outputs):
    """What errors of outputs are compared with: the outputs, or terms whose rounding errors are larger."""
    unit = np.maximum(1.0, np.abs(outputs))
    if isinstance(model, KernelNoveltyDetector):
        terms = np.abs(model.kernel_.block(X, model.X_fit_)) @ np.abs(model.dual_coef_)
        unit = np.maximum(unit, 1e-5 * terms[:, None])
    return unit


def differences(found, model, X):
    """The largest difference of each answer, in units of what is allowed; labels: one where they differ."""
    outputs = outputs_of(model, X)
    apart = {"outputs": np.abs(found.outputs - outputs) / unit_of(model, X, outputs)}
    parts = {"predict"} if isinstance(model, KernelNoveltyDetector) else set()
    if is_classifier(model):
        parts = {"probabilities", "predict"}
        apart["probabilities"] = np.abs(found.parts["probabilities"] - model.predict_proba(X))
        apart["predict"] = model.classes_[found.parts["predict"][:, 0].astype(int)] != model.predict(X)
    elif parts:
        apart["predict"] = found.parts["predict"][:, 0] != model.predict(X)
    if getattr(model, "unexplained_variance_", None) is not None:
        parts.add("novelty")
        # Beyond, next to nothing is known, which is a difference of larger numbers, and nothing follows from it.
        ours, theirs = (
            np.minimum(each, NOTHING_KNOWN) for each in (found.parts["novelty"][:, 0], model.novelty(X))
        )
        # A variance that is small is the difference of numbers near 1.
        apart["novelty"] = np.abs(ours - theirs) * np.minimum(1.0, DIGITS / EPS * np.exp(theirs) / 100.0)
    assert set(found.parts) == parts
    return {name: float(np.max(values)) / DIGITS for name, values in apart.items()}


def disagreements(models, X, run_c, run_python, **choices):
    """Answers of compiled and of plain source that differ from those of the models, by language and name."""
    sizes = [size_of(model) for model in models.values()]
    headers = [to_c(model, name=f"case_{i}", **choices) for i, model in enumerate(models.values())]
    sources = [to_python(model, **choices) for model in models.values()]
    found = {"C": run_c(headers, X, sizes), "Python": run_python(sources, X, sizes)}
    return {
        (language, name, part): apart
        for language, answers in found.items()
        for answer, (name, model) in zip(answers, models.items())
        for part, apart in differences(answer, model, X).items()
        if not apart <= 1.0
    }


@pytest.mark.slow
@pytest.mark.parametrize("group", GROUPS)
def test_source_answers_as_the_model_does(group, run_many_c, run_many_python):
    models = {case.name: case.fitted() for case in GROUPS[group]}
    assert len(models) == len(GROUPS[group])
    assert disagreements(models, ROWS, run_many_c, run_many_python) == {}


@pytest.mark.slow
@pytest.mark.parametrize("load", [load_iris, load_wine, load_breast_cancer])
def test_models_of_real_rows_with_everything_chosen_are_exported(load, run_many_c, run_many_python):
    rows, y = load(return_X_y=True)
    rows = StandardScaler().fit_transform(rows)[::3]
    models = {"Fisher": KernelFisherClassifier(random_state=0).fit(rows, y[::3])}
    X = np.vstack([rows[::4], 4.0 * rows[::16], 100.0 * rows[::16]])
    assert disagreements(models, X, run_many_c, run_many_python) == {}


@pytest.mark.slow
def test_other_estimators_and_kernels_are_refused_by_name():
    models = list(refused())
    for export in (to_c, to_python):
        for name, model in models:
            with pytest.raises((KernelError, TypeError), match=rf"{name}.* cannot be exported[:;] .*\w"):
                export(model)


@pytest.mark.slow
def test_the_page_tells_how_many_cases_agree_and_are_refused():
    text = PAGE.read_text()
    assert f"{sum(map(len, GROUPS.values()))} cases agree" in text
    assert f"{len(list(refused()))} are refused" in text


@pytest.mark.slow
def test_every_public_estimator_is_among_the_cases():
    shown = {type(case.model).__name__ for group in GROUPS.values() for case in group}
    shown |= {name for name, _ in refused()}
    assert {name for name in mercer.__all__ if hasattr(getattr(mercer, name), "fit")} <= shown


def test_without_moderation_as_much_as_usual_is_known_of_every_row(run_many_c, run_many_python):
    model = KernelFisherClassifier(RBF1, alpha=0.1).fit(X, labels(3))
    assert len(to_c(model, moderated=False)) < 0.5 * len(to_c(model))
    model.unexplained_variance_ = None
    assert disagreements({"Fisher": model}, ROWS, run_many_c, run_many_python, moderated=False) == {}


def test_a_model_in_single_precision_is_exported_to_the_digits_that_it_has(run_many_c):
    model = KernelFisherClassifier(RBF1, alpha=0.1).fit(X.astype(np.float32), labels(2))
    (found,) = run_many_c([to_c(model, name="case_0")], ROWS, [(1, 2)])
    # Rounding errors of float32, times the sum of the terms, about ten, and the slope of the calibration.
    assert_allclose(found.parts["probabilities"], model.predict_proba(ROWS.astype(np.float32)), atol=1e-4)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("model", [SparseFisherClassifier(RBF1, max_centers=5), KernelRidgeRegressor(RBF1)])
def test_the_header_is_cpp_as_well(model, run_c):
    model = clone(model).fit(X, labels(2))
    k = 2 if is_classifier(model) else 0
    found = run_c(to_c(model), ROWS, q=1, k=k, kind=int if k else None, language="cpp")
    assert_allclose(found.outputs, outputs_of(model, ROWS), rtol=1e-9, atol=1e-9)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("calibration", ["logistic", "quadratic", "isotonic"])
def test_a_moderated_header_is_cpp_as_well(calibration, run_c):
    model = KernelFisherClassifier(RBF1, alpha=0.1, calibration=calibration).fit(X, labels(3))
    found = run_c(to_c(model), ROWS, q=2, k=3, kind=str, language="cpp")
    assert_allclose(found.probabilities, model.predict_proba(ROWS), rtol=0, atol=1e-9)
    assert found.labels == model.predict(ROWS).tolist()


@pytest.mark.sampled(1)
@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.csr_array])
def test_models_fitted_on_sparse_rows_are_exported(kind, run_many_c, run_many_python):
    model = KernelFisherClassifier(RBF1, alpha=0.1).fit(kind(X), labels(2))
    assert disagreements({"Fisher": model}, ROWS, run_many_c, run_many_python) == {}


@pytest.mark.slow
def test_maps_of_every_kind_are_among_the_cases():
    some = [case for case in GROUPS["Fisher"] if case.name.endswith(" rbf")]
    models = [case.fitted() for case in (*some, *GROUPS["other classifiers"])]
    posteriors = [model.rule_.posterior for model in models]
    assert any(posterior.bend < np.inf for posterior in posteriors)
    assert any(len(p.slope) > 1 and p.bend < np.inf and p.slope[0, 1] != 0.0 for p in posteriors)
    assert any(len(posterior.slope) > 1 and posterior.curvature is not None for posterior in posteriors)
    assert any(len(posterior.curves) > 2 for posterior in posteriors)
    assert any(posterior.counted < 1.0 for posterior in posteriors)


@pytest.mark.slow
def test_squared_distances_may_overflow(run_many_c, run_many_python):
    models = {
        name: KernelFisherClassifier(kernel, alpha=0.1).fit(X, labels(2))
        for name, kernel in KERNELS.items()
        if "linear" not in name and "polynomial" not in name
    }
    far = np.array([[1e200, 0.0], [0.0, -1e300], [0.0, 0.0]])
    assert disagreements(models, far, run_many_c, run_many_python) == {}
