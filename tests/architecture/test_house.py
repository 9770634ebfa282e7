"""The house keeps its own rules: what the pages say about the code is what the disk holds."""

import ast
import itertools
import re
import runpy
import subprocess
import sys
import tomllib
import types
from collections import Counter, defaultdict
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import mercer
from mercer import KernelFisherClassifier
from mercer.centers import Uniform
from mercer.datasets import make_banana
from mercer.kernels import RBF

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "mercer"
surface = types.SimpleNamespace(**runpy.run_path(str(Path(__file__).parent / "surface.py")))
SOURCES = sorted(PACKAGE.rglob("*.py"))
ARCHITECTURE = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")

# The hard dependencies, and the two packages scikit-learn cannot be without.
CORE = {"mercer", "numpy", "scipy", "sklearn", "joblib", "threadpoolctl"}
# An optional package and the one folder that may import it.
HOMES = {"matplotlib": "plots", "pyarrow": "rows", "tqdm": "rows", "hmmlearn": "sequences"} | dict.fromkeys(
    ("dask", "distributed", "cloudpickle", "ray", "pyspark"), "rows"
)


# Decorators, and what folds hand on, which a picture of the way of a fit leaves out.
PASSED_THROUGH = {"_estimators/report.py", "_estimators/fitted.py", "_linalg/threads.py"}

# Names that have better ones, and words in comments, docstrings and messages.
FORBIDDEN_NAMES = {
    *("anew", "begin_oriented", "begin_subspace", "beside", "blur", "by_promise", "CheckedRows", "Choice"),
    *("ClassAnswers", "COARSE", "COMPARED", "Compared", "CornerLoss", "Corners", "corners", "cosines_at"),
    *("Decomposed", "doubt", "doubted", "Draw", "Drawn", "DRAWS", "Encoded", "EveryPoint", "Exact"),
    *("Factored", "FEW", "finish", "fitted_sizes", "gate", "GROWTH", "honest", "hopeful", "INVISIBLE", "Kept"),
    *("Knowledge", "knowledge", "KNOWN", "LabelAnswers", "Labeled", "lazily", "lazily_whole", "Learned"),
    *("leave_each_out", "leave_out", "leave_some_out", "Leaving", "leaving_weight", "left_block", "left_out"),
    *("left_out_of_points", "left_out_of_state", "left_out_rows", "left_out_scores", "LeftOut", "LeftOutOf"),
    *("LeftOutRows", "LIMITED", "Load", "load_before", "load_of", "LONGEST", "moderates", "NEAR", "NOTHING"),
    *("NoveltyAnswers", "otherwise", "outside_memory", "Passage", "Passed", "price_of_choice"),
    *("ProbabilityAnswers", "promise", "promising", "relatives", "Room", "rows_left_out", "Rung", "rung"),
    *("RUNGS", "rungs", "seen", "select_again", "Setting", "settle", "settled", "settling_rows", "SEVERAL"),
    *("Sizes", "sizes_within", "SMOOTH", "Stage", "standing", "Takes", "takes", "TakesRows", "Task", "taught"),
    *("TINY", "Trained", "Tried", "truth", "Twins", "twins", "unsettled", "untaught", "ValueAnswers"),
    *("VISIBLE", "wanted_centers", "Watched", "with_corners", "WordAnswers", "worth"),
}
FORBIDDEN_WORDS = re.compile(
    r"\bleft[- ]out\b|outside memory|(with|has|have) corners|\bsettled\b|\bhonest\b|\banew\b|\bso many\b"
    r"|\bbeside\b|price of cho|given by (its|their) values|\bpromising\b|\brungs?\b|other meaning of",
    re.IGNORECASE,
)
# The folders in which numbers are computed, from rows to scores.
FLOORS = ("kernels", "_linalg", "rows", "_gram", "_solvers", "_scores", "centers")
NUMERICAL = [
    path
    for path in SOURCES
    if path.relative_to(PACKAGE).parts[0]
    in (*FLOORS, "_expansion.py", "_validation.py", "_types.py", "errors.py", "invariances.py", "bounds.py")
]


@cache
def tree(path):
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def walked(path):
    """Every node of a file."""
    return tuple(ast.walk(tree(path)))


def nodes(path, *kinds):
    return [node for node in walked(path) if isinstance(node, kinds)]


