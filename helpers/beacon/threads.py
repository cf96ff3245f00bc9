"""The threads of this process, watched from look to look."""

from __future__ import annotations

import importlib
import os
import sys
from types import FrameType
from typing import TYPE_CHECKING, Dict, List, Optional, Tuple

from . import calls, exits, locks, native, sites, stacks

if TYPE_CHECKING:
    from .record import FrameEntry, Thread

CALL_AFTER = 0.15
"""Seconds a thread must stay where it is before its call and system call are looked up."""

VALUES_AFTER = 0.8
"""Seconds a thread must stay where it is before the values of its variables are read."""


AWAY, AWAY_CPU = 1.0, 0.005
"""Seconds, and seconds of processor time, within which a thread that comes back to its place has only
looked around: a library that polls. A DataLoader's look takes 0.0003 s every 5 s (torch 2.13)."""


class _Place:
    """Where a thread stood, and what it had used of the processor when it was last seen there."""

    # No NamedTuple: to make one takes 1 ms, for which each process of the job would wait.
    def __init__(
        self,
        entry: Thread,
        signature: Tuple[Tuple[int, int], ...],
        at: float,
        cpu: Optional[float],
    ) -> None:
        self.entry, self.signature, self.at, self.cpu = entry, signature, at, cpu


class Watched:
    """What is known of one thread, kept from look to look.

    Attributes:
        entry: its part of the record.
    """

    def __init__(self) -> None:
        self.entry: Thread
        self._signature: Tuple[Tuple[int, int], ...] = ()
        self._looked = False
        self._looked_at: Tuple[float, Optional[float]] = (0.0, None)
        self._stood: Optional[_Place] = None
        self._spin: Optional[native.Spin] = None

    def look(
        self,
        frame: FrameType,
        now: float,
        ident: int,
        name: str,
        native_id: Optional[int],
        main: bool,
        due: bool,
    ) -> None:
        """Take one look; the call is looked up once the thread has not moved for a moment.

        A thread that leaves its place within one line of the user's, and is back before it has done
        anything to speak of, has not moved.

        Args:
            due: look up its system call, which may change while the thread stays at one line.
        """
        if not stacks.in_place(frame, self._signature):
            if self._comes_back(frame, now, native_id):
                return
            self._signature, self._looked, self._spin = stacks.signature(frame), False, None
            self.entry = {
                "name": name,
                "main": main,
                "since": now,
                "frames": stacks.entries(frame),
                "call": None,
                "native": None,
                "site": None,
                "ident": ident,
                "native_id": native_id,
            }
        elif now - self.entry["since"] >= CALL_AFTER and (due or not self._looked):
            self.entry = self.entry.copy()
            if native_id is not None:
                self._see_native(native_id, now)
            self._see_call(frame, now)
            if self._is_late(main, now):
                self.entry["values"] = stacks.values(frame, ident)
                if (handled := exits.handled(ident)) is not None:
                    self.entry["handling"] = handled

    def _see_native(self, native_id: int, now: float) -> None:
        """Note its system call, and whether it has run since its call and values were read."""
        before, self.entry["native"] = self.entry["native"], native.blocking_call(native_id)
        if before is not None and before["call"] in native.UNTIMED and not self.entry["native"]:
            self.entry["since"] = now  # it ends only once it is done
        self._see_spin(native_id)
        cpu = native.processor_time(native_id)
        self._stood = _Place(self.entry, self._signature, now, cpu)
        if self._has_run(now, cpu):
            self._looked = False
            self.entry.pop("values", None)
            self.entry.pop("handling", None)

    def _see_call(self, frame: FrameType, now: float) -> None:
        """Note what it calls, and for what it waits inside the process."""
        inside = self.entry["native"] is not None and self.entry["native"]["call"] == "futex"
        at_users = any(user for _, _, _, user in self.entry["frames"][:1])
        if at_users and (not self._looked or (inside and "joins" not in self.entry)):
            self.entry["site"] = sites.site(frame, inside)
        if not self._looked:
            used = self._stood.cpu if self._stood is not None else None
            self._looked, self._looked_at = True, (now, used)
            self.entry["call"] = calls.torch_call(calls.inside(frame))
            if self.entry["call"] is not None:
                self.entry["within"] = stacks.within(frame)
        if inside:  # in a loop it comes to the same line for another thread
            self.entry["locks"] = locks.in_stack(frame)
            self.entry["wants"], self.entry["joins"] = locks.wanted(frame), locks.joined(frame)

    def _see_spin(self, native_id: int) -> None:
        """Note whether it spins, which no system call shows."""
        if self.entry["native"] is not None:
            self._spin = None
        elif self._spin is None:
            self._spin = native.Spin(native_id)
        self.entry["spins"] = self._spin is not None and self._spin.look()

    def _has_run(self, now: float, cpu: Optional[float]) -> bool:
        """True for a thread that may have been round a loop since its call and values were read.

        At each look it is at one and the same line then.
        """
        at, used = self._looked_at
        return self._looked and now - at >= VALUES_AFTER and None not in (cpu, used) and cpu != used

    def _is_late(self, main: bool, now: float) -> bool:
        """True once its values are due: of a thread that others may wait for, and that has not moved."""
        due = main or self.entry["call"] is not None
        return due and "values" not in self.entry and now - self.entry["since"] >= VALUES_AFTER

    def _comes_back(self, frame: FrameType, now: float, native_id: Optional[int]) -> bool:
        """True for a thread that is back where it stood a moment ago: then it has not moved."""
        stood = self._stood
        if stood is None or native_id is None or stood.cpu is None:
            return False
        is_away = now - stood.at > AWAY or _users_line(self.entry) != _users_line(stood.entry)
        used = None if is_away else native.processor_time(native_id)
        if used is None or used - stood.cpu > AWAY_CPU:
            self._stood = None
            return False
        if not stacks.in_place(frame, stood.signature):
            return False
        self.entry, self._signature, self._looked = stood.entry, stood.signature, True
        return True


