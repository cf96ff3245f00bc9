"""Whatever a sentence says of a rank is true of that rank, in whatever states the ranks are together."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pytest
from histories import (
    absent,
    ended,
    in_collective,
    joining,
    raised,
    rank,
    reading,
    recv,
    resting,
    sleeping,
    snapshot,
    steady,
    stopped,
    working,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.diagnose.diagnose import diagnose
from helpers.diagnose.graph import Graph
from helpers.model.facts import RankView, Snapshot, Verdict

UNMOVED = 40.0


@dataclass(frozen=True)
class Kind:
    """What a rank does: how it is made from its number, its place and the world size, and its state.

    Attributes:
        state: as it is said after `is`, or what has become of a rank that has ended; `{next}` is the
            rank after it.
    """

    make: Callable[[int, str, int], RankView]
    state: str


def still(view: RankView) -> RankView:
    return resting(view, UNMOVED)


ALIVE = {
    "asleep": Kind(lambda n, at, _: still(sleeping(n, at=at)), "asleep"),
    "stopped": Kind(lambda n, at, _: still(stopped(n, at=at)), "stopped by a signal"),
    "computing": Kind(lambda n, at, _: working(n, at=at), "working"),
    "idle": Kind(lambda n, at, _: still(rank(n, at=at)), "idle"),
    "holding the GIL": Kind(
        lambda n, at, _: still(rank(n, at=at, gil_held=True)),
        "inside a C call that holds the interpreter lock",
    ),
    "reading": Kind(lambda n, at, _: still(rank(n, reading(), at=at)), "waiting for input from stdin"),
    "receiving": Kind(
        lambda n, at, world: still(rank(n, recv((n + 1) % world), at=at)), "in recv from rank {next}"
    ),
    "in a barrier": Kind(
        lambda n, at, world: still(in_collective(n, "barrier", members=tuple(range(world)), at=at)),
        "in barrier #1",
    ),
    "reducing": Kind(
        lambda n, at, world: still(in_collective(n, "all_reduce", members=tuple(range(world)), at=at)),
        "in all_reduce #1",
    ),
    "joining": Kind(
        lambda n, at, _: still(rank(n, joining(), at=at)), "in the rendezvous (init_process_group)"
    ),
    "importing": Kind(lambda n, at, _: working(n, at=at, state="importing", joined=False), "importing"),
}
OVER = {
    "never started": Kind(lambda n, _at, _: absent(n), "never started"),
    "done": Kind(lambda n, at, _: ended(n, 0, at=at), "ended without an exception"),
    "exited": Kind(lambda n, at, _: ended(n, 3, at=at), "ended with exit code 3"),
    "killed": Kind(lambda n, at, _: ended(n, signal=9, at=at), "ended by SIGKILL"),
    "failed": Kind(lambda n, at, _: raised(n, "ValueError", "bad 1", at), "raised ValueError: bad 1"),
    "failed otherwise": Kind(
        lambda n, at, _: raised(n, "ValueError", "bad 2", at), "raised ValueError: bad 2"
    ),
}
KINDS = {**ALIVE, **OVER}
PLACES = ("a.py:1", "b.py:2", "c.py:3")

Job = Sequence[tuple[str, str]]
"""Of each rank what it does, and where."""

NUMBERS = r"\d+(?:-\d+)?"
RANKS = rf"[Rr]anks? ({NUMBERS}(?:, {NUMBERS})*(?: and {NUMBERS})?)"
VERBS = (
    "is|are|was|were|has|have|waits|wait|ended|raised|never|cannot|still|which|each|in|did|did not|at"
)
SUBJECT = re.compile(rf"(?<!for )(?<!from )(?<!of )(?<!to ){RANKS}(?: (?=(?:{VERBS})\b)|: )")


def made(job: Job) -> Snapshot:
    views = [
        KINDS[kind].make(number, f"{place} work", len(job)) for number, (kind, place) in enumerate(job)
    ]
    return snapshot(*views, world=len(job))


def numbers(text: str) -> list[int]:
    """The ranks of `0, 2-4 and 7`."""
    ends = [part.split("-") for part in re.split(", | and ", text)]
    return [number for end in ends for number in range(int(end[0]), int(end[-1]) + 1)]


def clauses_of(text: str) -> Iterator[tuple[list[int], str]]:
    """Each group of ranks of which a text says something, and what it says."""
    found = [*SUBJECT.finditer(text)]
    ends = [match.start() for match in found[1:]] + [len(text)]
    for match, end in zip(found, ends, strict=False):
        said = re.split(r"[;.] |\.$|(?:,| and) \d+ other ranks? ", text[match.end() : end])[0]
        yield numbers(match[1]), re.sub(r"(?:[,;:(]| and| where| when| while|\s)+$", "", said)


class Truth:
    """What is true of the ranks of a job."""

    def __init__(self, job: Job, newest: Snapshot) -> None:
        self.job = job
        self.graph = Graph.of(newest)

    def state(self, number: int) -> str:
        following = (number + 1) % len(self.job)
        return KINDS[self.job[number][0]].state.format(next=following)

    def holds(self, number: int, said: str) -> bool:
        """Whether it is true of a rank.

        Raises:
            AssertionError: it is not known how that could be told.
        """
        for pattern, rule in RULES:
            if match := pattern.fullmatch(said):
                return rule(self, number, *match.groups())
        raise AssertionError(f"no rule for {said!r}")


Rule = Callable[..., bool]
RULES: list[tuple[re.Pattern[str], Rule]] = []


def rule(pattern: str) -> Callable[[Rule], Rule]:
    """Have a function tell whether what a pattern fits is true of a rank."""

    def kept(judge: Rule) -> Rule:
        RULES.append((re.compile(pattern), judge))
        return judge

    return kept


@rule(r"(?:has|have) not moved from (\S+) for (\d+) s")
def has_not_moved(truth: Truth, number: int, place: str, seconds: str) -> bool:
    kind, at = truth.job[number]
    return kind in ALIVE and at == place and int(seconds) <= UNMOVED


@rule(rf"waits? for {RANKS}(?: in [\w #]+)?(?:, which ((?:is|are) .*))?")
def waits_for(truth: Truth, number: int, peers: str, state: str | None) -> bool:
    named = numbers(peers)
    told = all(state is None or truth.holds(peer, state) for peer in named)
    return {*named} <= truth.graph.waited_for[number] and told


@rule(
    r"(?:waits?|(?:is|are) waiting)(?: for (?:it|them)| elsewhere|, nor .*)?"
    r"|still (?:needs?|waits? for) (?:it|them)"
)
def is_blocked(truth: Truth, number: int) -> bool:
    return bool(truth.graph.waits(number))


@rule(
    r"(?:is|are) in the same (.+?)(?: at (\S+))?(?: and it does not finish.*|, which does not finish)?"
)
def is_in_the_same(truth: Truth, number: int, call: str, at: str | None) -> bool:
    return truth.state(number) == f"in {call}" and at in (None, truth.job[number][1])


@rule(r"(?:(?:was|were) last seen )?at (\S+?)\)?(?: and it does not finish.*)?")
def is_at(truth: Truth, number: int, at: str) -> bool:
    return truth.job[number][1] == at


@rule(r"cannot go on(?:, and nothing.*)?")
def cannot_go_on(truth: Truth, number: int) -> bool:
    return truth.job[number][0] in ALIVE.keys() - {"computing", "importing"}


@rule(r"never did|did not")
def has_not_joined(truth: Truth, number: int) -> bool:
    return not truth.graph.ranks[number].joined


@rule(r"(?:is|are) in the rendezvous, which all others have come out of.*")
def is_in_the_rendezvous(truth: Truth, number: int) -> bool:
    return truth.job[number][0] == "joining"


@rule(
    r"(?:(.+?)(?:,? and(?: they)?)? )?(?:(?:has|have) not reached|never (?:reach(?:es)?|answers?)) (.+)"
)
def does_and_has_not_come(truth: Truth, number: int, does: str | None, call: str) -> bool:
    return (does is None or truth.holds(number, does)) and truth.state(
        number
    ) != f"in {call.partition(' at ')[0]}"


ALSO = {
    "never started": ("not there yet", "no process here"),
    "done": ("ended",),
    "exited": ("ended",),
    "failed": ("ended",),
    "failed otherwise": ("ended",),
    "killed": ("ended", "ended by signal 9 (SIGKILL)"),
}
"""What else may be said of a rank that is over."""


@rule(r"(?:(?:is|are|was|were|has|have) )?(?:blocked (?=in ))?(.+?)(?:, unmoved for \d+ s)?")
def is_in_its_state(truth: Truth, number: int, said: str) -> bool:
    kind, at = truth.job[number]
    state = truth.state(number)
    names = {state, state.removeprefix("raised "), *ALSO.get(kind, ())}
    return said in names | {f"{name} at {at}" for name in names} | {f"at {at} ({state})"}


DOUBTS = (
    (re.compile(rf"lets {RANKS} go on"), "stopped"),
    (re.compile(rf"how long {RANKS} sleep"), "asleep"),
    (re.compile(rf"the C calls? that {RANKS} (?:is|are) in"), "holding the GIL"),
)


def untrue(job: Job, newest: Snapshot, verdict: Verdict) -> list[str]:
    """What a verdict says of a rank that is false of it."""
    truth = Truth(job, newest)
    doubt, _, found = verdict.summary.rpartition(" not known. ")
    still, _, doubted = doubt.partition("; ")
    wrong = [
        f"rank {number} is not {kind}: {doubted}"
        for pattern, kind in DOUBTS
        for match in pattern.finditer(doubted)
        for number in numbers(match[1])
        if job[number][0] != kind
    ]
    texts = (still, found, verdict.detail, verdict.suspicion or "", *verdict.evidence)
    return wrong + [
        f"of rank {number}, which is {job[number]}: {said}"
        for text in texts
        for ranks, said in clauses_of(text)
        for number in ranks
        if not truth.holds(number, said)
    ]


one = st.tuples(st.sampled_from(sorted(KINDS)), st.sampled_from(PLACES))
alive = st.tuples(st.sampled_from(sorted(ALIVE)), st.sampled_from(PLACES))
jobs = st.one_of(st.lists(one, min_size=2, max_size=16), st.lists(alive, min_size=2, max_size=16))


@settings(max_examples=300, deadline=None, derandomize=True, database=None)
@given(job=jobs, final=st.booleans())
def test_what_is_said_of_a_rank_is_true_of_it(job: list[tuple[str, str]], final: bool) -> None:
    newest = made(job)
    verdict = diagnose(steady(newest), final=final)
    assert untrue(job, newest, verdict) == []


BARRIER = ("in a barrier", "a.py:1")
NOT_COME = "they have not reached barrier #1, where rank 0 is waiting."

TOGETHER: list[tuple[str, list[tuple[str, str]], str]] = [
    (
        "two states",
        [BARRIER, ("asleep", "b.py:2"), ("stopped", "c.py:3")],
        "Rank 1 is asleep at b.py:2 and rank 2 is stopped by a signal at c.py:3, and " + NOT_COME,
    ),
    (
        "one state in one place, and another one",
        [BARRIER, *[("asleep", "b.py:2")] * 3, ("holding the GIL", "c.py:3")],
        "Ranks 1-3 are asleep at b.py:2 and rank 4 is inside a C call that holds the interpreter lock "
        "at c.py:3, and " + NOT_COME,
    ),
    (
        "each waits for its own",
        [("receiving", "a.py:1"), ("asleep", "b.py:2"), ("receiving", "a.py:1"), ("asleep", "c.py:3")],
        "Rank 1 is asleep at b.py:2 and rank 3 is asleep at c.py:3, and rank 0 waits for rank 1 in recv "
        "and rank 2 waits for rank 3 in recv.",
    ),
    (
        "some have not joined",
        [("joining", "a.py:1"), ("importing", "b.py:2"), ("never started", ""), ("never started", "")],
        "Only 1 of 4 ranks have joined the process group; ranks 1-3 never did: rank 1 is importing at "
        "b.py:2 and ranks 2 and 3 were never started.",
    ),
    (
        "one has left",
        [("exited", "b.py:2"), *[("in a barrier", "c.py:3")] * 3],
        "Rank 0 ended with exit code 3 while ranks 1-3 still need it; it was last seen at b.py:2.",
    ),
    (
        "two have left, from two lines",
        [("done", "a.py:1"), ("done", "b.py:2"), *[("in a barrier", "c.py:3")] * 3],
        "Ranks 0 and 1 ended without an exception while ranks 2-4 still need them; rank 0 was last seen "
        "at a.py:1 and rank 1 was last seen at b.py:2.",
    ),
    (
        "two have raised one type at one line",
        [("failed", "a.py:1"), ("failed otherwise", "a.py:1"), ("computing", "c.py:3")],
        "Rank 0 raised ValueError: bad 1 at a.py:1 and rank 1 raised ValueError: bad 2 at a.py:1.",
    ),
    (
        "more places than are told",
        [BARRIER, *[(kind, at) for kind in ("asleep", "idle", "stopped") for at in PLACES] * 2][:16],
        "Ranks 1 and 10 are asleep at a.py:1, ranks 2 and 11 are asleep at b.py:2, ranks 3 and 12 are "
        "asleep at c.py:3 and 9 other ranks are in 6 other states or places, and " + NOT_COME,
    ),
]


@pytest.mark.parametrize(
    ("job", "says"), [row[1:] for row in TOGETHER], ids=[row[0] for row in TOGETHER]
)
def test_each_state_and_place_has_a_clause(job: list[tuple[str, str]], says: str) -> None:
    verdict = diagnose(steady(made(job)), final=True)
    assert verdict.summary.rpartition(" not known. ")[2] == says
