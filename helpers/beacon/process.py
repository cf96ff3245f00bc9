"""This process, watched from look to look: what its record says."""

from __future__ import annotations

import _thread
import os
import sys
import time
from types import FrameType
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Literal, Optional

from . import cells, exits, family, flight, native, signal_handlers, stacks, threads, torch_names
from .call_log import CallLog
from .launch_variables import ENVIRONMENT
from .nccl import Nccl
from .samples import SampleLog

if TYPE_CHECKING:
    from .record import Error, Flight, FrameEntry, Groups, Record, Thread, Unseen

READ_AFTER, READ_AT_LAST = 0.35, 1.0
"""Seconds a collective must be pending before its entries are read: normally, and in any case."""

READ_SHARE = 0.01
"""Share of the time that reading entries on short stalls may take."""

AT_ONCE = 16
"""Threads whose system call is looked up in one look; the main thread is always among them."""


class Process:
    """What is known of this process, kept from look to look.

    Args:
        run: the run's folder.
        inherited: the process group that a forked child has in its memory without having joined it.
    """

    def __init__(self, run: str, inherited: Any = None) -> None:
        self._nccl = Nccl(run)
        self._inherited = inherited
        self._started = time.monotonic()
        self._executable = native.executable()
        self._threads: Dict[int, threads.Watched] = {}
        self._beacon_thread: Optional[int] = None
        self._turn = 0
        self._unseen: List[Unseen] = []
        self._unseen_is_final = False
        self._flight: Optional[Flight] = None
        self._flight_status: Optional[bytes] = None
        self._flight_since = self._started
        self._flight_next = 0.0
        self._error: Optional[Error] = None
        self._workers: Dict[int, int] = {}
        self._spawned: Dict[int, int] = {}
        self._joining: List[FrameEntry] = []
        self._faults: Dict[str, str] = {}
        self.log = CallLog(whole=inherited is None)
        self.samples = SampleLog()

    def joins(self, frame: Optional[FrameType]) -> None:
        """Note the stack that calls `init_process_group`."""
        self._joining = stacks.entries(frame)

    def look(self, beacon_thread: int, ended: bool) -> Record:
        """The record of this moment.

        Args:
            beacon_thread: the beacon's own thread, which is left out.
            ended: True at an orderly exit, when the threads are left as they were last seen.
        """
        self._faults = {"its calls": self.log.fault} if self.log.fault else {}
        if beacon_thread:
            self._beacon_thread = _thread.get_native_id()
        if not ended:
            self._part("its threads", None, self._see_threads, beacon_thread)
            self._part("its Flight Recorder", None, self._see_flight)
        if self._error is None:
            self._error = exits.uncaught(ended)
        entries = [thread.entry for thread in self._threads.values()]
        all_stacks = [thread["frames"] for thread in entries]
        all_stacks += [self._joining, exits.exit_stack, exits.cut_off]
        all_stacks += [self._error["frames"]] if self._error is not None else []
        groups = self._part("its process groups", None, self._groups)
        record: Record = {
            "source": "beacon",
            "ppid": os.getppid(),
            "started": self._started,
            "argv": [str(word) for word in getattr(sys, "orig_argv", sys.argv)],
            "env": {key: os.environ[key] for key in ENVIRONMENT if key in os.environ},
            "process": family.own_part(),
            "phase": self._phase(),
            "threads": entries,
            "cells": self._part("its cells", {}, cells.cells, *all_stacks),
            "dist": groups,
            "flight": self._flight,
            "torch": torch_names.version(),
            "unseen": self._part("what its torch offers", [], self._see_unseen),
            "accelerator": self._part("its devices", "cpu", torch_names.accelerator),
            "workers": dict(self._workers),
            "spawned": dict(self._spawned),
            "joining": self._joining,
            "left": list(exits.exit_stack),
            "left_values": dict(exits.exit_values),
            "cut_off": list(exits.cut_off),
            "reaped": exits.reaped(),
            "error": self._error,
            "ended": ended,
            "beacon_thread": self._beacon_thread,
            "rpc": self._part("its part in RPC", None, torch_names.rpc_rank),
            "exe": self._executable,
            "faults": self._faults,
        }
        stands = (lambda *_: True) if ended or exits.cut_off else self._stands
        history = self._part("its calls", None, self.log.history, stands)
        if history is not None:
            record["call_history"] = history
        account = self._part("NCCL's account", None, self._nccl.look, groups["rank"]) if groups else None
        if account is not None:
            record["nccl"] = account
        return record

    def sample(self, tick: int, due: int) -> bool:
        """Note what the thread does by which this process, a rank, is judged.

        Args:
            tick: the newest one; due: the one at which that was to be done.

        Returns:
            Whether it is time to write the samples again.
        """
        return bool(self._part("its samples", False, self._sample, tick, due))

    def _sample(self, tick: int, due: int) -> bool:
        judged = self._judged()
        frame = sys._current_frames().get(judged["ident"]) if judged is not None else None
        if judged is None or frame is None:
            return False
        status = torch_names.flight_status()
        issued = {} if status is None else torch_names.issued(status)
        return self.samples.take(
            tick,
            due,
            frame,
            judged.get("native_id"),
            pending=torch_names.pending(issued),
            issued={} if self.log.sends else {name: enqueued for name, (enqueued, _) in issued.items()},
            on_device=torch_names.accelerator() != "cpu",
        )

    def _judged(self) -> Optional[Thread]:
        """The main thread, or else the first one, that was in the user's code when last looked at."""
        entries = [thread.entry for thread in self._threads.values()]
        users = [entry for entry in entries if any(user for _, _, _, user in entry["frames"])]
        return next((entry for entry in users if entry["main"]), users[0] if users else None)

    def _part(self, name: str, default: Any, look: Callable[..., Any], *arguments: Any) -> Any:
        """What one part of a look has seen; a part that fails says so, and takes no other along."""
        try:
            return look(*arguments)
        except Exception as problem:
            if signal_handlers.raised(problem):
                raise
            self._faults[name] = repr(problem)[:200]
            return default

    def _groups(self) -> Optional[Groups]:
        return torch_names.process_groups() if self.joined() else None

    def joined(self) -> bool:
        """True for a rank: a process that has joined a process group itself."""
        default = torch_names.default_group()
        return default is not None and default is not self._inherited

    def _see_unseen(self) -> List[Unseen]:
        """Asked at each look until the process has joined: by then all of torch is loaded."""
        if not self._unseen_is_final:
            self._unseen_is_final = self.joined()
            self._unseen = torch_names.unseen(self._unseen_is_final)
        return self._unseen

    def _see_threads(self, beacon_thread: int) -> None:
        now, frames = time.monotonic(), threads.frames()
        identities = threads.identities(beacon_thread)
        watched: Dict[int, threads.Watched] = {}
        self._turn += 1
        shifts = 1 + len(identities) // AT_ONCE
        # Ours is among them and holds `frames`: both would stay, with all others and with what the job
        # has in these, until a cycle is collected. So ours goes, each other one once it is seen.
        frames.pop(beacon_thread, None)
        for number, ident in enumerate(tuple(frames)):
            name, native_id, main = identities.get(ident, (f"thread {ident}", None, False))
            thread = self._threads.get(ident) or threads.Watched()
            due = main or (number + self._turn) % shifts == 0
            thread.look(frames.pop(ident), now, ident, name, native_id, main, due)
            call = thread.entry["call"]
            if call is not None:
                self._workers.update(call["workers"])
                self._spawned.update(call["spawned"])
            watched[ident] = thread
        self._threads = watched

    def _see_flight(self) -> None:
        """Read the entries of the Flight Recorder when this rank has issued nothing for some time.

        Reading them takes up to 0.1 s. It happens once for a stall, while the rank waits anyway;
        `READ_SHARE` bounds how much of the time it may take on short stalls.
        """
        status = torch_names.flight_status() if self.joined() else None
        now = time.monotonic()
        if status != self._flight_status:
            self._flight_status, self._flight_since, self._flight = status, now, None
            return
        if status is None or self._flight is not None:
            return
        main = (thread.entry for thread in self._threads.values() if thread.entry["main"])
        since = max((entry["since"] for entry in main), default=now)
        soon = torch_names.pending(torch_names.issued(status)) and now >= self._flight_next
        if now - max(since, self._flight_since) < (READ_AFTER if soon else READ_AT_LAST):
            return
        entries, calls, issued = flight.read()
        self._flight_next = now + (time.monotonic() - now) / READ_SHARE
        self._flight = {
            "since": self._flight_since,
            "entries": entries,
            "calls": calls,
            "issued": issued,
        }

    def _stands(self, ident: int, moved: float) -> bool:
        """True for a thread that has not moved for so long that its values are due, or has ended.

        Args:
            moved: when it was known to move: a look may have found it at the same line before and after.
        """
        thread = self._threads.get(ident)
        since = moved if thread is None else max(moved, thread.entry["since"])
        return time.monotonic() - since >= threads.VALUES_AFTER

    def _phase(self) -> Literal["starting", "importing", "running"]:
        main = (thread.entry for thread in self._threads.values() if thread.entry["main"])
        frames = next((entry["frames"] for entry in main), [])
        if any(file.startswith("<frozen importlib") for file, _, _, _ in frames):
            return "importing"
        return "running" if any(user for _, _, _, user in frames) else "starting"
