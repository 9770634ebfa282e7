"""Equal rows give equal models, to the bit: in every fit, however many threads there are, in every process."""

import os
import subprocess
import sys
from dataclasses import fields, is_dataclass

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone, is_classifier
from sklearn.tree import DecisionTreeClassifier
from sklearn.tree._tree import Tree
from threadpoolctl import threadpool_limits

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
from mercer._estimators.parameters import generator
from mercer.bounds import rademacher
from mercer.centers import ForwardSelection, KMeans, Leverage, RPCholesky, Uniform
from mercer.datasets import make_banana, make_words
from mercer.kernels import RBF, FisherKernel, WeightedSum
from mercer.sequences import HiddenMarkovClassifier

MODELS = {
    "every row a center": KernelFisherClassifier(),
    "centers": KernelFisherClassifier(centers=300),
    "singular values": KernelRidgeRegressor(penalty="coef"),
    "few rows": SparseFisherClassifier(max_centers=10),
}
# Everything that draws: folds, centers, first means, candidates.
DEFAULTS = [
    KernelCCA(centers=20),
    KernelFisherClassifier(),
    KernelFisherClassifier(centers=20),
    KernelFisherClassifier(relevance="diagonal"),
    KernelFisherClassifier(FisherKernel(size=2)),
    KernelFisherClassifier(WeightedSum({"a": RBF("median"), "b": RBF("scale")})),
    *(
        KernelRidgeRegressor(centers=kind(10))
        for kind in (ForwardSelection, KMeans, Leverage, RPCholesky, Uniform)
    ),
    KernelMachineClassifier(RBF("median"), loss="logistic", centers=20),
    KernelMachineRegressor(RBF("median"), loss="squared", centers=20),
    KernelNoveltyDetector(),
    KernelPCA(n_components=2, centers=20),
    LPBoostClassifier(DecisionTreeClassifier(max_depth=3, max_features=1)),
    OnlineFisherClassifier(),
    OnlineKernelRegressor(),
    OrientedKernelPCA(n_components=2, noise=np.negative, centers=20),
    PairwiseClassifier(SparseFisherClassifier()),
    SparseFisherClassifier(),
    SparseKernelRegressor(),
]
every_default = pytest.mark.parametrize("model", DEFAULTS, ids=lambda model: str(model)[:60])


@pytest.fixture(scope="module")
def rows():
    """More rows than fit into one strip of columns."""
    X = np.random.default_rng(5).normal(size=(700, 3))
    return X, (X[:, 0] * X[:, 1] + 0.3 * X[:, 2] > 0).astype(int)


def outputs(model):
    return [value for value in model._fitted.every.values() if isinstance(value, np.ndarray)]


def unlike(a, b, path="model"):
    """Where two objects differ, however little: paths to parts of them."""
    if type(a) is not type(b):
        return [path]
    if isinstance(a, np.ndarray) and a.dtype != object:
        return [] if a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes() else [path]
    parts = parts_of(a)
    if parts is None:
        return [] if a is b or a == b or a != a else [path]
    others = parts_of(b)
    if list(parts) != list(others):
        return [path]
    return [place for name in parts for place in unlike(parts[name], others[name], f"{path}.{name}")]


def parts_of(value):
    """What an object is made of, by name; None for one that is compared as a whole."""
    if isinstance(value, dict):
        return value
    if isinstance(value, list | tuple | np.ndarray):
        return dict(enumerate(value))
    if is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, Tree):
        return value.__getstate__()
    return vars(value) if hasattr(value, "__dict__") and not callable(value) else None


def views_of(model):
    """Rows of two classes, or of what the model takes."""
    X, y = make_banana(50, random_state=0)
    if isinstance(model, KernelCCA):
        return X, X[:, :1] + np.random.default_rng(1).normal(size=(50, 1))
    return X, y if is_classifier(model) else X[:, 0] * X[:, 1]


def test_no_estimator_is_forgotten():
    named = {getattr(mercer, name) for name in mercer.__all__}
    models = {kind for kind in named if isinstance(kind, type) and hasattr(kind, "fit")}
    assert models == {type(model) for model in DEFAULTS}


@pytest.mark.slow
@every_default
def test_equal_rows_give_equal_models_without_a_seed(model):
    rows = views_of(model)
    one, other = (clone(model).fit(*rows) for _ in range(2))
    assert unlike(vars(one), vars(other)) == []


@pytest.mark.slow
def test_no_seed_is_the_seed_zero():
    X, y = make_banana(40, random_state=0)
    one, other = (KernelFisherClassifier(centers=20, random_state=seed).fit(X, y) for seed in (None, 0))
    assert one.loo_score_ == other.loo_score_
    assert unlike(outputs(one), outputs(other)) == []


