"""Marks of tests in a file that does without pytest: it also runs where only the wheel is installed."""

import pytest

# A test of time has the machine to itself; the whole README is a session of many fits.
MARKS = {
    "test_first_block_takes_about_a_second": pytest.mark.ratio,
    "test_readme_code_prints_what_it_says": pytest.mark.slow,
}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.name in MARKS:
            item.add_marker(MARKS[item.name])
