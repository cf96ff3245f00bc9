"""The fixes of the pages: when they fit, and how they are said then, in the user's own lines."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from histories import collective, rank, recv, send, snapshot, steady
from msgspec.structs import fields, replace

from helpers.diagnose.causes.missing_rank import find as find_missing
from helpers.diagnose.diagnose import diagnose
from helpers.diagnose.fixes import OTHERWISE, fields_of, fitting, needed, terms
from helpers.diagnose.pages import Fix, names, page
from helpers.diagnose.scene import Facts
from helpers.diagnose.statement import Statement
from helpers.model import findings
from helpers.model.facts import ErrorView, Handled, Job, ProcessView, RankView, Snapshot, Verdict
from helpers.model.findings import Finding, Mismatch, Missing, RankExited, WorkerStall
from helpers.model.frames import Frame
from helpers.model.parting import Branch, Call, Guard, Parting
from helpers.model.waits import InCollective, OnCondition, Wait

ALWAYS = {"at", "odd_ranks", "masked", "error", "error_at", "handling", OTHERWISE}
"""The fields that every verdict has."""

OF_CAUSE: Mapping[str, type[Finding]] = {
    "address-in-use": findings.AddressInUse,
    "duplicate-rank": findings.DuplicateRank,
    "out-of-memory": findings.OutOfMemory,
    "worker-stall": findings.WorkerStall,
    "shape-mismatch": findings.ShapeMismatch,
    "device-mismatch": findings.DeviceMismatch,
    "rank-crashed": findings.RankCrashed,
    "rank-exited": findings.RankExited,
    "rendezvous-incomplete": findings.RendezvousIncomplete,
    "collective-mismatch": findings.Mismatch,
    "file-lock": findings.FileLock,
    "missing-rank": findings.Missing,
    "error": findings.Raised,
    "unknown": findings.Unexplained,
}

FITS = [(cause, when, said) for cause in names() for fix in page(cause).fixes for when, said in fix.fits]


@pytest.mark.parametrize(("cause", "when", "said"), FITS)
def test_a_page_names_fields_that_there_are(cause: str, when: str, said: str) -> None:
    types = {
        field.name: str(field.type) for one in (OF_CAUSE[cause], Statement) for field in fields(one)
    }
    there = ALWAYS | types.keys()
    for _, name, value in terms(when):
        assert name in there
        assert not value or value in types[name] + str(vars(findings)) or name == "port"
    assert needed(said) <= there
    assert said[0].isupper() or said[0] in "`{"
    assert said.endswith((".", "?"))
    assert said.count("`") % 2 == 0


def test_a_finding_is_named_once() -> None:
    kinds = [finding.kind for finding in OF_CAUSE.values()]
    assert len({*kinds}) == len(kinds) == len(names())
    of_statement = {field.name for field in fields(Statement)}
    for finding in OF_CAUSE.values():
        assert not (of_statement | ALWAYS) & {field.name for field in fields(finding)}


@pytest.mark.parametrize("cause", names())
def test_a_page_is_read_without_its_comments(cause: str) -> None:
    read = page(cause)
    assert "<!--" not in read.markdown + read.fix + read.confirm
    assert all("<!--" not in fix.text and "\n" not in fix.text for fix in read.fixes)
    assert [fix.text for fix in read.fixes] and read.fix.count("\n1. ") == 0
    for number, fix in enumerate(read.fixes, start=1):
        assert f"{number}. {fix.text}"[:30] in " ".join(read.fix.split())


TEXT = """\
main = dist.get_rank() == 0; first = not main; task = int(os.environ["RANK"]); \
shard = load(task); role = "a" if task else "b"; record = RECORDS[task]
def train(index):
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
    finding: Finding | None = None,
    inside: bool = True,
    guards: tuple[Guard, ...] = (),
) -> tuple[Verdict, Snapshot]:
    text = TEXT.replace("DECIDES", condition)
    where = [Frame("train.py", line, "train", text=text) for line in (3, 4, 5)]
    outer = Frame("train.py", 6, "<module>", text=text)
    library = Frame("/lib/fabric.py", 9, "save", user=False)
    stacks = ((library, where[1], outer), (where[2], outer)) if inside else ((outer,), (outer,))
    ranks = tuple(
        RankView(rank, state="waiting", process=process, joined=True)
        for rank, (stack, wait) in enumerate(zip(stacks, waits, strict=True))
        for process in [ProcessView(rank + 10, "rank", state="waiting", stack=stack, waits=(wait,))]
    )
    told = values or {}
    parting = Parting(
        kind=kind,  # type: ignore[arg-type]
        where=where[0],
        source=f"{'while' if kind == 'while' else 'if'} {condition}:",
        branches=(Branch("in its body", (0,), where[1]), Branch("after it", (1,), where[2])),
        names=tuple(told) or (condition,),
        values=told,
        differ=tuple(name for name, of in told.items() if len({*of.values()}) > 1),
    )
    if guards:
        parting = Parting(guards=guards)
    verdict = Verdict(
        "hang",
        "collective-mismatch",
        culprits=(0, 1),
        where=where[1],
        parting=parting,
        finding=finding or Mismatch(odd=(0, 1)),
    )
    return verdict, Snapshot(5.0, Job(("x",), world_size=2), ranks)