def offenders(keeps):
    """The files that do not keep a rule."""
    return [str(path.relative_to(PACKAGE)) for path in SOURCES if not keeps(path)]


def imported_packages(path):
    """Top-level names of everything a file imports, wherever the statement stands."""
    plain = {alias.name for node in nodes(path, ast.Import) for alias in node.names}
    modules = {node.module for node in nodes(path, ast.ImportFrom) if node.module}
    return {name.split(".")[0] for name in plain | modules}


def folder(path):
    """The folder of the package a file lives in; empty for the files at the top."""
    parts = path.relative_to(PACKAGE).parts
    return parts[0] if len(parts) > 1 else ""


def section(heading):
    """The text of one section of the architecture page."""
    return re.split(r"^## ", ARCHITECTURE.split(f"\n## {heading}\n")[1], flags=re.MULTILINE)[0]


def test_no_folder_has_more_files_than_a_reader_keeps_in_mind():
    sizes = Counter(path.parent for path in SOURCES if path.name != "__init__.py")
    assert {str(path): n for path, n in sizes.items() if n > 12} == {}


def test_the_architecture_page_is_short():
    assert len(ARCHITECTURE.splitlines()) <= 250


def pictured(number):
    """The files of one of the two pictures of the way of a fit."""
    picture = section("The way of a fit").split("```")[2 * number + 1].removeprefix("text").strip()
    return [line.split()[0] for line in picture.splitlines()]


class Stacks:
    """Files of the package on the way to a function of one of them, from the estimator's file on."""

    def __init__(self, end):
        self.end, self.found = str(PACKAGE / end), []

    def __call__(self, frame, event, arg):
        if event == "call" and frame.f_code.co_filename == self.end:
            files = []
            while frame is not None:
                if (path := Path(frame.f_code.co_filename)).is_relative_to(PACKAGE):
                    files.append(path.relative_to(PACKAGE).as_posix())
                frame = frame.f_back
            self.found.append([file for file, _ in itertools.groupby(reversed(files))])


@pytest.mark.parametrize(("number", "choice"), [(0, {}), (1, {"centers": Uniform(20)})], ids=["exact", "moments"])
def test_the_picture_of_a_fit_is_the_way_of_its_calls(number, choice):
    path = pictured(number)
    stacks, (X, y) = Stacks(path[-1]), make_banana(60, random_state=0)
    model = KernelFisherClassifier(RBF(gamma=0.5), **choice)
    sys.setprofile(stacks)
    try:
        model.fit(X, y)
    finally:
        sys.setprofile(None)
    # Decorators come before, and blocks may be folded through the fold that encodes them.
    ways = [[file for file in way if file not in PASSED_THROUGH] for way in stacks.found]
    assert path in [way[way.index(path[0]) :] for way in ways if path[0] in way]
    assert len(path) <= 6


def test_what_has_no_underscore_is_public_and_stored():
    stored = (Path(__file__).parent / "public.txt").read_text(encoding="utf-8").splitlines()
    found = list(surface.lines())
    # A difference is a decision: it is stored as surface.py says, with a line in CHANGELOG.md.
    assert sorted(set(stored) ^ set(found)) == []


def test_public_modules_are_those_of_the_reference():
    pages = "\n".join(page.read_text(encoding="utf-8") for page in (ROOT / "docs" / "reference").glob("*.rst"))
    assert [name for name in surface.modules() if name not in pages] == []


def test_the_picture_of_the_layers_is_the_import_contract():
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    picture = section("The layers").split("```")[1].removeprefix("text").strip()
    assert [re.split(r" {2,}", line)[0] for line in picture.splitlines()] == contracts["contracts"][0]["layers"]


def test_every_module_has_its_layer_and_only_kernels_lead_to_scikit_learn():
    """What the import contracts ask for; ``lint-imports`` checks that it is so."""
    layers, without = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    assert layers["exhaustive"]
    sources = {
        "mercer._validation",
        "mercer._linalg",
        "mercer.rows",
        "mercer._gram",
        "mercer._solvers",
        "mercer._scores",
    }
    assert sources <= set(without["source_modules"])
    assert without["forbidden_modules"] == ["sklearn"]
    assert not without.get("allow_indirect_imports", False)
    assert without["ignore_imports"] == ["mercer.kernels.** -> sklearn"]


def classes():
    """Every class of the package, with the file it is in."""
    return [(path, node) for path in SOURCES for node in nodes(path, ast.ClassDef)]


