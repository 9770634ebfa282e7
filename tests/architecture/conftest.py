"""Tests of time have the machine to themselves, also those of files that do without pytest."""

import pytest

TIMED = ("test_first_block_takes_under_a_second",)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.name in TIMED:
            item.add_marker(pytest.mark.ratio)
