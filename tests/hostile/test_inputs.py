"""Whatever is passed in, a fit obeys the laws or is refused on purpose, in words that say what to do.

Each case is an estimator with a few odd parameters, and rows, targets and weights to which something may have
happened. Refused on purpose means: by a line with ``raise`` in this library, or by scikit-learn's checks.
"""

import datetime
import linecache
import pickle
import traceback
import warnings
from contextlib import contextmanager

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from hypothesis import event, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from mercer import (
    KernelFisherClassifier,
    KernelMachineClassifier,
    KernelMachineRegressor,
    KernelRidgeRegressor,
    OnlineFisherClassifier,
    OnlineKernelRegressor,
    PairwiseClassifier,
    SparseFisherClassifier,
    SparseKernelRegressor,
)
from mercer.errors import MercerError
from mercer.kernels import RBF, Laplacian, Linear, Matern, Normalized, Polynomial

CASES = settings(settings.get_profile("hostile"))
NUMBERS = [
    0,
    1,
    -1,
    0.5,
    1e-300,
    1e-12,
    1e12,
    1e300,
    np.nan,
    np.inf,
    True,
    None,
    "loo",
    "x",
    np.float32(0.1),
    [1.0],
]
KERNELS = [
    *("rbf", "linear", "poly", "laplacian", "matern", "sigmoid", "cosine", "precomputed", "nothing", 3, None),
    *(RBF(gamma=g) for g in (1e-12, 1e-3, 1.0, 1e6, 0.0, -1.0, np.nan, "median", "scale", [0.1, 1.0], "x")),
    *(Polynomial(degree=p, coef0=c) for p, c in ((1, 0.0), (3, 1.0), (9, 1.0), (0, 1.0), (2.5, 1.0), (3, -1.0))),
    Linear() + RBF(gamma=0.5),
    Normalized(Polynomial(degree=2)),
    1e-200 * RBF(gamma=0.5),
    Laplacian(gamma="loo") * Linear(),
    Matern(nu=2.5),
]
CENTERS = ["auto", "all", 1, 2, 5, 100, 0, -1, 2.5, True, "x", np.zeros((2, 1)), np.zeros((0, 2))]
CLASSES = {
    "priors": [[0.5, 0.5], [1.0, 0.0], [np.nan, 1.0], [0.2, 0.3, 0.5], [1.0], "x", 0.5],
    "class_weight": ["balanced", {0: 1.0, 1: 5.0}, {0: np.inf, 1: 1.0}, {0: 0.0, 1: 1.0}, {"a": 1.0}, "x", 3],
    "criterion": ["log_loss", "error", "squared", "x", None],
    "threshold": ["least_squares", "equal_error", "soft_margin", "error", "x", 0.5],
    "calibration": ["gaussian", "isotonic", "x", None],
}
LARGE = {"centers": CENTERS, "cv": [2, 3, 100, 1, "x"], "loo_rows": [2, 10, 1, None, 0.5], "max_memory": NUMBERS}
SPARSE = {
    "max_centers": [1, 3, 1000, 0, -1, 1.5],
    "selection": ["residual", "orthogonal", "x"],
    "stop": ["gcv", "bic", "residual", "improvement", None, "x"],
    "tol": NUMBERS,
    "prune": [True],
    "widths": [[0.5, 1.0, 2.0], [], [0.0], [np.nan], "x"],
}
MACHINE = {
    "loss": ["squared", "huber", "absolute", "epsilon_insensitive", "hinge", "squared_hinge", "pinball", "x"],
    "penalty": ["coef", "l1", "elastic_net", "x", None],
    "centers": CENTERS,
    "delta": NUMBERS,
    "epsilon": NUMBERS,
    "l1_ratio": NUMBERS,
    "max_memory": NUMBERS,
}
ONLINE = {"nu": NUMBERS, "max_centers": [1, 3, 0, -1, 2.5, None], "decay": NUMBERS, "window": [1, 5, 0, None]}
COMMON = {"kernel": KERNELS, "alpha": NUMBERS, "penalty": ["coef", "x", None]}
PARAMETERS = {
    KernelFisherClassifier: {**COMMON, **CLASSES, **LARGE, "n_components": [1, 2, 0, 9, 1.5]},
    KernelRidgeRegressor: {**COMMON, **LARGE, "fit_intercept": [False]},
    KernelMachineClassifier: {**COMMON, **CLASSES, **MACHINE},
    KernelMachineRegressor: {**COMMON, **MACHINE, "quantile": [0.1, [0.2, 0.8], 0.0, [], "x"]},
    SparseFisherClassifier: {**COMMON, **CLASSES, **SPARSE},
    SparseKernelRegressor: {**COMMON, **SPARSE},
    OnlineFisherClassifier: {"kernel": KERNELS, "alpha": NUMBERS, **ONLINE, "calibration": ["isotonic", "x"]},
    OnlineKernelRegressor: {"kernel": KERNELS, "alpha": NUMBERS, **ONLINE},
    PairwiseClassifier: {"coupling": ["odds", "x"]},
}
SCALES = [1e-300, 1e-200, 1e-30, 1e-8, 1e3, 1e8, 1e30, 1e150, 1e200]


