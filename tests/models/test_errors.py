"""An error names the thing and the remedy; a warning comes once, and only where it should."""

import inspect
import re
import warnings

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import KFold, ShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mercer
from mercer import (
    KernelFisherClassifier,
    KernelRidgeRegressor,
    OnlineFisherClassifier,
    OnlineKernelRegressor,
    SparseFisherClassifier,
    SparseKernelRegressor,
    kernels,
)
from mercer.errors import KernelError, NumericalWarning, ScaleWarning
from mercer.kernels import RBF, FromCallable, Linear, Normalized, OnColumns, OneOf, Product, Sigmoid, Sum
from mercer.sequences import HiddenMarkovClassifier

FIXED = {"kernel": RBF(gamma=0.5), "alpha": 1.0}
FEW_ROWS = [KFold(2).split(np.zeros((60, 1))).__next__()]


@pytest.mark.parametrize(
    ("choice", "words"),
    [
        ({"alpha": 0.0}, ["alpha=0.0", "positive number", '"loo"']),
        ({"alpha": -1}, ["alpha=-1", "positive number"]),
        ({"alpha": "cv"}, ["alpha='cv'", '"loo"']),
        ({"alpha": np.inf}, ["alpha=inf"]),
        ({"alpha": None}, ["alpha=None"]),
        ({"criterion": "accuracy"}, ["criterion='accuracy'", "'brier', 'log_loss', 'error', 'squared'"]),
        ({"calibration": "platt"}, ["calibration='platt'", "'logistic', 'gaussian', 'quadratic', 'isotonic'"]),
        ({"threshold": "half"}, ["threshold='half'", "'bayes'", "'soft_margin'"]),
        ({"penalty": "l2"}, ["penalty='l2'", "'rkhs', 'coef'"]),
        ({"kernel": "gaussian"}, ["'gaussian'", "rbf"]),
        ({"kernel": RBF}, ["class RBF", "RBF()"]),
        ({"kernel": RBF(gamma="auto")}, ['"auto"', '"median", "scale", "loo"']),
        ({"max_memory": -1}, ["max_memory=-1", "positive number of GiB"]),
        ({"priors": [0.5, 0.3, 0.2]}, ["priors=[0.5, 0.3, 0.2]", "2 positive numbers", "sum to one"]),
        ({"priors": [0.9, 0.9]}, ["priors=[0.9, 0.9]", "sum to one"]),
        ({"priors": [1.0, 0.0]}, ["priors=[1.0, 0.0]", "positive"]),
        ({"priors": [0.5, 0.5], "threshold": "error"}, ["threshold='error'", '"bayes"']),
        ({"weights": np.ones(60)}, ["weights=an array of shape (60,)", "to fit as sample_weight", "'importance'"]),
        ({"threshold": np.ones(12)}, ["threshold=an array of shape (12,)", "'bayes'"]),
        ({"centers": np.ones((5, 3))}, ["centers have 3 features and X has 2", "the columns of X"]),
        ({"n_components": 2}, ["n_components=2", "2 classes have 1 discriminant direction;", "1 to 1, or None"]),
        ({"n_components": 0}, ["n_components=0", "1 to 1"]),
        ({"class_weight": {0: 0.0, 1: 1.0}}, ["class_weight={0: 0.0, 1: 1.0}", "positive"]),
        ({"cv": ShuffleSplit(5, test_size=0.5, random_state=0)}, ["cv=ShuffleSplit", "twice", "partition"]),
        ({"cv": FEW_ROWS}, ["never holds out 30 rows", "cover all rows"]),
    ],
    ids=str,
)
def test_wrong_choice_is_named_with_the_right_ones(two_classes, choice, words):
    with pytest.raises(ValueError, match=re.escape(words[0])) as caught:
        KernelFisherClassifier(**choice).fit(*two_classes)
    for word in words[1:]:
        assert word in str(caught.value)


@pytest.mark.parametrize("threshold", ["equal_error", "soft_margin", "error"])
def test_threshold_of_two_classes_is_refused_for_three(three_classes, threshold):
    with pytest.raises(
        ValueError, match=f"threshold='{threshold}' separates two classes, but y has 3; use"
    ) as caught:
        KernelFisherClassifier(threshold=threshold).fit(*three_classes)
    assert '"bayes" or "least_squares"' in str(caught.value)


def test_missing_labels_are_refused(two_classes):
    with pytest.raises(ValueError, match="a classifier requires y to be passed, but the target y is None"):
        KernelFisherClassifier().fit(two_classes[0])


