"""The situations that the causes' pages name beside their fixes: when a fix fits. No I/O."""

from __future__ import annotations

import ast
from collections.abc import Callable

from ...model.facts import ProcessView
from ...model.frames import Frame
from ...model.waits import InCollective, InP2P, InStore, OnInput, OnIO, OnLock, OnThread, Wait
from ..events import last_line
from ..messages import NO_SHARED_MEMORY
from ..parting.blocks import Loop, function_of, path
from .case import Case

Fits = Callable[[Case], bool]

SITUATIONS: dict[str, Fits] = {}
"""By the name that a page gives it: `call-on-some-ranks`."""


def situation(fits: Fits) -> Fits:
    """Have the pages know a situation by its name."""
    SITUATIONS[fits.__name__.replace("_", "-")] = fits
    return fits


_TURNS = ("for", "while")
_WRAPPED = ("parallel/distributed.py", "fsdp/")
_LOADS = ("load", "load_state_dict", "load_checkpoint", "from_pretrained")
_BY_OTHERS = (9, 15)
"""SIGKILL and SIGTERM: somebody else has sent them."""


def _stack(process: ProcessView) -> tuple[Frame, ...]:
    """Where a process is, or what its error has come from, innermost frame first."""
    return process.error.stack if process.error is not None else process.stack


def _family(case: Case) -> list[ProcessView]:
    """The ranks and their children."""
    views = case.facts.graph.ranks.values()
    own = [view.process for view in views if view.process is not None]
    return [*own, *(child.process for view in views for child in view.children)]


def _waits(case: Case) -> list[Wait]:
    """What the ranks that run are blocked in."""
    return [wait for rank in case.facts.alive for wait in case.facts.waits(rank)]


def _lines(case: Case) -> set[Frame]:
    """The lines of all ranks, or of their errors."""
    views = case.facts.graph.ranks.values()
    found = [last_line(view.process) for view in views if view.process is not None]
    return {frame for frame in found if frame is not None}


def _never_started(case: Case) -> bool:
    ranks = case.facts.graph.ranks
    return any(ranks[rank].state == "missing" for rank in case.verdict.culprits if rank in ranks)


def _came_through(case: Case) -> bool:
    """True when a rank has come to the end of its program, and no statement says why."""
    through = [one for one in case.facts.processes(tuple(case.facts.gone)) if one.where is None]
    return case.parting is None and any(one.exit_code == 0 for one in through)


def _circular(wait: Wait) -> bool:
    return isinstance(wait, OnThread) and wait.circular


def _in_a_loop(case: Case) -> bool:
    """True when a rank that waits is inside a loop of its own code."""
    frames = [one for p in case.facts.processes(tuple(case.facts.alive)) for one in p.stack if one.user]
    failed = [one for p in case.facts.processes(tuple(case.facts.gone)) for one in _stack(p) if one.user]
    paths = (path(function, one.line) for one in (*frames, *failed) if (function := function_of(one)))
    return any(isinstance(step.node, Loop) for steps in paths for step in steps)


def _contexts(case: Case) -> set[str]:
    """The functions whose result the culprit's lines are in a `with` block of."""
    found: set[str] = set()
    for frame in (frame for process in case.culprits for frame in _stack(process) if frame.user):
        function = function_of(frame)
        for step in path(function, frame.line) if function is not None else ():
            items = step.node.items if isinstance(step.node, ast.With) else ()
            calls = [one.context_expr for one in items if isinstance(one.context_expr, ast.Call)]
            found |= {getattr(call.func, "attr", getattr(call.func, "id", "")) for call in calls}
    return found


def _parted(case: Case) -> bool:
    return case.parting is not None and case.parting.kind not in _TURNS


def _collective(case: Case) -> bool:
    return not any(isinstance(wait, InP2P) or wait.op == "new_group" for wait in _waits(case))


@situation
def call_on_some_ranks(case: Case) -> bool:
    """A condition on the rank keeps some ranks from a call that all have to make."""
    return _parted(case) and _collective(case) and case.decided_by_rank()


@situation
def other_calls_in_branches(case: Case) -> bool:
    """A condition on the rank has led the ranks to different calls."""
    branches = case.parting.branches if case.parting is not None else ()
    inside = [way.label.startswith("in its") for way in branches]
    return call_on_some_ranks(case) and len(inside) > 1 and all(inside)


@situation
def each_rank_decides(case: Case) -> bool:
    """Each rank has decided by itself, and not all in the same way."""
    asked = case.parting.asked if case.parting is not None else ()
    return bool(asked) and _parted(case) and _collective(case) and not case.decided_by_rank()


