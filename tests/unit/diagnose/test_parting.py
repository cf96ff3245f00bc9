"""Sources and lines -> the statement at which ranks parted, and where none is named."""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from helpers.diagnose.parting.parted import exited
from helpers.diagnose.parting.parted import parted as parted_by
from helpers.diagnose.parting.trace import Trace
from helpers.model.frames import Frame, Scalar
from helpers.model.issued import IssuedCall
from helpers.model.parting import Parting


@dataclass(frozen=True)
class Case:
    """A program whose lines say `# <- A` for the rank that is there; `A2` is the frame below `A`.

    Attributes:
        values: of the innermost frame in common, rank -> name -> value.
        guards: the lines of those of which one has decided, where none is named.
        named: kind, line, and the way of rank 0 and 1; None where nothing may be named.
    """

    title: str
    text: str
    named: tuple[str, int, str, str] | None = None
    values: Mapping[int, Mapping[str, Scalar]] = field(default_factory=dict)
    differ: tuple[str, ...] = ()
    guards: tuple[int, ...] = ()


CASES = [
    Case(
        "a rank is in the body of an `if`, the other has passed it",
        """
        prepare()
        if rank == 0:
            save()  # <- 0
        barrier()  # <- 1
        """,
        ("if", 2, "in its body", "after it"),
        differ=("rank",),
    ),
    Case(
        "the values of the condition are told, and which differ",
        """
        if step % 2 == 0 and rank == 0:
            save()  # <- 0
        barrier()  # <- 1
        """,
        ("if", 1, "in its body", "after it"),
        {0: {"rank": 0, "step": 4}, 1: {"rank": 1, "step": 4}},
        ("rank",),
    ),
    Case(
        "both branches of an `if`",
        """
        if rank == 0:
            save()  # <- 0
        else:
            barrier()  # <- 1
        """,
        ("if", 1, "in its body", "in its else"),
        differ=("rank",),
    ),
    Case(
        "an `elif` is a part of the same statement",
        """
        if rank == 0:
            a()  # <- 0
        elif rank == 1:
            b()  # <- 1
        else:
            c()
        """,
        ("if", 1, "in its body", "in its elif rank == 1"),
        differ=("rank",),
    ),
    Case(
        "a `match`",
        """
        match mode:
            case "train":
                a()  # <- 0
            case _:
                b()  # <- 1
        """,
        ("match", 1, "in its case 'train'", "in its case _"),
    ),
    Case(
        "a conditional expression over several lines",
        """
        x = (
            a()  # <- 0
            if rank == 0
            else b()  # <- 1
        )
        """,
        ("ifexp", 2, "in its first part", "in its else"),
        differ=("rank",),
    ),
    Case(
        "an exception has led a rank away",
        """
        try:
            step()  # <- 0
        except ValueError:
            barrier()  # <- 1
        """,
        ("try", 1, "in its body", "in its except ValueError"),
    ),
    Case(
        "the only way out of the function before its call is a `return`",
        """
        def step():
            if bad:
                return
            all_reduce()  # <- 0.2
        step()  # <- 0
        barrier()  # <- 1
        """,
        ("return", 3, "went on", "returned"),
    ),
    Case(
        "the statement is in the function that one rank has left",
        """
        def save():
            if dist.get_rank() == 0:
                broadcast()  # <- 0.2
        for batch in loader:
            save()  # <- 0
            barrier()  # <- 1
        """,
        ("if", 2, "in its body", "after it"),
        differ=("dist.get_rank()",),
    ),
    Case(
        "in one turn of a loop",
        """
        for step in range(9):
            if due():
                a()  # <- 0
            b()  # <- 1
        """,
        ("if", 2, "in its body", "after it"),
        {0: {"step": 3}, 1: {"step": 3}},
    ),
    Case(
        "what a loop does not change parts ranks in every turn",
        """
        for batch in loader:
            if rank == 0:
                a()  # <- 0
            b()  # <- 1
        """,
        ("if", 2, "in its body", "after it"),
        {0: {"rank": 0}, 1: {"rank": 1}},
        ("rank",),
    ),
    Case(
        "of two conditions the one that is equal has not decided",
        """
        if due:
            if zero():
                a()  # <- 0
        b()  # <- 1
        """,
        ("if", 2, "in its body", "after it"),
        {0: {"due": True}, 1: {"due": True}},
    ),
    Case(
        "of two conditions the one that differs has decided",
        """
        if due:
            if zero():
                a()  # <- 0
        b()  # <- 1
        """,
        ("if", 1, "in its body", "after it"),
        {0: {"due": True}, 1: {"due": False}},
        ("due",),
    ),
    Case(
        "a loop with other numbers of turns",
        """
        for number in range(turns):
            all_reduce()  # <- 0
        barrier()  # <- 1
        """,
        ("for", 1, "in its body", "after it"),
        {0: {"number": 5}, 1: {"number": 4}},
        ("number",),
    ),
    Case(
        "a value that has been bound since is left out",
        """
        if loss > best:
            best = loss
            save()  # <- 0
        barrier()  # <- 1
        """,
        ("if", 1, "in its body", "after it"),
        {0: {"loss": 2.0, "best": 2.0}, 1: {"loss": 1.0, "best": 2.0}},
        ("loss",),
    ),
    Case(
        "lines one after the other: a rank is ahead, nothing decided",
        """
        a()  # <- 0
        b()  # <- 1
        """,
    ),
    Case(
        "a rank has not come to the statement yet",
        """
        a()  # <- 0
        if rank == 1:
            b()  # <- 1
        """,
    ),
    Case(
        "one line, an iteration apart",
        """
        for step in range(9):
            all_reduce()  # <- 0, 1
        """,
        None,
        {0: {"step": 3}, 1: {"step": 2}},
    ),
    Case(
        "an `if` of one turn and a later one of the turn before",
        """
        for step in range(9):
            if a:
                x()  # <- 0
            if b:
                y()  # <- 1
        """,
        ("if", 4, "after it", "in its body"),
        {0: {"step": 2}, 1: {"step": 1}},
    ),
    Case(
        "the same, and the turns are not known",
        """
        for batch in loader:
            if a():
                x()  # <- 0
            if b():
                y()  # <- 1
        """,
        guards=(2, 4),
    ),
    Case(
        "two equally long loops, in one of whose turns a call was left out",
        """
        def step():
            if bad:
                return
            all_reduce()  # <- 0.2
        for number in range(6):
            step()  # <- 0
        barrier()  # <- 1
        """,
        ("return", 3, "went on", "returned"),
        {0: {"number": 5}, 1: {"number": 5}},
    ),
    Case(
        "two ways out of a function",
        """
        def step():
            if bad:
                return
            if worse:
                return
            all_reduce()  # <- 0.2
        step()  # <- 0
        barrier()  # <- 1
        """,
        guards=(3, 5),
    ),
    Case(
        "two conditions of which nothing is known",
        """
        if due:
            if zero():
                a()  # <- 0
        b()  # <- 1
        """,
        guards=(1, 2),
    ),
    Case(
        "the condition holds on both",
        """
        if due:
            a()  # <- 0
        b()  # <- 1
        """,
        None,
        {0: {"due": True}, 1: {"due": True}},
    ),
    Case(
        "a function that calls itself",
        """
        def f(n):
            if n:
                f(n - 1)  # <- 0.2
            g()  # <- 0.3, 1.2
        f(depth)  # <- 0, 1
        """,
        ("if", 2, "in its body", "after it"),
    ),
    Case(
        "a function that calls itself as often on both: the second may only be further",
        """
        def f(n):
            if n:
                f(n - 1)  # <- 0.2
            g()  # <- 0.3, 1.2
        f(3)  # <- 0, 1
        """,
    ),
    Case(
        "a loop that has not come to the last of its numbers has been left",
        """
        for step in range(100000):
            a()  # <- 1
            if stop():
                break
        b()  # <- 0
        """,
        ("if", 3, "in its body", "after it"),
        {0: {"step": 116}, 1: {"step": 117}},
    ),
    Case(
        "a generator",
        """
        def f():
            if rank:
                a()  # <- 0.2
            yield b()  # <- 1.2
        next(f())  # <- 0, 1
        """,
    ),
    Case(
        "a rank asks the condition still",
        """
        if ask():  # <- 0
            a()  # <- 1
        """,
    ),
    Case(
        "the file has another function there: it has been edited",
        """
        def other():
            if rank == 0:
                a()  # <- 0.2!f
            b()  # <- 1.2!f
        other()  # <- 0, 1
        """,
    ),
    Case("no Python", "if rank == 0\n    a()  # <- 0\nb()  # <- 1\n"),
]