def test_missing_values_in_a_stream_are_those_of_x(two_classes):
    X, y = two_classes
    with pytest.raises(ValueError, match=r"^X contains NaN; fill .*columns=\{\} gives them a meaning"):
        KernelFisherClassifier(**FIXED).fit([(X, y), (np.full((1, 2), np.nan), y[:1])])


def test_rows_cannot_be_removed_where_every_row_is_a_center(two_classes):
    model = KernelFisherClassifier(**FIXED).fit(*two_classes)
    with pytest.raises(ValueError, match=r"has every row as a center; fit it with centers=\.\.\., or refit it"):
        model.remove(*two_classes)


def test_report_counts_one_alpha_as_one(two_classes):
    report = KernelFisherClassifier(**FIXED).fit(*two_classes).report_
    assert report.searched == "1 alpha by fits to 60 rows"


def test_one_class_is_refused(two_classes):
    X, _ = two_classes
    with pytest.raises(ValueError, match="one class, 'a'; a classifier needs at least 2 classes"):
        KernelFisherClassifier().fit(X, np.full(60, "a", dtype=object))


@pytest.mark.parametrize("model", [KernelFisherClassifier(**FIXED), KernelRidgeRegressor(**FIXED)], ids=str)
@pytest.mark.parametrize(
    ("weight", "words"),
    [
        (np.r_[-1.0, np.ones(59)], "spans -1.0 to 1.0; weights must be finite, nonnegative"),
        (np.r_[np.nan, np.ones(59)], "finite"),
        (np.zeros(60), "not all zero"),
        (np.ones(59), r"sample_weight.shape == \(59,\), expected \(60,\)"),
        (np.ones((60, 1)), "1D array"),
    ],
    ids=["negative", "nan", "zero", "short", "column"],
)
def test_wrong_weights_are_refused(two_classes, model, weight, words):
    with pytest.raises(ValueError, match=words):
        model.fit(*two_classes, sample_weight=weight)


def test_kernel_values_that_are_not_square_are_refused():
    with pytest.raises(ValueError, match=r"kernel='precomputed' is fitted on the square matrix.*\(4, 3\)"):
        KernelFisherClassifier("precomputed").fit(np.ones((4, 3)), [0, 1, 0, 1])


@pytest.mark.parametrize("model", [KernelFisherClassifier(**FIXED), KernelRidgeRegressor(**FIXED)], ids=str)
def test_rows_of_another_length_are_refused(two_classes, model):
    model.fit(*two_classes)
    with pytest.raises(ValueError, match=r"X has 3 features, but .* is expecting 2 features"):
        model.predict(np.ones((4, 3)))


def test_kernel_values_with_another_number_of_columns_are_refused(two_classes):
    X, y = two_classes
    model = KernelFisherClassifier("precomputed").fit(X @ X.T, y)
    with pytest.raises(ValueError, match="expecting 60 features"):
        model.predict((X @ X.T)[:, :50])


@pytest.mark.parametrize("coverage", [0.0, 1.0, 1.5, "most", None])
def test_coverage_lies_between_zero_and_one(curve, coverage):
    model = KernelRidgeRegressor(**FIXED).fit(*curve)
    with pytest.raises(ValueError, match=f"coverage={coverage!r}; it must be a number between 0 and 1"):
        model.predict_interval(curve[0], coverage=coverage)


def test_one_group_is_refused(two_classes):
    with pytest.raises(ValueError, match="all rows are in one group; groups must define at least two"):
        KernelFisherClassifier(**FIXED).fit(*two_classes, groups=np.zeros(60))


@pytest.mark.parametrize("centers", ["auto", 1, 15])
def test_one_row_is_refused(centers):
    with pytest.raises(ValueError, match="at least 2 rows"):
        KernelRidgeRegressor(centers=centers).fit([[1.0]], [2.0])


def test_uncertainty_of_kernel_values_is_refused_with_a_remedy(curve):
    X, y = curve
    model = KernelRidgeRegressor("precomputed", alpha=1.0).fit(X @ X.T, y)
    for ask in (lambda: model.predict_interval(X @ X.T), lambda: model.predict_std(X @ X.T)):
        with pytest.raises(ValueError, match=r'kernel="precomputed".*pass the kernel itself'):
            ask()


@pytest.mark.parametrize("model", [KernelFisherClassifier(), KernelRidgeRegressor()], ids=str)
def test_model_must_be_fitted_first(model):
    with pytest.raises(NotFittedError):
        model.predict(np.ones((2, 2)))


