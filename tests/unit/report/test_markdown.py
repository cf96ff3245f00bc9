"""A page of a cause, and a text of a lab, in a terminal and as HTML."""

from __future__ import annotations

import pytest

from helpers.report.markdown import inline, paragraph, plain, section

TEXT = "One\nparagraph.\n\nTwo:\n- first\n  line\n- second\n\n1. step\n2. next\n"


def test_paragraphs_and_lists_in_a_terminal() -> None:
    assert plain(TEXT, 100) == [
        *("  One paragraph.", "", "  Two:", "  - first line", "  - second", "  1. step", "  2. next")
    ]
    assert plain("- first and\n- second", 10) == ["  - first", "    and", "  - second"]
    assert plain("", 100) == []


def test_paragraphs_and_lists_as_html() -> None:
    html = section(TEXT).replace("\n", " ")

    assert html.startswith("<p>One paragraph.</p> <p>Two:</p> <ul> <li>first line</li>")
    assert html.endswith("<ol> <li>step</li> <li>next</li> </ol> ")


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("`a < b` and `c`", "<code>a &lt; b</code> and <code>c</code>"),
        ("one ` alone", "one ` alone"),
        ("<b onclick='x'>&lt;", "&lt;b onclick=&#x27;x&#x27;&gt;&amp;lt;"),
        ("pkg/__init__.py *x* [y](http://z) # no", "pkg/__init__.py *x* [y](http://z) # no"),
        ("two\n\nlines \x1b[31m", "two lines"),
    ],
)
def test_nothing_but_code_is_markup_in_a_line(text: str, html: str) -> None:
    assert inline(text) == html
    assert paragraph(text) == f"<p>{html}</p>"


def test_words_are_strong_where_that_is_asked_for() -> None:
    text = "**Your** `**turn**` in __init__"
    assert inline(text, strong=True) == "<strong>Your</strong> <code>**turn**</code> in __init__"
