"""The same stacks, seen by a beacon in the process and by py-spy from outside, are the same calls."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from helpers.beacon import calls
from helpers.observe import pyspy_record as dumped

SITE = "/env/lib/python3.11/site-packages"
C10D = f"{SITE}/torch/distributed/distributed_c10d.py"
LOGGER = f"{SITE}/torch/distributed/c10d_logger.py"
SPAWN = f"{SITE}/torch/multiprocessing/spawn.py"
LOADER = f"{SITE}/torch/utils/data/dataloader.py"
BATON = f"{SITE}/torch/utils/file_baton.py"
FILELOCK = f"{SITE}/filelock/_api.py"
BARRIER = f"{SITE}/lightning/fabric/utilities/distributed.py"

Frame = tuple[str, str, dict[str, Any]]
"""File, function, variables."""


def made(name: str, **fields: Any) -> Any:
    """An object of a class of that name."""
    return type(name, (), fields)()


WORLD = made("ProcessGroup")
STARTED = {"self": made("_MultiProcessingDataLoaderIter", _workers=[made("Process", pid=7)])}
WRAPPER: Frame = (LOGGER, "wrapper", {"args": (), "kwargs": {}})

STACKS: list[tuple[str, list[Frame], dict[str, Any] | None]] = [
    (
        "a collective",
        [(C10D, "all_reduce", {"group": None})],
        {"kind": "collective", "op": "all_reduce", "group": "default", "root": None},
    ),
    (
        "a collective from a root",
        [(C10D, "broadcast", {"src": 1, "group": None, "group_src": None}), WRAPPER],
        {"op": "broadcast", "root": 1},
    ),
    (
        "a root by its number in the group",
        [(C10D, "gather", {"dst": 0, "group": None})],
        {"op": "gather", "root": 0},
    ),
    (
        "the outermost call is what the user wrote",
        [
            (C10D, "all_gather", {"group": None}),
            WRAPPER,
            (C10D, "all_gather_object", {"group": None}),
            WRAPPER,
        ],
        {"op": "all_gather_object"},
    ),
    (
        "point to point",
        [(C10D, "recv", {"src": 1, "group": None})],
        {"kind": "p2p", "op": "recv", "peers": [1], "group": "default"},
    ),
    (
        "joining",
        [(C10D, "init_process_group", {"init_method": "tcp://a:1", "rank": 1, "world_size": 2})],
        {"kind": "rendezvous", "key": "tcp://a:1", "rank": 1, "world_size": 2},
    ),
    (
        "joining by variables",
        [(C10D, "init_process_group", {"init_method": None, "rank": -1, "world_size": -1})],
        {"key": "env://", "rank": None, "world_size": None},
    ),
    (
        "the members of a new group, before the barrier",
        [
            (C10D, "_new_group_with_tag", {"ranks": [2, 1], "use_local_synchronization": False}),
            (C10D, "new_group", {"ranks": [2, 1], "use_local_synchronization": False}),
        ],
        {"op": "new_group", "group": "default", "ranks": [1, 2], "counted": True, "key": None},
    ),
    (
        "all ranks meet in the barrier of a new group",
        [
            (C10D, "_store_based_barrier", {"store_key": "key/1", "worker_count": 3}),
            (C10D, "new_group", {"ranks": [0, 1], "use_local_synchronization": False}),
        ],
        {"op": "new_group", "group": "default", "ranks": [], "key": "key/1"},
    ),
    (
        "its members alone, where they are synchronised by themselves",
        [
            (C10D, "_store_based_barrier", {"store_key": "key/1", "worker_count": 2}),
            (C10D, "new_group", {"ranks": [0, 1], "use_local_synchronization": True}),
        ],
        {"op": "new_group", "ranks": [0, 1], "counted": False},
    ),
    (
        "members that cannot be told",
        [(C10D, "new_group", {"ranks": {0, 1}, "use_local_synchronization": False})],
        {"op": "new_group", "group": None, "ranks": []},
    ),
    (
        "Lightning's barrier without a timeout",
        [(BARRIER, "__call__", {"self": made("_InfiniteBarrier", group=WORLD)})],
        {"kind": "collective", "op": "monitored_barrier"},
    ),
    (
        "the same at the end of a block",
        [(BARRIER, "__exit__", {"self": made("_InfiniteBarrier", group=WORLD)})],
        {"kind": "collective", "op": "monitored_barrier"},
    ),
    (
        "a worker of a DataLoader",
        [(LOADER, "_try_get_data", STARTED), (LOADER, "__next__", STARTED)],
        {"kind": "process", "op": "DataLoader"},
    ),
    (
        "workers that do not end",
        [(LOADER, "_shutdown_workers", STARTED)],
        {"kind": "process", "op": "DataLoader"},
    ),
    ("a worker itself, forked where it was started", [(LOADER, "__init__", STARTED)], None),
    (
        "mp.spawn",
        [(SPAWN, "join", {"self": made("ProcessContext")}), (SPAWN, "start_processes", {"nprocs": 4})],
        {"kind": "process", "op": "mp.spawn", "world_size": 4},
    ),
    (
        "a lock file",
        [(BATON, "wait", {"self": made("FileBaton")})],
        {"kind": "lock", "op": "lock file"},
    ),
    (
        "a lock file that the kernel locks",
        [(FILELOCK, "acquire", {"self": made("UnixFileLock")})],
        {"kind": "lock", "op": "flock"},
    ),
    ("no call", [(f"{SITE}/numpy/x.py", "barrier", {})], None),
]


def from_inside(frames: list[Frame]) -> Any:
    """The call on the stack that these frames make, the first of them the innermost."""
    found: list[Any] = []

    def look() -> None:
        found.append(calls.torch_call(calls.inside(sys._getframe(1))))

    enter: Callable[[], object] = look
    for file, function, variables in frames:
        space: dict[str, Any] = {"enter": enter}
        source = f"def {function}({', '.join(variables)}):\n    enter()\n"
        exec(compile(source, file, "exec"), space)
        enter = partial(space[function], **variables)
    enter()
    return found[0]


def from_outside(frames: list[Frame]) -> Any:
    """The same from what py-spy would print of it."""
    printed = [
        {
            "name": function,
            "filename": file,
            "line": 1,
            "locals": [{"name": name, "repr": text(value)} for name, value in variables.items()],
        }
        for file, function, variables in frames
    ]
    dump = [{"thread_id": 1, "os_thread_id": 40, "thread_name": "MainThread", "frames": printed}]
    record = dumped.record(
        dump, pid=40, parent=4, started=1.0, argv=("python",), environment={}, cwd="/job"
    )
    return record["threads"][0]["call"]


def text(value: Any) -> str:
    """A value as py-spy 0.4.3 prints it."""
    if isinstance(value, str):
        return f'"{value}"'
    if value is None or isinstance(value, (bool, int, list, tuple, dict)):
        return str(value)
    return f"<{type(value).__name__} at 0x7f91c7877430>"


@pytest.mark.parametrize(("frames", "expected"), [s[1:] for s in STACKS], ids=[s[0] for s in STACKS])
def test_a_stack_is_the_same_call_from_inside_and_from_outside(
    frames: list[Frame], expected: dict[str, Any] | None
) -> None:
    inside, outside = from_inside(frames), from_outside(frames)
    if expected is None:
        assert inside is None and outside is None
        return
    assert {key: inside[key] for key in expected} == expected
    assert {key: outside[key] for key in expected} == expected
    assert inside.keys() == outside.keys()