def said(one: tuple[Verdict, Snapshot]) -> list[tuple[int, str]]:
    verdict, snapshot = one
    return [(fix.number, fix.advice) for fix in fitting(page(verdict.cause).fixes, verdict, snapshot)]


def numbers(one: tuple[Verdict, Snapshot]) -> list[int]:
    return [number for number, _ in said(one)]


BY_RANK = [
    ("dist.get_rank() == 0", {"dist.get_rank()": {0: "0", 1: "1"}}, True),
    ("fabric.is_global_zero", {}, True),
    ("self.global_rank", {}, True),
    ("main", {"main": {0: "True", 1: "False"}}, True),
    ("number == 0", {"number": {0: "0", 1: "1", 2: "2"}}, True),
    ("skipped == 0", {"skipped": {0: "0", 1: "1"}}, False),
    ("index == 0", {"index": {0: "0", 1: "1"}}, True),
    ("first", {}, True),
    ("task", {}, True),
    ("shard", {}, False),
    ("role", {}, False),
    ("record", {}, False),
    ("loss > best", {"loss": {0: "2.0", 1: "1.0"}, "best": {0: "1.0", 1: "1.0"}}, False),
    ("rank == 0 or due", {"rank": {0: "3", 1: "3"}, "due": {0: "True", 1: "False"}}, False),
    ("os.path.exists(path)", {}, False),
    ("frank", {}, False),
]


@pytest.mark.parametrize(("condition", "values", "by_rank"), BY_RANK, ids=[row[0] for row in BY_RANK])
def test_whether_a_condition_asks_for_the_rank(
    condition: str, values: dict[str, dict[int, str]], by_rank: bool
) -> None:
    verdict, snapshot = case(condition, values)
    assert fields_of(verdict, Facts(snapshot))["by_rank"] is by_rank


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


def test_what_only_sets_a_state_is_broadcast_and_not_moved() -> None:
    """A callback has decided, and has returned: no call is in its `if` that could be taken out."""
    ((number, text),) = said(case("state.is_world_process_zero", inside=False))
    assert number == 2
    assert text.startswith("Only some ranks act on `if state.is_world_process_zero` (train.py:3)")


GUARDS = (
    Guard("if", (1,), Frame("train.py", 3, "train", text="rank = 1"), "if loss.isnan(): continue"),
    Guard("for", (1,), Frame("train.py", 9, "train", text="rank = 1"), "for batch in batches:"),
)
BY_RANK_ALONE = (
    Guard("if", (1,), Frame("train.py", 3, "train", text="rank = 1"), "if rank == 0: save()"),
)


def test_one_of_several_statements_has_decided() -> None:
    assert said(case("", guards=GUARDS)) == [
        (
            2,
            "The ranks may have parted at `if loss.isnan(): continue` (train.py:3) or "
            "`for batch in batches` (train.py:9): have them agree there, by a broadcast from one or "
            "an `all_reduce` of a flag, and go the same way.",
        )
    ]
    ((number, text),) = said(case("", guards=GUARDS[1:]))
    assert number == 6
    assert text.startswith("`for batch in batches` (train.py:9) may run more iterations on some ranks")
    assert numbers(case("", guards=BY_RANK_ALONE)) == [1]


CALLS = (Call((0,), "barrier", Frame("train.py", 9, "train")), Call((1,), "broadcast", None))
RANKS = {"dist.get_rank()": {0: "0", 1: "1"}}
OWN_FIXES = [
    ("messages that do not meet", Mismatch(messages=True, collective=False), [5]),
    ("a group that not all make", Mismatch(makes_group=True, collective=False), [4]),
    ("two threads in one group", Mismatch(threads=True), [1, 7]),
]


@pytest.mark.parametrize(("title", "finding", "expected"), OWN_FIXES, ids=[row[0] for row in OWN_FIXES])
def test_other_calls_have_fixes_of_their_own(title: str, finding: Finding, expected: list[int]) -> None:
    assert numbers(case("dist.get_rank() == 0", RANKS, finding=finding)) == expected


def test_where_nothing_else_is_known_the_calls_are_told() -> None:
    verdict = Verdict("hang", "collective-mismatch", culprits=(0, 1), finding=Mismatch(calls=CALLS))
    assert said((verdict, Snapshot(1.0, Job(("x",))))) == [
        (
            9,
            "Make the same calls, in the same order, on all ranks: here barrier on rank 0 (train.py:9), "
            "broadcast on rank 1 meet.",
        )
    ]


