"""Exported source as a user would run it: a program that includes the header, a module in a process of its own."""

import json
import shutil
import subprocess
import sys

import numpy as np
import pytest

FLAGS = ["-Wall", "-Wextra", "-Werror", "-pedantic"]
COMPILERS = {"c": ["cc", "-std=c99"], "cpp": ["g++", "-std=c++11"]}

# Rows come as numbers on standard input; for each a line of outputs, one of probabilities, and the label.
MAIN = """
#include <stdio.h>
#include <string.h>
#include "model.h"
#include "model.h"

int main(void) {{
    double x[{d}], f[{q}];
    for (;;) {{
        for (int j = 0; j < {d}; j++) if (scanf("%lf", &x[j]) != 1) return 0;
        {name}_outputs(x, f);
        for (int c = 0; c < {q}; c++) printf("%.17g ", f[c]);
        printf("\\n");
        {classes}
    }}
}}
"""
CLASSES = """
        double p[{k}];
        {name}_probabilities(x, p);
        for (int c = 0; c < {k}; c++) printf("%.17g ", p[c]);
        printf("\\n");
        {label}
"""
LABELS = {
    str: """
        const char *label = {name}_label({name}_predict(x));
        for (size_t i = 0; i < strlen(label); i++) printf("%02x", (unsigned char) label[i]);
        printf("\\n");""",
    int: """
        printf("%lld\\n", {name}_label({name}_predict(x)));""",
    float: """
        printf("%.17g\\n", {name}_label({name}_predict(x)));""",
}
READERS = {str: lambda text: bytes.fromhex(text).decode(), int: int, float: float}


class Answers:
    """Outputs (n, q), probabilities (n, k) and labels (n,) that a program gave for rows."""

    def __init__(self, outputs, probabilities=None, labels=None):
        self.outputs, self.probabilities, self.labels = np.array(outputs), np.array(probabilities), labels


def main_program(q, k, d, name, kind):
    label = "" if kind is None else LABELS[kind].format(name=name)
    classes = CLASSES.format(k=k, name=name, label=label) if k else ""
    return MAIN.format(d=d, q=q, name=name, classes=classes)


