"""Formulas as MathML, written into the pages when they are built: a reader needs neither scripts nor a network."""

import re
from itertools import pairwise
from xml.etree import ElementTree

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.locale import _
from sphinx.util import logging
from sphinx.util.math import get_node_equation_number

logger = logging.getLogger(__name__)

NAMESPACE = "http://www.w3.org/1998/Math/MathML"
PRIME = "\N{PRIME}"
TIGHT = {"|", "/"}
SIGNS = {"-", "\N{MINUS SIGN}", "+"}
OPENING = {"(", "["}
CLOSING = re.compile(r"[.,;:!?)]+")


def markup(formula, *, display):
    """A formula in TeX as MathML; ValueError for what cannot be rendered."""
    mathml = convert(formula, display=display).replace("<mi>&</mi>", "<mi>&amp;</mi>")
    if left := re.findall(r"\\[A-Za-z]+|&amp;", mathml):
        raise ValueError(f"{left[0]} in the formula {formula!r} is not rendered; write it in another way")
    root = ElementTree.fromstring(mathml)
    for element in list(root.iter()):
        lower_prime(element)
        space_as_tex(element)
    ElementTree.register_namespace("", NAMESPACE)
    return ElementTree.tostring(root, encoding="unicode")


def lower_prime(element):
    """A prime is a superscript by its glyph already: x' and x_i' become (x)' and (x_i)'."""
    kind = {tag(name): tag(without) for name, without in (("msup", "mrow"), ("msubsup", "msub"))}.get(element.tag)
    if kind is None or element[-1].text != PRIME:
        return
    base = ElementTree.Element(kind)
    base.extend(element[:-1])
    prime = ElementTree.Element(tag("mo"), lspace="0", rspace="0")
    prime.text = PRIME
    element[:] = [base, prime]
    element.tag = tag("mrow")


def space_as_tex(element):
    """No space around bars and slashes, nor behind a sign that opens a parenthesis."""
    for before, operator in pairwise([None, *element]):
        if operator.tag == tag("mo") and operator.text in TIGHT:
            operator.attrib |= {"lspace": "0", "rspace": "0"}
        if operator.text in SIGNS and before is not None and before.text in OPENING:
            operator.set("form", "prefix")


def tag(name):
    return f"{{{NAMESPACE}}}{name}"


def rendered(node, display):
    """The MathML of a node; what cannot be rendered is a warning, and so an error of the build."""
    try:
        return markup(node.astext(), display=display)
    except ValueError as error:
        logger.warning(str(error), location=node)
        return ""


def keep_together(app, doctree, docname):
    """No line begins with the comma behind a formula: what closes it belongs to its node."""
    for node in doctree.findall(nodes.math) if app.builder.format == "html" else ():
        text = node.next_node(siblings=True, descend=False)
        if isinstance(text, nodes.Text) and (closing := CLOSING.match(text)):
            node["closing"] = closing.group()
            node.parent.replace(text, nodes.Text(text[closing.end() :]))


def visit_inline(self, node):
    self.body.append(self.starttag(node, "span", "", CLASS="math notranslate nohighlight"))
    self.body.append(f"{rendered(node, 'inline')}{node.get('closing', '')}</span>")
    raise nodes.SkipNode


def visit_block(self, node):
    self.body.append(self.starttag(node, "div", CLASS="math notranslate nohighlight"))
    if node["number"]:
        self.body.append(f'<span class="eqno">({get_node_equation_number(self, node)})')
        self.add_permalink_ref(node, _("Link to this equation"))
        self.body.append("</span>")
    self.body.append(f'<div class="formula">{rendered(node, "block")}</div></div>\n')
    raise nodes.SkipNode


def setup(app):
    app.add_html_math_renderer(
        "mathml", inline_renderers=(visit_inline, None), block_renderers=(visit_block, None)
    )
    app.connect("doctree-resolved", keep_together)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
