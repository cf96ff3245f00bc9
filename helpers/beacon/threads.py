"""The threads of this process, watched from look to look."""

from __future__ import annotations

import os
import sys
from types import FrameType
from typing import Dict, List, Optional, Tuple

from . import calls, native, stacks
from .record import Thread

CALL_AFTER = 0.15
"""Seconds a thread must stay where it is before its call and system call are looked up."""


class Watched:
    """What is known of one thread, kept from look to look.

    Attributes:
        entry: its part of the record.
    """

    def __init__(self) -> None:
        self.entry: Thread
        self._signature: Optional[Tuple[Tuple[int, int], ...]] = None
        self._looked = False

    def look(
        self, frame: FrameType, now: float, name: str, native_id: Optional[int], main: bool, due: bool
    ) -> None:
        """Take one look; the call is looked up once the thread has not moved for a moment.

        Args:
            due: look up its system call, which may change while the thread stays at one line.
        """
        signature = stacks.signature(frame)
        if signature != self._signature:
            self._signature, self._looked = signature, False
            self.entry = {
                "name": name,
                "main": main,
                "since": now,
                "frames": stacks.entries(frame),
                "call": None,
                "native": None,
                "site": None,
            }
        elif now - self.entry["since"] >= CALL_AFTER and (due or not self._looked):
            self.entry = self.entry.copy()
            if native_id is not None:
                self.entry["native"] = native.blocking_call(native_id)
            if not self._looked:
                self._looked = True
                self.entry["call"] = calls.torch_call(calls.inside(frame))
                if self.entry["frames"] and self.entry["frames"][0][3]:
                    self.entry["site"] = calls.site(frame)


def named(mine: int = 0) -> Dict[int, Tuple[str, Optional[int], bool]]:
    """Python thread id -> name, kernel thread id, whether it is the main thread."""
    threading = sys.modules.get("threading")
    active = getattr(threading, "_active", None)
    if not active:
        return {ident: ("MainThread", os.getpid(), True) for ident in _only_thread(mine)}
    main = threading.main_thread() if threading is not None else None
    return {
        ident: (
            str(thread.name),
            os.getpid() if thread is main else getattr(thread, "native_id", None),
            thread is main,
        )
        for ident, thread in list(active.items())
    }


def _only_thread(mine: int) -> List[int]:
    """The main thread before `threading` is imported: the only one there is."""
    idents = [ident for ident in sys._current_frames() if ident != mine]
    return idents if len(idents) == 1 else []
