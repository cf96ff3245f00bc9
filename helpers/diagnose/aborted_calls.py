"""The calls in which ranks were when a backend could not match what they had sent each other.

Then no number tells which calls belong together, and the user's innermost line does not either: under a
trainer all ranks are in the same one, always. A call is its operation and its whole stack.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import takewhile

import msgspec

from ..model.facts import Collective, ProcessView, RankView
from ..model.frames import Frame, innermost_user
from ..model.waits import Communication
from ..model.wording import place, stack_of
from .events import Event
from .messages import TOO_LONG
from .parting.divergence import Divergence
from .parting.exclusion import exclusion
from .parting.relative import has_passed

FATAL = (4, 6, 7, 8, 11)
"""SIGILL, SIGABRT, SIGBUS, SIGFPE and SIGSEGV: of these `faulthandler` writes where they came."""

OWN_FILES = ("distributed_c10d.py", "c10d_logger.py")
"""The files of torch's in which a call of its own is: a line there tells nothing of which call it is."""


class AbortedCall(msgspec.Struct, frozen=True):
    """A call that has failed, or was in progress when its process ended.

    Attributes:
        function: of `torch.distributed`, which the user or a library has called; empty when unknown.
        frames: outside of torch's own files, innermost frame first; none where only the recorder tells.
        entry: what the Flight Recorder has as the newest collective of the rank.
        certain: False where the rank was only seen in it a moment before its end.
    """

    function: str
    frames: tuple[Frame, ...]
    entry: Collective | None
    certain: bool

    @property
    def op(self) -> str:
        """The operation, as users call it; of a call that C++ makes, the function that led there."""
        recorded = self.entry.op if self.entry is not None else ""
        inside = [frame.function for frame in takewhile(lambda frame: not frame.user, self.frames)]
        public = next((name for name in inside if not name.startswith("_")), "")
        return self.function or recorded or public or self.frames[0].function

    @property
    def where(self) -> Frame | None:
        """The user's innermost line."""
        return innermost_user(self.frames)

    def is_same(self, peer: AbortedCall) -> bool:
        """True for a call of one operation and number, from the same lines, as far as both are known."""
        entries = [call.entry for call in (self, peer) if call.entry is not None]
        numbers = {(entry.group, entry.seq, entry.op) for entry in entries}
        functions = {call.function for call in (self, peer)} - {""}
        lines = zip(self.frames, peer.frames, strict=False)
        return (
            len(numbers) < 2
            and len(functions) < 2
            and all(_place(frame) == _place(peer_frame) for frame, peer_frame in lines)
        )


def aborted_calls(ranks: Mapping[int, RankView], first: Event | None) -> dict[int, AbortedCall]:
    """Rank -> its call, of those whose call is known.

    Args:
        first: the failure from which the others follow, if any.

    One that was at a later number is left out, and one that was only seen in a call out of which
    another rank has come: it has gone on since. So has one in a barrier, where another got data.
    """
    processes = {rank: view.process for rank, view in sorted(ranks.items()) if view.process}
    newest = {rank: p.collectives[-1] for rank, p in processes.items() if p.collectives}
    lowest: dict[str, int] = {}
    for entry in newest.values():
        lowest[entry.group] = min(entry.seq, lowest.get(entry.group, entry.seq))
    further = {rank for rank, entry in newest.items() if entry.seq > lowest[entry.group]}
    by_rank = {r: _call(process, newest.get(r)) for r, process in processes.items() if r not in further}
    calls = {rank: call for rank, call in by_rank.items() if call is not None}
    certain = [call.frames[::-1] for call in calls.values() if call.certain]
    return {
        rank: call
        for rank, call in calls.items()
        if not (call.function == "barrier" and _has_got_data(first, rank))
        and (call.certain or not any(has_passed(stack, call.frames[::-1]) for stack in certain))
    }


def exclusions(
    ranks: Collection[int], calls: Mapping[int, AbortedCall], first: Event | None
) -> dict[int, Divergence]:
    """Rank -> the condition that keeps it from the call that has failed first, whatever it was in.

    Only of ranks whose own call is not known, and that their number alone keeps from there.

    Args:
        ranks: all of them; calls: `aborted_calls`; first: the failure from which the others follow.
    """
    failed = first.rank if first is not None else None
    if failed is None or failed not in calls:
        return {}
    stack = calls[failed].frames[::-1]
    conditions = {rank: exclusion(stack, failed, rank) for rank in sorted({*ranks} - calls.keys())}
    return {rank: condition for rank, condition in conditions.items() if condition is not None}


def _has_got_data(first: Event | None, beside: int) -> bool:
    """True where the first failure is that of another rank, whose message was too long."""
    if first is None or first.error is None or first.rank == beside:
        return False
    return bool(TOO_LONG.search(first.error.message))


def classes(calls: Mapping[int, AbortedCall]) -> dict[int, int]:
    """Rank -> the first rank whose call is the same as its own."""
    return {
        rank: next(first for first, peer in calls.items() if call.is_same(peer))
        for rank, call in calls.items()
    }


def described(calls: Mapping[int, AbortedCall]) -> dict[int, str]:
    """`all_reduce at train.py:9`; of ranks in one line, with the outermost function that differs."""
    in_one_line = len({call.where for call in calls.values()}) == 1
    levels = zip(*(reversed(call.frames) for call in calls.values()), strict=False)
    different = (level for level in levels if len({frame.function for frame in level}) > 1)
    functions = next(different, ()) if in_one_line else ()
    texts = {}
    for number, (rank, call) in enumerate(calls.items()):
        at = f" at {place(call.where)}" if call.where is not None else ""
        inside = f" (in {functions[number].function})" if functions else ""
        texts[rank] = f"{call.op}{at}{inside}"
    return texts


def _place(frame: Frame) -> tuple[str, int, str]:
    return frame.file, frame.line, frame.function


def _call(process: ProcessView, newest: Collective | None) -> AbortedCall | None:
    """The call of a process: from its traceback, or the stack at its crash, or as it was last seen.

    Args:
        newest: what its Flight Recorder has; that alone tells nothing of one that has come out of it.
    """
    failed = process.error is not None and bool(process.error.stack)
    crashed = process.signal in FATAL and bool(process.stack) and not process.stack[0].user
    waits = any(isinstance(wait, Communication) for wait in process.blocking)
    pending = newest if newest is not None and not newest.done else None
    certain = failed or crashed or waits
    if not (certain or process.ended_in_call):
        return None if pending is None else AbortedCall("", (), pending, certain=True)
    stack = stack_of(process)
    library = [*takewhile(lambda frame: frame.file.endswith(OWN_FILES), stack)]
    functions = [frame.function for frame in library if frame.function != "wrapper"]
    frames = stack[len(library) :]
    if not frames:
        return None
    return AbortedCall(functions[-1] if functions else "", frames, pending, certain=certain)
