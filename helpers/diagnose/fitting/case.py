"""One case as the situations look at it: its verdict, its ranks, and the user's lines. No I/O."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ...model.clauses import grouped
from ...model.facts import Collective, ProcessView, Snapshot, Verdict
from ...model.frames import Frame, innermost_user
from ...model.parting import Parting
from ...model.redaction import Source
from ...model.waits import InP2P, OnCondition, Wait
from ...model.wording import functions, one_line, place, spoken, stack_of
from ...program.blocks import Step, function_of, path
from ...program.syntax import Loop, dotted, parsed
from ..events import line_of_call
from ..scene import Facts

_OF_RANK = re.compile(
    r"(^|_)(rank|local_rank|global_rank|process_index)(\(\))?$|global_zero|main_process|world_process_zero"
)
"""How torch, Lightning, accelerate and transformers call what only one rank is, or a rank's number."""

_TELLS_RANK = (ast.Compare, ast.BoolOp, ast.UnaryOp, ast.Call, ast.Name, ast.Attribute)
"""What a rank's number is stored or compared by; anything else makes something new of it."""

LONGEST_CALL = 60
"""Characters of a call that are quoted."""


TURNS = ("for", "while")
"""The statements that are loops."""


@dataclass(frozen=True)
class Case:
    """What a run has come to.

    Attributes:
        verdict: its cause, its culprits and where they parted.
        facts: of its last snapshot.
    """

    verdict: Verdict
    facts: Facts

    @property
    def snapshot(self) -> Snapshot:
        """The last snapshot."""
        return self.facts.snapshot

    @property
    def parting(self) -> Parting | None:
        """Where ranks parted, if a statement is known."""
        parting = self.verdict.parting
        return parting if parting is not None and parting.kind is not None else None

    @property
    def culprits(self) -> list[ProcessView]:
        """The processes of the culprits."""
        return self.facts.processes(
            tuple(r for r in self.verdict.culprits if r in self.facts.graph.ranks)
        )

    def waits(self, *kinds: type[Wait]) -> list[Wait]:
        """What the culprits are blocked in, of these kinds."""
        return [wait for one in self.culprits for wait in one.blocking if isinstance(wait, kinds)]

    @property
    def ranks(self) -> list[ProcessView]:
        """The processes of the ranks."""
        return self.facts.processes(tuple(self.facts.graph.ranks))

    @property
    def family(self) -> list[ProcessView]:
        """The processes of the ranks and their children."""
        views = self.facts.graph.ranks.values()
        return [*self.ranks, *(child.process for view in views for child in view.children)]

    @property
    def blocked_in(self) -> list[Wait]:
        """What the ranks that run are blocked in."""
        return [wait for rank in self.facts.alive for wait in self.facts.waits(rank)]

    @property
    def lines(self) -> set[Frame]:
        """The lines of the calls that have met, if all are known.

        A rank that has come out of its own is in a later one now, or in none. Where the ranks are in
        different groups, their numbers do not tell which call that was.
        """
        newest = [process.collectives[-1] for process in self.ranks if process.collectives]
        if len({call.group for call in newest}) > 1:
            return set()
        met = min(newest, key=lambda call: call.seq, default=None)
        found = {_line_of(process, met) for process in self.ranks}
        return {frame for frame in found if frame is not None} if None not in found else set()

    @property
    def contexts(self) -> set[str]:
        """The functions that the `with` blocks call in which the culprits' lines are."""
        frames = [frame for process in self.culprits for frame in stack_of(process)]
        items = [
            item.context_expr
            for step in _steps(frames)
            if isinstance(step.node, ast.With)
            for item in step.node.items
        ]
        calls = [one.func for one in items if isinstance(one, ast.Call)]
        return {getattr(func, "attr", getattr(func, "id", "")) for func in calls}

    @property
    def in_a_loop(self) -> bool:
        """True when a rank was last inside a loop of its own code."""
        frames = [frame for process in self.ranks for frame in stack_of(process)]
        return any(isinstance(step.node, Loop) for step in _steps(frames))

    @property
    def parted_by_condition(self) -> bool:
        """True where a statement that is no loop has parted the ranks."""
        return self.parting is not None and self.parting.kind not in TURNS

    @property
    def collective(self) -> bool:
        """True where no rank waits for a message or for a new group."""
        waits = self.blocked_in
        return not any(isinstance(wait, InP2P) or wait.op == "new_group" for wait in waits)

    @property
    def never_started(self) -> bool:
        """True where a culprit has no process, and never had one."""
        ranks = self.facts.graph.ranks
        return any(ranks[rank].state == "missing" for rank in self.verdict.culprits if rank in ranks)

    @property
    def came_through(self) -> bool:
        """True when a rank has come to the end of its program, and no statement says why."""
        through = [one for one in self.facts.processes(tuple(self.facts.gone)) if one.where is None]
        return self.parting is None and any(one.exit_code == 0 for one in through)

    def fields(self) -> dict[str, str]:
        """What a text may name: the user's own lines, as they are written."""
        parting = self.parting
        call, at = self._call()
        tested = [wait for wait in self.waits(OnCondition) if isinstance(wait, OnCondition)]
        known = {
            "tested": tested[0].op if tested else "",
            "changed": functions(tested[0].changed_at) if tested else "",
            "ranks": spoken(self.verdict.culprits) if self.verdict.culprits else "",
            "at": place(self.verdict.where) if self.verdict.where is not None else "",
            "call": call,
            "call_at": at,
        }
        if parting is not None and parting.where is not None:
            known["statement"] = Source(parting.source.rstrip(":"))
            known["parted"] = place(parting.where)
            known["values"] = _values(parting)
        return {name: one_line(text).replace("`", "'") for name, text in known.items() if text}

    def decided_by_rank(self) -> bool:
        """True where a condition asks which rank it is, by what differs in it if that is known."""
        parting = self.parting
        if parting is None or parting.where is None:
            return False
        told = {name: parting.values.get(name, {}) for name in parting.differ or parting.asked}
        return any(_of_rank(name, values, parting.where.text) for name, values in told.items())

    @property
    def below(self) -> Sequence[Frame]:
        """What the call under the statement has led to, innermost frame first."""
        return self._split()[0]

    def _call(self) -> tuple[str, str]:
        """The call under the statement at which ranks parted, else that of the culprit's line."""
        below, frame = self._split()
        return (
            ("", "")
            if frame is None
            else (_called(frame, [one.function for one in below]), place(frame))
        )

    def _split(self) -> tuple[Sequence[Frame], Frame | None]:
        """The frame in the function of the statement, and those below it; else the culprit's line."""
        parting = self.parting
        if parting is None or parting.where is None or not parting.branches:
            return (), self.verdict.where
        stack = self._inside(parting)
        for inner, frame in enumerate(stack):
            if (frame.file, frame.function) == (parting.where.file, parting.where.function):
                return stack[:inner], frame
        return (), None

    def _inside(self, parting: Parting) -> Sequence[Frame]:
        """The stack, innermost first, of a rank that is in the statement, at the time they parted."""
        rank = parting.branches[0].ranks[0]
        for apart in self.facts.apart:
            if rank in apart.calls:
                return apart.calls[rank].stack
        view = self.facts.graph.ranks.get(rank)
        return view.process.stack if view is not None and view.process is not None else ()


