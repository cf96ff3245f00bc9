"""HTML from the macros beside this file. Every value is put on one line and escaped on its way in."""

from __future__ import annotations

from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from ...model import wording
from ...model.parting import Parting
from ...report import markdown
from ...report.parted import parted_html
from ...report.parts import fits
from ...report.text import listed
from .style import mark


def _one_line(value: object) -> object:
    """Text from the job may hold terminal codes and newlines; numbers and HTML stay as they are."""
    return wording.one_line(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def inline(text: str) -> Markup:
    """One line of text with `code` in backticks."""
    return Markup(markdown.inline(text))


def lesson(text: str) -> Markup:
    """One line of a lesson's own text: it may have *emphasised* and **strong** words, too."""
    return Markup(markdown.inline(text, strong=True))


def section(page: str) -> Markup:
    """The paragraphs, lists and steps of a page of Markdown."""
    return Markup(markdown.section(page))


def parted(parting: Parting | None) -> Markup:
    """The lines at which ranks went different ways, side by side."""
    return Markup(parted_html(parting))


_TEMPLATES = Environment(
    loader=FileSystemLoader(Path(__file__).parent),
    autoescape=True,
    finalize=_one_line,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_TEMPLATES.globals.update(
    look_of=mark,
    inline=inline,
    lesson=lesson,
    section=section,
    fits=fits,
    listed=listed,
    parted=parted,
    megabytes=wording.megabytes,
    place_in=wording.place_in,
)


def html(macro: str, *values: object) -> Markup:
    """What a macro of `panel.html` makes of some values."""
    markup: Markup = getattr(_TEMPLATES.get_template("panel.html").module, macro)(*values)
    return markup