@situation
def exception_on_some_ranks(case: Case) -> bool:
    """Only some ranks have met an exception, and went on."""
    return case.parting is not None and case.parting.kind in ("try", "with") and _collective(case)


@situation
def other_number_of_turns(case: Case) -> bool:
    """A loop has more turns on some ranks."""
    return case.parting is not None and case.parting.kind in _TURNS


@situation
def forward_on_some_ranks(case: Case) -> bool:
    """A condition on the rank stands before the wrapped model."""
    files = {frame.file for frame in case.below}
    return call_on_some_ranks(case) and any(part in file for file in files for part in _WRAPPED)


@situation
def group_by_some(case: Case) -> bool:
    """Some ranks are in `new_group`, or know a group with other members."""
    making = any(wait.op == "new_group" for wait in _waits(case))
    return making or bool(case.facts.graph.needs.disputed)


@situation
def messages_cross(case: Case) -> bool:
    """The culprits wait in sends and receives that do not meet."""
    first = [process.blocking[0] for process in case.culprits if process.blocking]
    return bool(first) and all(isinstance(wait, InP2P) for wait in first)


@situation
def work_of_one_rank(case: Case) -> bool:
    """A rank is at work of its own, under a condition on the rank."""
    return call_on_some_ranks(case) and not case.waits(OnInput, InStore, OnLock, OnThread)


@situation
def reads_input(case: Case) -> bool:
    """A rank waits for something that a person types."""
    return bool(case.waits(OnInput))


@situation
def stopped(case: Case) -> bool:
    """A signal has stopped a rank."""
    return any(one.state == "stopped" and not one.stopped_for_memory for one in case.culprits)


@situation
def waits_for_key(case: Case) -> bool:
    """A rank waits for a key of the store."""
    return bool(case.waits(InStore))


@situation
def waits_for_thread(case: Case) -> bool:
    """A rank waits for a lock of its own process, or for a thread that waits for it."""
    waits = case.waits(OnLock, OnThread)
    return any(one.path is None if isinstance(one, OnLock) else _circular(one) for one in waits)


@situation
def pipe_is_full(case: Case) -> bool:
    """A child of a rank cannot write, because nobody reads."""
    known = case.facts.graph.ranks
    ranks = [known[rank] for rank in case.verdict.culprits if rank in known]
    children = [child.process for view in ranks for child in view.children]
    return any(isinstance(wait, OnIO) and wait.op == "write" for one in children for wait in one.waits)


@situation
def is_at_a_line(case: Case) -> bool:
    """All that is known of the culprit is where it is."""
    others = (work_of_one_rank, reads_input, stopped, waits_for_key, waits_for_thread, pipe_is_full)
    return case.verdict.where is not None and not any(fits(case) for fits in others)


@situation
def leaves_by_rank(case: Case) -> bool:
    """A condition on the rank has kept some ranks from a call, and they came to the end."""
    return _parted(case) and not ends_only_some(case) and case.decided_by_rank()


@situation
def ends_only_some(case: Case) -> bool:
    """An exit, or a `return`, has ended some ranks."""
    return case.parting is not None and case.parting.kind in ("exit", "return")


@situation
def leaves_by_itself(case: Case) -> bool:
    """A rank has ended by a decision of its own, or after fewer turns."""
    return other_number_of_turns(case) or (_parted(case) and not case.decided_by_rank())


@situation
def at_the_end(case: Case) -> bool:
    """A rank has come to the end of its program, and it is not known what kept the others."""
    return _came_through(case) and not _in_a_loop(case)


@situation
def ahead_of_a_loop(case: Case) -> bool:
    """A rank has come to the end of its program, and others are in a loop still."""
    return _came_through(case) and _in_a_loop(case)


@situation
def gone_before_joining(case: Case) -> bool:
    """A rank has ended before it joined."""
    return any(not process.alive for process in case.culprits)


@situation
def alone_with_variables(case: Case) -> bool:
    """The only process was started by hand, and its variables speak of more."""
    alone = sum(view.process is not None for view in case.facts.graph.ranks.values()) == 1
    return _never_started(case) and alone and case.snapshot.job.launcher == "python"


@situation
def started_by_launcher(case: Case) -> bool:
    """Fewer processes were started than the world size says."""
    return _never_started(case) and not alone_with_variables(case)


@situation
def late_to_join(case: Case) -> bool:
    """A rank is alive at a line of its own before it joins."""
    return any(one.alive and one.where is not None and not one.waits for one in case.culprits)


