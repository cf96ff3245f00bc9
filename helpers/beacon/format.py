"""The record that a beacon writes and the observer reads: one JSON file per process, replaced whole.

Times are seconds of the system-wide monotonic clock (`time.monotonic`), which all processes of one
machine share. A record whose modification time stands still belongs to a process that has ended,
is stopped, or holds the interpreter lock in a C call.

Keys of a record:
    v, pid, ppid, started, written: version, ids, times.
    python, argv, cwd, main: interpreter version, command line, folder, file of `__main__`.
    env: the launch variables of `ENVIRONMENT`, as they are now in the process.
    process: {name, target, index, error_file} of a `multiprocessing` child, else null.
    phase: `starting`, `importing` or `running`.
    threads: list of {id, name, main, since, frames, call, native, site}; `frames` innermost first as
        [file, line, function, user]; `since` is when the thread last moved.
    dist: {rank, world_size, backend, groups: [{name, id, ranks, backend}], made} or null.
    flight: {since, entries: [{group, seq, op, sizes, done}]} or null.
    torch, unseen: version of the loaded torch, and what it keeps from the beacon
        (see `torch_names.unseen`).
    accelerator: `cuda` or `cpu`.
    workers: {pid: worker id} of the DataLoader workers seen so far.
    spawned: {pid: process index} of the processes that `mp.spawn` has started here.
    left: the stack of the newest call of `sys.exit`, in the form of `frames`.
    cut_off: the stack of a call of `os._exit`, in the form of `frames`.
    joining: the stack of the newest call of `init_process_group`, in the form of `frames`.
    reaped: {pid: wait status} of children this process has waited for.
    error: {type, message, frames, time, masked} or null.
    ended: true in the last record that an orderly interpreter exit writes.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
from typing import Any, Dict, Optional

VERSION = 1
TICK = 0.2
"""Seconds between two looks of a beacon."""

GIL_DUMP_AFTER = 1.5
"""Seconds after which `faulthandler` writes the stacks of a process whose beacon cannot run."""

ENVIRONMENT = (
    "RANK",
    "LOCAL_RANK",
    "WORLD_SIZE",
    "LOCAL_WORLD_SIZE",
    "GROUP_RANK",
    "GROUP_WORLD_SIZE",
    "NODE_RANK",
    "MASTER_ADDR",
    "MASTER_PORT",
    "TORCHELASTIC_RESTART_COUNT",
    "TORCHELASTIC_MAX_RESTARTS",
    "TORCHELASTIC_USE_AGENT_STORE",
    "CUDA_VISIBLE_DEVICES",
)

Record = Dict[str, Any]


def record_path(folder: str, pid: int) -> str:
    """Where the record of process `pid` lies in the run directory `folder`."""
    return os.path.join(folder, "records", f"{pid}.json")


def stacks_path(folder: str, pid: int) -> str:
    """Where `faulthandler` writes the stacks of `pid` when it crashes or cannot run its beacon."""
    return os.path.join(folder, "records", f"{pid}.stacks")


def failure_path(folder: str, pid: int) -> str:
    """Where `pid` says why its beacon could not start."""
    return os.path.join(folder, "records", f"{pid}.failed")


def output_path(folder: str, pid: int) -> str:
    """Where fd 1 and 2 of process `pid` go."""
    return os.path.join(folder, "output", f"{pid}.log")


def write(path: str, record: Record) -> None:
    """Replace the record at `path` in one step, so that a reader never sees half of it.

    Raises:
        OSError: when the folder is gone or the disk is full.
    """
    staged = path + ".new"
    data = json.dumps(record, separators=(",", ":")).encode("utf-8", "replace")
    fd = os.open(staged, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        written = os.write(fd, data)
    finally:
        os.close(fd)
    if written != len(data):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    os.replace(staged, path)


def give_up(path: str) -> None:
    """Empty the record at `path`: a new one cannot be written, and the old one is true no more."""
    with contextlib.suppress(OSError):
        os.truncate(path, 0)


def read(path: str) -> Optional[Record]:
    """The record at `path`, or None when there is none, or one of another version."""
    try:
        with open(path, "rb") as file:
            record = json.load(file)
    except (OSError, ValueError):
        return None
    return record if isinstance(record, dict) and record.get("v") == VERSION else None