def scaled(X, rng, draw):
    return X * draw(st.sampled_from(SCALES))


def moved(X, rng, draw):
    return X + draw(st.sampled_from([1e3, 1e6, 1e12, 1e200]))


def one_wide_column(X, rng, draw):
    return X * np.where(np.arange(X.shape[1]) == 0, draw(st.sampled_from(SCALES)), 1.0)


def one_far_row(X, rng, draw):
    return np.vstack([X[:-1], X[-1:] * draw(st.sampled_from(SCALES))])


def constant(X, rng, draw):
    return X * (np.arange(X.shape[1]) > 0)


def all_equal(X, rng, draw):
    return np.repeat(X[:1], len(X), axis=0)


def copies(X, rng, draw):
    return X[rng.integers(max(1, len(X) // 3), size=len(X))]


def with_value(X, rng, draw):
    X = X.copy()
    X[rng.integers(len(X)), rng.integers(X.shape[1])] = draw(st.sampled_from([np.nan, np.inf, -np.inf, 5e-324]))
    return X


def masked(X, rng, draw):
    return np.ma.MaskedArray(X, mask=rng.random(np.shape(X)) < draw(st.sampled_from([0.0, 0.2])))


def of_type(X, rng, draw):
    kind = draw(
        st.sampled_from([np.float32, np.float16, np.int64, np.uint8, bool, object, complex, "U", "M8[s]", "S"])
    )
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return np.asarray(X).astype(np.int64).astype(kind) if kind == "M8[s]" else np.asarray(X).astype(kind)


def frame(X, rng, draw):
    table = pd.DataFrame(X, index=rng.permutation(len(X)))
    table.columns = table.columns.astype(str) if draw(st.booleans()) else ["a"] * table.shape[1]
    return table.convert_dtypes() if draw(st.booleans()) else table


def sparse(X, rng, draw):
    kind = draw(st.sampled_from(["csr_matrix", "csc_matrix", "coo_matrix", "csr_array", "lil_matrix"]))
    return getattr(scipy.sparse, kind)(np.where(X > 0, X, 0.0))


def as_list(X, rng, draw):
    return X.tolist()


def ragged(X, rng, draw):
    return [row[: 1 + i % 2] for i, row in enumerate(X.tolist())]


def in_order(X, rng, draw):
    return np.asfortranarray(X)[::-1] if draw(st.booleans()) else np.lib.stride_tricks.as_strided(X)


def of_shape(X, rng, draw):
    shapes = [X[:0], X[:1], X[:2], X[:, :0], X[:, 0], X[None], X[:, :, None], X[0, 0], np.repeat(X, 40, axis=1)]
    return draw(st.sampled_from(shapes))


NUMERIC = [scaled, moved, one_wide_column, one_far_row, constant, all_equal, copies, with_value]
CONTAINERS = [masked, of_type, frame, sparse, as_list, ragged, in_order, of_shape]


def class_labels(n, rng, draw):
    y = np.resize(np.arange(draw(st.integers(1, 5))), n)
    names = np.array(["a", "b", "*/ c", "d\n", "é"], dtype=object)
    kinds = {
        "numbers": y,
        "names": names[y],
        "fixed": names[y].astype("U"),
        "bytes": names[y % 2].astype("S"),
        "truth": y > 0,
        "floats": y.astype(float),
        "far": y * 2**62,
        "negative": -y,
        "column": y[:, None],
        "alone": np.where(np.arange(n) == 0, 7, y),
        "real": rng.normal(size=n),
        "every row its own": np.arange(n),
        "nan": np.where(np.arange(n) == 1, np.nan, y),
        "none": np.where(np.arange(n) == 1, None, names[y]),
        "mixed": np.where(np.arange(n) % 2 == 1, 1, names[y]),
        "dates": np.datetime64("2020-01-01") + y,
        "objects": np.array([datetime.date(2020, 1, 1 + int(i)) for i in y], dtype=object),
        "category": pd.Series(names[y], dtype="category"),
        "nullable": pd.Series(y, dtype="Int64"),
        "nullable with none": pd.Series(y, dtype="Int64").mask(np.arange(n) == 1),
        "short": y[:-1],
        "several": np.column_stack([y, y]),
        "list": y.tolist(),
        "masked": np.ma.MaskedArray(y, mask=np.arange(n) == 1),
    }
    return kinds[draw(st.sampled_from(["numbers"] * 8 + list(kinds)))]


def real_targets(n, rng, draw):
    y = rng.normal(size=n)
    kinds = {
        "numbers": y,
        "constant": np.ones(n),
        "scaled": y * draw(st.sampled_from(SCALES)),
        "moved": y + 1e9,
        "whole": np.arange(n),
        "truth": y > 0,
        "single": y.astype(np.float32),
        "two": np.column_stack([y, -y]),
        "cube": y[:, None, None],
        "nan": np.where(np.arange(n) == 1, np.nan, y),
        "inf": np.where(np.arange(n) == 1, np.inf, y),
        "names": np.resize(["a", "b"], n),
        "objects": y.astype(object),
        "dates": np.datetime64("2020-01-01") + np.arange(n),
        "complex": y + 1j,
        "short": y[:-1],
        "series": pd.Series(y),
        "masked": np.ma.MaskedArray(y, mask=np.arange(n) == 1),
        "none": None,
    }
    return kinds[draw(st.sampled_from(["numbers"] * 8 + list(kinds)))]


def row_weights(n, rng, draw):
    w = rng.uniform(0.1, 2.0, n)
    kinds = {
        "none": None,
        "real": w,
        "counts": rng.integers(0, 4, n),
        "large counts": rng.integers(500, 1500, n),
        "huge": w * 1e300,
        "tiny": w * 1e-300,
        "zeros": np.zeros(n),
        "one row": (np.arange(n) == 0).astype(float),
        "negative": -w,
        "nan": np.where(np.arange(n) == 1, np.nan, w),
        "inf": np.where(np.arange(n) == 1, np.inf, w),
        "short": w[:-1],
        "table": np.column_stack([w, w]),
        "names": np.resize(["a", "b"], n),
        "truth": w > 1.0,
        "number": 2.0,
        "wide": np.where(np.arange(n) == 1, 1e18, 1.0),
        "masked": np.ma.MaskedArray(w, mask=np.arange(n) == 1),
    }
    return kinds[draw(st.sampled_from(["none"] * 10 + list(kinds)))]


@st.composite
def cases(draw):
    """An estimator, rows, targets, weights."""
    cls = draw(st.sampled_from(list(PARAMETERS)))
    names = draw(st.lists(st.sampled_from(sorted(PARAMETERS[cls])), max_size=2, unique=True))
    chosen = {name: draw(st.sampled_from(PARAMETERS[cls][name])) for name in names}
    if "random_state" in cls().get_params():
        chosen["random_state"] = 0
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, d = draw(st.integers(2, 40)), draw(st.integers(1, 4))
    X = rng.normal(size=(n, d))
    y = (class_labels if "Classifier" in cls.__name__ else real_targets)(n, rng, draw)
    with np.errstate(all="ignore"):
        for harm in draw(st.lists(st.sampled_from(NUMERIC), max_size=2)):
            X = harm(X, rng, draw)
        for harm in draw(st.lists(st.sampled_from(CONTAINERS), max_size=1)):
            X = harm(X, rng, draw)
    if chosen.get("kernel") == "precomputed" and draw(st.booleans()):
        X = np.exp(-rng.random((n, n))) if draw(st.booleans()) else np.eye(n)
    return cls(**chosen), X, y, row_weights(n, rng, draw)


def on_purpose(error):
    """Whether the error is an instruction, not an accident."""
    if isinstance(error, MercerError):
        return True
    if not isinstance(error, ValueError | TypeError | RuntimeWarning) or isinstance(error, np.linalg.LinAlgError):
        return False
    frames = traceback.extract_tb(error.__traceback__)
    last = frames[-1]
    raised = linecache.getline(last.filename, last.lineno).strip().startswith("raise")
    if raised and ("/mercer/" in last.filename or "/sklearn/" in last.filename):
        return len(str(error)) > 20
    # Tables that are none are refused by the conversion that scikit-learn asks for, infinite values by its sums.
    return any("/sklearn/utils/" in frame.filename for frame in frames)


@contextmanager
def no_accidents():
    """Warnings to the user are none; those of an operation on numbers are."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("ignore", UserWarning)
        warnings.simplefilter("ignore", FutureWarning)
        yield


def fitted(model, X, y, weight, count):
    """The model fitted, or None where it was refused on purpose."""
    given = {} if weight is None else {"sample_weight": weight}
    with no_accidents():
        try:
            model.fit(X, y, **given)
        except Exception as error:
            if not on_purpose(error):
                raise
            event("refused")
            count["refused"] += 1
            return None
    event("fitted")
    count["fitted"] += 1
    return model


def check_classifier(model, X):
    P, log_P = model.predict_proba(X), model.predict_log_proba(X)
    assert np.isfinite(P).all()
    assert (P >= 0).all()
    assert_allclose(P.sum(axis=1), 1.0, atol=1e-9)
    assert_array_equal(model.predict(X), model.classes_[P.argmax(axis=1)])
    assert not np.isnan(log_P).any()
    assert not np.isnan(model.decision_function(X)).any()
    if hasattr(model, "loo_score_"):
        assert 0.0 <= model.loo_score_ <= 1.0
        assert 0.0 <= expected_score(model) <= 1.0
        assert np.isfinite(model.loo_proba_).all()


def expected_score(model):
    """The nested score, where the rows for it are at hand."""
    known = model._fitted.nested is not None or not model._fitted.chooses
    return model.nested_score() if known else model.loo_score_


def check_regressor(model, X):
    assert np.isfinite(model.predict(X)).all()
    if hasattr(model, "loo_score_"):
        assert np.isfinite(model.loo_prediction_).all()
        assert np.isfinite([model.loo_score_, expected_score(model)]).all()
        assert max(model.loo_score_, expected_score(model)) <= 1.0


@pytest.mark.slow
@given(case=cases())
@CASES
def test_a_fit_obeys_the_laws_or_is_refused_on_purpose(case, count):
    model, X, y, weight = case
    model = fitted(model, X, y, weight, count)
    if model is None:
        return
    with no_accidents():
        (check_classifier if hasattr(model, "classes_") else check_regressor)(model, X)
        twin = pickle.loads(pickle.dumps(model))
        assert_array_equal(twin.predict(X), model.predict(X))
        if hasattr(model, "report_"):
            assert str(model.report_)


@pytest.mark.slow
@pytest.mark.parametrize("cls", [KernelFisherClassifier, KernelRidgeRegressor], ids=lambda cls: cls.__name__)
@given(case=cases(), seed=st.integers(0, 2**32 - 1))
@CASES
def test_odd_rows_to_predict_get_finite_answers_or_are_refused(cls, case, seed, count):
    _, X, _, _ = case
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(20, 2))
    y = np.resize([0, 1, 2], 20) if cls is KernelFisherClassifier else rng.normal(size=20)
    model = cls(RBF(gamma=0.5), alpha=0.1).fit(rows, y)
    try:
        with no_accidents():
            (check_classifier if cls is KernelFisherClassifier else check_regressor)(model, X)
        count["answered"] += 1
    except Exception as error:
        if not on_purpose(error):
            raise
        count["not answered"] += 1
