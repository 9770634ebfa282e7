"""Formulas of the pages are written as MathML when the pages are built."""

import importlib
from xml.etree import ElementTree

import pytest

pytest.importorskip("sphinx", reason="formulas are rendered by Sphinx: pip install mercer[docs]")
pytest.importorskip("latex2mathml", reason="formulas are rendered by latex2mathml: pip install mercer[docs]")
markup = importlib.import_module("mathml").markup


def elements(formula):
    """Tags without their namespace, texts and attributes of all parts of a formula."""
    root = ElementTree.fromstring(markup(formula, display="inline"))
    return [(part.tag.split("}")[1], part.text, part.attrib) for part in root.iter()]


def operators(formula, text):
    return [attributes for name, found, attributes in elements(formula) if (name, found) == ("mo", text)]


@pytest.mark.parametrize("formula", [r"c'Kc", r"\|x - z\|^2", r"\frac{r_i}{1 - h_i}", r"\tfrac1n \sum_i w_i k_i'"])
def test_a_formula_is_mathml_without_tex(formula):
    rendered = markup(formula, display="block")
    assert rendered.startswith('<math xmlns="http://www.w3.org/1998/Math/MathML" display="block">')
    assert "\\" not in rendered


@pytest.mark.parametrize("formula", [r"\begin{aligned} a &= b \end{aligned}", r"\nosuchcommand x"])
def test_what_cannot_be_rendered_is_refused_by_its_name(formula):
    with pytest.raises(ValueError, match="is not rendered; write it in another way"):
        markup(formula, display="inline")


@pytest.mark.parametrize("formula", ["x'", "x_i'"])
def test_a_prime_is_no_superscript_because_its_glyph_is_raised(formula):
    assert {"msup", "msubsup"} & {name for name, _, _ in elements(formula)} == set()
    assert len(operators(formula, "′")) == 1


def test_a_square_stays_a_superscript():
    assert "msup" in {name for name, _, _ in elements("x^2")}


def test_bars_and_slashes_stand_close():
    tight = {"lspace": "0", "rspace": "0"}
    assert [attributes | tight for attributes in operators("|e_i| / n", "|")] == operators("|e_i| / n", "|")
    assert operators("a / b", "/")[0] | tight == operators("a / b", "/")[0]


def test_a_sign_that_opens_a_parenthesis_is_no_difference():
    assert [attributes.get("form") for attributes in operators(r"(-a - b)", "−")] == ["prefix", None]
