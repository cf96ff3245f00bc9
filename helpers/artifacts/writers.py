"""Who has written each line of a log that many processes share, as the labels before it tell."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from typing import NamedTuple

from . import patterns

_COLOURS = re.compile(r"\x1b\[[0-9;]*m")

_SAYS = re.compile(
    r"Traceback \(most recent|\[rank\d|\[[A-Za-z_]\w*\d+\]:|\[[EFW][\d ]|  File \"|[\w.]*Error: "
)
"""What a number and a colon are a label before, not a part of."""


class Line(NamedTuple):
    """A line without its labels.

    Attributes:
        writer: a name for the process, or for the processes, that have written it; empty where
            nothing tells.
        rank: of the job, where the line itself tells it.
    """

    writer: str
    rank: int | None
    text: str


class Writers:
    """The writers of a log as it is read."""

    def __init__(self) -> None:
        self._tasks = False
        self._ranks: dict[str, set[int]] = {}
        self._numbers: dict[str, tuple[str, int]] = {}

    def line(self, line: str) -> Line:
        """The next line."""
        labels: list[str] = []
        number: tuple[str, int] | None = None
        line = _COLOURS.sub("", _unwrapped(line))
        if found := patterns.COLLECTED.search(line):
            line = line[found.end() :]
        if found := patterns.POD.search(line):
            labels, line = [found["writer"]], line[found.end() :]
        if (found := patterns.TASK.search(line)) and self._is_label(line[found.end() :]):
            number = ("task", int(found["number"]))
            labels, line = [*labels, "{} {}".format(*number)], line[found.end() :]
        if found := patterns.ACTOR.search(line):
            labels, line = [*labels, f"{found['pid']}@{found['ip'] or ''}"], line[found.end() :]
        if found := patterns.TEE.search(line):
            number = ("local", int(found["number"]))
            labels, line = [*labels, "{} {}".format(*number)], line[found.end() :]
        writer = " ".join(labels)
        if number is not None:
            self._numbers[writer] = number
        found = patterns.RANK.search(line)
        if found is None:
            return Line(writer, None, line)
        rank = int(found["rank"])
        self.note(writer, rank)
        return Line(writer, rank, line[found.end() :])

    def note(self, writer: str, rank: int) -> None:
        """A line of a writer comes from a rank."""
        if writer:
            self._ranks.setdefault(writer, set()).add(rank)

    def rank(self, writer: str, locals_: Mapping[int, int]) -> int | None:
        """The rank that a writer is; None where it is several, or nothing tells.

        Args:
            locals_: rank -> local rank, as far as the log tells.
        """
        seen = self._ranks.get(writer, set())
        if len(seen) == 1:
            return next(iter(seen))
        if seen or writer not in self._numbers:
            return None
        kind, number = self._numbers[writer]
        ranks = [rank for rank, local in locals_.items() if local == number]
        if kind == "local" and ranks:
            return ranks[0] if len(ranks) == 1 else None
        # A label is the rank unless a line under one of them says otherwise, or two processes have it.
        alike = {name: n for name, (k, n) in self._numbers.items() if k == kind}
        same = all(self._ranks.get(name, {n}) == {n} for name, n in alike.items())
        return number if same and list(alike.values()).count(number) == 1 else None

    def _is_label(self, rest: str) -> bool:
        self._tasks = self._tasks or _SAYS.match(rest) is not None
        return self._tasks


def _unwrapped(line: str) -> str:
    if patterns.DOCKER.search(line):
        with suppress(ValueError):
            text = json.loads(line).get("log")
            return text.rstrip("\n") if isinstance(text, str) else line
    return line