def parted(stacks: Mapping[int, Sequence[Frame]], odd: Sequence[int]) -> Parting | None:
    """What is said of ranks that are each in a collective, if only their stacks are known."""
    return parted_by(
        {rank: Trace(rank, stack, op=f"call of {rank}") for rank, stack in stacks.items()}, odd
    )


def stacks(case: Case) -> dict[int, tuple[Frame, ...]]:
    text = textwrap.dedent(case.text).lstrip("\n")
    found: dict[int, dict[int, Frame]] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        for mark in line.partition("# <- ")[2].split(", ") if "# <- " in line else ():
            where, _, name = mark.partition("!")
            rank, _, depth = where.partition(".")
            frame = Frame("train.py", number, name or function_at(text, number), text=text)
            found.setdefault(int(rank), {})[int(depth or 1)] = frame
    return {
        rank: tuple(
            replace(frame, values=case.values.get(rank, {}) if depth == 1 else {})
            for depth, frame in sorted(frames.items())
        )
        for rank, frames in found.items()
    }


def function_at(text: str, line: int) -> str:
    try:
        nodes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)]
    except SyntaxError:
        nodes = []
    around = [node for node in nodes if node.lineno <= line <= (node.end_lineno or 0)]
    return max(around, key=lambda node: node.lineno).name if around else "<module>"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.title)
