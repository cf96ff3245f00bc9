"""What the task asks of a run, measured from outside: looks, calls of libraries, files."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from ..model.facts import Report, Snapshot
from ..model.wording import spoken
from .calls import FETCHES, Call
from .checkpoints import CheckpointError, Tensor, tensors
from .declaration import (
    Called,
    Checkpoints,
    Condition,
    HasWorkers,
    Outside,
    Printed,
    Private,
    ResultIs,
    Turn,
)

ROUNDING = 1e-5
"""By how much sums of the same values may differ, as a share: they were added in another order."""


class Run(msgspec.Struct, frozen=True):
    """A run that is over, and what it has left.

    Attributes:
        report: of it.
        folder: where its ranks have left files.
        world_size: how many ranks it should have had.
        results: what the ranks say that they ended with.
        output: lines that processes have printed, by the names of `helpers.observe.logs.Logs`.
        looks: at the job from its start to its end.
        calls: of the watched functions, by all processes.
        with_torch: bytes of private memory that importing torch takes here.
    """

    report: Report
    folder: Path
    world_size: int
    results: Sequence[Mapping[str, Any]] = ()
    output: Mapping[str, Sequence[str]] = msgspec.field(default_factory=dict)
    looks: Sequence[Snapshot] = ()
    calls: Sequence[Call] = ()
    with_torch: int = 0

    @property
    def all_looks(self) -> tuple[Snapshot, ...]:
        """All of them, and the one of the report."""
        return (*self.looks, self.report.snapshot)


def watched(turn: Turn) -> frozenset[str]:
    """The functions whose calls the conditions of a turn are about."""
    return frozenset(name for condition in turn.conditions for name in _functions(condition))


def _functions(condition: Condition) -> tuple[str, ...]:
    match condition:
        case HasWorkers():
            return FETCHES
        case Outside(function=function, block=block):
            return (function, block)
        case Called(functions=functions):
            return functions
    return ()


def unmet(condition: Condition, run: Run) -> str:
    """What a run did that a condition forbids, as a clause; empty where it holds."""
    violation = _violation(condition, run)
    return "" if violation is None else f"{condition.otherwise}{violation and f' ({violation})'}"


def _violation(condition: Condition, run: Run) -> str | None:
    """What was seen where a condition does not hold, or nothing more than that; None where it holds."""
    match condition:
        case ResultIs():
            met = bool(run.results) and all(_is(condition, result) for result in run.results)
            return None if met else ""
        case Printed(text=text, ranks=ranks):
            printers = {who for who, lines in run.output.items() if any(text in line for line in lines)}
            return None if printers == {f"rank {rank}" for rank in ranks} else ""
        case HasWorkers():
            return next(_without_workers(condition, run), None)
        case Outside(function=function, block=block):
            return _inside(function, block, run)
        case Called():
            return _too_few(condition, run)
        case Checkpoints():
            return next(_wrong_files(condition, run), None)
        case Private(most_mb=most):
            return _too_much(most, run)


def _inside(function: str, block: str, run: Run) -> str | None:
    calls = [call for call in run.calls if call.function == function]
    name = function.rpartition(":")[2].rpartition(".")[2]
    if not calls:
        return f"`{name}` was not called"
    return f"`{name}` ran inside" if any(block in call.inside for call in calls) else None


def _is(condition: ResultIs, result: Mapping[str, Any]) -> bool:
    value, wanted = result.get(condition.key), condition.value
    if condition.within and isinstance(value, int | float) and isinstance(wanted, int | float):
        return math.isclose(value, wanted, rel_tol=condition.within)
    return bool(value == wanted)


def _pids(run: Run) -> dict[int, tuple[int, set[int]]]:
    """By rank: its pid, and those of all children that a look has found."""
    pids: dict[int, tuple[int, set[int]]] = {}
    for look in run.all_looks:
        for view in look.ranks:
            if view.rank is not None and view.process is not None:
                _, children = pids.get(view.rank, (0, set()))
                children.update(child.process.pid for child in view.children)
                pids[view.rank] = (view.process.pid, children)
    return pids


def _without_workers(condition: HasWorkers, run: Run) -> Iterator[str]:
    fetches = [call for call in run.calls if call.function in FETCHES]
    pids = _pids(run)
    for rank in range(run.world_size):
        pid, children = pids.get(rank, (0, set()))
        if not any(
            child.process.kind == "dataloader-worker"
            and condition.command in " ".join(child.process.command)
            for look in run.all_looks
            for view in look.ranks
            for child in view.children
            if view.rank == rank
        ):
            yield f"none was seen at rank {rank}"
        if alone := sum(call.pid == pid for call in fetches):
            yield f"rank {rank} made {_batches(alone)} itself"
        by_workers = sum(call.pid in children or call.parent == pid for call in fetches)
        if by_workers < condition.batches:
            batches = _batches(by_workers) if by_workers else "no batch"
            yield f"the workers of rank {rank} made {batches}, not {condition.batches}"


def _batches(count: int) -> str:
    return f"{count} batch{'es' if count != 1 else ''}"


def _too_few(condition: Called, run: Run) -> str | None:
    pids = _pids(run)
    callers = [call.pid for call in run.calls if call.function in condition.functions]
    short = [
        rank
        for rank in range(run.world_size)
        if rank not in pids or callers.count(pids[rank][0]) < condition.times
    ]
    return f"not on {spoken(short)}" if short else None


def _wrong_files(condition: Checkpoints, run: Run) -> Iterator[str]:
    states: dict[str, dict[str, Tensor]] = {}
    for file in condition.files:
        try:
            states[file] = tensors(run.folder / file)
        except CheckpointError as problem:
            yield f"{file} {problem}"
            return
        if len(states[file]) != condition.tensors:
            yield f"{file} holds {len(states[file])} tensors, not {condition.tensors}"
        if not all(math.isfinite(sum(tensor.values)) for tensor in states[file].values()):
            yield f"{file} holds numbers that are not finite"
    for number, file in enumerate(condition.files):
        same = [earlier for earlier in condition.files[:number] if states[earlier] == states[file]]
        if same:
            yield f"{file} holds the same state as {same[0]}"
    last = condition.files[-1]
    if condition.sum_is and not _all_end_with(states[last], condition.sum_is, run):
        yield f"{last} holds another state than the one that the ranks ended with"


def _all_end_with(state: Mapping[str, Tensor], key: str, run: Run) -> bool:
    """Whether each rank says under this key that it ended with the sum of a state."""
    total = math.fsum(value for tensor in state.values() for value in tensor.values)
    sums = (result.get(key) for result in run.results)
    return all(isinstance(s, float) and math.isclose(s, total, rel_tol=ROUNDING) for s in sums)


def _too_much(most_mb: int, run: Run) -> str | None:
    most: dict[int, int] = {}
    pids = _pids(run)  # a process that a rank has started to prepare something is none
    for look in run.all_looks:
        for view in look.ranks:
            rank, process = view.rank, view.process
            if rank is not None and process is not None and process.pid == pids[rank][0]:
                most[rank] = max(process.private or 0, most.get(rank, 0))
    beyond = {rank: (size - run.with_torch) / 1e6 for rank, size in most.items()}
    over = [f"rank {rank} had {size:.0f} MB" for rank, size in beyond.items() if size > most_mb]
    return f"{', '.join(over)}; {most_mb} MB beyond torch is the limit" if over else None
