"""What a pass says about itself."""

import io
import sys

import numpy as np
import pytest

from mercer.rows import MemoryRows
from mercer.rows import progress as module
from mercer.rows.progress import progress, sentence


class Screen(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def without_tqdm(monkeypatch):
    # None in the table of modules is how Python marks one that can not be imported.
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)


def pass_over(n, **options):
    return MemoryRows(np.ones((n, 1)), block_rows=4).reduce(lambda block: block.n_rows, **options)


def test_nothing_is_said_by_default(capsys):
    pass_over(10)
    assert capsys.readouterr() == ("", "")


def test_one_line_for_a_phase_without_tqdm(without_tqdm, capsys):
    pass_over(10, phase="moments", verbose=1)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("moments: 10 rows in ")
    assert err.endswith(" rows/s\n")
    assert err.count("\n") == 1


def test_the_line_is_ended_also_by_an_error(without_tqdm, capsys):
    with pytest.raises(ZeroDivisionError):
        MemoryRows(np.ones((10, 1))).reduce(lambda block: 1 // 0, phase="moments", verbose=1)
    assert capsys.readouterr().err.startswith("moments: 0 of 10 rows in ")


def test_on_a_screen_the_line_is_renewed(without_tqdm, monkeypatch):
    monkeypatch.setattr(sys, "stderr", Screen())
    monkeypatch.setattr(module, "PAUSE", 0.0)
    pass_over(10, phase="moments", verbose=1)
    states = sys.stderr.getvalue().split("\r\x1b[K")[1:]
    assert [state.split(" rows")[0] for state in states] == [
        "moments: 4 of 10",
        "moments: 8 of 10",
        "moments: 10",
        "moments: 10",
    ]
    assert states[-1].endswith("\n")


def test_a_bar_where_tqdm_is_installed(capsys):
    pytest.importorskip("tqdm", reason="tqdm is not installed: no bars here")
    pass_over(10, phase="moments", verbose=1)
    assert "moments: 100%" in capsys.readouterr().err
    with progress("", None, verbose=1) as advance:
        advance(7)
    assert "7.00 rows" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("moments", 0, 10, 0.0), "moments: 0 of 10 rows in 0.0 s, 0 rows/s"),
        (("moments", 5, 10, 2.0), "moments: 5 of 10 rows in 2.0 s, 2 rows/s, 2.0 s left"),
        (("moments", 10, 10, 2.0), "moments: 10 rows in 2.0 s, 5 rows/s"),
        (("", 2000, None, 2.0), "pass: 2,000 rows in 2.0 s, 1,000 rows/s"),
    ],
)
def test_the_line_has_rows_seconds_rate_and_time_left(arguments, said):
    assert sentence(*arguments) == said
