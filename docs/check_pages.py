"""What a reader of the built pages would stumble on: ``python docs/check_pages.py docs/_build/html``, offline.

Every page has a title and a heading, every link a text and a target, every formula is rendered, and nothing is
loaded from another host. Prints what is wrong, and exits with 1 if there is anything.
"""

import re
import sys
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit

# What TeX leaves on a page when nothing renders it: delimiters, and commands with arguments or indices.
RAW_TEX = re.compile(r"\\[()\[\]]|\$\$|\\[A-Za-z]{2,}")
# Text in these is meant as it stands.
VERBATIM = {"pre", "code", "script", "style", "math"}
# A tag that makes the browser load something, and where it says what.
LOADS = {"script": "src", "img": "src", "source": "src", "iframe": "src", "video": "src", "link": "href"}
# Links of these kinds tell search engines and readers of feeds, and load nothing.
SILENT = {"canonical", "index", "search", "next", "prev", "author"}
VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}
CSS_LOADS = re.compile(r"(?:url\(|@import\s)\s*[\"']?(?:https?:)?//", re.IGNORECASE)


@dataclass
class Link:
    """A link: where it leads, and what a reader sees of it."""

    href: str
    text: str = ""


@dataclass
class Page(HTMLParser):
    """What one page shows and asks for."""

    titles: list[str] = field(default_factory=list)
    headings: list[str] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)
    loads: list[str] = field(default_factory=list)
    anchors: set[str] = field(default_factory=set)
    prose: list[str] = field(default_factory=list)
    text: list[str] = field(default_factory=list)
    _open: list[str] = field(default_factory=list)

    def __post_init__(self):
        super().__init__(convert_charrefs=True)

    def handle_starttag(self, tag, attributes):
        attributes = {name: value or "" for name, value in attributes}
        self.anchors |= {attributes[name] for name in ("id", "name") if name in attributes}
        self._note(tag, attributes)
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag):
        if tag in self._open:
            del self._open[len(self._open) - 1 - self._open[::-1].index(tag) :]

    def handle_data(self, data):
        # A pilcrow or a sharp behind a heading is the link to it.
        shown = data.strip(" \n\t#¶")
        for tag, kept in (("title", self.titles), ("h1", self.headings)):
            if tag in self._open:
                kept[-1] += shown
        if "a" in self._open:
            self.links[-1].text += data.strip()
        self.text.append(data)
        if not VERBATIM & set(self._open):
            self.prose.append(data)

    def _note(self, tag, attributes):
        """Titles, headings, links and loads begin here."""
        if tag == "title" and "svg" not in self._open:
            self.titles.append("")
        elif tag == "h1":
            self.headings.append("")
        elif tag == "a":
            name = attributes.get("aria-label", "") or attributes.get("title", "")
            self.links.append(Link(attributes.get("href", ""), name))
        elif tag == "img" and "a" in self._open:
            self.links[-1].text += attributes.get("alt", "")
        if tag in LOADS and not SILENT & set(attributes.get("rel", "").split()):
            self.loads.append(attributes.get(LOADS[tag], ""))


def parsed(path):
    page = Page()
    page.feed(path.read_text(encoding="utf-8"))
    page.close()
    return page


def faults(folder):
    """One sentence for everything that is wrong with the pages of a folder."""
    pages = {path: parsed(path) for path in sorted(folder.rglob("*.html")) if "_static" not in path.parts}
    if not pages:
        return [f"{folder} has no pages; build them first: make docs"]
    return [
        f"{path.relative_to(folder)}: {fault}" for path, page in pages.items() for fault in of_page(path, pages)
    ] + [f"{path.relative_to(folder)}: loads from another host" for path in foreign_styles(folder)]


def of_page(path, pages):
    page = pages[path]
    yield from unnamed(page)
    yield from raw(page)
    for address in page.loads:
        if on_another_host(address):
            yield f"loads {address} from another host"
        elif missing(address, path, pages):
            yield f"loads {address}, which is not there"
    for link in page.links:
        if not on_another_host(link.href) and missing(link.href, path, pages):
            yield f"links to {link.href}, which is not there"


def unnamed(page):
    """A page without a title or heading, a link without a text."""
    if not any(page.titles):
        yield "has no title"
    if not any(page.headings):
        yield "has no heading"
    if "<no title>" in "".join(page.titles + page.text):
        yield "says <no title>"
    yield from (f"has a link to {link.href} without a text" for link in page.links if link.href and not link.text)


def raw(page):
    for text in page.prose:
        if found := RAW_TEX.search(text):
            yield f"shows raw TeX: {text[found.start() :][:60].strip()!r}"


def on_another_host(address):
    return bool(urlsplit(address).netloc) or urlsplit(address).scheme in ("mailto", "data")


def missing(address, path, pages):
    """Whether a file, or a place on a page, is not there."""
    name, anchor = urldefrag(address)
    file = path if not name else (path.parent / unquote(urlsplit(name).path)).resolve()
    if not file.is_file():
        return True
    return bool(anchor) and file in pages and unquote(anchor) not in pages[file].anchors


def foreign_styles(folder):
    return [path for path in sorted(folder.rglob("*.css")) if CSS_LOADS.search(path.read_text(encoding="utf-8"))]


def main(folder):
    found = faults(Path(folder).resolve())
    print("\n".join(found) or f"{folder}: no faults")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