def test_missing_targets_are_named(curve):
    with pytest.raises(ValueError, match="y"):
        KernelRidgeRegressor().fit(curve[0], None)


def test_function_of_the_wrong_shape_is_refused(two_classes):
    with pytest.raises(KernelError, match=r"pairwise\(function\)"):
        KernelFisherClassifier(lambda X, Z: 1.0).fit(*two_classes)


@pytest.mark.parametrize("model", [KernelFisherClassifier("rbf"), KernelRidgeRegressor("rbf")], ids=str)
def test_features_of_different_scale_are_warned_of_once(two_classes, model):
    X, y = two_classes
    with pytest.warns(ScaleWarning, match=r"feature 1 varies .* as much as feature 0.*Standardized") as record:
        model.fit(X * [1.0, 1e4], y)
    assert len(record) == 1


@pytest.mark.parametrize(
    "model",
    [
        KernelFisherClassifier(),
        KernelRidgeRegressor(),
        make_pipeline(StandardScaler(), KernelFisherClassifier("rbf")),
        KernelFisherClassifier(RBF(gamma=[1.0, 1e-8]), alpha=1.0),
    ],
    ids=["automatic", "automatic regression", "scaled", "own gammas"],
)
def test_scales_are_fine_where_distances_see_all_features(two_classes, model):
    X, y = two_classes
    model.fit(X * [1.0, 1e4], y)


def test_constant_features_and_moderate_scales_are_no_reason_to_warn(two_classes):
    X, y = two_classes
    KernelFisherClassifier().fit(np.column_stack([X * [1.0, 500.0], np.zeros(60)]), y)


def test_pixels_of_one_scale_are_no_reason_to_warn(rng):
    """Images with an edge that hardly ever varies: the other pixels say it all, and are most of them."""
    X, y = rng.uniform(0.0, 255.0, size=(80, 20)), np.arange(80) % 2
    X[:, 14:] = 0.0
    X[7, 14:] = 1e-3 * np.arange(6)
    KernelFisherClassifier(RBF(gamma=1e-5), alpha=1.0).fit(X, y)


def test_equal_values_that_round_are_no_scale(two_classes):
    X, y = two_classes
    KernelFisherClassifier(**FIXED).fit(np.column_stack([X, np.full((60, 3), 0.1)]), y)


def test_one_feature_that_hides_many_is_warned_of(rng):
    X, y = rng.normal(size=(60, 12)), np.arange(60) % 2
    X[:, 5] *= 1e4
    with pytest.warns(ScaleWarning, match=r"^1 of 12 varying features .* feature 5 varies .* different units"):
        KernelFisherClassifier(**FIXED).fit(X, y)


def test_indefinite_kernel_is_warned_of(two_classes, curve):
    kernel = Sigmoid(gamma=1.0, coef0=-1.0)
    for model, data in ((KernelFisherClassifier, two_classes), (KernelRidgeRegressor, curve)):
        with pytest.warns(NumericalWarning, match="Sigmoid.*not positive semidefinite") as record:
            found = model(kernel, alpha=1.0).fit(*data)
        assert len(record) == 1
        assert found.report_.negative > 0


def test_definite_kernels_are_not_warned_of(two_classes):
    X, y = two_classes
    flat = FromCallable(lambda A, B: np.ones((len(A), len(B))))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert KernelFisherClassifier(flat, alpha=1.0).fit(X, y).report_.negative == 0.0


def test_warning_points_to_the_line_that_called_fit(two_classes):
    X, y = two_classes
    with pytest.warns(ScaleWarning) as record:
        KernelFisherClassifier("rbf").fit(X * [1.0, 1e4], y)
    assert record[0].filename == __file__


