"""How many cases are tried, and what became of them."""

from collections import Counter

import pytest
from hypothesis import HealthCheck, settings

COUNT: Counter[str] = Counter()


def pytest_configure(config):
    many = config.getoption("--long", default=None)
    quiet = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]
    settings.register_profile(
        "hostile",
        max_examples=many or 40,
        deadline=None,
        derandomize=many is None,
        suppress_health_check=quiet,
        print_blob=True,
    )


@pytest.fixture(scope="session")
def count():
    """What became of the cases, by kind."""
    return COUNT


def pytest_terminal_summary(terminalreporter):
    if COUNT:
        terminalreporter.write_line(
            "hostile cases: " + ", ".join(f"{n} {kind}" for kind, n in sorted(COUNT.items()))
        )
