"""Which rank each file tells of, and whether of its own process or of one below it. No I/O."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from ..beacon.record import FrameEntry
from ..observe.account import Account
from ..observe.source import Sources
from . import gdb_text, rest
from .faulthandler_text import MULTIPROCESSING
from .patterns import line_heads

C10D = os.path.join("torch", "distributed", "distributed_c10d.py")
"""The file of the operations of several ranks."""

SPAWN = os.path.join("torch", "multiprocessing", "spawn.py")
"""The file in which ranks begin, and their parent waits for them."""

HELPERS = (
    os.path.join("torch", "distributed", "launcher", "api.py"),
    os.path.join("accelerate", "commands", "launch.py"),
    os.path.join("deepspeed", "launcher", "launch.py"),
    os.path.join("multiprocessing", "resource_tracker.py"),
    SPAWN,
    os.path.join("multiprocessing", "forkserver.py"),
)
"""Files of processes that start ranks, or clean up behind them."""


def placed(accounts: Iterable[Account], sources: Sources) -> list[Account]:
    """What is told of each process, with the rank that it has as far as the files together show it.

    A process of which no file tells the rank is the one whose line has issued what the Flight Recorder
    of a rank has as pending; else the only one left, for the only rank left. The only process there is
    is rank 0.
    """
    known = [one for one in accounts if one.rank is not None or not one.worker]
    found = _numbered(_by_pid(known), sources)
    if not any(one.rank is not None for one in found):
        return _of_one(found, sources)
    issued: dict[object, set[int | None]] = {}
    for one in found:
        if one.flight is not None and line(one) is not None:
            issued.setdefault(line(one), set()).add(one.rank)
    nameless = [at for at, one in enumerate(found) if _may_be_rank(one, sources)]
    lines = Counter(line(found[at]) for at in nameless)
    for at in nameless:
        ranks = issued.get(line(found[at]), set())
        if len(ranks) == lines[line(found[at])] == 1:
            found[at] = replace(found[at], rank=min(rank for rank in ranks if rank is not None))
    left = [one for one in found if _may_be_rank(one, sources) and not _is_of_several(one)]
    world = max((one.world_size for one in found if one.world_size), default=0)
    seen = {one.rank for one in found if one.threads and one.flight is None}
    bare = {*(one.rank for one in found if one.rank is not None), *range(world)} - seen
    if len(left) == len(bare) == 1:
        found[found.index(left[0])] = replace(left[0], rank=bare.pop())
    return found


def _numbered(accounts: Sequence[Account], sources: Sources) -> list[Account]:
    """Ranks that no file numbers are numbered in the order of their start: that of their pids."""
    spawned = [one for one in accounts if one.rank is None and one.pid is not None and _is_spawned(one)]
    spawned = spawned or _alike(accounts, sources)
    if not spawned or any(one.rank is not None for one in accounts if one.threads):
        return [*accounts]
    number = {one.pid: rank for rank, one in enumerate(sorted(spawned, key=lambda one: one.pid or 0))}
    return [replace(one, rank=number[one.pid]) if one in spawned else one for one in accounts]


def _alike(accounts: Sequence[Account], sources: Sources) -> list[Account]:
    """The processes of which several run one program, side by side."""
    programs = [one for one in accounts if one.pid is not None and _may_be_rank(one, sources)]
    commands = Counter(one.command for one in programs)
    return [one for one in programs if one.command and commands[one.command] > 1]


def _of_one(accounts: Sequence[Account], sources: Sources) -> list[Account]:
    """A program of one process is rank 0, and what has been dumped beside it are its children."""
    programs = [one for one in accounts if _may_be_rank(one, sources)]
    if len(programs) != 1 or any(map(_is_of_several, accounts)):
        return list(accounts)
    return [replace(one, rank=0) if one.threads and not is_helper(one) else one for one in accounts]


def apart(accounts: Sequence[Account], sources: Sources) -> tuple[list[Account], list[Account]]:
    """What is told of the process of a rank itself, and of others that were dumped in its name.

    A child has its parent's variables, and so its number: the process that is nobody's child counts.
    """
    with_stack = [one for one in accounts if one.threads and one.pid is not None]
    dumped = sorted(with_stack, key=lambda one: _below(one, sources))
    others = [one for one in dumped if one.pid != dumped[0].pid]
    return [one for one in accounts if one not in others], others


def line(account: Account) -> tuple[str, int] | None:
    """The innermost line of the user's in the main thread of a process."""
    frames = (frame for thread in account.threads if thread["main"] for frame in thread["frames"])
    return next(((file, number) for file, number, _, user in frames if user), None)


def _by_pid(accounts: Iterable[Account]) -> list[Account]:
    """A file that names a process alone tells of that process's rank."""
    known = list(accounts)
    ranks = {one.pid: one.rank for one in known if one.pid is not None and one.rank is not None}
    return [
        replace(one, rank=ranks[one.pid]) if one.rank is None and one.pid in ranks else one
        for one in known
    ]


def _may_be_rank(account: Account, sources: Sources) -> bool:
    """True for a process that runs the user's program and that no other process of it has started."""
    stack = bool(account.threads) and account.flight is None and account.signal is None
    nameless = account.rank is None and stack
    return nameless and not any(_below(account, sources)) and not is_helper(account)


def _is_of_several(account: Account) -> bool:
    """True for a process of which no file tells whether it is the only one, or that is one of several.

    People look into one process of many by gdb, and a stack may have no thread that is known to be main.
    A title may have a place, and a thread may be in an operation of several ranks.
    """
    titled = line_heads.TITLE.search(" ".join(account.command))
    placed_by_title = titled is not None and bool(titled["others"] or titled["tensor"])
    joined = any(frame[0].endswith(C10D) for thread in account.threads for frame in thread["frames"])
    return account.kind == gdb_text.KIND or placed_by_title or joined


def is_helper(account: Account) -> bool:
    """True for a process that runs nothing of the user's, or waits for ranks that it has spawned."""
    return not _is_spawned(account) and any(file.endswith(HELPERS) for file in _files(account))


def _is_spawned(account: Account) -> bool:
    """True for a rank that `torch.multiprocessing.spawn` has started."""
    frames = (frame for thread in account.threads if thread["main"] for frame in thread["frames"])
    return any(file.endswith(SPAWN) and function == "_wrap" for file, _, function, _ in frames)


def _below(account: Account, sources: Sources) -> tuple[bool, ...]:
    """How far a process is from being a rank: a child of one is below it, what starts one above it."""
    main = next((thread for thread in account.threads if thread["main"]), None)
    return (
        account.worker,
        main is not None and any(map(_begins, main["frames"])),
        main is not None and rest.native_call(main, sources)["call"] == "wait4",
    )


def _begins(frame: FrameEntry) -> bool:
    """True for the frame in which a child of Python's `multiprocessing` begins."""
    return frame[2] == "_bootstrap" and frame[0].endswith(MULTIPROCESSING)


def _files(account: Account) -> Iterator[str]:
    """The files of the frames of its main thread, innermost first."""
    return (frame[0] for thread in account.threads if thread["main"] for frame in thread["frames"])
