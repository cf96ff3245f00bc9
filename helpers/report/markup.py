"""Small pieces of HTML that the report's page and the panel share. Every text given is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from ..model.wording import one_line


def text(string: str) -> str:
    """Text of the job on one line."""
    return escape(one_line(string))


def code(string: str) -> str:
    """The same as code; nothing for no text."""
    return f"<code>{text(string)}</code>" if string else ""


def items(entries: Iterable[str]) -> str:
    """A list of HTML; nothing for no entries."""
    html = "".join(f"<li>{entry}</li>" for entry in entries)
    return f"<ul>{html}</ul>" if html else ""


def folded(summary: str, html: str) -> str:
    """HTML that a person unfolds; nothing where there is none."""
    return f"<details><summary>{text(summary)}</summary>{html}</details>" if html else ""


def row(name: str, cells: Iterable[str]) -> str:
    """A row of a table: its name and its cells, all of them HTML."""
    data = "".join(f"<td>{cell}</td>" for cell in cells)
    return f'<tr><th scope="row">{name}</th>{data}</tr>'


def table(caption: str, heads: Sequence[str], rows: Iterable[str]) -> str:
    """A table with a caption; `rows` are HTML, as `row` makes them.

    Args:
        heads: titles of the columns; none for a table of names and values.
    """
    titles = "".join(f'<th scope="col">{text(head)}</th>' for head in heads)
    head = f"<thead><tr>{titles}</tr></thead>" if heads else ""
    body = f"<tbody>{''.join(rows)}</tbody>"
    return f'<table class="sr-table"><caption>{text(caption)}</caption>{head}{body}</table>'
