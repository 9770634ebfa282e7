"""How the pages are built: ``sphinx-build -W --keep-going docs docs/_build/html``, offline."""

import os
import re
import sys
from pathlib import Path

import mercer

# One BLAS thread: the gallery fits small models, for which threads cost more than they bring.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# For mathml, source_files and gallery_order.
sys.path.insert(0, str(Path(__file__).parent))

project = "mercer"
author = "The mercer developers"
copyright = "The mercer developers"
release = mercer.__version__
version = release

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
    "mathml",
    "source_files",
]
templates_path = ["_templates"]
exclude_patterns = ["_build", "gallery/*.ipynb", "gallery/*.py"]
default_role = "code"
math_number_all = False
html_math_renderer = "mathml"
toc_object_entries_show_parents = "hide"

autosummary_generate = True
autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": "/plot_",
    "within_subsection_order": "gallery_order.reading_order",
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
    # Its tables come from another host.
    "write_computation_times": False,
    "show_signature": False,
    "abort_on_example_error": True,
    "plot_gallery": "True",
}

html_theme = "pydata_sphinx_theme"
html_title = "mercer"
html_show_sourcelink = False
html_copy_source = False
html_static_path = ["_static"]
html_css_files = ["mercer.css"]
html_theme_options = {
    "navbar_align": "left",
    "header_links_before_dropdown": 6,
    "show_nav_level": 1,
    "show_toc_level": 2,
    "navbar_end": ["theme-switcher"],
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_sidebars = {"index": [], "start": [], "changelog": [], "architecture": [], "security": [], "stability": []}


def escaped(line):
    """A line of text in which |x| and m_ are formulas and not markup; ``code`` stays as it is."""
    parts = re.split(r"(``.*?``)", line)
    parts[::2] = [re.sub(r"(?<!\\)\||(?<=\w)_(?=[-+)\s]|$)", r"\\\g<0>", text) for text in parts[::2]]
    return "".join(parts)


def escape_formulas(app, what, name, obj, options, lines):
    """Docstrings are written for the terminal: their formulas are escaped here, their examples are not."""
    example = False
    for i, line in enumerate(lines):
        example = line.lstrip().startswith(">>>") or (example and bool(line.strip()))
        lines[i] = line if example else escaped(line)


def setup(app):
    app.connect("autodoc-process-docstring", escape_formulas, priority=900)
