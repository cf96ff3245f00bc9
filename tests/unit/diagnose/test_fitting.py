"""The fixes of the pages, the situations in which they fit, and how they are said there."""

from __future__ import annotations

from dataclasses import replace

import pytest

from helpers.diagnose.fitting.case import Case
from helpers.diagnose.fitting.fixes import fitting, needed
from helpers.diagnose.fitting.situations import SITUATIONS
from helpers.diagnose.pages import Fix, names, page
from helpers.diagnose.scene import Facts
from helpers.model.facts import Collective, Job, ProcessView, RankView, Snapshot, Verdict
from helpers.model.frames import Frame
from helpers.model.issued import Issued, IssuedCall
from helpers.model.parting import Branch, Parting
from helpers.model.waits import InCollective, InP2P, OnCondition, OnInput, Wait

FIELDS = {
    *("ranks", "at", "call", "call_at", "statement", "parted", "values"),
    *("tested", "changed"),
}

FITS = [(cause, name, said) for cause in names() for fix in page(cause).fixes for name, said in fix.fits]


@pytest.mark.parametrize(("cause", "name", "said"), FITS)
def test_a_page_names_situations_and_fields_that_there_are(cause: str, name: str, said: str) -> None:
    assert name in SITUATIONS
    assert needed(said) <= FIELDS
    assert said[0].isupper() or said[0] in "`{"
    assert said.endswith((".", "?"))
    assert said.count("`") % 2 == 0


def test_each_situation_is_named_by_a_page() -> None:
    assert {name for _, name, _ in FITS} == SITUATIONS.keys()


@pytest.mark.parametrize("cause", names())
def test_a_page_is_read_without_its_comments(cause: str) -> None:
    read = page(cause)
    assert "<!--" not in read.markdown + read.fix + read.confirm
    assert all("<!--" not in fix.text and "\n" not in fix.text for fix in read.fixes)
    assert [fix.text for fix in read.fixes] and read.fix.count("\n1. ") == 0
    for number, fix in enumerate(read.fixes, start=1):
        assert f"{number}. {fix.text}"[:30] in " ".join(read.fix.split())


TEXT = """\
main = dist.get_rank() == 0
def train():
    if DECIDES:
        fabric.save(path, state)
    fabric.barrier()
train()
"""


def case(
    condition: str,
    values: dict[str, dict[int, str]] | None = None,
    waits: tuple[Wait, Wait] = (InCollective(op="broadcast"), InCollective(op="barrier")),
    kind: str = "if",
) -> Case:
    text = TEXT.replace("DECIDES", condition)
    where = [Frame("train.py", line, "train", text=text) for line in (3, 4, 5)]
    outer = Frame("train.py", 6, "<module>", text=text)
    library = Frame("/lib/fabric.py", 9, "save", user=False)
    stacks = ((library, where[1], outer), (where[2], outer))
    ranks = tuple(
        RankView(rank, state="waiting", process=process, joined=True)
        for rank, (stack, wait) in enumerate(zip(stacks, waits, strict=True))
        for process in [ProcessView(rank + 10, "rank", state="waiting", stack=stack, waits=(wait,))]
    )
    told = values or {}
    parting = Parting(
        kind=kind,  # type: ignore[arg-type]
        where=where[0],
        source=f"if {condition}:",
        branches=(Branch("in its body", (0,), where[1]), Branch("after it", (1,), where[2])),
        asked=tuple(told) or (condition,),
        values=told,
        differ=tuple(name for name, of in told.items() if len({*of.values()}) > 1),
    )
    verdict = Verdict("hang", "collective-mismatch", culprits=(0, 1), where=where[1], parting=parting)
    return Case(verdict, Facts(Snapshot(5.0, Job(("x",), world_size=2), ranks)))


BY_RANK = [
    ("dist.get_rank() == 0", {"dist.get_rank()": {0: "0", 1: "1"}}, True),
    ("fabric.is_global_zero", {}, True),
    ("self.global_rank", {}, True),
    ("main", {"main": {0: "True", 1: "False"}}, True),
    ("number == 0", {"number": {0: "0", 1: "1"}}, True),
    ("loss > best", {"loss": {0: "2.0", 1: "1.0"}, "best": {0: "1.0", 1: "1.0"}}, False),
    ("rank == 0 or due", {"rank": {0: "3", 1: "3"}, "due": {0: "True", 1: "False"}}, False),
    ("os.path.exists(path)", {}, False),
    ("frank", {}, False),
]


@pytest.mark.parametrize(("condition", "values", "by_rank"), BY_RANK, ids=[row[0] for row in BY_RANK])
def test_whether_a_condition_asks_for_the_rank(
    condition: str, values: dict[str, dict[int, str]], by_rank: bool
) -> None:
    assert case(condition, values).decided_by_rank() is by_rank


def said(one: Case) -> list[tuple[int, str]]:
    fixes = page(one.verdict.cause).fixes
    return [(found.number, found.said) for found in fitting(fixes, one.verdict, one.snapshot)]


def test_the_fix_is_said_in_the_users_own_lines() -> None:
    assert said(case("fabric.global_rank == 0", {"fabric.global_rank": {0: "0", 1: "1"}})) == [
        (
            1,
            "Every rank has to call `fabric.save` (train.py:4): take it out of "
            "`if fabric.global_rank == 0` (train.py:3).",
        )
    ]