def constants(path):
    """Names in capitals that a file assigns at its top."""
    parts = [part for part in tree(path).body if isinstance(part, ast.Assign | ast.AnnAssign)]
    targets = [target for part in parts for target in getattr(part, "targets", [getattr(part, "target", None)])]
    names = {name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)}
    return {name for name in names if name.isupper()}


def given_names(path):
    """Every name that a file gives or uses, attributes and arguments included."""
    return {getattr(node, part, None) for node in walked(path) for part in ("id", "attr", "name", "arg")}


def test_words_that_readers_stumble_over_do_not_come_back():
    assert {path.name: found for path in SOURCES if (found := FORBIDDEN_NAMES & given_names(path))} == {}
    assert [str(path) for path in SOURCES if FORBIDDEN_WORDS.search(path.read_text(encoding="utf-8"))] == []


def test_no_constant_has_the_name_of_another():
    assert repeated(name for path in SOURCES for name in constants(path)) == []


def test_tolerances_of_floating_point_types_have_one_home():
    assert [path.name for path in NUMERICAL if "finfo" in names_in(tree(path))] == ["tolerance.py"]


def methods(node):
    """The functions that stand in the body of a class."""
    return [part for part in node.body if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef)]


def repeated(names):
    return sorted(name for name, n in Counter(names).items() if n > 1)


def test_no_two_classes_have_the_same_name():
    assert repeated(node.name for _, node in classes()) == []


def statements(function):
    """The body of a function without its docstring."""
    return function.body[1:] if ast.get_docstring(function) is not None else function.body


def does_nothing(function):
    """Whether a body says nothing that could be said in one place.

    Abstract bodies are empty. A return of a constant or of names and attributes computes nothing: it is the answer
    of a class to a question (``return True``), a default that changes nothing (``return self``), or hands on what
    another object knows. Constructors store their parameters one by one, as scikit-learn asks for, since it reads
    their names from the signature.
    """
    body = statements(function)
    if function.name == "__init__":
        return all(isinstance(part, ast.Assign) and isinstance(part.value, ast.Name) for part in body)
    if len(body) == 1 and isinstance(body[0], ast.Return) and body[0].value is not None:
        parts = ast.walk(body[0].value)
        return all(isinstance(part, ast.Constant | ast.Name | ast.Attribute | ast.Load) for part in parts)
    return all(isinstance(part, ast.Pass) or ast.unparse(part) == "..." for part in body)


def test_no_two_classes_have_a_method_with_the_same_body():
    bodies = defaultdict(dict)
    for path, node in classes():
        for function in methods(node):
            if not does_nothing(function):
                body = "\n".join(map(ast.dump, statements(function)))
                bodies[body][node.name] = f"{path.relative_to(PACKAGE)}: {node.name}.{function.name}"
    assert [sorted(places.values()) for places in bodies.values() if len(places) > 1] == []


def test_attributes_are_where_they_are_looked_for():
    hidden = {"__getattr__", "__getattribute__"}
    assert [node.name for _, node in classes() if hidden & {function.name for function in methods(node)}] == []


def test_no_class_has_more_methods_than_a_reader_keeps_in_mind():
    many = {node.name: len(methods(node)) for _, node in classes()}
    assert {name: n for name, n in many.items() if n > 15} == {}


def asked_for(path, question):
    """What attributes the calls of hasattr or getattr in a file are about."""
    calls = [
        node for node in nodes(path, ast.Call) if isinstance(node.func, ast.Name) and node.func.id == question
    ]
    return {call.args[1].value for call in calls if isinstance(call.args[1], ast.Constant)}


def reads_rows(path):
    """Whether a file is among those that read tables of rows."""
    return folder(path) in ("rows", "_estimators") or path.name == "_validation.py"


def test_what_holds_a_table_of_rows_is_asked_where_rows_are_read():
    held = {"shape", "iloc", "indptr", "to_numpy", "columns", "toarray"}
    assert offenders(lambda path: reads_rows(path) or not asked_for(path, "hasattr") & held) == []
    assert offenders(lambda path: reads_rows(path) or "issparse" not in imported_names(path)) == []


def imported_names(path):
    """What a file imports from modules, by name."""
    return {alias.name for node in nodes(path, ast.ImportFrom) for alias in node.names}


