"""Where one rank may have left out a call that it repeats."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import dedent

import pytest

from helpers.diagnose.parting.omission import omissions, unsent
from helpers.diagnose.parting.trace import Trace
from helpers.model.frames import Frame
from helpers.model.issued import IssuedCall
from helpers.model.waits import SENDS

STEPS = """
    def main(loader, limit):
        for step in range(100):
            loss.backward()
            if step % 5 == 0:
                log(step)
            if loss.item() < limit:
                extra.backward()
            try:
                save(loss)
            except OSError:
                continue
            dist.barrier()
    main(train, 1.0)
"""
CALLED = """
    def score(kind):
        if not has(kind):
            return None
        return gather(kind)
    def report(kinds):
        for kind in kinds:
            score(kind)
    def main():
        while True:
            step.backward()
            for _ in range(3):
                note()
            report(known)
    main()
"""
AGAIN = """
    def main():
        for attempt in range(3):
            try:
                reduce(loss)
                break
            except OSError:
                wait()
        barrier()
    main()
"""
STRAIGHT = """
    def main(late):
        if late:
            dist.barrier()
        dist.all_reduce(loss)
    main(True)
"""


def trace(rank: int, text: str, lines: Sequence[int], op: str) -> Trace:
    """A rank in a call of a library's; the lines of its frames, the outermost first."""
    functions = {1: ["<module>"], 2: ["<module>", "main"]}
    names = functions.get(len(lines), ["<module>", "main", "report", "score"])
    frames = [
        Frame("train.py", line, name, text=dedent(text)) for line, name in zip(lines, names, strict=True)
    ]
    return Trace(rank, (*frames, Frame("torch/call.py", 1, op, user=False)), op=op)


@pytest.mark.parametrize(
    ("text", "one", "other", "expected"),
    [
        (STEPS, ([14, 8], "backward"), ([14, 4], "backward"), [7]),
        (STEPS, ([14, 4], "backward"), ([14, 8], "backward"), [7]),
        (STEPS, ([14, 13], "barrier"), ([14, 4], "backward"), [9]),
        (STEPS, ([14, 6], "log"), ([14, 4], "backward"), []),
        (STEPS, ([14, 8], "backward"), ([14, 8], "backward"), []),
        (CALLED, ([15, 14, 8, 5], "gather"), ([15, 11], "backward"), [3, 7]),
        (STRAIGHT, ([6, 4], "barrier"), ([6, 5], "all_reduce"), [3]),
        (AGAIN, ([10, 5], "reduce"), ([10, 9], "barrier"), [4]),
    ],
)
def test_what_a_repeated_call_depends_on(
    text: str, one: tuple[list[int], str], other: tuple[list[int], str], expected: list[int]
) -> None:
    found = omissions(trace(0, text, *one), trace(1, text, *other))
    assert [choice.statement.lineno for _, _, choice in found] == expected


def test_who_waits_for_a_handle_tells_nothing() -> None:
    waits, calls = trace(0, STEPS, [14, 8], "all_reduce"), trace(1, STEPS, [14, 4], "backward")
    handle = Trace(0, waits.stack[:-1], op="all_reduce")
    assert omissions(waits, calls)
    assert not omissions(handle, calls)


STAGES = """
    def first(micro):
        for x in micro:
            if skip(x):
                continue
            dist.send(x, dst=1)
        for x in micro:
            dist.recv(x, src=1)
    def last(micro):
        for x in micro:
            dist.recv(x, src=0)
        for x in micro:
            if rank == 1 and x.any():
                dist.send(x, 0)
    def main(rank):
        for step in range(10):
            if rank == 0:
                first(batch)
            else:
                last(batch)
            dist.barrier()
    main(rank)
"""


def at(*lines: int, step: int | None = 3, function: str = "") -> tuple[Frame, ...]:
    """The user's frames of a rank of the two stages, the outermost first."""
    names = ["<module>", "main", function]
    values = {} if step is None else {"step": step}
    return tuple(
        Frame("train.py", line, name, text=dedent(STAGES), values=values if name == "main" else {})
        for line, name in zip(lines, names, strict=False)
    )


