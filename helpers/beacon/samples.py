"""What this process did at the newest ticks: whether it waited for other ranks, or could be waited for.

All processes of a machine look at the same moments (`ticks`), so that what several ranks did at one tick
was so at one time.
"""

from __future__ import annotations

import gc
import os
import time
from collections import deque
from typing import TYPE_CHECKING, Deque, Dict, List, Optional, Sequence, Tuple

from . import native, sites, stacks, torch_names

if TYPE_CHECKING:
    from types import FrameType

    from .record import Doing, FrameEntry, NativeCall, Sample, Samples

KEPT = 32
"""Newest samples that are told: whoever reads them every two seconds misses none."""

WRITTEN = 8
"""Ticks after which they are written again: to write takes as long as to take a sample."""

MOST_GROUPS = 8
"""Groups of which the newest number is told."""

TAKES_LOCK = 0.2
"""Seconds within which a wait for the interpreter lock ends: it is asked for every 5 ms, and the end of
a wait is told to 0.1 s (`native.blocking_call`). The sample itself makes others wait for it."""

LOADER = ("/torch/utils/data/",)
COMPILER = ("/torch/_dynamo/", "/torch/_inductor/", "/torch/_functorch/")
STORAGE = ("/torch/serialization.py", "/torch/distributed/checkpoint/", "/safetensors/")
"""Parts of the paths of what fetches data, of what compiles, and of what saves and loads."""

CALLS = (
    torch_names.CALLS
    | torch_names.NEW_GROUP_CALLS
    | torch_names.RENDEZVOUS_CALLS
    | {torch_names.STORE_BARRIER}
)


class SampleLog:
    """The newest samples of a process."""

    def __init__(self) -> None:
        self._newest: Deque[Tuple[Sample, Optional[FrameEntry]]] = deque(maxlen=KEPT)
        self._write_at = 0

    def take(
        self,
        tick: int,
        due: int,
        frame: FrameType,
        native_id: Optional[int],
        *,
        pending: bool,
        issued: Dict[str, int],
        on_device: bool,
    ) -> bool:
        """Take a sample; return whether it is time to write them again.

        Whoever misses the tick at which all write does so at the next: samples that come late enough
        are taken for ticks at which the process could not run.

        Args:
            tick: number of the moment; due: of the one at which the sample was to be taken.
            frame: of the thread by which the process is judged; native_id: the kernel's id of it.
            pending: whether a collective is enqueued and not completed.
            issued: torch's own name of a group -> the number of the newest collective; not of a process
                that sends and receives, for which each group counts along.
            on_device: whether a device carries out what it calls.
        """
        frames = stacks.entries(frame)
        call = native.blocking_call(native_id) if native_id is not None else None
        if call is not None and for_interpreter(call, time.monotonic()):
            call = None
        pending = pending or (call is not None and frames[0][3] and _holds_handle(frame))
        ran, wanted = native.schedule(native_id) if native_id is not None else (0.0, 0.0)
        place = next((frame for frame in frames if frame[3]), None)
        sample: Sample = {
            "tick": tick,
            "due": due,
            "doing": doing(frames, call, pending, on_device),
            "within": within(frames),
            "call": call["call"] if call is not None else "",
            "place": -1,
            "issued": dict(list(issued.items())[:MOST_GROUPS]),
            "ran": round(ran, 4),
            "wanted": round(wanted, 4),
            "used": round(time.process_time(), 4),
            "collections": gc.get_stats()[-1]["collections"],
            "load": round(os.getloadavg()[0] / (os.cpu_count() or 1), 2),
        }
        self._newest.append((sample, place))
        is_due = tick >= self._write_at
        if is_due:
            self._write_at = tick - tick % WRITTEN + WRITTEN
        return is_due

    def newest(self) -> Samples:
        """The newest samples, oldest first, and the user's lines at which they were taken."""
        places: Dict[FrameEntry, int] = {}
        samples: List[Sample] = []
        for sample, place in self._newest:
            number = -1 if place is None else places.setdefault(place, len(places))
            samples.append({**sample, "place": number})
        return {"samples": samples, "places": list(places)}


def for_interpreter(call: NativeCall, now: float) -> bool:
    """True for a system call in which a thread only waits for the interpreter lock."""
    return call["call"] == "futex" and call.get("until", now + 1.0) - now < TAKES_LOCK


def doing(
    frames: Sequence[FrameEntry], call: Optional[NativeCall], pending: bool, on_device: bool = False
) -> Doing:
    """Whether a thread waits for other ranks, for a child that loads data, or for none of these.

    Args:
        frames: innermost first.
        call: the system call that blocks it, None while it runs.
        pending: whether what it has issued to other ranks is not completed.
        on_device: whether a device carries it out: then a wait may be a spin, which looks like work.
    """
    if call is None:
        return "device" if on_device else "works"
    if communicates(frames):
        return "waits"
    below = _below(frames)
    if any(is_loader_wait(file, function) for file, _, function, _ in below):
        return "child"
    unnamed = any(torch_names.unnamed(file, function) for file, _, function, _ in below[:1])
    inside = not below or unnamed
    return "waits" if pending and inside and call["call"] == "futex" else "works"


def communicates(frames: Sequence[FrameEntry]) -> bool:
    """True for a thread that is in a call to which other ranks have to come."""
    return any(
        (torch_names.is_distributed_file(file) and function in CALLS) or torch_names.is_rpc_file(file)
        for file, _, function, _ in _below(frames)
    )


def is_loader_wait(file: str, function: str) -> bool:
    """True for a function in which a rank waits for the workers that load its data."""
    return torch_names.is_dataloader_file(file) and function in torch_names.LOADER_WAITS


def within(frames: Sequence[FrameEntry]) -> str:
    """`loader` for work that fetches data, `compiler` while torch compiles, `storage` while it saves or
    loads; empty for any other."""
    paths = [frame[0].replace("\\", "/") for frame in frames]
    rooms = (("loader", LOADER), ("compiler", COMPILER), ("storage", STORAGE))
    matches = (room for room, parts in rooms if any(part in path for path in paths for part in parts))
    return next(matches, "")


def _below(frames: Sequence[FrameEntry]) -> List[FrameEntry]:
    """The frames of libraries below the user's innermost line, innermost first."""
    first = next((place for place, frame in enumerate(frames) if frame[3]), len(frames))
    return list(frames[:first])


def _holds_handle(frame: FrameType) -> bool:
    """True where a line of the user's own can name what others have to answer."""
    site = sites.site(frame)
    names = site["names"].values() if site is not None else ()
    return any(name.startswith(("Work", "Store")) for name in names)
