"""How what several sources tell of a process becomes one account of it."""

from __future__ import annotations

import itertools

import pytest

from helpers.model.facts import ErrorView
from helpers.model.frames import Frame
from helpers.model.waits import InStore, OnChild
from helpers.observe.evidence import Evidence, Source, merge

INSIDE, READ, CRASHED, LEFT = (Frame("train.py", line, "step") for line in (41, 42, 43, 44))
KEY, CHILD = InStore(op="get", key="a"), OnChild(op="wait")

RECORD = Evidence(Source.RECORD, 10.0, since=2.0, stack=(INSIDE,), waits=(KEY,), bystanders=(7,))
OLD_RECORD = Evidence(Source.RECORD, 5.0, since=2.0, stack=(INSIDE,), waits=(KEY,))
OUTSIDE = Evidence(Source.OUTSIDE, 10.0, stack=(READ,), waits=())
KERNEL = Evidence(Source.KERNEL, 10.0, since=9.0, waits=(CHILD,))
CRASH = Evidence(Source.CRASH, 11.0, stack=(CRASHED,), waits=())
EXIT = Evidence(Source.EXIT, 11.0, stack=(LEFT,))

PLACES = [
    ("a record alone", [RECORD], (INSIDE,), (KEY,), 2.0),
    (
        "of the same time, what was read from outside is trusted more",
        [RECORD, OUTSIDE],
        (READ,),
        (),
        2.0,
    ),
    ("a crash is newer than the last look", [RECORD, CRASH], (CRASHED,), (), 2.0),
    ("the call that ended it tells no wait", [RECORD, EXIT], (LEFT,), (KEY,), 2.0),
    ("it may crash on its way out", [RECORD, CRASH, EXIT], (LEFT,), (), 2.0),
    ("the kernel knows no stack", [OLD_RECORD, KERNEL], (INSIDE,), (CHILD,), 9.0),
]


@pytest.mark.parametrize(
    ("evidence", "stack", "waits", "since"), [row[1:] for row in PLACES], ids=[row[0] for row in PLACES]
)
def test_where_a_process_stands_is_told_by_the_newest_source(
    evidence: list[Evidence], stack: tuple[Frame, ...], waits: tuple[object, ...], since: float
) -> None:
    for order in itertools.permutations(evidence):
        merged = merge(order)
        assert (merged.stack, merged.waits, merged.since) == (stack, waits, since)


def test_the_time_of_the_merged_evidence_is_that_of_the_place() -> None:
    assert merge([OLD_RECORD, EXIT]).at == 5.0


def test_an_error_is_told_by_the_most_trusted_source_however_old() -> None:
    own, file, log = (ErrorView(kind, "", ()) for kind in ("KeyError", "OSError", "RuntimeError"))
    evidence = [
        Evidence(Source.LOG, 12.0, error=log),
        Evidence(Source.TRACEBACK, 12.0, error=file),
        Evidence(Source.RECORD, 9.0, error=own),
    ]
    assert [merge([*evidence[:number], RECORD]).error for number in (1, 2, 3)] == [log, file, own]


def test_without_a_place_nothing_can_be_merged() -> None:
    with pytest.raises(ValueError, match="where the process stands"):
        merge([Evidence(Source.LOG, 1.0, error=ErrorView("KeyError", "", ()))])
