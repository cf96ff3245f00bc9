"""Programs made up at random that two ranks really run line by line, with all that is seen of them."""

from __future__ import annotations

import ast
import itertools
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from types import FrameType, SimpleNamespace
from typing import Any

from helpers.diagnose.parting.divergence import Divergences
from helpers.diagnose.parting.explanation import TooManyError
from helpers.diagnose.parting.trace import Trace, divergences
from helpers.model.frames import Frame, Scalar
from helpers.model.issued import IssuedCall
from helpers.program.blocks import parts

FILE = "train.py"
MOST_CALLS, FURTHEST = 60, 40
OPS = ("all_reduce", "barrier")
CALLS = ("dist.all_reduce()", "dist.all_reduce()", "dist.barrier()", "backward()")
Entry = tuple[str, int | str]
Call = tuple[str, int, tuple[tuple[str, int, dict[str, Scalar]], ...]]
"""Operation, number of trace entries before it, and its frames, outermost first."""


class EndedError(Exception):
    """A rank has made enough calls."""


@dataclass
class Rank:
    """One run of a program.

    Attributes:
        trace: function and line of each line it has passed, and each operation it has called.
        calls: each call.
        longer: True where rank 1 has a batch more than rank 0.
    """

    number: int
    trace: list[Entry] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    longer: bool = False
    ended: bool = False
    backward: int = 0

    def run(self, text: str) -> None:
        """Run the program, up to its end or its last call that counts."""
        known = {
            "dist": SimpleNamespace(**{op: self._calling(op) for op in OPS}),
            "get_rank": lambda: self.number,
            "odd": self._odd,
            "fails": self._fails,
            "data": lambda most: iter(range(1 + most + self.number * self.longer)),
            "backward": self._backward,
        }
        code = compile(text, FILE, "exec")
        before = sys.gettrace()
        sys.settrace(self._note)
        try:
            exec(code, known)
            self.ended = True
        except EndedError:
            pass
        finally:
            sys.settrace(before)

    def _note(self, frame: FrameType, event: str, _: Any) -> Any:
        if frame.f_code.co_filename != FILE:
            return None
        if event == "line":
            self.trace.append((frame.f_code.co_name, frame.f_lineno))
        return self._note

    def _calling(self, op: str) -> Callable[[], None]:
        return lambda: self._call(op, sys._getframe(1))

    def _call(self, op: str, frame: FrameType | None, library: str = "") -> None:
        found: list[tuple[str, int, dict[str, Scalar]]] = [(library, 0, {})] if library else []
        while frame is not None and frame.f_code.co_filename == FILE:
            plain = {
                name: value
                for name, value in frame.f_locals.items()
                if type(value) in (int, bool) and not name.startswith("__")
            }
            found.append((frame.f_code.co_name, frame.f_lineno, plain))
            frame = frame.f_back
        self.trace.append(("", op))
        self.calls.append((op, len(self.trace), tuple(reversed(found))))
        if len(self.calls) >= MOST_CALLS:
            raise EndedError

    def _backward(self) -> None:
        """A library's call: it makes two calls, and one more the second time."""
        self.backward += 1
        for _ in range(3 if self.backward == 2 else 2):
            self._call("all_reduce", sys._getframe(1), "backward")

    def _odd(self, seed: int) -> bool:
        """A decision of the rank's own, of which nobody can see how it comes about."""
        return random.Random(f"{seed} {self.number} {len(self.calls)}").random() < 0.3

    def _fails(self, seed: int) -> None:
        if self._odd(seed):
            raise ValueError


