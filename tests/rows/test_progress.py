"""What a long computation says about itself."""

import io
import sys
import time

import numpy as np
import pytest

from mercer.rows import MemoryRows
from mercer.rows import _progress as module
from mercer.rows._progress import progress, say, sentence, stage


class Screen(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def without_tqdm(monkeypatch):
    # None in the table of modules is how Python marks one that can not be imported.
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)


@pytest.fixture
def every_phase(monkeypatch):
    """Phases are shown however short they are."""
    monkeypatch.setattr(module, "SHOWN_AFTER", 0.0)


def on_a_screen(monkeypatch):
    # In the test itself: what pytest captures is set between a fixture and its test.
    monkeypatch.setattr(sys, "stderr", Screen())
    return sys.stderr


def pass_over(n, **options):
    return MemoryRows(np.ones((n, 1)), block_rows=4).reduce(lambda block: block.n_rows, **options)


def test_nothing_is_said_by_default(every_phase, capsys):
    pass_over(10)
    with stage("decomposition", verbose=0):
        pass
    assert capsys.readouterr() == ("", "")


def test_a_phase_of_less_than_a_second_says_nothing(capsys):
    pass_over(10, phase="moments", verbose=1)
    with stage("decomposition", verbose=1):
        pass
    assert capsys.readouterr() == ("", "")


def test_a_line_is_said_at_once(capsys):
    say("fitted")
    assert capsys.readouterr() == ("", "fitted\n")


def test_one_line_for_a_phase_in_a_file(every_phase, capsys):
    pass_over(10, phase="moments", verbose=1)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("moments: 10 rows in ")
    assert err.endswith(" rows/s\n")
    assert err.count("\n") == 1


def test_the_line_is_ended_also_by_an_error(every_phase, capsys):
    with pytest.raises(ZeroDivisionError):
        MemoryRows(np.ones((10, 1))).reduce(lambda block: 1 // 0, phase="moments", verbose=1)
    assert capsys.readouterr().err.startswith("moments: 0 of 10 rows in ")


def test_a_long_phase_says_a_line_now_and_then_in_a_file(every_phase, capsys, monkeypatch):
    monkeypatch.setattr(module, "LINE_PAUSE", 0.01)
    monkeypatch.setattr(module, "LOG_PAUSE", 0.1)
    with progress("moments", 10, verbose=1) as advance:
        advance(4)
        time.sleep(0.5)
    first, *others, last = capsys.readouterr().err.splitlines()
    assert first.startswith("moments: 4 of 10 rows in 0.1 s")
    assert 1 <= len(others) <= 4
    assert last.startswith("moments: 4 of 10 rows in 0.")


def test_a_long_call_says_how_long_it_has_taken_so_far(every_phase, capsys, monkeypatch):
    monkeypatch.setattr(module, "LINE_PAUSE", 0.01)
    monkeypatch.setattr(module, "LOG_PAUSE", 0.2)
    with stage("decomposition of 10 rows", verbose=1):
        time.sleep(0.35)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "decomposition of 10 rows: 0.2 s so far"
    assert "so far" not in lines[-1]


def test_on_a_screen_the_line_is_renewed(every_phase, without_tqdm, monkeypatch):
    screen = on_a_screen(monkeypatch)
    # Long enough that the first rows come before the first line on a busy machine, too.
    monkeypatch.setattr(module, "LINE_PAUSE", 0.2)
    with progress("moments", 10, verbose=1) as advance:
        for n in (4, 4, 2):
            advance(n)
            time.sleep(0.5)
    states = screen.getvalue().split("\r\x1b[K")[1:]
    seen = list(dict.fromkeys(state.split(" rows")[0] for state in states))
    assert seen == ["moments: 4 of 10", "moments: 8 of 10", "moments: 10"]
    assert [state.endswith("\n") for state in states] == [False] * (len(states) - 1) + [True]


def test_rows_of_many_threads_are_all_counted(every_phase, capsys):
    from concurrent.futures import ThreadPoolExecutor

    with progress("moments", None, verbose=1) as advance, ThreadPoolExecutor(4) as pool:
        list(pool.map(advance, [1] * 1000))
    assert "moments: 1,000 rows" in capsys.readouterr().err


def test_a_bar_on_a_screen_where_tqdm_is_installed(every_phase, monkeypatch):
    pytest.importorskip("tqdm", reason="tqdm is not installed: no bars here")
    screen = on_a_screen(monkeypatch)
    pass_over(10, phase="moments", verbose=1)
    assert "moments: 100%" in screen.getvalue()
    with progress("", None, verbose=1) as advance:
        advance(7)
    assert "7.00 rows" in screen.getvalue()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("moments", 0, 10, 0.0), "moments: 0 of 10 rows in 0.0 s, 0 rows/s"),
        (("moments", 5, 10, 2.0), "moments: 5 of 10 rows in 2.0 s, 2 rows/s, 2.0 s left"),
        (("moments", 10, 10, 2.0), "moments: 10 rows in 2.0 s, 5 rows/s"),
        (("pass", 2000, None, 2.0), "pass: 2,000 rows in 2.0 s, 1,000 rows/s"),
        (("kernels", 0, 15, 2.0, "kernels"), "kernels: 0 of 15 kernels in 2.0 s"),
        (("kernels", 1, 15, 2.0, "kernels"), "kernels: 1 of 15 kernels in 2.0 s, 28.0 s left"),
        (("factors", 1, None, 2.0, "alphas"), "factors: 1 alpha in 2.0 s"),
        (("factors", 2, None, 2.0, "alphas"), "factors: 2 alphas in 2.0 s"),
    ],
)
def test_the_line_has_rows_seconds_rate_and_time_left(arguments, said):
    assert sentence(*arguments) == said