def test_the_values_are_told_where_they_are_known() -> None:
    ((number, text),) = said(case("loss > best", {"loss": {0: "2.0", 1: "1.0"}}))
    assert number == 2
    assert "`if loss > best` (train.py:3) for itself, and loss is 2.0 on rank 0, 1.0 on rank 1:" in text
    ((number, text),) = said(case("os.path.exists(path)"))
    assert number == 2 and " and " not in text.partition(":")[0]


LOSS, STEP = Frame("train.py", 4, "train"), Frame("train.py", 5, "train")


def passed(rank: int, *calls: Collective, at: Frame) -> RankView:
    """A rank that has made these calls, all of them from the line of the loss, and is now at another."""
    process = ProcessView(
        rank + 10,
        "rank",
        state="waiting",
        stack=(at,),
        where=at,
        waits=(InCollective(op=calls[-1].op),),
        collectives=calls,
        issued=tuple(Issued(call.group, call.seq, (IssuedCall(call.op, (LOSS,)),)) for call in calls),
    )
    return RankView(rank, state="waiting", process=process, joined=True)


ALL_REDUCE, BARRIER = Collective("default", 7, "all_reduce"), Collective("default", 8, "barrier")
PASSED, OF_EVENS = replace(ALL_REDUCE, done=True), Collective("evens", 1, "barrier")


@pytest.mark.parametrize(
    ("of_rank_0", "lines"),
    [((PASSED, BARRIER), {LOSS}), ((ALL_REDUCE,), {LOSS, STEP}), ((PASSED, OF_EVENS), set())],
    ids=["it is past the call", "it is in the call", "it is in another group"],
)
def test_the_lines_of_the_calls_that_have_met(
    of_rank_0: tuple[Collective, ...], lines: set[Frame]
) -> None:
    ranks = (
        passed(0, *of_rank_0, at=STEP),
        passed(1, replace(OF_EVENS, done=True), ALL_REDUCE, at=LOSS),
    )
    verdict = Verdict("hang", "shape-mismatch", culprits=(0, 1))
    assert Case(verdict, Facts(Snapshot(5.0, Job(("x",), world_size=2), ranks))).lines == lines


WAITS = [
    ("messages that do not meet", (InP2P(op="recv"), InP2P(op="recv")), [5]),
    ("a group that not all make", (InCollective(op="new_group"), InCollective(op="barrier")), [4]),
]


@pytest.mark.parametrize(("title", "waits", "numbers"), WAITS, ids=[row[0] for row in WAITS])
def test_other_calls_have_fixes_of_their_own(
    title: str, waits: tuple[Wait, Wait], numbers: list[int]
) -> None:
    assert [number for number, _ in said(case("dist.get_rank() == 0", waits=waits))] == numbers


def test_a_loop_has_its_own() -> None:
    assert [number for number, _ in said(case("n < turns", kind="while"))] == [6]


def test_nothing_fits_where_nothing_is_known() -> None:
    verdict = Verdict("hang", "collective-mismatch", culprits=(0, 1))
    assert fitting(page("collective-mismatch").fixes, verdict, Snapshot(1.0, Job(("x",)))) == ()


def test_what_a_text_needs_must_be_known() -> None:
    fixes = [Fix("...", (("has-a-line", "See {call} at {at}."), ("has-a-line", "See {at}.")))]
    where = Frame("train.py", 4, "main")
    verdict = Verdict("error", "error", where=where)
    (found,) = fitting(fixes, verdict, Snapshot(1.0, Job(("x",))))
    assert found.said == "See train.py:4."


@pytest.mark.parametrize("situation", sorted(SITUATIONS))
def test_no_situation_fails_on_a_case_without_facts(situation: str) -> None:
    for cause in names():
        verdict = Verdict("error", cause, culprits=(0,), where=None)
        known = Case(verdict, Facts(Snapshot(1.0, Job(("x",)), (RankView(0),))))
        assert SITUATIONS[situation](known) in (True, False)


def test_a_backtick_in_a_source_breaks_no_code() -> None:
    ((_, text),) = said(case('name == "`"'))
    assert text.count("`") == 2


def test_reads_input() -> None:
    waits = (OnInput(op="read"), InCollective(op="barrier"))
    one = case("rank == 0", waits=waits)
    assert SITUATIONS["reads-input"](one) and not SITUATIONS["work-of-one-rank"](one)


def test_who_changes_what_a_rank_tests_is_told() -> None:
    at = Frame("train.py", 9, "wait")
    tests = OnCondition(op="not self.ready", where=at, changed_at=(Frame("train.py", 3, "finish"),))
    process = ProcessView(11, "rank", state="waiting", stack=(at,), where=at, waits=(tests,))
    ranks = (RankView(1, state="waiting", process=process, joined=True),)
    verdict = Verdict("hang", "missing-rank", culprits=(1,), where=at)
    snapshot = Snapshot(5.0, Job(("x",), world_size=2), ranks)
    (fix,) = fitting(page("missing-rank").fixes, verdict, snapshot)
    assert fix.said == (
        "`not self.ready` (train.py:9) changes in finish (train.py:3): find out why that has not run."
    )
