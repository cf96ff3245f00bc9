"""A message of foreign software: what takes a line of it apart, and where it comes from."""

from __future__ import annotations

import re

import msgspec


class Pattern(msgspec.Struct, frozen=True):
    """One message.

    Attributes:
        needles: texts of which each line with it has one: other lines are not looked at. None for a
            prefix, which matters only together with what stands behind it.
        regex: takes it apart.
        source: software, versions and file.
        examples: lines of it, one for each wording.
    """

    needles: tuple[str, ...]
    regex: re.Pattern[str]
    source: str
    examples: tuple[str, ...]

    def search(self, line: str) -> re.Match[str] | None:
        """The message in a line, if it is there."""
        if self.needles and not any(needle in line for needle in self.needles):
            return None
        return self.regex.search(line)

    def matches(self, line: str) -> list[re.Match[str]]:
        """Each place in a line that has the message, in their order."""
        return [*self.regex.finditer(line)] if self.search(line) is not None else []


def pattern(needles: str | tuple[str, ...], regex: str, source: str, *examples: str) -> Pattern:
    """A message that stands in lines with one of these texts."""
    wanted = (needles,) if isinstance(needles, str) else needles
    return Pattern(wanted, re.compile(regex), source, examples)


def prefix(regex: str, source: str, *examples: str) -> Pattern:
    """A message that may stand before any line."""
    return Pattern((), re.compile(regex), source, examples)