def test_the_statement_that_alone_explains_the_lines_is_named(case: Case) -> None:
    found = parted(stacks(case), ())
    if case.named is None:
        guards = () if found is None else tuple(one.where.line for one in found.guards)
        assert tuple(sorted(guards)) == case.guards and (found is None or found.kind is None)
        return
    assert found is not None
    ways = {rank: way.label for way in found.branches for rank in way.ranks}
    assert (found.kind, found.where.line, ways[0], ways[1]) == case.named
    assert found.differ == case.differ


@pytest.mark.parametrize(
    "case", [case for case in CASES if "rank" not in case.text], ids=lambda case: case.title
)
def test_who_is_asked_first_makes_no_difference(case: Case) -> None:
    known = stacks(case)
    turned = {1 - rank: stack for rank, stack in known.items()}
    one, other = parted(known, ()), parted(turned, ())
    assert (one and (one.kind, one.where)) == (other and (other.kind, other.where))


@dataclass(frozen=True)
class Counted:
    """A program whose calls say `# = a`, how often each rank has made each, and whether that tells."""

    title: str
    text: str
    made: tuple[str, str]
    named: int | None


COUNTED = [
    Counted(
        "a call of every turn has been made equally often",
        """
        for batch in loader:
            all_reduce()  # = a
            if due():
                x()  # <- 0
            y()  # <- 1
        """,
        ("aaa", "aaa"),
        named=3,
    ),
    Counted(
        "a rank is an iteration ahead: it did not go in",
        """
        for batch in loader:
            all_reduce()  # = a
            if due():
                x()  # <- 0
            y()  # <- 1
        """,
        ("aaa", "aaaa"),
        named=3,
    ),
    Counted(
        "the call may be left out in a turn",
        """
        for batch in loader:
            if batch:
                all_reduce()  # = a
            if due():
                x()  # <- 0
            y()  # <- 1
        """,
        ("aaa", "aaa"),
        named=None,
    ),
    Counted(
        "a turn may end before the call",
        """
        for batch in loader:
            if batch:
                continue
            all_reduce()  # = a
            if due():
                x()  # <- 0
            y()  # <- 1
        """,
        ("aaa", "aaa"),
        named=None,
    ),
    Counted(
        "the call is between both lines: only one of them has made it",
        """
        for batch in loader:
            if due():
                x()  # <- 0
            all_reduce()  # = a
            y()  # <- 1
        """,
        ("aaa", "aaa"),
        named=None,
    ),
    Counted(
        "the call after both lines is of the turn before",
        """
        for batch in loader:
            if due():
                x()  # <- 0
            y()  # <- 1
            all_reduce()  # = a
        """,
        ("aaa", "aaa"),
        named=2,
    ),
]


@pytest.mark.parametrize("case", COUNTED, ids=lambda case: case.title)
def test_calls_tell_where_ranks_parted(case: Counted) -> None:
    text = textwrap.dedent(case.text).lstrip("\n")
    lines = {
        line.partition("# = ")[2]: number
        for number, line in enumerate(text.splitlines(), start=1)
        if "# = " in line
    }
    calls = {
        name: IssuedCall("all_reduce", (Frame("train.py", line, "<module>", text=text),))
        for name, line in lines.items()
    }
    found = parted_by(
        {
            rank: Trace(rank, stack, 1, [calls[name] for name in case.made[rank]], op=f"call of {rank}")
            for rank, stack in stacks(Case(case.title, case.text)).items()
        },
        (),
    )
    named = found.where.line if found is not None and found.where is not None else None
    assert named == case.named


