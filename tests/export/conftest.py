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
