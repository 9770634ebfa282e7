"""What users pass in goes through one gate: finite numbers, no masks, no dates as numbers, labels of one type."""

import re

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.utils import get_tags

from mercer import (
    KernelFisherClassifier,
    KernelRidgeRegressor,
    OnlineFisherClassifier,
    OnlineKernelRegressor,
    PairwiseClassifier,
    SparseFisherClassifier,
    SparseKernelRegressor,
)
from mercer.centers import KMeans, Leverage, RPCholesky, Uniform
from mercer.kernels import RBF, Linear, Matern, Polynomial, RationalQuadratic, Scaled, Sigmoid

N = 24
FIXED = {"kernel": RBF(gamma=0.5), "alpha": 1.0}

CLASSIFIERS = {
    "fisher": KernelFisherClassifier(**FIXED),
    "fisher with centers": KernelFisherClassifier(**FIXED, centers=5),
    "sparse": SparseFisherClassifier(**FIXED),
    "online": OnlineFisherClassifier(**FIXED),
    "pairwise": PairwiseClassifier(KernelFisherClassifier(**FIXED, centers=5)),
}
REGRESSORS = {
    "ridge": KernelRidgeRegressor(**FIXED),
    "ridge with centers": KernelRidgeRegressor(**FIXED, centers=5),
    "sparse": SparseKernelRegressor(**FIXED),
    "online": OnlineKernelRegressor(**FIXED),
}
every_classifier = pytest.mark.parametrize("model", CLASSIFIERS.values(), ids=CLASSIFIERS)
every_regressor = pytest.mark.parametrize("model", REGRESSORS.values(), ids=REGRESSORS)
every_model = pytest.mark.parametrize(
    "model", [*CLASSIFIERS.values(), *REGRESSORS.values()], ids=lambda model: type(model).__name__
)
streaming = pytest.mark.parametrize(
    "model", [KernelFisherClassifier(**FIXED, centers=5), KernelRidgeRegressor(**FIXED, centers=5)]
)


@pytest.fixture
def rows(rng, frozen):
    """X (24, 2) and labels 0 and 1, which are also targets."""
    y = np.arange(N) % 2
    return frozen(rng.normal(size=(N, 2)) + y[:, None]), frozen(y)


def masked(values, where=3):
    """A masked array with one entry masked, under which stands what would do no harm."""
    mask = np.zeros(np.shape(values), dtype=bool)
    mask[where] = True
    return np.ma.MaskedArray(values, mask)


PREDICTIONS = ("predict", "predict_proba", "predict_log_proba", "decision_function", "transform", "staged_predict")

# Numbers.

NOT_FINITE = [np.nan, np.inf, -np.inf, np.float32("nan"), np.array(np.nan)]
NO_NUMBERS = [True, np.False_, "0.5", [0.5], np.array([0.5, 0.5]), 1 + 0j]
NUMBERS = [
    (KernelFisherClassifier, "alpha"),
    (KernelFisherClassifier, "max_memory"),
    (KernelFisherClassifier, "loo_rows"),
    (KernelFisherClassifier, "n_components"),
    (KernelRidgeRegressor, "alpha"),
    (KernelRidgeRegressor, "max_memory"),
    (KernelRidgeRegressor, "loo_rows"),
    (SparseFisherClassifier, "alpha"),
    (SparseFisherClassifier, "tol"),
    (SparseFisherClassifier, "max_centers"),
    (SparseFisherClassifier, "n_candidates"),
    (SparseFisherClassifier, "max_memory"),
    (SparseKernelRegressor, "alpha"),
    (SparseKernelRegressor, "tol"),
    (SparseKernelRegressor, "max_memory"),
    (OnlineFisherClassifier, "alpha"),
    (OnlineFisherClassifier, "nu"),
    (OnlineFisherClassifier, "max_centers"),
    (OnlineFisherClassifier, "decay"),
    (OnlineFisherClassifier, "window"),
    (OnlineKernelRegressor, "alpha"),
    (OnlineKernelRegressor, "nu"),
    (OnlineKernelRegressor, "max_centers"),
    (OnlineKernelRegressor, "decay"),
    (OnlineKernelRegressor, "window"),
]
every_number = pytest.mark.parametrize(
    ("model", "name"), NUMBERS, ids=[f"{model.__name__}-{name}" for model, name in NUMBERS]
)