LEAVES_ONE_OUT = """
def train(items):
    for batch in items:
        if not batch.ok:
            continue
        all_reduce()  # <- 0.2
def main(loader):
    train(loader)  # <- 0
    gather()  # <- 1
"""

LONGER = LEAVES_ONE_OUT.replace("for", "loader.append(3)\n    for", 1).replace("items", "loader")


@pytest.mark.parametrize(
    ("text", "lengths", "named", "guards"),
    [
        (LEAVES_ONE_OUT, (8, 8), ("if not batch.ok:", {0: "after it", 1: "in its body"}), ()),
        (LEAVES_ONE_OUT, (8, 7), None, (3, 2)),
        (LEAVES_ONE_OUT, (8, None), None, (3, 2)),
        (LONGER, (8, 8), None, (4, 3)),
    ],
    ids=["as long on both", "shorter on one", "known of one", "appended to"],
)
def test_a_loop_that_is_as_long_on_both_has_not_decided(
    text: str,
    lengths: tuple[int | None, int | None],
    named: tuple[str, dict[int, str]] | None,
    guards: tuple[int, ...],
) -> None:
    """A condition has, and it has left out more calls on the rank that is through with the loop."""
    known = {rank: {"len(loader)": size} for rank, size in enumerate(lengths) if size is not None}
    ranks = stacks(Case("", text, values=known))
    reduces, gathers = (IssuedCall(f"call of {rank}", ranks[rank][::-1]) for rank in (0, 1))
    found = parted_by(
        {
            rank: Trace(rank, ranks[rank], 1, [reduces, reduces, here], op=here.op)
            for rank, here in enumerate((reduces, gathers))
        },
        (),
    )
    assert found is not None
    assert tuple(one.where.line for one in found.guards) == guards
    ways = {rank: way.label for way in found.branches for rank in way.ranks}
    assert (found.where and (found.source, ways)) == named


def test_what_a_method_goes_through_is_known_where_its_caller_names_it() -> None:
    text = """
    class Trainer:
        def __init__(self):
            self.loader = make()
        def epoch(self):
            for batch in self.loader:
                if batch.ok:
                    all_reduce()  # <- 0.2
        def run(self):
            self.epoch()  # <- 0
            gather()  # <- 1
    """
    known = {rank: {"len(self.loader)": 8} for rank in (0, 1)}
    found = parted(stacks(Case("", text, values=known)), ())
    assert found is not None and found.where is not None
    assert found.source == "if batch.ok:"


def of_library(line: int, text: str) -> tuple[Frame, ...]:
    user = Frame("train.py", 1, "<module>", text="fit()\n")
    return user, Frame("/lib/fit.py", line, "fit", user=False, text=text)


def test_the_statement_may_be_a_librarys() -> None:
    text = "def fit():\n    if trainer.is_global_zero:\n        save()\n    barrier()\n"
    found = parted({0: of_library(3, text), 1: of_library(4, text)}, ())
    assert found is not None and found.where is not None
    assert (found.where.file, found.where.line, found.source) == (
        "/lib/fit.py",
        2,
        "if trainer.is_global_zero:",
    )
    assert found.differ == ("trainer.is_global_zero",)


def test_a_library_whose_source_is_not_known_is_not_looked_into() -> None:
    assert parted({0: of_library(3, ""), 1: of_library(4, "")}, ()) is None


def test_a_conditional_expression_in_one_line() -> None:
    text = "a() if rank == 0 else b()\n"
    base = Frame("train.py", 1, "<module>", text=text)
    inner = [Frame("ops.py", 2, name, text="def a():\n  x()\ndef b():\n  x()\n") for name in "ab"]
    found = parted({0: (base, inner[0]), 1: (base, inner[1])}, ())
    assert found is not None
    assert (found.kind, [way.label for way in found.branches]) == (
        "ifexp",
        ["in its else", "in its first part"],
    )


def test_the_line_of_an_exit_is_told_with_what_it_stands_under() -> None:
    text = "def main():\n    if rank == 1:\n        sys.exit()\n    all_reduce()\nmain()\n"
    outer = Frame("train.py", 5, "<module>", text=text)
    left = Frame("train.py", 3, "main", text=text, values={"rank": 1})
    stays = Frame("train.py", 4, "main", text=text, values={"rank": 0})
    found = exited({0: (outer, stays), 1: (outer, left)}, [1])
    assert found is not None and found.where is not None
    assert (found.kind, found.where.line, found.source) == ("exit", 3, "if rank == 1: sys.exit()")
    assert found.values == {"rank": {0: "0", 1: "1"}}
    assert [(way.label, way.ranks) for way in found.branches] == [("exited", (1,)), ("went on", (0,))]