def _users_line(entry: Thread) -> Optional[FrameEntry]:
    return next((frame for frame in entry["frames"] if frame[3]), None)


def frames() -> Dict[int, FrameType]:
    """The frame of each thread by Python's id of it.

    Raises:
        RuntimeError: other interpreters run in this process, perhaps by locks of their own (PEP 684,
            since 3.12): `sys._current_frames` would read their frames, too, while these change.
    """
    if sys.version_info >= (3, 12) and _interpreters() > 1:
        raise RuntimeError("a process with sub-interpreters cannot be looked at from inside")
    return sys._current_frames()


def _interpreters() -> int:
    """How many interpreters there are; an extension, or the program around Python, may make some."""
    name = "_interpreters" if sys.version_info >= (3, 13) else "_xxsubinterpreters"
    try:
        return len(importlib.import_module(name).list_all())
    except ImportError:
        return 1


def identities(beacon_thread: int = 0) -> Dict[int, Tuple[str, Optional[int], bool]]:
    """Python thread id -> name, kernel thread id, whether it is the main thread."""
    threading = sys.modules.get("threading")
    active = getattr(threading, "_active", None)
    if not active:
        return {ident: ("MainThread", os.getpid(), True) for ident in _only_thread(beacon_thread)}
    main = threading.main_thread() if threading is not None else None
    return {
        ident: (
            str(thread.name),
            os.getpid() if thread is main else getattr(thread, "native_id", None),
            thread is main,
        )
        for ident, thread in list(active.items())
    }


def _only_thread(beacon_thread: int) -> List[int]:
    """The main thread before `threading` is imported: the only one there is."""
    idents = [ident for ident in sys._current_frames() if ident != beacon_thread]
    return idents if len(idents) == 1 else []
