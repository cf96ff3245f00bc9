"""The situations that the causes' pages name beside their fixes: when a fix fits. No I/O."""

from __future__ import annotations

from collections.abc import Callable

from ...model.port_refusal import refused_port
from ...model.waits import (
    ForRanks,
    InCollective,
    InP2P,
    InStore,
    OnCondition,
    OnInput,
    OnIO,
    OnLock,
    OnThread,
)
from ...model.wording import stack_of
from ..aborted_calls import aborted_calls
from ..messages import CANNOT_CONNECT, NO_INTERFACE, NO_SHARED_MEMORY
from ..network import unanswered
from .case import TURNS, Case

Fits = Callable[[Case], bool]

SITUATIONS: dict[str, Fits] = {}
"""By the name that a page gives it: `call-on-some-ranks`."""


def situation(fits: Fits) -> Fits:
    """Have the pages know a situation by its name."""
    SITUATIONS[fits.__name__.replace("_", "-")] = fits
    return fits


_WRAPPED = ("parallel/distributed.py", "fsdp/")
_LOADS = ("load", "load_state_dict", "load_checkpoint", "from_pretrained")
_BY_OTHERS = (9, 15)
"""SIGKILL and SIGTERM: somebody else has sent them."""


@situation
def call_on_some_ranks(case: Case) -> bool:
    """A condition on the rank keeps some ranks from a call that all have to make."""
    return case.parted_by_condition and case.collective and case.decided_by_rank()


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
    return bool(asked) and case.parted_by_condition and case.collective and not case.decided_by_rank()


@situation
def exception_on_some_ranks(case: Case) -> bool:
    """Only some ranks have met an exception, and went on."""
    return case.parting is not None and case.parting.kind in ("try", "with") and case.collective


@situation
def other_number_of_turns(case: Case) -> bool:
    """A loop has more turns on some ranks."""
    return case.parting is not None and case.parting.kind in TURNS


@situation
def forward_on_some_ranks(case: Case) -> bool:
    """A condition on the rank stands before the forward pass of the wrapped model."""
    files = {frame.file for frame in case.below if "forward" in frame.function}
    return call_on_some_ranks(case) and any(part in file for file in files for part in _WRAPPED)


@situation
def group_by_some(case: Case) -> bool:
    """Some ranks are in `new_group`, or know a group with other members."""
    making = any(wait.op == "new_group" for wait in case.blocked_in)
    return making or bool(case.facts.graph.needs.disputed)


@situation
def messages_cross(case: Case) -> bool:
    """The culprits wait in sends and receives that do not meet."""
    first = [process.blocking[0] for process in case.culprits if process.blocking]
    return bool(first) and all(isinstance(wait, InP2P) for wait in first)


@situation
def work_of_one_rank(case: Case) -> bool:
    """A rank is at work of its own, under a condition on the rank."""
    return call_on_some_ranks(case) and not case.waits(OnCondition, OnInput, InStore, OnLock, OnThread)


@situation
def reads_input(case: Case) -> bool:
    """A rank waits for something that a person types."""
    return bool(case.waits(OnInput))


@situation
def stopped(case: Case) -> bool:
    """A signal has stopped a rank."""
    return any(one.state == "stopped" and not one.stopped_for_memory for one in case.culprits)


@situation
def waits_for_change(case: Case) -> bool:
    """A rank tests a condition that functions of its file change."""
    return any(one.changed_at for one in case.waits(OnCondition) if isinstance(one, OnCondition))


@situation
def waits_for_key(case: Case) -> bool:
    """A rank waits for a key of the store."""
    return bool(case.waits(InStore))


@situation
def waits_for_thread(case: Case) -> bool:
    """A rank waits for a lock of its own process, or for a thread that waits for it."""
    waits = case.waits(OnLock, OnThread)
    return any(
        one.path is None if isinstance(one, OnLock) else (isinstance(one, OnThread) and one.circular)
        for one in waits
    )


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
    others = (
        *(work_of_one_rank, reads_input, stopped, pipe_is_full),
        *(waits_for_change, waits_for_key, waits_for_thread),
    )
    return case.verdict.where is not None and not any(fits(case) for fits in others)


@situation
def leaves_by_rank(case: Case) -> bool:
    """A condition on the rank has kept some ranks from a call, and they came to the end."""
    return case.parted_by_condition and not ends_only_some(case) and case.decided_by_rank()