@pytest.fixture
def run_c(tmp_path):
    """(header, rows, q outputs, k classes, kind of labels) -> Answers of the compiled program."""

    def run(header, X, *, q, k=0, name="model", kind=None, language="c"):
        compiler, standard = COMPILERS[language]
        if shutil.which(compiler) is None:
            pytest.skip(f"{compiler} is not here to compile with")
        X = np.asarray(X, dtype=np.float64)
        (tmp_path / "model.h").write_bytes(header.encode("ascii"))
        source = tmp_path / f"main.{language}"
        source.write_text(main_program(q, k, X.shape[1], name, kind))
        program = tmp_path / "main"
        build = [compiler, standard, *FLAGS, "-o", program, source, "-lm"]
        done = subprocess.run(build, capture_output=True, text=True, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        rows = "\n".join(" ".join(map(repr, row)) for row in X.tolist())
        lines = subprocess.run([program], input=rows, capture_output=True, text=True, check=True, cwd=tmp_path)
        return parsed(lines.stdout.splitlines(), k, kind)

    return run


def parsed(lines, k, kind):
    numbers = [[float(word) for word in line.split()] for line in lines[:: 3 if k else 1]]
    if not k:
        return Answers(numbers)
    probabilities = [[float(word) for word in line.split()] for line in lines[1::3]]
    return Answers(numbers, probabilities, [READERS[kind](line) for line in lines[2::3]])


SCRIPT = """
import json, sys
sys.path.insert(0, sys.argv[1])
import model
rows = json.load(sys.stdin)
print(json.dumps([model.outputs(x) for x in rows]))
if hasattr(model, "predict"):
    print(json.dumps([model.probabilities(x) for x in rows]))
    print(json.dumps([[type(model.predict(x)).__name__, model.predict(x)] for x in rows]))
print(json.dumps(sorted(name for name in sys.modules if name.split(".")[0] in ("numpy", "mercer", "sklearn"))))
"""


@pytest.fixture
def run_python(tmp_path):
    """(source, rows) -> Answers of the module, imported by an interpreter that sees nothing else."""

    def run(source, X):
        (tmp_path / "model.py").write_bytes(source.encode("ascii"))
        command = [sys.executable, "-I", "-S", "-W", "error", "-c", SCRIPT, tmp_path]
        text = json.dumps(np.asarray(X, dtype=np.float64).tolist())
        done = subprocess.run(command, input=text, capture_output=True, text=True, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        *answers, packages = [json.loads(line) for line in done.stdout.splitlines()]
        assert packages == []
        if len(answers) == 3:
            names = {"bool": bool, "int": int, "float": float, "str": str}
            labels = [value for _, value in answers[2]]
            assert [type(value) for value in labels] == [names[name] for name, _ in answers[2]]
            answers[2] = labels
        return Answers(*answers)

    return run


# One program for many headers: a line for each row of each, outputs, probabilities, the class and the novelty.
TABLE = """
static void run_{name}(const double *x) {{
    double f[{q}];
    {name}_outputs(x, f);
    for (int c = 0; c < {q}; c++) printf("%.17g ", f[c]);
    {rest}
    printf("\\n");
}}
"""
PARTS = {
    "probabilities": """double p[{k}];
    {name}_probabilities(x, p);
    for (int c = 0; c < {k}; c++) printf("%.17g ", p[c]);""",
    "predict": """printf("%d ", {name}_predict(x));""",
    "novelty": """printf("%.17g ", {name}_novelty(x));""",
}
MANY = """
#include <stdio.h>
{headers}
{tables}
int main(void) {{
    static const double rows[{n}][{d}] = {{ {rows} }};
    static void (*const run[])(const double *) = {{ {names} }};
    for (int i = 0; i < {count}; i++) for (int r = 0; r < {n}; r++) run[i](rows[r]);
    return 0;
}}
"""


class ManyAnswers:
    """For rows, by the name of the function: outputs (n, q), probabilities (n, k), classes and novelty (n,)."""

    def __init__(self, values, q, k, known):
        ends = np.cumsum([q, *(k if part == "probabilities" else 1 for part in known)])
        pieces = np.split(np.asarray(values, dtype=np.float64), ends[:-1], axis=1)
        self.outputs = pieces[0]
        self.parts = dict(zip(known, pieces[1:]))


@pytest.fixture
def run_many_c(tmp_path):
    """([header of case_0, case_1, ...], rows, [(q, k)]) -> [ManyAnswers] of one compiled program."""

    def run(headers, X, sizes):
        if shutil.which("cc") is None:
            pytest.skip("cc is not here to compile with")
        known = [[part for part in PARTS if f"case_{i}_{part}(" in h] for i, h in enumerate(headers)]
        tables = []
        for i, (q, k) in enumerate(sizes):
            rest = "\n    ".join(PARTS[part].format(name=f"case_{i}", k=k) for part in known[i])
            tables.append(TABLE.format(name=f"case_{i}", q=q, rest=rest))
            (tmp_path / f"case_{i}.h").write_text(headers[i], encoding="ascii")
        source = MANY.format(
            headers="\n".join(f'#include "case_{i}.h"' for i in range(len(headers))),
            tables="".join(tables),
            n=len(X),
            d=X.shape[1],
            rows=", ".join("{" + ", ".join(map(repr, row)) + "}" for row in X.tolist()),
            names=", ".join(f"run_case_{i}" for i in range(len(headers))),
            count=len(headers),
        )
        (tmp_path / "many.c").write_text(source)
        build = ["cc", "-std=c99", *FLAGS, "-o", "many", "many.c", "-lm"]
        done = subprocess.run(build, capture_output=True, text=True, cwd=tmp_path)
        assert done.returncode == 0, done.stderr[:2000]
        lines = subprocess.run([tmp_path / "many"], capture_output=True, text=True, check=True).stdout.splitlines()
        numbers = [[float(word) for word in line.split()] for line in lines]
        n = len(X)
        return [ManyAnswers(numbers[i * n : (i + 1) * n], *sizes[i], known[i]) for i in range(len(headers))]

    return run


MANY_SCRIPT = """
import importlib, json, sys
sys.path.insert(0, sys.argv[1])
rows, found = json.load(sys.stdin), []
for i in range(int(sys.argv[2])):
    module = importlib.import_module("case_%d" % i)
    parts = [part for part in ("probabilities", "predict", "novelty") if hasattr(module, part)]
    lines = [[module.outputs(x), *([getattr(module, part)(x)] for part in parts)] for x in rows]
    found.append([parts, lines, getattr(module, "CLASSES", None)])
json.dump(found, sys.stdout)
packages = ("numpy", "mercer", "sklearn")
assert not any(name.split(".")[0] in packages for name in sys.modules)
"""


@pytest.fixture
def run_many_python(tmp_path):
    """The same of modules, in one interpreter that sees nothing else; classes are numbers, too."""

    def run(sources, X, sizes):
        for i, source in enumerate(sources):
            (tmp_path / f"case_{i}.py").write_text(source, encoding="ascii")
        command = [sys.executable, "-I", "-S", "-W", "error", "-c", MANY_SCRIPT, tmp_path, str(len(sources))]
        done = subprocess.run(command, input=json.dumps(X.tolist()), capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-2000:]
        answers = []
        for (parts, lines, classes), (q, k) in zip(json.loads(done.stdout), sizes):
            rows = [[*line[0], *flattened(parts, line[1:], classes)] for line in lines]
            answers.append(ManyAnswers(rows, q, k, parts))
        return answers

    return run


def flattened(parts, values, classes):
    """What the functions of a module returned at one row, with labels as numbers of classes."""
    for part, (value,) in zip(parts, values):
        if part == "predict" and classes is not None:
            value = classes.index(value)
        yield from value if isinstance(value, list) else [value]
