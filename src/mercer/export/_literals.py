"""Values and names as source text: a label becomes an escaped literal in plain ASCII, or raises an error."""

import re
import string
from typing import Any

import numpy as np
from numpy.typing import NDArray

Label = bool | int | float | str

# Characters written as themselves in a C string; all others, and thus trigraphs, become three-digit octal escapes.
PLAIN = frozenset((string.ascii_letters + string.digits + " _-.,:;()+=").encode())
# Compilers must accept string literals of this many bytes (C99, 5.2.4.1), but may reject longer ones.
MOST_BYTES = 4095
KEYWORDS = """
    alignas alignof and and_eq asm auto bitand bitor bool break case catch char char8_t char16_t char32_t class
    compl concept const const_cast consteval constexpr constinit continue co_await co_return co_yield decltype
    default delete do double dynamic_cast else enum explicit export extern false float for friend goto if inline
    int long mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected public register
    reinterpret_cast requires restrict return short signed sizeof static static_assert static_cast struct switch
    template this thread_local throw true try typedef typeid typename typeof typeof_unqual union unsigned using
    virtual void volatile wchar_t while xor xor_eq
"""


def c_name(name: Any) -> str:
    """``name``, if it is a valid prefix of functions in C and C++."""
    if not isinstance(name, str) or re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name, re.ASCII) is None:
        raise ValueError(
            f"name={name!r} is not a C identifier; use letters, digits and underscores, starting with a letter, "
            'such as "model"'
        )
    if name in KEYWORDS.split():
        raise ValueError(f'name="{name}" is a keyword of C or C++; use another name, such as "{name}_model"')
    return name


def finite(what: str, values: NDArray[Any]) -> NDArray[Any]:
    """The numbers, if all of them can be written as literals."""
    broken = np.count_nonzero(~np.isfinite(values))
    if broken > 0:
        raise ValueError(
            f"{broken} of {values.size} numbers in the table {what} are infinite or NaN and cannot be written as "
            "literals; refit the model on scaled features"
        )
    return values


def plain_labels(classes: NDArray[Any]) -> list[Label]:
    """The labels as plain Python values: Booleans, integers, finite floats or strings."""
    return [_plain(label) for label in classes]


def _plain(label: Any) -> Label:
    # A date in nanoseconds would become an integer.
    is_date = isinstance(label, np.datetime64 | np.timedelta64)
    value = label.item() if isinstance(label, np.generic) and not is_date else label
    if type(value) in (bool, int, str) or (type(value) is float and np.isfinite(value)):
        plain: Label = value
        return plain
    raise ValueError(
        f"a class label of type {type(label).__name__} cannot be written as a literal; fit the model to strings "
        "or finite numbers, such as y.astype(str)"
    )


def python_labels(labels: list[Label]) -> str:
    """A list; ``ascii`` of the four types is a literal of the same value."""
    return "[" + ", ".join(map(ascii, labels)) + "]"


def c_labels(labels: list[Label]) -> tuple[str, str]:
    """The C type of the labels, and an initializer of an array of them."""
    kinds = {type(label) for label in labels}
    for kind, c_type, literal in (
        ({str}, "const char *", _c_string),
        ({bool, int}, "long long ", _c_integer),
        ({bool, int, float}, "double ", _c_double),
    ):
        if kinds <= kind:
            return c_type, "{" + ", ".join(map(literal, labels)) + "}"
    raise ValueError(
        f"class labels of the types {', '.join(sorted(kind.__name__ for kind in kinds))} have no common type in "
        "C; fit the model to strings or to numbers"
    )


def _c_string(label: Any) -> str:
    """UTF-8 between quotation marks."""
    try:
        data = label.encode("utf-8")
    except UnicodeEncodeError:
        raise ValueError(
            f"the class label {label!a} contains surrogate code points, which UTF-8 cannot encode; fit the model "
            "to other labels"
        ) from None
    if 0 in data:
        raise ValueError(
            f"the class label {label!a} contains a null character, which ends a string in C; fit the model to "
            "other labels"
        )
    if len(data) > MOST_BYTES:
        raise ValueError(
            f"a class label has {len(data)} bytes, but C compilers need not accept more than {MOST_BYTES}; fit "
            "the model to shorter labels"
        )
    return '"' + "".join(chr(byte) if byte in PLAIN else f"\\{byte:03o}" for byte in data) + '"'


def _c_integer(label: Any) -> str:
    number = int(label)
    if not -(2**63) <= number < 2**63:
        raise ValueError(
            f"the class label {number} does not fit into the 64 bits of a C long long; fit the model to smaller "
            "numbers"
        )
    # -9223372036854775808 is parsed as minus a number that is too large.
    return f"{number}LL" if number > -(2**63) else f"({number + 1}LL - 1)"


def _c_double(label: Any) -> str:
    return repr(float(label))
