"""Which statement sent the ranks different ways: the choices, and what speaks against a wrong one."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from msgspec.structs import replace

from ..model.facts import Report
from ..model.frames import Frame
from ..model.wording import by_number, one_line, place, plural, sentence, spoken, stack_of, where_of
from ..program.blocks import function_of
from ..program.syntax import own_nodes
from .asked import Asked

MOST = 8
"""Choices at most, of all statements on the ranks' ways."""

_BRANCHES = ast.If | ast.For | ast.While | ast.Try | ast.Match | ast.Return | ast.Break | ast.Continue
_NO_CHOICE = ast.Import | ast.ImportFrom | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
Line = tuple[str, int]


def deciding(report: Report) -> Asked | None:
    """The question for the statement that decided in a run; None where its report names none."""
    parting = report.verdict.parting
    right = parting.where if parting is not None else None
    if right is None:
        return None
    at = _current(report)
    names = {
        line: one_line(f"{place(frame)}: {_source(frame)}")
        for line, frame in sorted(_chosen(report, right).items())
    }
    answer = names[_line(right)]
    return Asked(
        "Which statement sent the ranks different ways?",
        tuple(names.values()),
        frozenset([answer]),
        report.verdict.detail,
        instead={
            name: _against(at.get(line, []), right) for line, name in names.items() if name != answer
        },
    )


def _chosen(report: Report, right: Frame) -> dict[Line, Frame]:
    """The statement that decided, and others: branches first, then where ranks are, then the rest."""
    branches, plain = _on_the_way(report, right)
    current = {_line(where): where for _, where in _places(report)}
    chosen = {_line(right): right}
    for more in (branches, current, plain):
        new = [line for line in sorted(more) if line not in chosen]
        room = MOST - len(chosen)
        for line in new[:: max(1, -(-len(new) // room))] if room > 0 else ():
            chosen[line] = more[line]
    return chosen


def _on_the_way(report: Report, right: Frame) -> tuple[dict[Line, Frame], dict[Line, Frame]]:
    """The statements of every function of the user's that a rank is in: branches, and the rest."""
    processes = (view.process for view in report.snapshot.ranks)
    stacks = [stack_of(process) for process in processes if process is not None]
    frames = [right, *(frame for stack in stacks for frame in stack if frame.user)]
    branches: dict[Line, Frame] = {}
    plain: dict[Line, Frame] = {}
    for frame in {(frame.file, frame.function): frame for frame in frames}.values():
        function = function_of(frame)
        for node in own_nodes(function) if function is not None else ():
            if isinstance(node, ast.stmt) and not isinstance(node, _NO_CHOICE) and not _is_text(node):
                kind = branches if isinstance(node, _BRANCHES) else plain
                kind[frame.file, node.lineno] = replace(frame, line=node.lineno)
    return branches, plain


def _is_text(node: ast.stmt) -> bool:
    """True for a docstring and for `...`."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _places(report: Report) -> Iterator[tuple[int, Frame]]:
    """Each rank, and where it is in the user's code."""
    for view in by_number(report.snapshot.ranks):
        where = where_of(view.process) if view.process is not None else None
        if where is not None and view.rank is not None:
            yield view.rank, where


def _current(report: Report) -> dict[Line, list[int]]:
    """Line of the user's code -> the ranks that are there."""
    lines: dict[Line, list[int]] = {}
    for rank, where in _places(report):
        lines.setdefault(_line(where), []).append(rank)
    return lines


def _source(frame: Frame) -> str:
    return "".join(frame.text.splitlines()[frame.line - 1 : frame.line]).strip().rstrip(":")


def _line(frame: Frame) -> Line:
    return frame.file, frame.line


def _against(ranks: list[int], right: Frame) -> str:
    """What speaks against a line: ranks are there now, or what differs does not follow from it."""
    if ranks:
        who = f"{sentence(spoken(ranks))} {plural(ranks, 'is', 'are')}"
        return f"{who} there now, after the ranks parted."
    return f"The first calls that differ follow from {place(right)}, not from there."