@situation
def on_other_nodes(case: Case) -> bool:
    """Ranks on other nodes have not joined."""
    return any(view.state == "unseen" for view in case.facts.graph.ranks.values())


@situation
def another_job_is_there(case: Case) -> bool:
    """The rendezvous belongs to another job."""
    return bool(case.verdict.blockers)


@situation
def calls_have_met(case: Case) -> bool:
    """The ranks are in different lines."""
    return len(_lines(case)) > 1


@situation
def models_differ(case: Case) -> bool:
    """DDP has compared the parameters, which have other sizes on other ranks."""
    frames = [frame for process in case.culprits for frame in _stack(process)]
    checks = any(f.function == "__init__" and f.file.endswith(_WRAPPED[0]) for f in frames)
    return checks and len(_lines(case)) < 2


@situation
def data_differ(case: Case) -> bool:
    """A call of the user's own has tensors of other sizes on other ranks."""
    return len(_lines(case)) == 1 and not models_differ(case)


@situation
def owner_is_a_stranger(case: Case) -> bool:
    """A process outside the job has the port."""
    return bool(case.verdict.blockers) and not owner_is_an_earlier_run(case)


@situation
def owner_is_an_earlier_run(case: Case) -> bool:
    """A process of an earlier run of the same command has the port."""
    command = " ".join(case.snapshot.job.command)
    return any(blocker.command and blocker.command in command for blocker in case.verdict.blockers)


@situation
def runs_the_module_again(case: Case) -> bool:
    """A child of `multiprocessing` runs the module from the top, and comes to what launches."""
    frames = [frame for one in _family(case) for frame in _stack(one)]
    again = any(frame.function == "_fixup_main_from_path" for frame in frames)
    return again and not case.verdict.blockers


@situation
def child_has_joined(case: Case) -> bool:
    """A child of a rank has joined in its place."""
    children = (child for view in case.facts.graph.ranks.values() for child in view.children)
    return case.verdict.where is not None and any(one.joined_as_rank is not None for one in children)


@situation
def nobody_holds_the_lock(case: Case) -> bool:
    """The lock file was left behind."""
    return any(isinstance(wait, OnLock) and wait.holder == "no process" for wait in _waits(case))


@situation
def lock_across_a_collective(case: Case) -> bool:
    """The rank that holds the lock waits for the others."""
    return bool(case.waits(InCollective))


@situation
def while_loading(case: Case) -> bool:
    """The memory was used up while a model was loaded."""
    names = {frame.function for process in case.culprits for frame in _stack(process)}
    return bool(names & {*_LOADS}) and not shared_memory_is_full(case)


@situation
def shared_memory_is_full(case: Case) -> bool:
    """A DataLoader's worker has found no room in /dev/shm."""
    said = [event.error.message for event in case.facts.events if event.error is not None]
    return any(NO_SHARED_MEMORY.search(text) for text in said)


@situation
def worker_out_of_memory(case: Case) -> bool:
    """A DataLoader's worker was killed."""
    event = case.facts.first
    return event is not None and not event.own and not shared_memory_is_full(case)


@situation
def at_the_limit(case: Case) -> bool:
    """The job has a limit of its own."""
    return case.snapshot.limit is not None and not shared_memory_is_full(case)


@situation
def ended_by_others(case: Case) -> bool:
    """Somebody has sent SIGKILL or SIGTERM."""
    return any(process.signal in _BY_OTHERS for process in case.culprits)


@situation
def crashed(case: Case) -> bool:
    """The process itself has done what the signal stands for."""
    signals = [process.signal for process in case.culprits if process.signal is not None]
    return bool(signals) and not ended_by_others(case)


@situation
def errors_are_masked(case: Case) -> bool:
    """Later errors hide the first one."""
    return bool(case.verdict.masked) and case.verdict.where is not None


@situation
def has_a_line(case: Case) -> bool:
    """The line of the error is known."""
    return case.verdict.where is not None


@situation
def inside_init_module(case: Case) -> bool:
    """The error comes from inside `init_module`."""
    return "init_module" in _contexts(case)


@situation
def default_device(case: Case) -> bool:
    """The program sets a default device."""
    where = case.verdict.where
    return where is not None and "set_default_device" in where.text


@situation
def blind_spots(case: Case) -> bool:
    """Something could not be seen."""
    return bool(case.snapshot.not_seen)


@situation
def on_gpus(case: Case) -> bool:
    """The job runs on GPUs."""
    return case.snapshot.job.hardware == "cuda"
