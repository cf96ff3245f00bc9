"""Whole beacon records: a test says what matters to it, the rest is as usual."""

from __future__ import annotations

from typing import Any

from helpers.beacon.record import Call, Child, Record, Site, Thread


def call(kind: str, op: str, **facts: Any) -> Call:
    """A torch call without arguments but these."""
    usual: Any = {
        "group": None,
        "ranks": [],
        "peers": [],
        "sizes": [],
        "key": None,
        "root": None,
        "limit": None,
        "counted": False,
        "rank": None,
        "world_size": None,
        "workers": {},
        "spawned": {},
    }
    return {**usual, "kind": kind, "op": op, **facts}


def site(file: str, position: list[int], **facts: Any) -> Site:
    """A position in the source at which nothing is known by name but this."""
    usual: Any = {"names": {}, "strings": {}, "limits": {}}
    return {**usual, "file": file, "position": position, **facts}


def child(target: str, index: int | None = None, error_file: str | None = None) -> Child:
    """The part of a process that `multiprocessing` has made."""
    return {"target": target, "index": index, "error_file": error_file}


def thread(**facts: Any) -> Thread:
    """A main thread of which nothing else is known."""
    usual: Any = {
        "name": "MainThread",
        "main": True,
        "since": 100.0,
        "frames": [],
        "call": None,
        "native": None,
        "site": None,
    }
    return {**usual, **facts}


def record(*threads: Thread, **facts: Any) -> Record:
    """A process that runs and has not joined a group."""
    usual: Any = {
        "source": "beacon",
        "ppid": 900,
        "started": 90.0,
        "argv": ["python", "train.py"],
        "env": {},
        "process": None,
        "phase": "running",
        "threads": list(threads),
        "dist": None,
        "flight": None,
        "torch": "2.13.0",
        "unseen": [],
        "accelerator": "cpu",
        "workers": {},
        "spawned": {},
        "joining": [],
        "left": [],
        "cut_off": [],
        "reaped": {},
        "error": None,
        "ended": False,
    }
    return {**usual, **facts}
