"""What the processes print: one or all of them, searched, the newest lines."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from ipywidgets import HTML, Text, VBox
from markupsafe import escape

from ...model.wording import printable
from ...observe.logs import KEEP
from ..show.templates import html
from ..widgets.choice import Choice
from ..widgets.controls import row

LINES = 200
"""Lines shown, the newest."""

EVERY = "every process"


class Lines(Protocol):
    """Where log lines come from: a running job or a recording."""

    def labels(self) -> list[str]:
        """Names of the processes that have printed something, ranks first."""

    def tail(self, label: str, lines: int = ...) -> list[str]:
        """The last lines of one process."""


class LogView(VBox):
    """A choice of the process, a field to search, and the lines.

    Args:
        on_change: called when a person chooses or searches.
    """

    def __init__(self, on_change: Callable[[], None]) -> None:
        self._choice = Choice("Output of", on_change)
        self._search = Text(
            description="Search",
            placeholder="part of a line",
            continuous_update=True,
            style={"description_width": "initial"},
        )
        self._search.observe(lambda _: on_change(), "value")
        self._lines = HTML()
        super().__init__([row([self._choice, self._search]), self._lines])

    def show(self, logs: Lines) -> None:
        """Show the newest lines of the chosen process that contain the searched text."""
        labels = logs.labels()
        first = next((label for label in labels if label.startswith("rank")), None)
        self._choice.offer([*labels, EVERY] if len(labels) > 1 else labels, first)
        lines = matching_lines(logs, self._choice.value, self._search.value)
        self._lines.value = log(lines, self._choice.value)

    def clear(self) -> None:
        """Show nothing, search nothing."""
        self._choice.forget()
        self._search.value = ""
        self._lines.value = ""


def matching_lines(logs: Lines, label: str | None, searched: str) -> list[str]:
    """Lines of one process, or of each behind its name, that contain `searched` in any case."""
    if label is None:
        return []
    if label != EVERY:
        lines = logs.tail(label, KEEP)
    else:
        lines = [f"[{name}] {line}" for name in logs.labels() for line in logs.tail(name, KEEP)]
    wanted = searched.strip().lower()
    return [line for line in map(printable, lines) if wanted in line.lower()]


def log(lines: Sequence[str], label: str | None) -> str:
    """The newest of these lines, and how many there are."""
    if label is None:
        return "<p>There is no output to show.</p>"
    shown = lines[-LINES:]
    count = "1 line" if len(lines) == 1 else f"{len(lines)} lines"
    caption = count if len(shown) == len(lines) else f"the newest {len(shown)} of {count}"
    return html("log", label, escape("\n".join(shown)), caption)