@situation
def ends_only_some(case: Case) -> bool:
    """An exit, or a `return`, has ended some ranks."""
    return case.parting is not None and case.parting.kind in ("exit", "return")


@situation
def leaves_by_itself(case: Case) -> bool:
    """A rank has ended by a decision of its own, or after fewer turns."""
    return other_number_of_turns(case) or (case.parted_by_condition and not case.decided_by_rank())


@situation
def at_the_end(case: Case) -> bool:
    """A rank has come to the end of its program, and it is not known what kept the others."""
    return case.came_through and not case.in_a_loop


@situation
def ahead_of_a_loop(case: Case) -> bool:
    """A rank has come to the end of its program, and others are in a loop still."""
    return case.came_through and case.in_a_loop


@situation
def gone_before_joining(case: Case) -> bool:
    """A rank has ended before it joined."""
    return not wrong_interface(case) and any(not process.alive for process in case.culprits)


@situation
def alone_with_variables(case: Case) -> bool:
    """The only process was started by hand, and its variables speak of more."""
    return case.never_started and len(case.ranks) == 1 and case.snapshot.job.launcher == "python"


@situation
def started_by_launcher(case: Case) -> bool:
    """Fewer processes were started than the world size says."""
    return case.never_started and not alone_with_variables(case)


@situation
def late_to_join(case: Case) -> bool:
    """A rank is alive at a line of its own before it joins."""
    late = (one for one in case.culprits if one.alive and one.where is not None)
    return any(not any(isinstance(wait, ForRanks) for wait in one.waits) for one in late)


@situation
def on_other_nodes(case: Case) -> bool:
    """Ranks on other nodes have not joined, or launchers wait for other nodes."""
    if wrong_interface(case):
        return False
    meets = any(process.rendezvous for process in case.snapshot.launchers if process.awaits_nodes)
    return meets or bool(case.facts.unseen)


@situation
def wrong_interface(case: Case) -> bool:
    """Ranks have found the store, and cannot connect to each other."""
    errors = [process.error.message for process in case.ranks if process.error is not None]
    cannot = any(CANNOT_CONNECT.search(text) or NO_INTERFACE.search(text) for text in errors)
    return cannot or bool(unanswered(case.facts, case.facts.alive))


@situation
def another_job_is_there(case: Case) -> bool:
    """The rendezvous belongs to another job."""
    return bool(case.verdict.blockers)


@situation
def calls_have_met(case: Case) -> bool:
    """The ranks are in different lines."""
    return len(case.lines) > 1


@situation
def models_differ(case: Case) -> bool:
    """DDP has compared the parameters, which have other sizes on other ranks."""
    frames = [frame for process in case.culprits for frame in stack_of(process)]
    checks = any(f.function == "__init__" and f.file.endswith(_WRAPPED[0]) for f in frames)
    return checks and len(case.lines) < 2


@situation
def data_differ(case: Case) -> bool:
    """A call of the user's own has tensors of other sizes on other ranks, and could have padded ones."""
    return len(case.lines) == 1 and not models_differ(case) and not reductions_differ(case)


@situation
def reductions_differ(case: Case) -> bool:
    """The ranks reduce tensors of other sizes: what is padded would count in the result."""
    ops = [call.op for call in aborted_calls(case.facts).values()]
    ops += [wait.op for wait in case.waits(InCollective)]
    return not models_differ(case) and any(op.startswith(("all_reduce", "reduce")) for op in ops)


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
def no_port_is_free(case: Case) -> bool:
    """The kernel has no port to give out."""
    event = case.facts.first
    return event is not None and event.error is not None and refused_port(event.error) == 0


@situation
def runs_the_module_again(case: Case) -> bool:
    """A child of `multiprocessing` runs the module from the top, and comes to what launches."""
    frames = [frame for one in case.family for frame in stack_of(one)]
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
    return any(isinstance(wait, OnLock) and wait.holder == "no process" for wait in case.blocked_in)


@situation
def lock_across_a_collective(case: Case) -> bool:
    """The rank that holds the lock waits for the others."""
    return bool(case.waits(InCollective))


@situation
def while_loading(case: Case) -> bool:
    """The memory was used up while a model was loaded."""
    names = {frame.function for process in case.culprits for frame in stack_of(process)}
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
    return "init_module" in case.contexts


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
