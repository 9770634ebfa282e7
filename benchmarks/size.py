"""Lines of source without docstrings, comments and blank lines: ``python benchmarks/size.py [revision ...]``.

One column for the files as they are, and one for each revision of git that is named.
"""

import ast
import io
import subprocess
import sys
import tokenize
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = "src/mercer"
IGNORED = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}


def source_lines(text):
    """The number of lines on which something stands that is executed."""
    used = {
        line
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type not in IGNORED
        for line in range(token.start[0], token.end[0] + 1)
    }
    for node in ast.walk(ast.parse(text)):
        first = node.body[0] if isinstance(getattr(node, "body", None), list) and node.body else None
        if (
            isinstance(first, ast.Expr)
            and isinstance(first.value, ast.Constant)
            and isinstance(first.value.value, str)
        ):
            used -= set(range(first.lineno, first.end_lineno + 1))
    return len(used)


def texts(revision):
    """Paths and texts of the package, as it is or as it was."""
    if revision is None:
        return {str(path.relative_to(ROOT)): path.read_text() for path in (ROOT / PACKAGE).rglob("*.py")}
    names = git("ls-tree", "-r", "--name-only", revision, PACKAGE).splitlines()
    return {name: git("show", f"{revision}:{name}") for name in names if name.endswith(".py")}


def git(*arguments):
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout


def room_of(name):
    parts = Path(name).relative_to(PACKAGE).parts
    return parts[0] if len(parts) > 1 else "."


def main(revisions):
    columns = []
    for revision in revisions:
        count = Counter()
        for name, text in texts(revision).items():
            count[room_of(name)] += source_lines(text)
        columns.append(count)
    for room in sorted(set().union(*columns)):
        print(f"{room:16}", *(f"{count[room]:8,}" for count in columns))
    print(f"{'all':16}", *(f"{count.total():8,}" for count in columns))


if __name__ == "__main__":
    main([None, *sys.argv[1:]])