def made(op: str, *lines: int, function: str) -> IssuedCall:
    """A message that a rank has sent or received before."""
    return IssuedCall(op, at(*lines, step=None, function=function)[::-1])


FORWARD = made("send", 22, 18, 6, function="first")
BACK = made("send", 22, 20, 14, function="last")


@pytest.mark.parametrize(
    ("waiting", "answering", "messages", "expected"),
    [
        ((1, at(22, 20, 11, function="last")), (0, at(22, 21)), [FORWARD], [4, 3]),
        ((0, at(22, 18, 8, function="first")), (1, at(22, 21)), [BACK], [13, 12]),
        ((1, at(22, 20, 11, function="last")), (0, at(22, 18, 8, function="first")), [FORWARD], [4, 3]),
        ((1, at(22, 20, 11, step=4, function="last")), (0, at(22, 21)), [FORWARD], []),
        ((1, at(22, 20, 11, step=None, function="last")), (0, at(22, 21)), [FORWARD], []),
        ((0, at(22, 18, 8, function="first")), (1, at(22, 20, 11, function="last")), [BACK], []),
        ((2, at(22, 20, 11, function="last")), (0, at(22, 21)), [FORWARD], []),
        ((1, at(22, 20, 11, function="last")), (0, at(22, 21)), [], []),
    ],
    ids=[
        "left out",
        "sent back",
        "past it",
        "later turn",
        "unknown turn",
        "may come",
        "to another",
        "none",
    ],
)
def test_what_a_message_depends_on(
    waiting: tuple[int, tuple[Frame, ...]],
    answering: tuple[int, tuple[Frame, ...]],
    messages: Sequence[IssuedCall],
    expected: list[int],
) -> None:
    conditions = unsent(waiting, answering, SENDS, messages)
    assert [one.choice.statement.lineno for one in conditions] == expected


RECEIVED = made("recv", 22, 18, 8, function="first")


@pytest.mark.parametrize(
    ("own", "by_others", "expected"),
    [
        ([], [FORWARD], [4, 3]),
        ([RECEIVED], [], [4, 3]),
        ([], [RECEIVED], [4, 3]),
        ([], [], []),
    ],
    ids=[
        "a rank of another pair sends there",
        "in a function it was in",
        "in theirs",
        "nothing is known",
    ],
)
def test_what_a_message_depends_on_that_was_never_sent(
    own: Sequence[IssuedCall], by_others: Sequence[IssuedCall], expected: list[int]
) -> None:
    waiting, answering = (1, at(22, 20, 11, function="last")), (0, at(22, 21))
    conditions = unsent(waiting, answering, SENDS, own, by_others)
    assert [one.choice.statement.lineno for one in conditions] == expected


RING = """
    def share(token, fresh):
        if not fresh:
            return token
        dist.send(token, 1)
        dist.recv(token, 0)
    def main(rank):
        dist.barrier()
        for step in range(10):
            share(token, step % rank)
        dist.barrier()
    main(rank)
"""


@pytest.mark.parametrize(
    ("line", "expected"), [(11, [3]), (8, [])], ids=["has left the loop", "is not in it yet"]
)
def test_what_a_message_depends_on_of_a_loop_that_only_the_other_rank_is_in(
    line: int, expected: list[int]
) -> None:
    sent = IssuedCall("send", frames(RING, (12, "<module>"), (10, "main"), (5, "share"))[::-1])
    waiting = frames(RING, (12, "<module>"), (10, "main"), (6, "share"))
    conditions = unsent((1, waiting), (0, frames(RING, (12, "<module>"), (line, "main"))), SENDS, [sent])
    assert [one.choice.statement.lineno for one in conditions] == expected


def frames(source: str, *places: tuple[int, str]) -> tuple[Frame, ...]:
    """Frames of a source, the outermost first."""
    return tuple(Frame("train.py", line, name, text=dedent(source)) for line, name in places)
