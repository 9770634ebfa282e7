"""Pages that list other names and pages leave nothing out."""

import ast
import importlib
import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
EXAMPLES = DOCS.parent / "examples"
PUBLIC = ("mercer", "mercer.kernels", "mercer.centers", "mercer.plots", "mercer.datasets", "mercer.sequences")
INDEXES = ["guide", "howto", "benchmarks", "reference"]


def listed():
    """Names in summaries of the reference, and data described there, without their modules."""
    text = "\n".join(path.read_text(encoding="utf-8") for path in (DOCS / "reference").glob("*.rst"))
    blocks = re.findall(r"\.\. autosummary::\n(?: +:.*\n)*\n((?: +\S+\n)+)", text)
    names = [name for block in blocks for name in block.split()] + re.findall(
        r"^\.\. data:: (\S+)", text, flags=re.MULTILINE
    )
    return {name.split(".")[-1] for name in names}


@pytest.mark.parametrize("module", PUBLIC)
def test_every_public_name_is_in_the_reference(module):
    public = {name for name in importlib.import_module(module).__all__ if not name.startswith("__")}
    assert public - listed() == set()


def test_every_error_and_warning_is_in_the_reference():
    errors = importlib.import_module("mercer.errors")
    assert {name for name, value in vars(errors).items() if isinstance(value, type)} - listed() == set()


@pytest.mark.parametrize("folder", INDEXES)
def test_every_page_of_a_folder_is_announced_by_a_line(folder):
    text = (DOCS / folder / "index.rst").read_text(encoding="utf-8")
    pages = {path.stem for path in (DOCS / folder).glob("*.rst")} - {"index"}
    assert set(re.findall(r"^:doc:`(\w+)`\n +\S", text, flags=re.MULTILINE)) == pages
    assert set(text.split(":hidden:")[1].split()) == pages


def test_the_guide_lists_every_kernel_that_has_a_name():
    names = importlib.import_module("mercer.kernels._resolve").NAMES
    text = (DOCS / "guide" / "kernels.rst").read_text(encoding="utf-8")
    assert {name for name in names if f'`"{name}"`' not in text} == set()
    classes = {kernel.__name__ for name, kernel in names.items() if name != "precomputed"}
    assert {name for name in classes if f":class:`~mercer.kernels.{name}`" not in text} == set()


def test_make_bench_runs_every_benchmark_script():
    scripts = {path.name for path in (DOCS.parent / "benchmarks").glob("*.py")} - {"common.py"}
    recipe = (DOCS.parent / "Makefile").read_text(encoding="utf-8").split("bench:")[1]
    assert set(re.findall(r"benchmarks/(\w+\.py)", recipe)) == scripts


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("plot_*.py")), ids=lambda path: path.stem)
def test_every_example_is_announced_by_one_line(path):
    """The gallery shows the first paragraph of an example under its picture."""
    _, first, *_ = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))).split("\n\n")
    assert "\n" not in first
    assert first.endswith(".")


SAY_HOW_MANY = ["start", "guide/large", "guide/loo", "guide/regression"] + [
    f"howto/{name}" for name in ("batches", "coming_from_kernel_ridge", "coming_from_svc", "memory")
]


@pytest.mark.parametrize("page", SAY_HOW_MANY)
def test_pages_agree_on_up_to_how_many_rows_every_row_may_be_a_center(page):
    most = importlib.import_module("mercer.centers._resolve").MATTERING_ROWS
    text = (DOCS / f"{page}.rst").read_text(encoding="utf-8")
    assert re.search(rf"(up to|more than|beyond) {most:,} (rows|unless|if|at most)", text, flags=re.IGNORECASE)