@pytest.mark.slow
def test_words_are_recognized_alike_without_a_seed():
    X, y = make_words(20, random_state=0)
    states = KernelFisherClassifier(RBF("median"), centers=10)
    one, other = (HiddenMarkovClassifier(states, n_states=2, n_rounds=0).fit(X, y) for _ in range(2))
    assert unlike(vars(one), vars(other)) == []


@pytest.mark.parametrize("n", [300, pytest.param(1200, marks=pytest.mark.slow)])
@pytest.mark.parametrize("made", [KernelFisherClassifier(), KernelRidgeRegressor()], ids=["classes", "values"])
def test_the_order_of_rows_changes_no_choice(made, n):
    """Beyond ten thousand rows it may: the sample is drawn by their numbers."""
    rng = np.random.default_rng(0)
    X, new = (rng.normal(size=(m, 3)) * [1.0, 100.0, 0.01] for m in (n, 50))
    f = np.sin(2.0 * X[:, 0]) + X[:, 1] / 100.0 + 0.3 * rng.normal(size=n)
    y, order = (f > 0.0) if is_classifier(made) else f, rng.permutation(n)
    one, other = clone(made).fit(X, y), clone(made).fit(X[order], y[order])
    assert str(one.kernel_) == str(other.kernel_)
    assert len(one.X_fit_) == len(other.X_fit_)
    assert_allclose([one.alpha_, one.loo_score_], [other.alpha_, other.loo_score_], rtol=1e-9)
    answers = [m.predict_proba(new) if is_classifier(m) else m.predict(new) for m in (one, other)]
    # Sums over rows are rounded in another order.
    assert_allclose(*answers, rtol=1e-7, atol=1e-9)


def test_a_seed_asks_for_other_draws():
    X, y = make_banana(50, random_state=0)
    models = [
        KernelFisherClassifier(RBF("median"), centers=Uniform(10), random_state=seed).fit(X, y) for seed in (0, 1)
    ]
    assert unlike(*(model.support_ for model in models)) != []
    stream = np.random.RandomState(0)
    assert generator(stream).random() != generator(stream).random()


@pytest.mark.slow
@pytest.mark.parametrize("model", [KernelFisherClassifier(centers=20), KernelRidgeRegressor(centers=20)])
def test_batches_and_removals_give_equal_models_without_a_seed(model):
    X, y = views_of(model)

    def followed():
        return clone(model).fit(X[:30], y[:30]).partial_fit(X[30:], y[30:]).remove(X[:10], y[:10])

    one, other = followed(), followed()
    assert unlike(one.predict(X), other.predict(X)) == []
    assert unlike(one.__getstate__(), other.__getstate__()) == []


def test_bounds_are_equal_without_a_seed():
    K = 1.0 + np.diag(np.arange(6.0))
    assert rademacher(K, 1.0) == rademacher(K, 1.0) == rademacher(K, 1.0, random_state=0)
    assert rademacher(K, 1.0) != rademacher(K, 1.0, random_state=1)


STRINGS = """
import hashlib, numpy as np
from mercer import KernelFisherClassifier
from mercer.kernels import BagOfWords, KmerSpectrum, Tanimoto
rng, digest = np.random.default_rng(0), hashlib.sha256()
words = ["".join(rng.choice(list("abcde"), 12)) for _ in range(30)]
y = [word.count("a") > 2 for word in words]
for kernel, rows in [
    (BagOfWords("char", (1, 2), topics=2), words),
    (KmerSpectrum(3), words),
    (Tanimoto(), [frozenset(word) for word in words]),
]:
    model = KernelFisherClassifier(kernel, centers=10).fit(rows, y)
    digest.update(model.predict_proba(rows).tobytes())
print(digest.hexdigest())
"""


@pytest.mark.slow
def test_the_order_of_hashes_does_not_matter():
    """Strings have other hashes in every process, and sets another order."""
    printed = {
        subprocess.run(
            [sys.executable, "-c", STRINGS],
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(printed) == 1


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_a_repeated_fit_is_the_same_whatever_the_number_of_threads(name, rows):
    fits = []
    for threads in (1, 2, 3):
        with threadpool_limits(threads, user_api="blas"):
            fits.append(outputs(MODELS[name].fit(*rows)))
    assert len(fits[0]) > 3
    for other in fits[1:]:
        for a, b in zip(fits[0], other, strict=True):
            assert_array_equal(a, b)


@pytest.mark.slow
def test_a_repeated_fit_is_the_same_on_a_busy_machine(rows):
    model = KernelFisherClassifier()
    with threadpool_limits(2, user_api="blas"):
        quiet = outputs(model.fit(*rows))
        busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2)]
        try:
            loaded = outputs(model.fit(*rows))
        finally:
            for process in busy:
                process.kill()
                process.wait()
    for a, b in zip(quiet, loaded, strict=True):
        assert_array_equal(a, b)
