"""What only some ranks have printed since the last line that all of them have printed alike. No I/O.

Ranks that do the same print the same, line for line, but for measured values and their own number. What
is left over is often the whole answer: `validation loss rose, ending early`, on rank 0 only.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from ..model.facts import Printed, Snapshot
from ..model.wording import one_line

MOST = 3
"""Lines of a rank, the newest ones, that are told."""

LONGEST = 200
"""Characters of a line that are told."""

_HEAD = re.compile(
    r"Traceback \(most recent call last\):$"
    r"|\S+\.py:\d+: "  # Python's `warnings`, with or without a class, as Lightning's have none
)
_INSIDE = re.compile(r"\s|$")
"""The head of a traceback or of a warning, and what follows it: frames, source, markers."""

_NOT_OWN = re.compile(
    r"^During handling of the above exception|^The above exception was the direct cause"
    r"|^(\[[EFIW]\d{4} |[EFIW]\d{4} \d\d:)"  # glog's head: C++ of torch, and its launcher
    r"|^terminate called |^ *what\(\): "  # what C++ says of an exception that nobody catches
    r"|\d%\||\d ?(it|s)/(s|it)\b"  # a bar of tqdm's, which Lightning and transformers draw, too
)
"""What stands between a program's own lines."""

_LABEL = re.compile(r"^(?:[\[(<]rank[ :=_-]?\d+[\])>]:?|rank[ =_-]?\d+:) ?", re.IGNORECASE)
"""Who writes, at the beginning of a line: `[rank1]:`, `rank 1:`."""

_WHOSE = re.compile(
    r"(rank|cuda|gpu|device|pid|process|member|worker|node|host|port)([^\w\n]{0,3})\d+(/\d+)?",
    re.IGNORECASE,
)
"""Whose line it is, or what it runs on, within the line."""

_MEASURED = re.compile(
    r"0x[0-9a-fA-F]+"  # an address
    r"|\d{4}-\d\d-\d\d(?:[T ][\d:.,]+)?|\d\d?:\d\d(?::\d\d)?(?:[.,]\d+)?"  # a date, a time
    r"|\d+(?:\.\d+)? ?(?:[mu]?s|sec|seconds|[KMG]i?B|B|%)(?!\w)"  # how long, how much
    r"|[-+]?\d+(?:\.\d+)?e[-+]?\d+|[-+]?\d*\.\d+",  # a float
)
"""What a line tells that differs from rank to rank, or from run to run, in ranks that do the same."""

_NUMBER = re.compile(r"\d+")
_WORD = re.compile(r"[A-Za-z]{2,}|[^\W\d_]")


class _Line(msgspec.Struct, frozen=True):
    """A line that a rank has printed.

    Attributes:
        text: without who writes it; alike: what ranks that do the same have in common in it.
        pattern: the same without any number.
    """

    text: str
    alike: str
    pattern: str


def printed(snapshot: Snapshot) -> tuple[Printed, ...]:
    """What only some ranks have printed lately, the ranks with the lowest numbers first.

    Lines that every rank prints at some time, in whatever order, and what a rank prints again and again
    are how a job goes on, and are left out; so are tracebacks, but for the exception itself.
    """
    return _printed({rank: _lines(lines) for rank, lines in sorted(snapshot.output)})


def _printed(ranks: Mapping[int, Sequence[_Line]]) -> tuple[Printed, ...]:
    if len(ranks) < 2 or not any(ranks.values()):
        return ()
    everywhere = set.intersection(*({line.pattern for line in lines} for lines in ranks.values()))
    after = _after_common(ranks)
    # The first rank speaks for all. Where it has said nothing, what another one says is its own.
    silent = not ranks[min(ranks)]
    by_text: dict[str, tuple[list[int], str]] = {}
    for rank, lines in ranks.items():
        often = Counter(line.pattern for line in lines)
        begin = after[rank] if after is not None else _after_routine(lines, often)
        telling = (
            line
            for line in lines[begin:]
            if line.pattern not in everywhere and often[line.pattern] < 3 and _WORD.search(line.alike)
        )
        for line in [*dict.fromkeys(telling)][-MOST:] if begin or silent else ():
            by_text.setdefault(line.alike, ([], line.text))[0].append(rank)
    return tuple(Printed(tuple(who), text) for who, text in by_text.values() if len(who) < len(ranks))


def _after_common(ranks: Mapping[int, Sequence[_Line]]) -> dict[int, int] | None:
    """Where each rank's lines go on after the last one that all have printed; None where there is none.

    A line that is printed several times is the same one on all ranks by its number.
    """
    fewest = Counter(line.alike for line in next(iter(ranks.values())))
    for lines in ranks.values():
        fewest &= Counter(line.alike for line in lines)
    if not fewest:
        return None
    after = {}
    for rank, lines in ranks.items():
        times: Counter[str] = Counter()
        for number, line in enumerate(lines, start=1):
            times[line.alike] += 1
            if times[line.alike] <= fewest[line.alike]:
                after[rank] = number
    return after


def _after_routine(lines: Sequence[_Line], often: Mapping[str, int]) -> int:
    """Where a rank's lines go on after the last one of a kind that it prints again and again."""
    numbered = enumerate(lines, start=1)
    return max((number for number, line in numbered if often[line.pattern] > 2), default=0)


def _lines(lines: Iterable[str]) -> list[_Line]:
    """The lines that a program has written about itself."""
    records = []
    inside = False
    for line in lines:
        content = _LABEL.sub("", line.rpartition("\r")[2], count=1)
        text = one_line(content)
        inside = inside and _INSIDE.match(content) is not None
        if _HEAD.match(text):
            inside = True
        elif text and not inside and not _NOT_OWN.search(text):
            alike = _MEASURED.sub("#", _WHOSE.sub(r"\1\2#", text))
            records.append(_Line(text[:LONGEST], alike, _NUMBER.sub("#", alike)))
    return records
