"""The instrument changes of a job's world what its table of changes declares, and nothing else."""

from __future__ import annotations

import os
import sys
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest
from both_ways import NOTE, Lab
from changes import CHANGES

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(sys.platform != "linux", reason="/proc of Linux"),
]

WORLD = (
    NOTE
    + """
import sys
modules = sorted(sys.modules)
import _thread, atexit, builtins, faulthandler, gc, locale, posix, resource, signal, socket
import subprocess, threading, time, tracemalloc, warnings
world = {f"module {name}": True for name in modules}
world.update({f"environment {name}": text for name, text in os.environ.items()})
world.update({f"limit {name}": resource.getrlimit(getattr(resource, name))
              for name in dir(resource) if name.startswith("RLIMIT")})
world.update({f"namespace {name}": os.readlink(f"/proc/self/ns/{name}")
              for name in os.listdir("/proc/self/ns")})
def kind(descriptor):
    target = os.readlink(f"/proc/self/fd/{descriptor}")
    return target.partition(":[")[0] if ":[" in target else os.path.dirname(target)
for descriptor in os.listdir("/proc/self/fd"):
    try:
        world[f"descriptor {descriptor}"] = [kind(descriptor), os.get_inheritable(int(descriptor))]
    except OSError:
        pass  # that of the listing
def names(modules):
    for module in modules:
        for name, value in vars(module).items():
            world[f"name {module.__name__}.{name}"] = f"{type(value).__module__}.{type(value).__name__}"
names([os, posix, sys, builtins, signal, threading, _thread, faulthandler, atexit, gc, time, socket,
       subprocess, warnings])
names(map(sys.modules.get, sys.argv[1:])) if TORCH else None
status = dict(line.rstrip().split(":", 1) for line in open("/proc/self/status"))
def parent(pid):
    words = open(f"/proc/{pid}/cmdline", "rb").read().split(b"\\0")
    return words[0].decode(), "guardian" in str(words)
read, write = os.pipe()
if not os.fork():
    middle = os.getpid()
    if not os.fork():
        while os.getppid() == middle: time.sleep(0.001)
        os.write(write, repr(parent(os.getppid())).encode())
        os._exit(0)
    os._exit(0)
os.wait()
world.update({
    "parent of an orphan": os.read(read, 1000).decode(),
    "parent": parent(os.getppid()),
    "session": os.getsid(0) == os.getsid(os.getppid()) and os.getsid(0) == int(os.environ["SESSION"]),
    "process group": os.getpgrp() == os.getpid(),
    "threads": status["Threads"],
    "signals ignored": int(status["SigIgn"], 16) & ~(3 << 31),  # 32 and 33 are the C library's own
    "signals blocked": status["SigBlk"],
    "signals caught": status["SigCgt"], "privileges": [status[name] for name in
        ("Uid", "Gid", "Groups", "CapEff", "CapInh", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp")],
    "out-of-memory score": open("/proc/self/oom_score_adj").read(), "umask": status["Umask"],
    "name of the process": open("/proc/self/comm").read(),
    "control group": open("/proc/self/cgroup").read(),
    "scheduler": [os.nice(0), sorted(os.sched_getaffinity(0)), os.sched_getscheduler(0)],
    "folder": [os.getcwd(), os.readlink("/proc/self/root")],
    "locale": locale.setlocale(locale.LC_ALL),
    "line buffering": [sys.stdin.line_buffering, sys.stdout.line_buffering, sys.stderr.line_buffering],
    "streams": [[s.encoding, s.errors, s.name, s.mode] for s in (sys.stdin, sys.stdout, sys.stderr)],
    "path": [sys.path, [type(finder).__name__ for finder in sys.meta_path], len(sys.path_hooks)],
    "importer cache": sorted(sys.path_importer_cache),
    "faulthandler": faulthandler.is_enabled(), "hooks at exit": atexit._ncallbacks(),
    "handlers": {int(n): repr(signal.getsignal(n)) for n in signal.valid_signals()},
    "wakeup": signal.set_wakeup_fd(-1), "timer": signal.getitimer(signal.ITIMER_REAL),
    "tracing": [sys.gettrace(), sys.getprofile(), tracemalloc.is_tracing(), threading.gettrace()],
    "garbage": [gc.isenabled(), gc.get_threshold(), len(gc.callbacks), gc.get_debug()],
    "interpreter": [repr(sys.flags), sys.getswitchinterval(), sys.getrecursionlimit(), sys.orig_argv,
                    sys.getdlopenflags(), sys.dont_write_bytecode, sys._xoptions],
    "warnings": [repr(warnings.filters), sys.warnoptions],
    "threads of Python": [threading.active_count(), [t.name for t in threading.enumerate()],
                          threading.stack_size(), threading.get_native_id() == os.getpid()],
    "hooks": [sys.excepthook is sys.__excepthook__, threading.excepthook is threading.__excepthook__,
              sys.unraisablehook is sys.__unraisablehook__,
              sys.breakpointhook is sys.__breakpointhook__],
})
note(world)
"""
)

OWN_TESTS = frozenset({"environment _", "environment SHLVL"})
"""What the shells and the tests of both ways are given differently."""


def differences(lab: Lab, program: str, *words: str) -> set[str]:
    """Names of what differs in the world of a program."""
    lab.write(program)
    plain: dict[str, Any] = lab.plain(sys.executable, "job.py", *words).facts
    watched: dict[str, Any] = lab.watched(sys.executable, "job.py", *words).facts
    missing = object()
    names = {*plain, *watched} - OWN_TESTS
    return {name for name in names if plain.get(name, missing) != watched.get(name, missing)}


def patterns(torch: bool) -> list[str]:
    return [
        shown
        for change in CHANGES
        for shown in change.shows
        if torch or change.whose != "processes with torch"
    ]


def held_to_the_table(found: set[str], declared: list[str]) -> None:
    undeclared = {name for name in found if not any(fnmatchcase(name, one) for one in declared)}
    unseen = {one for one in declared if not any(fnmatchcase(name, one) for name in found)}
    assert (undeclared, unseen) == (set(), set())


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    lab = Lab(tmp_path)
    lab.env["SESSION"] = str(os.getsid(0))
    return lab


def test_the_world_of_a_program(lab: Lab) -> None:
    found = differences(lab, WORLD.replace("TORCH", "False"))
    held_to_the_table(found, patterns(torch=False))


JOINED = """
import os, time
import torch, torch.distributed as dist
import torch.distributed.c10d_logger
os.environ.update(RANK="0", WORLD_SIZE="1", MASTER_ADDR="127.0.0.1", MASTER_PORT="0")
dist.init_process_group("gloo")
dist.all_reduce(torch.ones(2))
time.sleep(2.5)  # time enough for a close look
"""


@pytest.mark.nightly
def test_the_world_of_a_rank(lab: Lab) -> None:
    words = (
        "torch",
        "torch.distributed",
        "torch.distributed.c10d_logger",
        "torch.distributed.distributed_c10d",
    )
    found = differences(lab, JOINED + WORLD.replace("TORCH", "True"), *words)
    held_to_the_table(
        {name for name in found if not name.startswith("module ")},
        [one for one in patterns(torch=True) if one != "module *"],
    )