@every_number
@pytest.mark.parametrize("value", [*NOT_FINITE, *NO_NUMBERS], ids=repr)
def test_parameters_that_are_not_finite_numbers_are_refused_by_name(rows, model, name, value):
    with pytest.raises(ValueError, match=re.escape(f"{name}={value!r}; ")):
        model(RBF(gamma=0.5), **{name: value}).fit(*rows)


@pytest.mark.parametrize("model", [KernelFisherClassifier, KernelRidgeRegressor])
@pytest.mark.parametrize("value", [np.nan, -1, 0.5, "loud", None], ids=repr)
def test_verbosity_is_a_whole_number_or_a_truth_value(rows, model, value):
    with pytest.raises(ValueError, match=re.escape(f"verbose={value!r}; it must be False, True or an integer")):
        model(**FIXED, verbose=value).fit(*rows)


@pytest.mark.parametrize(
    ("model", "name"),
    [
        (KernelRidgeRegressor, "fit_intercept"),
        (SparseFisherClassifier, "prune"),
        (SparseKernelRegressor, "shared"),
    ],
)
@pytest.mark.parametrize("value", [np.nan, "False", None, 0.0], ids=repr)
def test_truth_values_are_true_or_false(rows, model, name, value):
    with pytest.raises(ValueError, match=re.escape(f"{name}={value!r}; it must be True or False")):
        model(**FIXED, **{name: value}).fit(*rows)


@pytest.mark.sampled(6)
@pytest.mark.parametrize("value", [np.float32(0.5), np.array(0.5), np.float64(0.5)], ids=repr)
@pytest.mark.parametrize("model", [KernelRidgeRegressor, SparseKernelRegressor, OnlineKernelRegressor])
def test_numbers_may_be_of_any_numeric_type(rows, model, value):
    X, y = rows
    plain, other = (model(RBF(gamma=0.5), alpha=alpha).fit(X, y) for alpha in (0.5, value))
    assert_array_equal(plain.predict(X), other.predict(X))


@pytest.mark.parametrize("decay", [np.nan, np.inf, 0.0, 1.5, True, "0.5", None], ids=repr)
@streaming
def test_decay_is_a_share(rows, model, decay):
    with pytest.raises(ValueError, match=re.escape(f"decay={decay!r}; it must be a number above 0 and at most 1")):
        model.partial_fit(*rows, decay=decay)


@pytest.mark.parametrize("coverage", [np.nan, True, np.array([0.5])], ids=repr)
def test_coverage_is_a_number(rows, coverage):
    X, y = rows
    with pytest.raises(ValueError, match=re.escape(f"coverage={coverage!r}; it must be a number between")):
        KernelRidgeRegressor(**FIXED).fit(X, y).predict_interval(X, coverage=coverage)


@pytest.mark.parametrize("model", [KernelFisherClassifier, SparseFisherClassifier])
@pytest.mark.parametrize(
    "priors",
    [
        [np.nan, 0.5],
        [np.nan, np.nan],
        [np.inf, 0.5],
        [-np.inf, np.inf],
        ["a", "b"],
        masked([0.5, 0.5], 1),
        [None, 1],
    ],
    ids=repr,
)
def test_priors_that_are_no_shares_are_refused(rows, model, priors):
    with pytest.raises(ValueError, match=r"(?s)priors=.*pass 2 "):
        model(**FIXED, priors=priors).fit(*rows)


