"""A list of the files of the package, each with the first line of its docstring, made when the pages are built."""

import ast
from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import Directive

PACKAGE = Path(__file__).parents[1] / "src" / "mercer"


def purpose(path):
    """The first sentence of a module's docstring."""
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return docstring.split("\n\n")[0].replace("\n", " ")


class SourceFiles(Directive):
    """``.. source-files::``"""

    def run(self):
        listed = nodes.definition_list()
        for path in sorted(PACKAGE.rglob("*.py")):
            term = nodes.term("", "", nodes.literal(text=path.relative_to(PACKAGE).as_posix()))
            listed += nodes.definition_list_item(
                "", term, nodes.definition("", nodes.paragraph(text=purpose(path)))
            )
        return [listed]


def setup(app):
    """What Sphinx asks of an extension."""
    app.add_directive("source-files", SourceFiles)
    return {"parallel_read_safe": True}
