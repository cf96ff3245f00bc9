"""What a user would write into a job to get more out of torch's own tools; PUT_IN names the pieces.

Every Python process of the job imports this file at its start. `timeout` gives each process group a
time-out, `barrier` puts a monitored barrier before every collective, `recorder` writes the Flight
Recorder when the file DUMP_WHEN appears, `server` starts torch's debug server.
"""

from __future__ import annotations

import functools
import os
import pickle
import threading
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch.distributed as dist
from torch._C._distributed_c10d import _dump_fr_trace

PIECES = os.environ["PUT_IN"].split(",")
TIMEOUT = timedelta(seconds=float(os.environ["PUT_IN_TIMEOUT"]))
COLLECTIVES = ("all_reduce", "broadcast", "barrier", "all_gather_object", "new_group")


def after_joining() -> None:
    """Start what needs the rank's number."""
    if "recorder" in PIECES:
        threading.Thread(target=write_recorder, args=(dist.get_rank(),), daemon=True).start()
    if "server" in PIECES:
        from torch.distributed.debug import start_debug_server

        start_debug_server(port=int(os.environ["PUT_IN_PORT"]))


def write_recorder(rank: int) -> None:
    """Wait for the request, and write what the recorder holds as torch's analyzer can read it.

    On gloo the recorder leaves the groups' names empty, at which the analyzer fails: they are put in.
    """
    wanted = Path(os.environ["DUMP_WHEN"])
    while not wanted.exists():
        time.sleep(0.05)
    held = pickle.loads(_dump_fr_trace())
    ranks = str(list(range(dist.get_world_size())))
    names = {entry["process_group"][0] for entry in held["entries"]} | {"0"}
    held["pg_config"] = {name: {"name": name, "desc": name, "ranks": ranks} for name in names}
    part = wanted.with_name(f"part_{rank}")
    part.write_bytes(pickle.dumps(held))
    part.rename(wanted.with_name(f"rank_{rank}"))


def joins(original: Any) -> Any:
    """`init_process_group` with the pieces that belong to it."""

    @functools.wraps(original)
    def init_process_group(*args: Any, **options: Any) -> None:
        if "timeout" in PIECES:
            options.setdefault("timeout", TIMEOUT)
        original(*args, **options)
        os.environ.setdefault("RANK", str(dist.get_rank()))
        os.environ.setdefault("WORLD_SIZE", str(dist.get_world_size()))
        if "init_method" in options:
            os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = options["init_method"][6:].split(":")
        after_joining()

    return init_process_group


def behind_barrier(original: Any) -> Any:
    """A collective that first makes sure that every rank of its group has come."""

    @functools.wraps(original)
    def collective(*args: Any, **options: Any) -> Any:
        dist.monitored_barrier(options.get("group"), timeout=TIMEOUT, wait_all_ranks=True)
        return original(*args, **options)

    return collective


dist.init_process_group = joins(dist.init_process_group)
if "barrier" in PIECES:
    for name in COLLECTIVES:
        setattr(dist, name, behind_barrier(getattr(dist, name)))