class Program:
    """The text of a program with functions, loops, branches and ways out of them."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        names = [f"step_{n}" for n in range(self.random.randint(0, 2))]
        lines: list[str] = []
        for n, name in enumerate(names):
            lines += [f"def {name}(rank, turn):", *self.block(1, 2, names[:n], loop=False, inside=True)]
        lines += ["def main(rank):", "    turn = 0", *self.block(1, 3, names, loop=False, inside=True)]
        lines += ["    dist.barrier()", "main(get_rank())", "dist.all_reduce()"]
        self.text = "\n".join(lines) + "\n"

    def call(self) -> str:
        """One call."""
        return self.random.choice(CALLS)

    def condition(self) -> str:
        """A condition, of which more or less is known."""
        odd = f"odd({self.random.randint(0, 9)})"
        return self.random.choice(
            ["rank == 0", "get_rank() == 1", "turn == 1", "turn == 1 and rank == 0", odd, odd, "flag"]
        ).replace("flag", odd)

    def block(
        self, depth: int, deepest: int, names: list[str], *, loop: bool, inside: bool
    ) -> list[str]:
        """Some statements; the first one is a call in most blocks."""
        pad = "    " * depth
        found = [f"{pad}{self.call()}"] if self.random.random() < 0.7 else [f"{pad}turn = turn"]
        for _ in range(self.random.randint(1, 3)):
            kinds = [
                "call",
                "if",
                "if",
                "for",
                "while",
                "use",
                "leave",
                "break",
                "try",
                "ifexp",
                "quiet",
            ]
            kind = self.random.choice(kinds if depth <= deepest else ["call", "use", "ifexp", "quiet"])
            found += self.statement(kind, depth, deepest, names, loop=loop, inside=inside)
        calls = [line for line in found if line in (f"{pad}{call}" for call in CALLS)]
        return found if calls else [*found, f"{pad}{self.call()}"]

    def statement(
        self, kind: str, depth: int, deepest: int, names: list[str], *, loop: bool, inside: bool
    ) -> Iterator[str]:
        """The lines of a statement."""
        pad, within = "    " * depth, {"loop": loop, "inside": inside}
        choose = self.random
        if kind == "if":
            yield f"{pad}if {self.condition()}:"
            yield from self.block(depth + 1, deepest, names, **within)
            if choose.random() < 0.2:
                yield f"{pad}elif {self.condition()}:"
                yield from self.block(depth + 1, deepest, names, **within)
            if choose.random() < 0.4:
                yield f"{pad}else:"
                yield from self.block(depth + 1, deepest, names, **within)
        elif kind == "for":
            through = ["range(2)", "range(3)", "range(2 + rank)", "data(2)", "data(2)"]
            yield f"{pad}for turn in {choose.choice(through)}:"
            yield from self.block(depth + 1, deepest, names, loop=True, inside=inside)
            yield f"{pad}    {self.call()}"
        elif kind == "while":
            name = f"n{depth}"
            yield f"{pad}{name} = 0"
            yield f"{pad}while {name} < {choose.choice(['2', '3', '2 + rank'])}:"
            yield f"{pad}    {name} += 1"
            yield from self.block(depth + 1, deepest, names, loop=True, inside=inside)
            yield f"{pad}    {self.call()}"
        elif kind == "use" and names:
            yield f"{pad}{choose.choice(names)}(rank, turn)"
        elif kind == "leave" and inside and choose.random() < 0.5:
            yield f"{pad}if {self.condition()}:"
            yield f"{pad}    return"
            yield f"{pad}{self.call()}"
        elif kind == "break" and loop:
            yield f"{pad}if {self.condition()}:"
            yield f"{pad}    {choose.choice(['break', 'continue'])}"
        elif kind == "try":
            yield f"{pad}try:"
            yield f"{pad}    fails({choose.randint(0, 9)})"
            yield from self.block(depth + 1, deepest, names, **within)
            yield f"{pad}except ValueError:"
            leave = choose.choice(["continue", "break"]) if loop else self.call()
            yield f"{pad}    {choose.choice(['pass', self.call(), leave])}"
        elif kind == "ifexp":
            yield f"{pad}{self.call()} if {self.condition()} else {self.call()}"
        elif kind == "quiet":
            yield f"{pad}quiet = 1 if {self.condition()} else 2"
        else:
            yield f"{pad}{self.call()}"


@dataclass(frozen=True)
class Run:
    """A program that was run by two ranks which did not make the same calls.

    Attributes:
        at: the number of the first call that differs, from 0.
        lines: the lines after which their ways differed: once, if they never came together again.
    """

    text: str
    ranks: tuple[Rank, Rank]
    at: int
    lines: frozenset[int]

    @classmethod
    def of(cls, text: str) -> Run | None:
        """Run a program; None where both ranks make the same calls, which nobody would notice."""
        longer = len(text) % 2 == 0
        ranks = Rank(0, longer=longer), Rank(1, longer=longer)
        for rank in ranks:
            rank.run(text)
        ops = [[op for op, _, _ in rank.calls] for rank in ranks]
        both = zip(*ops, strict=False)
        at = next((n for n, (mine, its) in enumerate(both) if mine != its), min(map(len, ops)))
        if all(at == len(one) for one in ops):
            return None
        heads = {
            node.lineno for node in ast.walk(ast.parse(text)) if isinstance(node, ast.For | ast.While)
        }
        together = [n for n in range(at) if len({_place(rank, n, heads) for rank in ranks}) == 1]
        ends = [[rank.calls[n][1] for n in together] + [len(rank.trace)] for rank in ranks]
        lines = set()
        for begin, end in zip(
            zip(*([0, *one] for one in ends), strict=True), zip(*ends, strict=True), strict=False
        ):
            since = [rank.trace[first:last] for rank, first, last in zip(ranks, begin, end, strict=True)]
            lines |= _parted(*since, _line(ranks[0], begin[0]))
        return cls(text, ranks, at, frozenset(lines))

    def traces(self, values: bool = True) -> tuple[Trace, Trace]:
        """What the instrument sees when both block in the first calls that do not match.

        Args:
            values: True where it has kept what the frames of each call held.
        """
        known: dict[tuple[object, ...], IssuedCall] = {}
        one, other = (self._trace(rank, known, values) for rank in self.ranks)
        return one, other

    def _trace(self, rank: Rank, known: dict[tuple[object, ...], IssuedCall], values: bool) -> Trace:
        made = []
        held = [
            tuple(plain for _, line, plain in reversed(frames) if line) if values else ()
            for _, _, frames in rank.calls
        ][: self.at + 1]
        for op, _, frames in rank.calls[: self.at + 1]:
            lines = tuple((name, line) for name, line, _ in frames)
            stack = tuple(_frame(name, line, self.text) for name, line in reversed(lines))
            made.append(known.setdefault((op, lines), IssuedCall(op, stack)))
        if self.at >= len(rank.calls):
            return Trace(rank.number, (), 1, made, held, ended=True)
        op, _, frames = rank.calls[self.at]
        stack = tuple(_frame(name, line, self.text, values) for name, line, values in frames)
        return Trace(rank.number, stack, 1, made, held, op=op)

    def answer(self, values: bool = True) -> Divergences | None:
        """What is said of it; None also where there are more ways than are looked at."""
        with suppress(TooManyError):
            return divergences(*self.traces(values))
        return None


def _line(rank: Rank, passed: int) -> int:
    """The line at which a rank was when it had passed some of its trace."""
    return next((line for _, line in reversed(rank.trace[:passed]) if isinstance(line, int)), 0)


def _parted(one: Sequence[Entry], other: Sequence[Entry], before: int) -> set[int]:
    """The lines after which two traces differ.

    There are several where both have come together again after calls that were alike: those have met,
    and no harm was done.
    """
    lines: set[int] = set()
    while True:
        ways = enumerate(itertools.zip_longest(one, other))
        first = next((n for n, (mine, its) in ways if mine != its), None)
        if first is None:
            return lines
        passed = [line for _, line in one[:first] if isinstance(line, int)]
        before = passed[-1] if passed else before
        lines.add(before)
        one, other = one[first:], other[first:]
        again = _together_again(one, other)
        if again is None:
            return lines
        one, other = one[again[0] :], other[again[1] :]


def _together_again(one: Sequence[Entry], other: Sequence[Entry]) -> tuple[int, int] | None:
    """How much of two traces they have passed when they come to one line with calls that are alike."""
    ways = (
        (mine, its)
        for mine in range(min(len(one), FURTHEST))
        for its in range(min(len(other), FURTHEST))
    )
    for mine, its in sorted(ways, key=sum):
        at_line = one[mine] == other[its] and isinstance(one[mine][1], int)
        if at_line and _ops(one[:mine]) == _ops(other[:its]):
            return mine, its
    return None


def _ops(trace: Sequence[Entry]) -> list[int | str]:
    return [op for name, op in trace if not name]


def _frame(name: str, line: int, text: str, values: Mapping[str, Scalar] | None = None) -> Frame:
    if not line:
        return Frame("/lib/tensor.py", 1, name, user=False)
    return Frame(FILE, line, name, text=text, values=values or {})


def _place(rank: Rank, number: int, heads: set[int]) -> object:
    """Where a rank is at one of its calls: the lines that led there, how often, and all loops' turns."""
    passed = rank.calls[number][1]
    turns = Counter(line for _, line in rank.trace[:passed] if line in heads)
    lines = [
        tuple((name, line) for name, line, _ in frames) for _, _, frames in rank.calls[: number + 1]
    ]
    return lines[-1], lines.count(lines[-1]), frozenset(turns.items())


def is_of_library(run: Run) -> bool:
    """True where ranks may have parted in a library's call, of which nobody sees the source."""
    text = run.text.splitlines()
    return any("backward()" in text[line - 1] for line in run.lines)


def lines_of(answer: Divergences) -> set[int]:
    """The lines after which ways differ, if the statement that is named has decided."""
    decision = answer.decision
    if decision is None:
        return set()
    statement = decision.choice.statement
    if isinstance(statement, ast.Try):
        return {line for one in statement.body for line in range(one.lineno, (one.end_lineno or 0) + 1)}
    if isinstance(statement, ast.If):
        return {test.lineno for _, _, asked in parts(statement) for test, _ in asked}
    return {decision.context.flow.steps[decision.step].first}
