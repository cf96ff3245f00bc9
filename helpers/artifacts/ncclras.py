"""What `ncclras` prints of a job's communicators -> what is wrong with them, in its words. No I/O.

NCCL 2.24 to 2.30, src/ras/client_support.cc; JSON since 2.28.7. It counts the calls of each function in
each communicator, which are not the numbers that torch gives them: so it is evidence, and no more.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import msgspec

from ..model.wording import spoken
from ..observe.account import Account, UnreadableError

KIND = "output of ncclras"

BEGINS = b"NCCL version "
SUMMARY = re.compile(rb"\n\s*Job summary\s*\n=")

_PROBLEM = re.compile(
    r"(?P<comm>#\d+-\d+ \([0-9a-f]+\) )?(?P<what>INCOMPLETE|ERROR|MISMATCH|DEAD|TIMEOUT)$"
)
"""The head of a paragraph; its lines are indented."""

MOST = 16
"""Sentences that are kept."""


class _Rank(msgspec.Struct, frozen=True):
    rank: int
    collective_counts: dict[str, int] = {}


class _Communicator(msgspec.Struct, frozen=True):
    hash: str
    ranks: tuple[_Rank, ...] = ()
    missing_ranks: tuple[_Rank, ...] = ()


class _Output(msgspec.Struct, frozen=True):
    communicators: tuple[_Communicator, ...]


def is_text(head: bytes) -> bool:
    """True for the first bytes of its text."""
    return BEGINS in head and SUMMARY.search(head) is not None


def is_json(value: object) -> bool:
    """True for its JSON."""
    return isinstance(value, dict) and "nccl_version" in value and "communicators" in value


def from_text(lines: Iterable[str], path: str) -> Account:
    """What its text tells."""
    return _account(_paragraphs(lines), path)


def from_json(value: object, path: str) -> Account:
    """What its JSON tells, which has no words for what is wrong.

    Raises:
        UnreadableError: it is not as NCCL writes it.
    """
    try:
        output = msgspec.convert(value, _Output)
    except msgspec.ValidationError as problem:
        raise UnreadableError(f"it is not as ncclras writes it: {problem}") from None
    return _account(
        (sentence for communicator in output.communicators for sentence in _of(communicator)), path
    )


def _account(sentences: Iterable[str], path: str) -> Account:
    warned = tuple(f"ncclras: {sentence}" for sentence, _ in zip(sentences, range(MOST), strict=False))
    return Account(file=path, kind=KIND, warned=warned)


def _paragraphs(lines: Iterable[str]) -> Iterator[str]:
    head, body = "", list[str]()
    for line in (*lines, ""):
        if line.startswith("  ") and head:
            body.append(line.strip())
            continue
        if body:
            yield f"{head}: {'; '.join(body)}"
        match = _PROBLEM.match(line)
        head, body = match[0] if match is not None else "", []


def _of(communicator: _Communicator) -> Iterator[str]:
    """The ranks of a communicator that are missing, and functions that not all have called as often."""
    name = f"communicator {communicator.hash}"
    missing = [rank.rank for rank in communicator.missing_ranks]
    if missing:
        yield f"{name}: nothing is known of its {spoken(missing)}"
    by_count: dict[str, dict[int, list[int]]] = {}
    for rank in communicator.ranks:
        for function, count in rank.collective_counts.items():
            by_count.setdefault(function, {}).setdefault(count, []).append(rank.rank)
    for function, ranks in by_count.items():
        if len(ranks) > 1:
            listed = ", ".join(f"{count} times by {spoken(ranks[count])}" for count in sorted(ranks))
            yield f"{name}: {function} was launched {listed} of it"
