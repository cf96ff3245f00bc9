"""The threads of this process, watched from look to look."""

from __future__ import annotations

import os
import sys
from typing import Any, Dict, List, Optional, Tuple

from . import calls, native, stacks

CALL_AFTER = 0.15
"""Seconds a thread must stand still before its call and system call are looked up."""


class Watched:
    """What is known of one thread, kept from look to look."""

    def __init__(self, now: float) -> None:
        self.signature: Tuple[Tuple[int, int], ...] = ()
        self.since = now
        self.looked = False
        self.entry: Dict[str, Any] = {}

    def look(self, frame: Any, now: float, name: str, native_id: Any, is_main: bool, due: bool) -> None:
        """Take one look; the call is looked up once the thread has stood still for a moment.

        Args:
            due: look up its system call, which may change while the thread stands at one line.
        """
        signature = stacks.signature(frame)
        if signature != self.signature:
            self.signature, self.since, self.looked = signature, now, False
            self.entry = {
                "name": name,
                "main": is_main,
                "since": now,
                "frames": stacks.entries(frame),
                "call": None,
                "native": None,
                "site": None,
            }
        elif now - self.since >= CALL_AFTER and (due or not self.looked):
            self.entry = dict(self.entry)
            if native_id is not None:
                self.entry["native"] = native.standing_in(native_id)
            if not self.looked:
                self.looked = True
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
    """Before `threading` is imported, the oldest thread is the main one."""
    idents = [ident for ident in sys._current_frames() if ident != mine]
    return idents[:1] if len(idents) == 1 else []
