"""What an abort over sizes means: the same call with other sizes, or two calls that have met."""

from __future__ import annotations

from typing import Any

import pytest
from histories import ended, error, issued, snapshot, steady
from msgspec.structs import replace

from helpers.diagnose.diagnose import diagnose
from helpers.diagnose.fixes import fitting
from helpers.diagnose.pages import page
from helpers.model.facts import RankView, Verdict
from helpers.model.frames import Frame, innermost_user

ABORTED = (
    "[enforce fail at pair.cc:456] op.preamble.length <= op.nbytes. 512 vs 64. Is there a mismatch?"
)
CLOSED = "[pair.cc:553] Connection closed by peer [127.0.0.1]:4711"
LIBRARY = "/env/lib/python3.11/site-packages"
FIT = "train.py:90 main"
TWICE = "def main():\n    broadcast()\n    all_reduce()\n"


def torch_call(function: str) -> tuple[Frame, ...]:
    """The frames of a call of torch's own."""
    folder = f"{LIBRARY}/torch/distributed"
    return (
        Frame(f"{folder}/distributed_c10d.py", 3252, function, False),
        Frame(f"{folder}/c10d_logger.py", 83, "wrapper", False),
    )


def trainer(line: int, function: str) -> Frame:
    return Frame(f"{LIBRARY}/trainer/loop.py", line, function, False)


def aborts(number: int, op: str, *frames: str | Frame, **facts: Any) -> RankView:
    """A rank that gloo has ended in a call: its stack is that at the crash."""
    stack = error("", "", *torch_call(op), *frames).stack
    failed, where = error("EnforceNotMet", ABORTED), innermost_user(stack)
    view = ended(number, None, signal=6, error=failed, **facts)
    assert view.process is not None
    return replace(view, process=replace(view.process, stack=stack, where=where))


def fails(number: int, op: str, *frames: str | Frame, **facts: Any) -> RankView:
    """A rank whose call has failed since its peer is gone."""
    failed = error("RuntimeError", CLOSED, *torch_call(op), *frames, time=10.1)
    return ended(number, error=failed, time=10.3, **facts)


def verdict(*ranks: RankView) -> Verdict:
    return diagnose(steady(snapshot(*ranks, code=1, runs=False)))


REDUCES, GATHERS = (trainer(40, "reduce_metrics"), trainer(9, "fit"), FIT), (trainer(9, "fit"), FIT)
SAME, MET = "shape-mismatch", "collective-mismatch"

ROWS: list[tuple[str, list[RankView], str, tuple[int, ...], bool, tuple[str, ...]]] = [
    (
        "the same call",
        [aborts(0, "all_reduce", *REDUCES), fails(1, "all_reduce", *REDUCES)],
        *(SAME, (0, 1), True, ("Sizes differ",)),
    ),
    (
        "another operation from one line of the user's",
        [aborts(0, "all_reduce", *GATHERS), fails(1, "broadcast", *GATHERS)],
        *(MET, (0, 1), True, ("all_reduce at train.py:90", "broadcast at train.py:90")),
    ),
    (
        "the same operation, from elsewhere in the trainer",
        [
            aborts(0, "all_reduce", *REDUCES),
            fails(1, "all_reduce", trainer(70, "log_step"), trainer(9, "fit"), FIT),
        ],
        *(MET, (0, 1), True, ("(in reduce_metrics)", "(in log_step)")),
    ),
    (
        "one of three",
        [
            aborts(0, "all_reduce", *REDUCES),
            fails(1, "all_reduce", *REDUCES),
            fails(2, "broadcast", "train.py:95 main"),
        ],
        *(MET, (2,), True, ("rank 2 was in broadcast at train.py:95",)),
    ),
    (
        "nothing tells in which call the other was",
        [aborts(0, "all_reduce", *REDUCES), ended(1, None, signal=15, time=11.0)],
        *(SAME, (0, 1), False, ("whether rank 1 was in the same call is not known",)),
    ),
    (
        "the other was seen in another call a moment before",
        [
            aborts(0, "all_reduce", *REDUCES),
            ended(1, None, signal=15, time=11.0, at="train.py:95 main", ended_in_call=True),
        ],
        *(MET, (0, 1), False, ()),
    ),
    (
        "the other was seen a moment before in a call that the first has come out of",
        [
            aborts(0, "all_reduce", Frame("train.py", 3, "main", True, text=TWICE)),
            ended(
                1,
                None,
                signal=15,
                time=11.0,
                at="train.py:2 main",
                ended_in_call=True,
            ),
        ],
        *(SAME, (0, 1), False, ("whether rank 1 was in the same call is not known",)),
    ),
    (
        "the other had gone on to its next call, by its number",
        [
            aborts(0, "all_reduce", *REDUCES, **issued("all_reduce[4]")),
            fails(1, "broadcast", FIT, **issued("all_reduce[8]", "broadcast[1]", done=1)),
        ],
        *(SAME, (0, 1), False, ("whether rank 1 was in the same call is not known",)),
    ),
]