SOURCES = st.sampled_from([case.text for case in CASES]) | st.text(max_size=300)


@given(text=SOURCES, lines=st.lists(st.integers(-2, 40), min_size=2, max_size=4), data=st.data())
@settings(max_examples=300, deadline=None)
def test_no_source_makes_it_fail(text: str, lines: list[int], data: st.DataObject) -> None:
    name = st.sampled_from(["<module>", "step", "f", "<lambda>", "<listcomp>"])
    values = st.dictionaries(st.sampled_from(["rank", "step", "due", "a.b"]), st.integers() | st.text())
    known = {
        rank: tuple(
            Frame("train.py", line + depth, data.draw(name), text=text, values=data.draw(values))
            for depth in range(data.draw(st.integers(1, 3)))
        )
        for rank, line in enumerate(lines)
    }
    found = parted(known, (0,))
    if found is not None:
        ranks = sorted(rank for way in found.branches for rank in way.ranks)
        assert ranks == sorted(known)
        assert found.source in " ".join(text.split()) or found.kind == "return"
    exited(known, [0])


def test_of_two_calls_in_one_line_the_inner_one_comes_first() -> None:
    text = textwrap.dedent("""\
        class Trainer:
            def __init__(self):
                if self.resume:
                    broadcast()
            def fit(self):
                all_reduce()
        Trainer().fit()
    """)
    outer = Frame("train.py", 7, "<module>", text=text)
    inside = [Frame("train.py", 4, "__init__", text=text), Frame("train.py", 6, "fit", text=text)]
    found = parted({0: (outer, inside[0]), 1: (outer, inside[1])}, ())
    assert found is not None and found.where is not None
    assert (found.where.line, [(way.label, way.ranks) for way in found.branches]) == (
        3,
        [("in its body", (0,)), ("after it", (1,))],
    )


def test_what_the_next_turn_has_bound_is_no_value_of_the_condition() -> None:
    text = """
    for step in range(10):
        loss = compute()
        all_reduce()  # <- 0
        if loss < limit:
            break
    barrier()  # <- 1
    """
    values = {0: {"step": 7, "loss": 9, "limit": 2}, 1: {"step": 4, "loss": 1, "limit": 2}}
    found = parted(stacks(Case("", text, values=values)), ())
    assert found is not None
    assert found.values == {"loss": {1: "1"}, "limit": {0: "2", 1: "2"}}


BREAKS = [
    ("the rank inside is turns ahead of the one that broke off", 7, 4, True),
    ("it is in the turn of the `break`, and not past it", 4, 4, False),
    ("it is behind: calls were left out", 3, 4, False),
]


@pytest.mark.parametrize(("title", "mine", "left", "named"), BREAKS, ids=[row[0] for row in BREAKS])
def test_a_break_has_ended_the_loop_of_one_rank(title: str, mine: int, left: int, named: bool) -> None:
    text = """
    for step in range(10):
        all_reduce()  # <- 0
        if stop(step):
            break
    barrier()  # <- 1
    """
    found = parted(stacks(Case(title, text, values={0: {"step": mine}, 1: {"step": left}})), ())
    assert (found is not None and found.where is not None and found.where.line == 3) == named


def test_a_rank_of_another_role_has_not_parted_there() -> None:
    """Both have made a call together, in threads, and are in a part of the statement of their own."""
    text = "if rank == 0:\n    train()\nelse:\n    serve()\n"
    threads = [Frame("train.py", 10 + rank, "run") for rank in (0, 1)]
    met = [IssuedCall("broadcast", (frame,)) for frame in threads]
    stacks = [
        (Frame("train.py", line, "<module>", text=text, values={"rank": rank}),)
        for rank, line in ((0, 2), (1, 4))
    ]

    def said(calls: Sequence[Sequence[IssuedCall]]) -> Parting | None:
        return parted_by(
            {rank: Trace(rank, stacks[rank], 1, calls[rank], op=f"call of {rank}") for rank in (0, 1)},
            (),
        )

    alone = said([(), ()])
    assert alone is not None and alone.where is not None and alone.where.line == 1
    assert said([met[:1], met[1:]]) is None