@pytest.mark.parametrize("model", [KernelFisherClassifier(**FIXED, centers=5), SparseFisherClassifier(**FIXED)])
@pytest.mark.parametrize("weight", [np.nan, np.inf, -1.0, 0.0, True, "2", None], ids=repr)
def test_weights_of_classes_are_positive_numbers(rows, model, weight):
    with pytest.raises(ValueError, match=r"class_weight=.*the weight of class 1.*positive, finite number"):
        type(model)(**{**model.get_params(deep=False), "class_weight": {0: 1.0, 1: weight}}).fit(*rows)


@pytest.mark.parametrize(
    ("kernel", "words"),
    [
        (RBF(gamma=True), "gamma=True"),
        (RBF(gamma=None), "gamma=None"),
        (RBF(gamma=[1.0, np.inf]), "gamma=[1.0, inf]"),
        (RBF(gamma=masked([1.0, 2.0], 1)), "gamma has 1 masked"),
        (Matern(nu=np.nan, gamma=1.0), "nu=nan"),
        (Matern(nu=[0.5, 1.5], gamma=1.0), "nu=[0.5, 1.5]"),
        (RationalQuadratic(power=np.inf, gamma=1.0), "power=inf"),
        (Polynomial(coef0=np.nan), "coef0=nan"),
        (Linear(origin=[0.0, np.nan]), "origin=[0.0, nan]"),
        (Polynomial(coef0="1"), "coef0='1'"),
        (Polynomial(degree=True), "degree=True"),
        (Polynomial(gamma=[1.0, 2.0]), "gamma=[1.0, 2.0]"),
        (Sigmoid(gamma=np.inf), "gamma=inf"),
        (Scaled(RBF(gamma=1.0), scale=np.nan), "scale=nan"),
    ],
    ids=repr,
)
@pytest.mark.parametrize("model", [KernelFisherClassifier, SparseFisherClassifier, OnlineFisherClassifier])
def test_parameters_of_kernels_are_refused_by_name(rows, model, kernel, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        model(kernel, alpha=1.0).fit(*rows)


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    ("centers", "words"),
    [
        (Uniform(n_centers=np.nan), "n_centers=nan"),
        (Uniform(n_centers=True), "n_centers=True"),
        (KMeans(n_init=0), "n_init=0"),
        (Leverage(alpha=np.inf), "alpha=inf"),
        (RPCholesky(block_size=2.5), "block_size=2.5"),
        (masked(np.ones((3, 2)), (0, 1)), "centers has 1 masked"),
    ],
    ids=repr,
)
def test_parameters_of_selectors_are_refused_by_name(rows, centers, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        KernelFisherClassifier(**FIXED, centers=centers).fit(*rows)


# Masks and missing values.


@every_model
@pytest.mark.parametrize("what", ["X", "y", "sample_weight"])
def test_masked_entries_are_not_read(rows, model, what):
    X, y = rows
    given = {"X": X, "y": y, "sample_weight": np.ones(N)}
    given[what] = masked(given[what], (3, 1) if what == "X" else 3)
    for call in ("fit", "partial_fit"):
        if hasattr(model, call):
            with pytest.raises(ValueError, match=rf"{what} has 1 masked entry.*{what}.filled.*drop"):
                getattr(model, call)(**given)


@pytest.mark.parametrize("model", [KernelFisherClassifier(**FIXED), KernelRidgeRegressor(**FIXED)])
def test_masked_groups_are_not_read(rows, model):
    with pytest.raises(ValueError, match="groups has 1 masked entry"):
        model.fit(*rows, groups=masked(np.arange(N) // 4))


@pytest.mark.parametrize("model", [KernelFisherClassifier(**FIXED), KernelRidgeRegressor(**FIXED)])
def test_groups_are_labels_of_one_type(rows, model):
    number = np.arange(N) // 4
    for groups, message in (
        (np.column_stack([number, number]), rf"groups has shape \({N}, 2\)"),
        ([1, *("a" for _ in number[1:])], r"groups contains labels of type int \(1\) and str"),
        (np.full(N, np.nan), "groups contains NaN"),
    ):
        with pytest.raises(ValueError, match=message):
            model.fit(*rows, groups=groups)


@pytest.mark.sampled(3)
@every_model
def test_masked_entries_of_new_rows_are_not_read(rows, model):
    X, y = rows
    model.fit(X, y)
    for call in PREDICTIONS:
        if hasattr(model, call):
            with pytest.raises(ValueError, match="X has 1 masked entry"):
                list(getattr(model, call)(masked(X, (3, 1))))


@pytest.mark.sampled(1)
@every_model
def test_masked_arrays_without_masked_entries_are_arrays(rows, model):
    X, y = rows
    plain = model.fit(X, y, sample_weight=np.ones(N)).predict(X)
    X, y, weight = (np.ma.MaskedArray(values) for values in (X, y, np.ones(N)))
    assert_array_equal(model.fit(X, y, sample_weight=weight).predict(X), plain)


@pytest.mark.sampled(3)
@streaming
@pytest.mark.parametrize("what", [0, 1, 2], ids=["X", "y", "weight"])
@pytest.mark.parametrize("size", [8, N], ids=["joined", "one block"])
def test_masked_entries_in_blocks_are_not_read(rows, model, what, size):
    X, y = rows
    parts = [X, y, np.ones(N)]
    parts[what] = masked(parts[what], (3, 1) if what == 0 else 3)
    blocks = [tuple(part[i : i + size] for part in parts) for i in range(0, N, size)]
    for call in (model.fit, model.partial_fit):
        with pytest.raises(ValueError, match="has 1 masked entry"):
            call(blocks)
    model.fit(X, y, sample_weight=np.ones(N))
    for call in (model.partial_fit, model.remove):
        with pytest.raises(ValueError, match="has 1 masked entry"):
            call(blocks)
    if what == 0:
        with pytest.raises(ValueError, match="has 1 masked entry"):
            model.predict([block[:1] for block in blocks])


def columns_of(model):
    """What columns of a raw table have become, of pairs of classes for the first pair."""
    fitted = getattr(model, "estimators_", [model])
    return (next(iter(fitted.values())) if isinstance(fitted, dict) else fitted[0]).columns_.columns


@pytest.mark.sampled(2)
@every_model
@pytest.mark.parametrize("what", ["X", "y", "sample_weight"])
def test_missing_values_of_pandas_are_refused(rows, model, what):
    X, y = rows
    given = {
        "X": pd.DataFrame(X).convert_dtypes(),
        "y": pd.Series(y, dtype="Int64"),
        "sample_weight": pd.Series(np.ones(N), dtype="Float64"),
    }
    model.fit(**given)
    given[what] = given[what].copy()
    given[what].iloc[3] = pd.NA
    if what == "X" and get_tags(model).input_tags.allow_nan:
        assert all(column.missing for column in columns_of(model.fit(**given)))
        return
    with pytest.raises(ValueError, match=r"NaN|<NA>, which is not a label|missing|must be finite"):
        model.fit(**given)


@pytest.mark.sampled(3)
@streaming
@pytest.mark.parametrize("what", ["X", "y", "weight"])
def test_missing_values_in_blocks_of_frames_are_refused(rows, model, what):
    X, y = rows
    given = {"X": pd.DataFrame(X).convert_dtypes(), "y": pd.Series(y, dtype="Int64")}
    given["weight"] = pd.Series(np.ones(N), dtype="Float64")
    model.fit([tuple(given.values())])
    given[what].iloc[3] = pd.NA
    if what == "X" and get_tags(model).input_tags.allow_nan:
        assert all(column.missing for column in columns_of(model.fit([tuple(given.values())])))
        return
    with pytest.raises(ValueError, match=r"NaN|<NA>, which is not a label|missing|must be finite"):
        model.fit([tuple(given.values())])


# Dates.

DATES = np.datetime64("2020-01-01") + np.arange(N)
AS_DATES = {
    "dates": DATES,
    "nanoseconds": DATES.astype("datetime64[ns]"),
    "durations": DATES - DATES[0],
    "objects": np.array([*DATES.tolist()], dtype=object),
    "series": pd.Series(DATES),
    "time zone": pd.Series(DATES).dt.tz_localize("UTC"),
    "NaT": np.where(np.arange(N) == 3, np.datetime64("NaT"), DATES),
}


@every_regressor
@pytest.mark.parametrize("y", AS_DATES.values(), ids=AS_DATES)
def test_dates_are_not_targets(rows, model, y):
    X, _ = rows
    calls = [lambda: model.fit(X, y), lambda: model.partial_fit(X, y), lambda: model.fit([(X, y)])]
    for call in calls[: 3 if hasattr(model, "remove") else 2 if hasattr(model, "partial_fit") else 1]:
        with pytest.raises(ValueError, match=r"y is of type .*np.timedelta64\(1, 'D'\)"):
            call()


@every_model
@pytest.mark.parametrize("frame", [np.array, pd.DataFrame], ids=["array", "frame"])
def test_dates_are_not_features(rows, model, frame):
    _, y = rows
    X = frame(np.column_stack([DATES, DATES]))
    if frame is pd.DataFrame and get_tags(model).input_tags.allow_nan:
        assert {column.kind for column in columns_of(model.fit(X, y))} == {"date"}
        return
    with pytest.raises(ValueError, match=r"X is of type datetime64.*np.timedelta64"):
        model.fit(X, y)
    if hasattr(model, "remove"):
        with pytest.raises(ValueError, match=r"X is of type datetime64.*np.timedelta64"):
            model.fit([(X, y)])


@pytest.mark.sampled(4)
@every_classifier
def test_dates_may_be_labels_but_none_may_be_missing(rows, model):
    X, y = rows
    dates = DATES[y]
    model.fit(X, dates)
    assert set(model.predict(X)) <= set(DATES[:2])
    dates[3] = np.datetime64("NaT")
    with pytest.raises(ValueError, match="y contains NaT, which is not a label"):
        model.fit(X, dates)


# Labels.


def with_first(y, first, dtype=object):
    labels = np.array(y, dtype=dtype)
    labels[0] = first
    return labels


MIXED = {
    "int and str": (with_first(np.arange(N) % 2, "a"), ["int (1)", "str ('a')"]),
    "list": (["a", *np.arange(1, N) % 2], ["int64 (np.int64(1))", "str ('a')"]),
    "bool and int": (with_first(np.arange(N) % 2, True), ["bool (True)", "int (1)"]),
    "list of bool and int": ([True, *(np.arange(1, N) % 2).tolist()], ["bool (True)", "int (1)"]),
    "bytes and str": (with_first(["a", "b"] * (N // 2), b"a"), ["bytes (b'a')", "str ('b')"]),
}


@every_classifier
@pytest.mark.parametrize(("y", "words"), MIXED.values(), ids=MIXED)
def test_labels_of_two_types_are_refused_with_both(rows, model, y, words):
    X, _ = rows
    calls = [model.fit, model.partial_fit] if hasattr(model, "partial_fit") else [model.fit]
    for call in calls:
        with pytest.raises(
            ValueError, match=r"y contains labels of type .* and .*; convert .* one type"
        ) as caught:
            call(X, y)
        for word in words:
            assert word.replace("int64 (np.int64(1))", "int (") in str(caught.value)


@every_classifier
@pytest.mark.parametrize("missing", [None, np.nan, pd.NA, pd.NaT], ids=repr)
@pytest.mark.parametrize("y", [["a", "b"] * (N // 2), [0, 1] * (N // 2)], ids=["strings", "numbers"])
def test_missing_labels_are_refused(rows, model, y, missing):
    X, _ = rows
    with pytest.raises(ValueError, match=r"y contains .*, which is not a label; fill these labels or drop"):
        model.fit(X, with_first(y, missing))


BATCHES = {
    "int, then str": ([0, 1], ["0", "1"]),
    "str, then int": (["a", "b"], [0, 1]),
    "bool, then int": ([False, True], [0, 1]),
    "int, then bool": ([0, 1], [False, True]),
    "objects": (np.array(["a", "b"], dtype=object), [0, 1]),
}


@pytest.mark.sampled(10)
@pytest.mark.parametrize(("first", "second"), BATCHES.values(), ids=BATCHES)
@pytest.mark.parametrize("name", ["fisher with centers", "online", "pairwise"])
def test_labels_of_another_type_in_a_later_batch_are_refused(rows, name, first, second):
    X, y = rows
    model = CLASSIFIERS[name].__class__(**CLASSIFIERS[name].get_params(deep=False))
    model.partial_fit(X, np.array(first)[y])
    with pytest.raises(ValueError, match=r"y contains labels of type .* and .*; convert"):
        model.partial_fit(X, np.array(second)[y])
    with pytest.raises(ValueError, match=r"y contains labels of type .* and .*; convert"):
        CLASSIFIERS[name].__class__(**CLASSIFIERS[name].get_params(deep=False)).partial_fit(
            X, np.array(first)[y], classes=second
        )


@pytest.mark.parametrize(("first", "second"), BATCHES.values(), ids=BATCHES)
@pytest.mark.parametrize("repeats", [1, 400], ids=["joined blocks", "blocks of their own"])
def test_labels_of_another_type_in_a_later_block_are_refused(rows, first, second, repeats):
    X, y = (np.concatenate([part] * repeats) for part in rows)
    blocks = [(X, np.array(first)[y]), (X, np.array(second)[y])]
    with pytest.raises(ValueError, match=r"y contains labels of type .* and .*; convert"):
        KernelFisherClassifier(**FIXED, centers=5).fit(blocks)


def test_labels_of_another_type_cannot_be_removed(rows):
    X, y = rows
    model = KernelFisherClassifier(**FIXED, centers=5).fit(X, y)
    with pytest.raises(ValueError, match=r"y contains labels of type .* and .*; convert"):
        model.remove(X[:2], y[:2].astype(str))


@pytest.mark.sampled(1)
@every_classifier
def test_whole_and_other_numbers_are_one_type_of_labels(rows, model):
    X, y = rows
    plain = model.fit(X, y).predict(X)
    for labels in (y.astype(float), with_first(y, 0.0), y.astype(np.uint8), y.astype(object)):
        assert_array_equal(model.fit(X, labels).predict(X), plain)


def test_numbers_of_two_types_in_two_blocks_are_the_same_labels(rows):
    X, y = rows
    plain = KernelFisherClassifier(**FIXED, centers=5).fit([(X, y), (X, y)])
    other = KernelFisherClassifier(**FIXED, centers=5).fit([(X, y), (X, y.astype(float))])
    assert_array_equal(other.classes_, plain.classes_)
    assert_allclose(other.predict_proba(X), plain.predict_proba(X), rtol=1e-12)


def test_labels_that_no_type_holds_together_are_refused(rows):
    X, y = rows
    blocks = [(X, y.astype(np.int64) + 2**60), (X, y.astype(np.float64))]
    with pytest.raises(ValueError, match="beyond 2\\^53"):
        KernelFisherClassifier(**FIXED, centers=5).fit(blocks)


@every_classifier
@pytest.mark.parametrize("label", [(1, 2), {"a"}, 1j], ids=repr)
def test_labels_that_are_no_labels_are_refused(rows, model, label):
    X, y = rows
    labels = np.empty(N, dtype=object)
    labels[:] = [label, *y[1:].tolist()]
    with pytest.raises(ValueError, match=r"Unknown label type: y contains .*; pass numbers, strings"):
        model.fit(X, labels)