def test_an_exception_that_is_handled_comes_first() -> None:
    error = ErrorView("ValueError", "record 7", (Frame("data.py", 3, "read"),))
    verdict, snapshot = case("loss > best", {"loss": {0: "2.0", 1: "1.0"}})
    handled = Handled((0,), error, Frame("data.py", 3, "read"))
    ((number, text),) = said((replace(verdict, handled=handled), snapshot))
    assert number == 8
    assert text.startswith("Rank 0 got here while handling `ValueError: record 7`: repair data.py:3")


def test_a_loop_has_its_own() -> None:
    assert numbers(case("n < turns", kind="while")) == [6]


def test_nothing_fits_where_nothing_is_known() -> None:
    verdict = Verdict("hang", "collective-mismatch", culprits=(0, 1))
    assert said((verdict, Snapshot(1.0, Job(("x",))))) == []


def test_what_a_text_needs_must_be_known() -> None:
    fixes = [Fix("...", (("at", "See {call} at {at}."), ("at", "See {at}.")))]
    verdict = Verdict("error", "error", where=Frame("train.py", 4, "main"))
    (found,) = fitting(fixes, verdict, Snapshot(1.0, Job(("x",))))
    assert found.advice == "See train.py:4."


def test_a_condition_asks_for_values_and_for_what_is_not_so() -> None:
    fixes = [
        Fix("...", (("state=stuck, not signal", "Stuck."), ("signal", "By {signal}."))),
        Fix("...", ()),
    ]
    for finding, expected in (
        (WorkerStall("stuck"), ["Stuck."]),
        (WorkerStall("ended"), []),
        (WorkerStall("stuck", "SIGTERM"), ["By SIGTERM."]),
    ):
        verdict = Verdict("error", "worker-stall", finding=finding)
        found = fitting(fixes, verdict, Snapshot(1.0, Job(("x",))))
        assert [fix.advice for fix in found] == expected


def test_a_source_is_quoted_as_a_source() -> None:
    """What would be a secret in a log, as a value after `token = `, is a name in a program."""
    ((_, text),) = said(case("token == tokens[0]"))
    assert "`if token == tokens[0]` (train.py:3)" in text


def test_a_backtick_in_a_source_breaks_no_code() -> None:
    ((_, text),) = said(case('name == "`"'))
    assert text.count("`") == 4 and """`if name == "'"`""" in text


HANGS = Frame("train.py", 9, "main")
KEPT = [
    ("what a person types", Missing(ranks=(1,), waits_for="input"), [3]),
    ("a signal", Missing(ranks=(1,), waits_for="signal"), [4]),
    ("a key", Missing(ranks=(1,), waits_for="key"), [5]),
    ("a lock", Missing(ranks=(1,), waits_for="lock"), [6]),
    ("another thread", Missing(ranks=(1,), waits_for="thread"), [1]),
    ("a child that cannot write", Missing(ranks=(1,), waits_for="pipe"), [7]),
    ("a queue that nobody reads", Missing(ranks=(1,), waits_for="queue"), [6]),
    ("a child that has failed", Missing(ranks=(1,), waits_for="other", lost="a child has ended"), [1]),
    ("a condition that nobody changes", Missing(waits_for="condition", tested="not ready"), [1]),
    ("its own work", Missing(ranks=(1,), works=True), [1]),
    (
        "what is outside",
        Missing((1,), "other", met=2, needed_by=(0,), awaited="broadcast #3"),
        [1],
    ),
]


@pytest.mark.parametrize(("title", "finding", "expected"), KEPT, ids=[row[0] for row in KEPT])
def test_what_keeps_a_rank_has_a_fix_of_its_own(
    title: str, finding: Missing, expected: list[int]
) -> None:
    verdict = Verdict("hang", "missing-rank", culprits=(1,), where=HANGS, finding=finding)
    found = said((verdict, Snapshot(1.0, Job(("x",)))))
    assert [number for number, _ in found] == expected
    assert ("swallowed" in found[0][1]) is bool(finding.met)


def test_no_timeout_is_raised_where_nothing_works() -> None:
    for finding, expected in ((Missing((1,), works=True), [2]), (Missing((1,), "pipe"), [7])):
        verdict, snapshot = case("rank == 0", {"rank": {0: "0", 1: "1"}})
        verdict = replace(verdict, cause="missing-rank", finding=finding)
        assert numbers((verdict, snapshot)) == expected


