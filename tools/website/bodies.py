"""The body of a page: a notebook, a Markdown file or a program as HTML. Its links are as in the file."""

from __future__ import annotations

import re
from functools import cache
from html import escape
from pathlib import Path

import nbformat
from lessons import outputs_of
from markdown_it import MarkdownIt
from markupsafe import Markup
from nbconvert import HTMLExporter
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import TextLexer, get_lexer_by_name, get_lexer_for_filename
from pygments.util import ClassNotFound

from helpers.diagnose.pages import names, page
from helpers.labs.practice import LEVELS, all_hangs

from .places import CAUSES, ROOT

TEMPLATES = Path(__file__).with_name("templates")

LIVE = "<p>In JupyterLab, this is a live panel. What it says:</p>"
"""Above the saved text of a cell whose widgets need a kernel."""

FIRST_HANG = '<p><a href="../front">Play this recording</a> on the first page.</p>'

_COMMENT = re.compile(r"\s*<!--.*?-->", re.DOTALL)


def notebook(source: str) -> str:
    """A notebook with its outputs. A panel is shown as its text, since a page has no kernel."""
    read = nbformat.read(outputs_of(ROOT / source), as_version=4)
    for cell in read.cells:
        panels = [output for output in cell.get("outputs", ()) if _ended(output)]
        if panels:
            cell.outputs = [output for output in cell.outputs if output not in panels]
            cell.outputs[0].metadata["live"] = _live(cell.source)
    body, _ = _exporter().from_notebook_node(read)
    return str(body)


def _ended(output: nbformat.NotebookNode) -> bool:
    """True for the sentence beside a panel, which says that its kernel has ended."""
    return "sr-ended" in output.get("data", {}).get("text/html", "")


def _live(cell: str) -> str:
    """What stands above a panel's text: where this site plays the same, too."""
    if "open_first_hang()" in cell:
        return FIRST_HANG + LIVE
    return (_hangs() if "open_practice()" in cell else "") + LIVE


def _hangs() -> str:
    """Links to the recordings of the practice, level by level."""
    rows = []
    for level in LEVELS:
        named = [hang.name for hang in all_hangs() if hang.level == level]
        links = [f'<a href="hangs/{name}">{name}</a>' for name in named]
        rows.append(f"<dt>{level}</dt><dd>{' '.join(links)}</dd>")
    return f'<p>Each plays in a page of its own:</p><dl class="hangs">{"".join(rows)}</dl>'


@cache
def _exporter() -> HTMLExporter:
    return HTMLExporter(
        template_name="notebook",
        extra_template_basedirs=[str(TEMPLATES)],
        exclude_anchor_links=True,
        enable_async=False,
    )


def document(source: str) -> str:
    """A Markdown file as GitHub shows it, without its comments."""
    return markdown(_COMMENT.sub("", (ROOT / source).read_text(encoding="utf-8")))


def markdown(text: str) -> str:
    """HTML of Markdown with tables; listings are coloured."""
    return str(_MARKDOWN.render(text))


def program(source: str) -> str:
    """A text file, with numbered lines."""
    return f"<h1><code>{escape(Path(source).name)}</code></h1>{listing(ROOT / source)}"


def listing(path: Path) -> Markup:
    """What stands in a body for the lines of a file of the repository: they are no part of the text."""
    return Markup('<listing file="{}"></listing>').format(path.relative_to(ROOT))


def with_listings(html: str) -> str:
    """A body with the lines of its files."""
    return re.sub(r'<listing file="([^"]+)"></listing>', lambda found: _lines(ROOT / found[1]), html)


def _lines(path: Path) -> str:
    """The lines of a file with their numbers."""
    text = path.read_text(encoding="utf-8")
    try:
        lexer = get_lexer_for_filename(path.name)
    except ClassNotFound:
        lexer = TextLexer()
    html = highlight(text, lexer, HtmlFormatter(linenos="inline", cssclass="highlight numbered"))
    return str(html).replace("<pre>", '<pre tabindex="0">', 1)


def causes() -> str:
    """All causes with what they mean."""
    rows = "".join(
        f"<dt><a href='{CAUSES.rpartition('/')[2]}/{page(name).file.name}'>{name}</a></dt>"
        f"<dd>{markdown(page(name).meaning)}</dd>"
        for name in names()
    )
    return (
        "<h1>Causes</h1><p>Each verdict names one of these. Its page says how it is recognised, why it "
        f"happens, what to do and how to confirm it. They are asked in this order.</p><dl>{rows}</dl>"
    )


def _coloured(code: str, language: str, _attributes: str) -> str:
    try:
        return str(highlight(code, get_lexer_by_name(language), HtmlFormatter(cssclass="highlight")))
    except ClassNotFound:
        return ""


_MARKDOWN = MarkdownIt("commonmark", {"html": True, "highlight": _coloured}).enable("table")