def test_folds_left_without_weight_are_refused(two_classes):
    X, _ = two_classes
    weight = np.where(np.arange(60) < 30, 1.0, 0.0)
    with pytest.raises(ValueError, match="groups"):
        KernelRidgeRegressor(**FIXED).fit(X, X[:, 0], sample_weight=weight, groups=np.arange(60) // 30)


def test_one_row_of_positive_weight_is_refused(two_classes):
    X, _ = two_classes
    with pytest.raises(ValueError, match="at least 2 rows"):
        KernelRidgeRegressor(**FIXED).fit(X, X[:, 0], sample_weight=np.eye(60)[0])


@pytest.mark.parametrize(
    "choice", [{"n_components": 5}, {"priors": [0.2, 0.2, 0.6]}, {"class_weight": {0: -1.0}}], ids=str
)
def test_wrong_choice_is_refused_before_anything_is_computed(two_classes, choice):
    X, y = two_classes

    def never(A, B):
        raise AssertionError("the kernel was evaluated")

    with pytest.raises(ValueError, match=next(iter(choice))):
        KernelFisherClassifier(never, **choice).fit(X, y)


def frame_of(X, **more):
    pandas = pytest.importorskip("pandas", reason="pandas is not installed: no frames here")
    return pandas.DataFrame({"age": X[:, 0], "income": X[:, 1]} | more)


@pytest.mark.parametrize("centers", ["all", 10])
def test_features_of_different_scale_are_named_if_the_rows_are_a_frame(two_classes, centers):
    X, y = two_classes
    with pytest.warns(ScaleWarning, match=r"feature 'income' varies .* as much as feature 'age'\. "):
        KernelFisherClassifier(RBF(gamma=1e-8), centers=centers).fit(frame_of(X * [1.0, 1e4]), y)


def test_features_of_different_scale_are_named_if_the_rows_are_a_stream_of_frames(two_classes):
    X, y = two_classes
    with pytest.warns(ScaleWarning, match=r"feature 'income' varies .* as much as feature 'age'\. "):
        KernelFisherClassifier(RBF(gamma=1e-8), centers=10).fit([(frame_of(X * [1.0, 1e4]), y)])


@pytest.mark.parametrize("model", [SparseFisherClassifier(), OnlineFisherClassifier()], ids=str)
@pytest.mark.parametrize("dtype", ["object", "category"])
def test_columns_of_text_are_named(two_classes, model, dtype):
    X, y = two_classes
    frame = frame_of(X, town=["Ulm", "Bonn"] * 30, size=["1.5"] * 60).astype({"town": dtype})
    remedy = r"column 'town' of X contains text \('Ulm'\).*OneHotEncoder or OrdinalEncoder in a ColumnTransformer"
    with pytest.raises(ValueError, match=remedy):
        model.fit(frame, y)


def test_columns_of_text_are_named_in_a_stream(two_classes):
    X, y = two_classes
    frames = [(frame_of(X, town=["Ulm", "Bonn"] * 30), y)]
    with pytest.raises(
        ValueError, match=r"column 'town' of X contains text \('Ulm'\).* columns=\{\} from any stream"
    ):
        KernelFisherClassifier(**FIXED).fit(lambda: iter(frames))
    with pytest.raises(ValueError, match=r"column 'town' of X contains text \('Ulm'\)"):
        OnlineFisherClassifier().fit(frames)


def test_a_column_of_text_is_not_blamed_for_missing_numbers(two_classes):
    X, y = two_classes
    frame = frame_of(X, size=["1.5"] * 60)
    frame.loc[3, "age"] = np.nan
    with pytest.raises(ValueError, match=r"^X contains NaN; fill missing values"):
        SparseFisherClassifier().fit(frame, y)


@pytest.mark.parametrize(
    "model", [KernelRidgeRegressor(), SparseKernelRegressor(), OnlineKernelRegressor()], ids=str
)
@pytest.mark.parametrize("dtype", [str, object])
def test_regressors_refuse_labels_and_name_the_classifier(two_classes, model, dtype):
    X, _ = two_classes
    remedy = rf"y contains 'a', but {type(model).__name__} needs numbers; for classes, use KernelFisherClassifier"
    with pytest.raises(ValueError, match=remedy):
        model.fit(X, np.array(["a", "b"] * 30, dtype=dtype))


@pytest.mark.parametrize("value", ["1GB", 0, -1.0, True], ids=repr)
def test_the_unit_of_max_memory_is_stated(two_classes, value):
    with pytest.raises(ValueError, match=r"max_memory=.*a positive number of GiB, such as 0\.5 or 4, or None"):
        KernelFisherClassifier(max_memory=value).fit(*two_classes)


@pytest.mark.parametrize("model", [KernelFisherClassifier, SparseFisherClassifier], ids=str)
def test_priors_by_label_are_those_in_the_order_of_the_classes(two_classes, model):
    X, y = two_classes
    labels = np.array(["no", "yes"])[y]
    by_label = model(**FIXED, priors={"yes": 0.9, "no": 0.1}).fit(X, labels)
    in_order = model(**FIXED, priors=[0.1, 0.9]).fit(X, labels)
    np.testing.assert_array_equal(by_label.priors_, [0.1, 0.9])
    np.testing.assert_array_equal(by_label.predict_proba(X), in_order.predict_proba(X))


@pytest.mark.parametrize("priors", [{0: 1.0}, {0: 0.5, 2: 0.5}, {0: 0.2, 1: 0.3, 2: 0.5}], ids=str)
def test_priors_by_label_need_the_labels_of_all_classes(two_classes, priors):
    with pytest.raises(ValueError, match=r"priors=\{.*pass one for each of the classes \[0, 1\]"):
        KernelFisherClassifier(**FIXED, priors=priors).fit(*two_classes)


@pytest.mark.parametrize("priors", [{0: 0.5, 1: 0.4}, [0.5, 0.4], {0: "a", 1: "b"}], ids=str)
def test_priors_that_are_no_shares_are_refused_with_the_classes(two_classes, priors):
    with pytest.raises(ValueError, match=r"pass 2 positive numbers that sum to one.*\[0, 1\]"):
        KernelFisherClassifier(**FIXED, priors=priors).fit(*two_classes)


@pytest.mark.parametrize(
    "model",
    [
        KernelFisherClassifier(),
        KernelFisherClassifier(centers=5),
        KernelRidgeRegressor(),
        SparseFisherClassifier(),
    ],
    ids=str,
)
def test_features_that_are_all_constant_are_warned_of(two_classes, model):
    with pytest.warns(NumericalWarning, match="all features are constant.* shares of the classes") as record:
        model.fit(np.full((60, 3), 0.1), two_classes[1])
    assert len(record) == 1


def test_rows_of_which_only_one_differs_are_not_all_constant(rng):
    """A few hundred rows are looked at, and then all of them."""
    X, y = np.zeros((700, 2)), np.arange(700) % 2
    X[3] = 1.0
    KernelFisherClassifier(RBF(gamma=1.0), alpha=1.0).fit(X, y)


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (OnColumns("rbf", [0]), "OnColumns contains 'rbf'; pass kernels, such as RBF()"),
        (OnColumns(RBF, [0]), "OnColumns contains the class RBF; pass kernels, such as RBF()"),
        (2.0 * Normalized("linear"), "Normalized contains 'linear'; pass kernels"),
        (Sum([("a", "rbf")]), "Sum contains 'rbf'; pass kernels"),
        (Sum([("a", RBF(), 1)]), "Sum contains ('a', RBF(), 1), which is not a pair (name, kernel)"),
        (Product([RBF(), Linear()]), "Product contains RBF(), which is not a pair (name, kernel)"),
        (Sum(RBF()), 'the parts of Sum are RBF(); pass a list of pairs, such as [("rbf", 2.0 * RBF())]'),
        (OneOf(RBF()), "OneOf(RBF()) has no kernels to choose from; pass a list"),
    ],
    ids=str,
)
@pytest.mark.parametrize("model", [KernelFisherClassifier, SparseFisherClassifier, OnlineFisherClassifier])
def test_what_is_not_a_kernel_within_one_is_named(two_classes, model, kernel, message):
    with pytest.raises(KernelError, match=re.escape(message)):
        model(kernel).fit(*two_classes)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("as_rows", [list, np.array, lambda rows: np.array(rows, dtype=object)])
