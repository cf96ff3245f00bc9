"""An exception that some ranks are handling, while others wait for them, is the first event."""

from __future__ import annotations

import pytest
from histories import in_collective, rank, snapshot, steady
from msgspec.structs import replace

from helpers.diagnose.diagnose import diagnose
from helpers.model.facts import ErrorView, RankView, Verdict
from helpers.model.frames import Frame
from helpers.model.issued import Issued, IssuedCall
from helpers.model.waits import OnCondition

READ = Frame("data.py", 7, "read")
ERROR = ErrorView("ValueError", "record 7 is empty.", (Frame("/lib/x.py", 3, "get", user=False), READ))
IN_LIBRARY = replace(ERROR, stack=ERROR.stack[:1])
HANDLER, STEP = Frame("train.py", 12, "step"), Frame("train.py", 30, "train")
OTHER = replace(ERROR, stack=(Frame("data.py", 9, "read"),))


def judged(*errors: ErrorView | None) -> Verdict:
    """Rank 0 saves, and the others train; each handles what is given, if anything."""
    views = [
        in_collective(number, "barrier" if number == 0 else "all_reduce", members=(0, 1, 2))
        for number in range(3)
    ]
    newest = snapshot(*map(handling, views, errors), world=3)
    return diagnose(steady(newest))


def handling(view: RankView, error: ErrorView | None) -> RankView:
    assert view.process is not None
    return replace(view, process=replace(view.process, handling=error))


def test_it_is_told_with_its_line() -> None:
    verdict = judged(ERROR, None, None)
    assert (verdict.outcome, verdict.cause, verdict.proved) == ("hang", "collective-mismatch", True)
    assert verdict.handled is not None and verdict.handled.ranks == (0,)
    assert verdict.where == READ
    said = "rank 0 got there while handling ValueError: record 7 is empty, raised at data.py:7"
    assert verdict.evidence[-1] == said
    assert verdict.summary.endswith(f" R{said[1:]}.")


CAUGHT = Frame("train.py", 10, "step")
WITH_HANDLER = replace(ERROR, stack=(*ERROR.stack, CAUGHT))


@pytest.mark.parametrize(("earlier", "told"), [((), True), ((STEP,), True), ((HANDLER,), False)])
def test_a_loop_in_a_handler_is_how_a_program_is_written(earlier: tuple[Frame, ...], told: bool) -> None:
    """Rank 0 has made calls before, from elsewhere or from the line of its handler."""
    views = [
        in_collective(n, "barrier" if n == 0 else "all_reduce", members=(0, 1, 2)) for n in range(3)
    ]
    first = handling(views[0], WITH_HANDLER).process
    assert first is not None
    calls = tuple(IssuedCall("all_reduce", (frame,)) for frame in (*earlier, HANDLER))
    issued = (Issued("default", 2 - len(calls), calls),)
    first = replace(first, stack=(HANDLER,), where=HANDLER, issued=issued)
    newest = snapshot(replace(views[0], process=first), *views[1:], world=3)
    assert (diagnose(steady(newest)).handled is not None) is told


def test_a_loop_that_polls_in_its_handler_is_none() -> None:
    polls = rank(0, OnCondition(op="not queue", where=HANDLER), at=HANDLER, idle=60.0, still=60.0)
    others = [in_collective(n, "all_reduce", members=(0, 1, 2), idle=60.0, still=60.0) for n in (1, 2)]
    for error, told in ((None, None), (ERROR, None)):
        newest = snapshot(handling(polls, error), *others, world=3)
        verdict = diagnose(steady(newest), patience=10.0, final=True)
        assert (verdict.outcome, verdict.cause, verdict.handled) == ("hang", "missing-rank", told)


NONE = {
    "nobody handles one": (None, None, None),
    "all handle it: so the program is written": (ERROR, ERROR, ERROR),
    "the odd rank does not": (None, OTHER, None),
    "it has no line of the user's": (IN_LIBRARY, None, None),
}


@pytest.mark.parametrize("errors", NONE.values(), ids=NONE)
def test_no_other_is_taken_for_the_first_event(errors: tuple[ErrorView | None, ...]) -> None:
    verdict = judged(*errors)
    assert verdict.outcome == "hang" and verdict.handled is None
    assert verdict.where != READ and "handling" not in verdict.summary