def _line_of(process: ProcessView, met: Collective | None) -> Frame | None:
    """The user's line of a call: as its history tells where the rank is past it, else as it was seen."""
    newest = process.collectives[-1:]
    if met is None or all((one.group, one.seq) == (met.group, met.seq) for one in newest):
        return line_of_call(process)
    for issued in process.issued:
        at = met.seq - issued.first
        if issued.group == met.group and 0 <= at < len(issued.calls):
            return innermost_user(issued.calls[at].stack)
    return None


def _steps(frames: Iterable[Frame]) -> Iterator[Step]:
    """The statements around the user's lines."""
    for frame in frames:
        function = function_of(frame) if frame.user else None
        yield from path(function, frame.line) if function is not None else ()


def _values(parting: Parting) -> str:
    """`loss is 2.0 on rank 0, 1.0 on rank 1`, of what differs."""
    said = []
    for name in parting.differ:
        by_value = grouped(parting.values[name]).items()
        said.append(f"{name} is " + ", ".join(f"{v} on {spoken(ranks)}" for v, ranks in by_value))
    return "; ".join(said)


def _of_rank(name: str, values: Mapping[int, str], text: str, depth: int = 2) -> bool:
    """True for a name that says which rank it is, or that a source sets to what says so."""
    last = name.rpartition(".")[2]
    if _OF_RANK.search(last) or (len(values) > 1 and all(v == str(r) for r, v in values.items())):
        return True
    tree = parsed(text) if depth else None
    for node in ast.walk(tree) if tree is not None else ():
        targets = node.targets if isinstance(node, ast.Assign) else ()
        if any((dotted(target) or "").rpartition(".")[2] == last for target in targets):
            value = node.value if isinstance(node, ast.Assign) else None
            parts = ast.walk(value) if isinstance(value, _TELLS_RANK) else ()
            names = {dotted(part) or "" for part in parts if isinstance(part, ast.Name | ast.Attribute)}
            if any(_of_rank(one, {}, text, depth - 1) for one in names - {name, ""}):
                return True
    return False


def _called(frame: Frame, below: Sequence[str]) -> str:
    """What a line calls, as it is written: the call that has led to the frames below it.

    Args:
        below: their functions, innermost first.
    """
    function = function_of(frame)
    steps = path(function, frame.line) if function is not None else ()
    calls = [node for node in ast.walk(steps[-1].node) if isinstance(node, ast.Call)] if steps else []
    names = dict.fromkeys(ast.unparse(call.func) for call in calls)
    told = [name for name in names if name not in vars(builtins)]
    inside = [name for name in told if name.rpartition(".")[2] in below] or told
    return inside[0] if inside and len(inside[0]) <= LONGEST_CALL else ""