@pytest.mark.parametrize(
    "model", [KernelFisherClassifier(), KernelRidgeRegressor("matern"), OnlineFisherClassifier()], ids=str
)
def test_strings_are_told_which_kernels_take_them(model, as_rows):
    rows, y = as_rows(["ab", "cd", "abc", "d"] * 5), [0, 1, 0, 1] * 5
    with pytest.raises(ValueError, match=r"rows of X are strings \('ab'\).*KmerSpectrum\(\), Subsequence\(\)"):
        model.fit(rows, y)
    for name in ("KmerSpectrum", "Subsequence", "BagOfWords"):
        fitted = KernelFisherClassifier(getattr(kernels, name)()).fit(["ab cd", "cd ef", "ab c", "ef d"] * 5, y)
        assert fitted.kernel_.input_kind == "objects"


STRINGS = ["aa bb", "cc dd"] * 10 + ["ee ff"] * 5
ON_STRINGS = [
    kernels.BagOfWords(),
    kernels.KmerSpectrum(),
    kernels.Mismatch(k=2),
    kernels.Subsequence(),
    kernels.FisherKernel("markov", size=2),
    0.5 * Normalized(kernels.LocalAlignment()) + kernels.BagOfWords(),
    OneOf([kernels.KmerSpectrum(), kernels.Substrings()]),
]


