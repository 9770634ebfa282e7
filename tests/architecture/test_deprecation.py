"""What goes away says so, to whom it concerns, and works until then."""

import warnings

import pytest

from mercer._deprecation import deprecated


@deprecated(until="0.3", instead="new()")
def old(a, *, b=1):
    """Doubles."""
    return 2 * a * b


def test_what_is_deprecated_works_and_says_what_to_use_instead():
    with pytest.warns(FutureWarning, match=r"old\(\) will be removed in mercer 0.3; use new\(\)"):
        assert old(3, b=2) == 12
    assert (old.__name__, old.__doc__) == ("old", "Doubles.")


def test_the_warning_points_to_the_line_that_calls():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        old(1)
    assert caught[0].filename == __file__