def compared_constants(path):
    """The constants that stand on a side of a comparison."""
    sides = [side for node in nodes(path, ast.Compare) for side in (node.left, *node.comparators)]
    return {side.value for side in sides if isinstance(side, ast.Constant)}


def test_kernels_are_asked_and_not_their_attributes_looked_for():
    words = {"vectors", "objects", "values"}
    asking = ("kernels", "_estimators")
    assert offenders(lambda path: folder(path) in asking or not compared_constants(path) & words) == []
    assert offenders(lambda path: folder(path) == "_estimators" or "gamma" not in asked_for(path, "getattr")) == []


def test_randomness_inside_is_a_generator():
    """What scikit-learn calls ``random_state`` is made one in the models, in one function."""
    old = {"RandomState", "randint", "check_random_state"}
    used = {
        (path, function.name)
        for path in SOURCES
        if folder(path) != "datasets" and old & names_in(tree(path))
        for function in nodes(path, ast.FunctionDef)
        if old & names_in(function)
    }
    assert used == {(PACKAGE / "_estimators" / "parameters.py", "generator")}


def names_in(node):
    """Every name and attribute that is used within."""
    found = [part for part in ast.walk(node) if isinstance(part, ast.Name | ast.Attribute)]
    return {part.id if isinstance(part, ast.Name) else part.attr for part in found}


def called_methods(path):
    return {node.func.attr for node in nodes(path, ast.Call) if isinstance(node.func, ast.Attribute)}


def test_kernel_blocks_are_computed_in_gram_only():
    blocks = ("_gram", "kernels")
    assert offenders(lambda path: folder(path) in blocks or "block" not in called_methods(path)) == []


def test_the_public_names_are_the_importable_ones():
    values = {name: value for name, value in vars(mercer).items() if not name.startswith("_")}
    importable = {name for name, value in values.items() if not isinstance(value, types.ModuleType)}
    assert {name for name in mercer.__all__ if not name.startswith("__")} == importable


def test_the_public_names_are_few_and_listed_once():
    assert 0 < len(mercer.__all__) <= 30
    assert len(set(mercer.__all__)) == len(mercer.__all__)


def test_every_module_says_what_it_is_for():
    assert offenders(lambda path: ast.get_docstring(tree(path))) == []


def called_functions(path):
    return {node.func.id for node in nodes(path, ast.Call) if isinstance(node.func, ast.Name)}


def test_nothing_is_printed():
    assert offenders(lambda path: "print" not in called_functions(path)) == []


def test_an_optional_package_is_imported_in_its_folder_only():
    foreign = {path: imported_packages(path) - CORE - sys.stdlib_module_names for path in SOURCES}
    assert offenders(lambda path: all(HOMES.get(name) == folder(path) for name in foreign[path])) == []


def test_imports_are_absolute():
    assert offenders(lambda path: all(node.level == 0 for node in nodes(path, ast.ImportFrom))) == []


def function_lengths():
    """Lines of every function without its docstring, by name."""
    return {
        f"{path.relative_to(PACKAGE)}:{node.name}:{node.lineno}": lines_of_code(node)
        for path in SOURCES
        for node in nodes(path, ast.FunctionDef, ast.AsyncFunctionDef)
    }


def lines_of_code(node):
    first = node.body[0]
    docstring = first.end_lineno - first.lineno + 1 if ast.get_docstring(node) is not None else 0
    return node.end_lineno - node.lineno + 1 - docstring


def test_functions_fit_in_a_glance():
    lengths = list(function_lengths().values())
    assert np.median(lengths) <= 10
    assert np.quantile(lengths, 0.9) <= 25


def test_no_function_is_longer_than_a_page():
    assert {name: length for name, length in function_lengths().items() if length > 60} == {}


def committed_files():
    """Files of the repository that are, or would be, under version control."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    try:
        names = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("this is not a checkout: no list of committed files")
    return [ROOT / name for name in names.splitlines() if (ROOT / name).is_file()]


def test_no_file_knows_the_machine_it_was_written_on():
    # The name of a home or a work folder at the start of a path, or a folder outside the repository.
    path_of_one_machine = re.compile(rb"(?<![\w.])/(?:home|Users|root|work)/|\b(?:shared)/")
    files = [path for path in committed_files() if path != ROOT / ".ci" / "run"]
    assert [str(path) for path in files if path_of_one_machine.search(path.read_bytes())] == []
