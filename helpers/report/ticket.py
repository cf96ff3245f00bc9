"""A report for a ticket, in Markdown; text from the job cannot break the markup."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..model.facts import Report
from ..model.wording import one_line
from .parts import Row, table, what_to_do
from .text import HEAD, facts, headline, lists


def to_markdown(report: Report) -> str:
    """The report as Markdown."""
    parts = [f"## {_plain(headline(report))}"]
    if report.verdict.summary:
        parts.append(_plain(one_line(report.verdict.summary)))
    parts.append("\n".join(f"- {name}: {_code(text)}" for name, text in facts(report)))
    if report.verdict.outcome != "ok":
        rows = table(report)
        if rows:
            parts.append("\n".join(_markdown_table(rows)))
        for title, section in (("What to do", what_to_do(report)), ("Why", report.explanation)):
            if section:
                parts.append(f"### {title}\n\n{section}")
    for title, entries in lists(report):
        show = str if title == "References" else _plain
        parts.append(f"### {title}\n\n" + "\n".join(f"- {show(entry)}" for entry in entries))
    return "\n\n".join(parts) + "\n"


def _markdown_table(rows: Sequence[Row]) -> list[str]:
    lines = ["| " + " | ".join(HEAD) + " |", "|" + " --- |" * len(HEAD)]
    for row in rows:
        clauses = [*map(_cell, row.doing), *map(_plain, row.children)]
        cells = (_plain(row.label), row.state, "<br>".join(clauses), _cell(row.line))
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def _cell(text: str) -> str:
    """Text as code, but as plain text with a vertical bar, which would end the cell in code."""
    return _plain(text) if "|" in text else _code(text)


def _code(text: str) -> str:
    """Text as code; the fence is longer than any run of backticks inside."""
    if not text:
        return ""
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", text)), default=0))
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def _plain(text: str) -> str:
    """Text as text: no markup and no tags, also in a cell of a table."""
    shown = re.sub(r"([\\`*\[\]~])", r"\\\1", text)
    shown = re.sub(r"(?<![0-9A-Za-z])_+|_+(?![0-9A-Za-z])", lambda run: "\\_" * len(run[0]), shown)
    shown = shown.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"^(?:(?=[#+-])|(\d+)(?=[.)]))", r"\1\\", shown.replace("|", "&#124;"))