@pytest.mark.parametrize(
    ("ranks", "cause", "culprits", "proved", "says"), [row[1:] for row in ROWS], ids=[r[0] for r in ROWS]
)
def test_what_an_abort_means(
    ranks: list[RankView], cause: str, culprits: tuple[int, ...], proved: bool, says: tuple[str, ...]
) -> None:
    found = verdict(*ranks)
    assert (found.outcome, found.cause) == ("error", cause)
    assert (found.culprits, found.proved) == (culprits, proved)
    assert [text for text in says if text not in found.summary] == []


def test_what_decided_is_told_of_an_abort_as_of_a_hang() -> None:
    lines = ("if len(batch) > 1:", "    all_reduce()", "broadcast()")
    text = "\n".join(("def main(batch):", *(f"    {line}" for line in lines)))
    reduces, sends = (Frame("train.py", line, "main", True, text=text) for line in (3, 4))
    found = verdict(aborts(0, "all_reduce", reduces), fails(1, "broadcast", sends)).parting
    assert found is not None
    assert (found.where, found.source) == (Frame("train.py", 2, "main"), lines[0])


@pytest.mark.parametrize(
    ("op", "numbers"), [("all_gather", [3]), ("all_reduce", [2]), ("reduce_scatter_single", [2])]
)
def test_only_what_has_no_result_yet_can_be_padded(op: str, numbers: list[int]) -> None:
    ranks = [aborts(0, op, "train.py:40 step"), fails(1, op, "train.py:40 step")]
    fixes = fitting(page(SAME).fixes, verdict(*ranks), snapshot(*ranks, code=1, runs=False))
    assert [fix.number for fix in fixes] == numbers


def test_a_rank_in_a_barrier_has_come_out_of_the_call_whose_message_was_too_long() -> None:
    """A barrier sends no data: what was too long for rank 1 came from an earlier call of rank 0."""
    after, loop = "train.py:55 main", "train.py:34 main"
    answer = verdict(fails(0, "barrier", after), aborts(1, "all_gather", loop))
    assert (answer.cause, answer.proved, answer.parting) == (SAME, False, None)
    assert "whether rank 0 was in the same call is not known" in answer.summary
    swapped = verdict(aborts(0, "barrier", after), fails(1, "all_gather", loop))
    assert swapped.cause == MET


def test_a_rank_that_its_number_keeps_from_the_call_was_in_another() -> None:
    """Rank 1 has ended before anybody saw what it was in."""
    text = "main = get_rank() == 0\nfor n in steps:\n    if due(n) and main:\n        all_reduce()\n"
    call = Frame("train.py", 4, "<module>", text=text)
    unseen = ended(1, None, signal=15, time=11.0, at="train.py:1 <module>")
    found = verdict(aborts(0, "all_reduce", call), unseen)
    assert (found.cause, found.proved, found.culprits) == (MET, False, (0, 1))
    assert "rank 0 was in all_reduce at train.py:4, and rank 1 never comes there" in found.summary
    assert found.parting is not None and found.parting.where == Frame("train.py", 3, "<module>")
    assert {way.label: way.ranks for way in found.parting.branches} == {
        "in its body": (0,),
        "after it": (1,),
    }


def test_a_rank_that_may_come_to_the_call_is_not_known_to_have_been_in_another() -> None:
    text = "main = get_rank() == 0\nif step % 4 == 0 or main:\n    all_reduce()\n"
    call = Frame("train.py", 3, "<module>", text=text)
    unseen = ended(1, None, signal=15, time=11.0, at="train.py:1 <module>")
    found = verdict(aborts(0, "all_reduce", call), unseen)
    assert (found.cause, found.proved, found.parting) == (SAME, False, None)


def test_where_a_rank_was_before_tells_nothing_of_what_has_met() -> None:
    """It built its model a moment before; since then it has come to what nobody saw."""
    text = "model = DDP(net)\nall_reduce()\n"
    built = error("", "", Frame(f"{LIBRARY}/torch/nn/parallel/distributed.py", 9, "__init__", False))
    stack = (*built.stack, Frame("train.py", 1, "<module>", text=text))
    unseen = ended(1, None, signal=15, time=11.0, ended_in_call=True)
    assert unseen.process is not None
    unseen = replace(unseen, process=replace(unseen.process, stack=stack))
    ranks = [aborts(0, "all_reduce", Frame("train.py", 2, "<module>", text=text)), unseen]
    fixes = fitting(page(SAME).fixes, verdict(*ranks), snapshot(*ranks, code=1, runs=False))
    assert [fix.advice for fix in fixes] == [
        "What has met train.py:2 is not known: have all ranks make the same calls before it, equally "
        "often; if they do, reduce tensors of one size there."
    ]