def test_who_changes_what_a_rank_tests_is_told() -> None:
    at = Frame("train.py", 9, "wait")
    tests = OnCondition(op="not self.ready", where=at, changed_at=(Frame("train.py", 3, "finish"),))
    process = ProcessView(11, "rank", state="waiting", stack=(at,), where=at, waits=(tests,))
    waiting = InCollective(op="barrier", group="default", members=(0, 1), seq=1, where=at)
    other = ProcessView(10, "rank", state="waiting", stack=(at,), where=at, waits=(waiting,))
    settled = {"still": 99.0, "idle": 99.0, "woken": 99.0, "beacon": True}
    ranks = tuple(
        RankView(rank, state="waiting", process=replace(one, **settled), joined=True)
        for rank, one in enumerate((other, process))
    )
    snapshot = Snapshot(99.0, Job(("x",), world_size=2), ranks)
    verdict = find_missing(Facts(snapshot, 10.0))
    assert verdict is not None
    ((number, text),) = said((verdict, snapshot))
    assert number == 1
    assert text == (
        "`not self.ready` (train.py:9) changes in finish (train.py:3): find out why that has not run."
    )


def test_loops_are_not_said_to_differ_where_that_is_not_known() -> None:
    finding = RankExited((1,), (0,), HANGS)
    verdict = Verdict("error", "rank-exited", culprits=(1,), where=HANGS, finding=finding)
    ((_, text),) = said((verdict, Snapshot(1.0, Job(("x",)))))
    assert "iterations" not in text
    assert text == "The call at train.py:9 still needs rank 1: have all ranks make it, or none."


MESSAGES = [
    (
        "a receive from another rank",
        [send(1), recv(2), recv(0)],
        "Here rank 0 sends to rank 1 (train.py:10), which receives from rank 2 first (train.py:11): "
        "give that receive the right source, or receive in the order in which ranks send.",
    ),
    (
        "two tags",
        [replace(send(1), tag=3), replace(recv(0), tag=4)],
        "Here rank 0 sends to rank 1 (train.py:10) with tag 3, which receives with tag 4 (train.py:11): "
        "give both sides one tag.",
    ),
    (
        "a message on its way to the wrong rank",
        [replace(send(1), tag=3), replace(recv(0), tag=4), replace(recv(0), tag=3)],
        "Here rank 0 sends to rank 1 (train.py:10), with tag 3, what rank 2 waits for (train.py:12): "
        "send it to that rank.",
    ),
    (
        "both receive",
        [recv(1), recv(0)],
        "At train.py:10, order the calls: one side sends while the other receives.",
    ),
    (
        "two roots",
        [collective("broadcast", root=0), collective("broadcast", root=1)],
        "Give train.py:10 the same root (`src` or `dst`) on all ranks: here it is 0 on rank 0, 1 on "
        "rank 1.",
    ),
]


@pytest.mark.parametrize(
    ("waits", "fix"), [row[1:] for row in MESSAGES], ids=[row[0] for row in MESSAGES]
)
def test_what_does_not_meet_is_told_by_what_differs(waits: list[Wait], fix: str) -> None:
    moment = snapshot(*(rank(n, wait, at=f"train.py:{10 + n} step") for n, wait in enumerate(waits)))
    verdict = diagnose(steady(moment))
    fixes = fitting(page(verdict.cause).fixes, verdict, moment)
    assert [one.advice for one in fixes] == [fix]


WARNED = (
    "/lib/torch/distributed/distributed_c10d.py:3222: UserWarning: Running all_reduce on global rank 1 "
    "which does not belong to the given group."
)


@pytest.mark.parametrize("lines", [(WARNED, '  _warn_not_in_group("all_reduce")'), ()])
def test_who_calls_in_a_group_of_others_is_told(lines: tuple[str, ...]) -> None:
    waits = [collective("all_reduce", group="1", members=(0, 1)), collective("barrier")]
    moment = snapshot(*(rank(n, wait, at=f"train.py:{10 + n} step") for n, wait in enumerate(waits)))
    moment = replace(moment, output=((0, ()), (1, lines)))
    verdict = diagnose(steady(moment))
    (fix,) = fitting(page(verdict.cause).fixes, verdict, moment)
    told = "Rank 1 has called all_reduce in a group of other ranks, where torch does nothing"
    assert fix.advice.startswith(told) is bool(lines)


@pytest.mark.parametrize(
    ("body", "stops"),
    [
        ("if waited > 3:\n            break", True),
        ("return", True),
        ("sys.exit(1)", True),
        ("for batch in loader:\n            break", False),
        ("save()", False),
    ],
)
def test_whether_a_condition_of_one_rank_ends_its_work(body: str, stops: bool) -> None:
    verdict, snapshot = case("rank == 0", {"rank": {0: "0", 1: "1"}})
    text = f"def train(rank):\n    pass\n    if rank == 0:\n        {body}\n"
    parting = verdict.parting
    assert parting is not None and parting.where is not None
    parting = replace(parting, where=replace(parting.where, text=text))
    assert fields_of(replace(verdict, parting=parting), Facts(snapshot))["stops"] is stops
