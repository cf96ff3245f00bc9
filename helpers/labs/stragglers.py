"""Questions about a job that waits for one of its ranks, whose answers its report knows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from zlib import crc32

from ..model.facts import Report
from ..model.frames import Frame
from ..model.slow import Share, SlowKind
from ..model.wording import one_line, plural, sentence, spoken
from ..report.slow import DOES, share_line, slow_line
from ..report.slow import shares as shares_of
from .asked import Asked

KINDS = 4
"""What may take the time, offered as choices."""

SEEN: dict[SlowKind, str] = {
    "compute": "its main thread would be on a processor, in no system call",
    "input": "it would be in a DataLoader, or wait for a worker of one",
    "io": "it would be in a call that reads or writes",
    "gil": "another thread of its process would use the processor in its place",
    "quota": "it would be ready to run, and wait for a processor",
    "stopped": "its state would be stopped",
    "gc": "it would collect garbage just then",
    "compile": "its stack would lead through torch's compiler",
    "data": "the others would spend time at the same line, only less",
}
"""What is seen of each kind."""


def straggler_questions(report: Report, source: Callable[[Frame], str]) -> tuple[Asked, ...]:
    """For whom the others wait, where, and what takes the time; nothing where they wait for nobody.

    Args:
        report: of a job that goes on or has ended well.
        source: gives the text of a line of the job's code, empty when it cannot be read.
    """
    shares = shares_of(report.verdict)
    if not shares:
        return ()
    answer = sentence(slow_line(report.verdict)) + "."
    questions = (_who(shares, answer), _where(shares, source, answer), _kind(shares[0], answer))
    return tuple(question for question in questions if question is not None)


def _who(shares: Sequence[Share], answer: str) -> Asked:
    ranks = {rank: share for share in shares for rank in share.ranks}
    right = frozenset(spoken([rank]) for rank in shares[0].ranks)
    return Asked(
        "For which rank do the others wait? If they wait for several together, tick all of them.",
        tuple(spoken([rank]) for rank in sorted(ranks)),
        right,
        answer,
        several=True,
        instead={
            spoken([rank]): share_line([share])
            for rank, share in ranks.items()
            if rank not in shares[0].ranks
        },
    )


def _where(shares: Sequence[Share], source: Callable[[Frame], str], answer: str) -> Asked | None:
    """The line that is waited for, among those at which the ranks wait."""
    right = shares[0].where
    waits: dict[Frame, list[int]] = {}
    for share in shares:
        if share.waits_at not in (None, right):
            waits.setdefault(share.waits_at, []).extend(share.ranks)
    if right is None or not waits:
        return None
    labels = {at: one_line(f"{at.file}:{at.line}: {source(at)}") for at in (right, *waits)}
    return Asked(
        "At which line does most of that time go?",
        tuple(labels[at] for at in sorted(labels, key=lambda at: (at.file, at.line))),
        frozenset([labels[right]]),
        answer,
        instead={
            labels[at]: f"There {spoken(sorted(ranks))} {plural(ranks, 'waits', 'wait')} for others."
            for at, ranks in waits.items()
        },
    )


def _kind(first: Share, answer: str) -> Asked | None:
    """What takes the time, and other kinds that chance chooses, for each job in its own way."""
    if first.kind == "unknown":
        return None
    kinds = sorted(SEEN, key=lambda kind: crc32(f"{kind}, {answer}".encode()))
    offered = [*dict.fromkeys((first.kind, *kinds))][:KINDS]
    labels = {kind: f"{kind}: {DOES[kind]}" for kind in SEEN if kind in offered}
    right = labels[first.kind]
    return Asked(
        "What takes the time there?",
        tuple(labels.values()),
        frozenset([right]),
        answer,
        instead={text: f"Then {SEEN[kind]}." for kind, text in labels.items() if text != right},
    )
