"""The check of the built pages finds every fault it is meant to find, and nothing on a sound page."""

import check_pages
import pytest

SOUND = """<html><head><title>Guide — mercer</title><link rel="stylesheet" href="_static/page.css?v=1"></head>
<body><h1>Guide<a class="headerlink" href="#guide" id="guide">#</a></h1>
<a href="index.html#guide"><span>to the top</span></a> <a href="https://example.org/">outside</a>
<a href="index.html"><img src="_static/picture.png" alt="a picture"></a>
<p>The norm is <math><mi>x</mi></math>; write <code>r"\\frac{1}{n}"</code>.</p></body></html>"""


@pytest.fixture
def folder(tmp_path):
    """A folder with a sound page, a style and a picture."""
    (tmp_path / "_static").mkdir()
    (tmp_path / "_static" / "page.css").write_text("p { color: black; }", encoding="utf-8")
    (tmp_path / "_static" / "picture.png").write_bytes(b"")
    (tmp_path / "index.html").write_text(SOUND, encoding="utf-8")
    return tmp_path


def changed(folder, old, new):
    """Faults of the folder after a part of its page was replaced."""
    assert old in SOUND
    (folder / "index.html").write_text(SOUND.replace(old, new), encoding="utf-8")
    return check_pages.faults(folder)


def test_a_sound_page_has_no_faults(folder):
    assert check_pages.faults(folder) == []
    assert check_pages.main(folder) == 0


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ("Guide — mercer", "", "has no title"),
        ("Guide<a", "<a", "has no heading"),
        ("<span>to the top</span>", "<span>&lt;no title&gt;</span>", "says <no title>"),
        ("<span>to the top</span>", "<span></span>", "has a link to index.html#guide without a text"),
        ('alt="a picture"', 'alt=""', "has a link to index.html without a text"),
        ("The norm is", r"The norm \(x\) is", r"shows raw TeX: '\\(x\\) is'"),
        ("The norm is", r"The mean $$m$$ is", "shows raw TeX: '$$m$$ is'"),
        ("The norm is", r"The share \frac12 is", r"shows raw TeX: '\\frac12 is'"),
        ("_static/picture.png", "_static/photo.png", "loads _static/photo.png, which is not there"),
        ("_static/page.css?v=1", "//cdn.org/page.css", "loads //cdn.org/page.css from another host"),
        (
            "<h1>",
            '<script src="https://cdn.org/a"></script><h1>',
            "loads https://cdn.org/a from another host",
        ),
        ('"index.html"', '"guide.html"', "links to guide.html, which is not there"),
        ("index.html#guide", "#howto", "links to #howto, which is not there"),
    ],
)
def test_a_fault_is_named(folder, old, new, fault):
    assert changed(folder, old, new) == [f"index.html: {fault}"]
    assert check_pages.main(folder) == 1


def test_a_style_that_loads_from_another_host_is_named(folder):
    (folder / "_static" / "page.css").write_text('@import "https://fonts.org/a.css";', encoding="utf-8")
    assert check_pages.faults(folder) == ["_static/page.css: loads from another host"]


def test_an_empty_folder_is_not_taken_for_a_sound_one(tmp_path):
    (fault,) = check_pages.faults(tmp_path)
    assert fault.endswith("has no pages; build them first: make docs")