@pytest.mark.parametrize("kernel", ON_STRINGS, ids=str)
@pytest.mark.parametrize("model", [KernelFisherClassifier, SparseFisherClassifier, OnlineFisherClassifier])
def test_rows_that_are_not_strings_have_the_number_they_have_for_the_user(kernel, model):
    # Equal rows are merged, so that this is row 3 of those that are compared.
    with pytest.raises(KernelError, match="row 25 is a NoneType, but a kernel on strings compares str"):
        model(kernel).fit([*STRINGS, None], [0, 1] * 13)


def test_bags_that_are_not_of_vectors_have_their_number():
    bags = [np.zeros((2, 1)), np.ones((3, 1))] * 10
    with pytest.raises(KernelError, match=r"row 20 is a float64 array of shape \(3,\)"):
        KernelFisherClassifier(kernels.MeanMap(RBF(gamma=1.0))).fit([*bags, np.ones(3), bags[0]], [0, 1] * 11)


def test_strings_in_columns_have_their_number():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"text": [*STRINGS, None], "size": np.zeros(26)})
    kernel = OnColumns(kernels.BagOfWords(), ["text"]) + OnColumns(RBF(gamma=1.0), ["size"])
    with pytest.raises(KernelError, match="row 25 is a NoneType"):
        KernelFisherClassifier(kernel).fit(frame, [0, 1] * 13)


def constructible():
    kinds = [getattr(mercer, name) for name in mercer.__all__]
    return [kind for kind in kinds if hasattr(kind, "fit")] + [HiddenMarkovClassifier]


@pytest.mark.parametrize("kind", constructible(), ids=lambda kind: kind.__name__)
def test_unknown_parameters_are_named_with_a_remedy(kind):
    known = list(inspect.signature(kind).parameters)
    word = "" if known[0] == "kernel" else "kernel="
    remedy = (
        f"it belongs to the kernel: {kind.__name__}({word}RBF(gamma=0.1))"
        if "kernel" in known
        else f"its parameters are {', '.join(known)}"
    )
    with pytest.raises(TypeError, match=re.escape(f"{kind.__name__} has no parameter 'gamma'; {remedy}")):
        kind(gamma=0.1)
    with pytest.raises(TypeError, match=f"no parameter '{known[0]}s'; did you mean '{known[0]}'"):
        kind(**{f"{known[0]}s": 1})
    assert known == list(inspect.signature(kind.__init__).parameters)[1:]
    assert sorted(kind().get_params(deep=False)) == sorted(known)


def test_the_remedy_for_gamma_is_right():
    assert KernelFisherClassifier(RBF(gamma=0.1)).kernel.gamma == 0.1
    with pytest.raises(TypeError, match=r"KernelFisherClassifier\(Polynomial\(degree=3\)\)"):
        KernelFisherClassifier(degree=3)


class Own(KernelFisherClassifier):
    """An estimator of a user, with a parameter of its own."""

    def __init__(self, kernel="rbf", more=1):
        super().__init__(kernel)
        self.more = more


def test_estimators_derived_from_ours_have_their_own_parameters():
    assert Own(more=2).more == 2
    with pytest.raises(TypeError, match="Own has no parameter 'mor'; did you mean 'more'"):
        Own(mor=2)


@pytest.mark.parametrize(
    ("params", "words"),
    [({"C": 1.0}, "1 / alpha"), ({"probability": True}, "predict_proba needs none"), ({"sigma": 1.0}, "gamma of")],
)
def test_parameters_of_other_libraries_are_told_what_they_are_here(params, words):
    with pytest.raises(TypeError, match=words):
        mercer.KernelFisherClassifier(**params)


def test_a_quantile_without_its_loss_is_refused():
    X = np.arange(20.0)[:, None]
    with pytest.raises(ValueError, match=r"quantile=0\.9 is for loss='pinball'"):
        mercer.KernelMachineRegressor(quantile=0.9).fit(X, X[:, 0])


def test_a_column_of_dates_is_named():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": np.arange(8.0), "when": pandas.date_range("2020-01-01", periods=8)})
    with pytest.raises(ValueError, match="column 'when' of X is of type"):
        mercer.SparseFisherClassifier().fit(frame, np.arange(8) % 2)


def test_more_centers_than_rows_need_no_memory_for_them():
    X = np.random.default_rng(0).normal(size=(30, 2))
    model = mercer.KernelFisherClassifier(mercer.kernels.RBF(gamma=0.5), centers=10**5).fit(X, np.arange(30) % 2)
    assert len(model.X_fit_) <= 30
