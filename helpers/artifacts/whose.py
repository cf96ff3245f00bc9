"""Which rank each file tells of, and whether of its own process or of one below it. No I/O."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from msgspec.structs import replace

from ..beacon import torch_names
from ..beacon.record import FrameEntry
from ..observe.account import Account
from ..observe.source import Sources
from . import gdb_text, rest
from .faulthandler_text import MULTIPROCESSING
from .patterns import line_heads

HELPERS = (
    os.path.join("torch", "distributed", "launcher", "api.py"),
    os.path.join("accelerate", "commands", "launch.py"),
    os.path.join("deepspeed", "launcher", "launch.py"),
    os.path.join("multiprocessing", "resource_tracker.py"),
    torch_names.SPAWN_FILE,
    os.path.join("multiprocessing", "forkserver.py"),
)
"""Files of processes that start ranks, or clean up behind them."""


def placed(accounts: Iterable[Account], sources: Sources) -> list[Account]:
    """What is told of each process, with the rank that it has as far as the files together show it.

    A process of which no file tells the rank is the one whose line has issued what the Flight Recorder
    of a rank has as pending; else the only one left, for the only rank left. The only process there is
    is rank 0.
    """
    usable = [account for account in accounts if account.rank is not None or not account.worker]
    processes = _numbered(_by_pid(usable), sources)
    if not any(account.rank is not None for account in processes):
        return _of_one(processes, sources)
    return _last_placed(_placed_by_line(processes, sources), sources)


def _placed_by_line(processes: list[Account], sources: Sources) -> list[Account]:
    """Processes, those with a rank whose line alone has issued what is pending in one rank's dump."""
    issued: dict[object, set[int | None]] = {}
    for account in processes:
        if account.flight is not None and line(account) is not None:
            issued.setdefault(line(account), set()).add(account.rank)
    nameless = [account for account in processes if _may_be_rank(account, sources)]
    lines = Counter(map(line, nameless))
    alone = (at for at, count in lines.items() if count == len(issued.get(at, ())) == 1)
    ranks = {at: next(iter(issued[at])) for at in alone}
    return _with_ranks(
        processes, lambda process: ranks.get(line(process)) if _may_be_rank(process, sources) else None
    )


def _with_ranks(accounts: Iterable[Account], rank: Callable[[Account], int | None]) -> list[Account]:
    """Accounts, each with the rank that a function tells of it; None for no other than it has."""
    ranks = ((account, rank(account)) for account in accounts)
    return [account if number is None else replace(account, rank=number) for account, number in ranks]


def _last_placed(processes: list[Account], sources: Sources) -> list[Account]:
    """Processes, the only one that may be a rank being the only rank without a stack."""
    candidates = [
        account
        for account in processes
        if _may_be_rank(account, sources) and not _is_of_several(account)
    ]
    world = max((account.world_size for account in processes if account.world_size), default=0)
    with_stack = {account.rank for account in processes if account.threads and account.flight is None}
    ranks = {account.rank for account in processes if account.rank is not None}
    bare = {*ranks, *range(world)} - with_stack
    if len(candidates) == len(bare) == 1:
        processes[processes.index(candidates[0])] = replace(candidates[0], rank=bare.pop())
    return processes


def _numbered(accounts: Sequence[Account], sources: Sources) -> list[Account]:
    """Ranks that no file numbers are numbered in the order of their start: that of their pids."""
    spawned = [
        account
        for account in accounts
        if account.rank is None and account.pid is not None and _is_spawned(account)
    ]
    spawned = spawned or _alike(accounts, sources)
    if not spawned or any(account.rank is not None for account in accounts if account.threads):
        return [*accounts]
    in_order = sorted(spawned, key=lambda account: account.pid or 0)
    number = {account.pid: rank for rank, account in enumerate(in_order)}
    return _with_ranks(accounts, lambda account: number[account.pid] if account in spawned else None)


def _alike(accounts: Sequence[Account], sources: Sources) -> list[Account]:
    """The processes of which several run one program, side by side."""
    programs = [
        account for account in accounts if account.pid is not None and _may_be_rank(account, sources)
    ]
    commands = Counter(account.command for account in programs)
    return [account for account in programs if account.command and commands[account.command] > 1]


def _of_one(accounts: Sequence[Account], sources: Sources) -> list[Account]:
    """A program of one process is rank 0, and what has been dumped beside it are its children."""
    programs = [account for account in accounts if _may_be_rank(account, sources)]
    if len(programs) != 1 or any(map(_is_of_several, accounts)):
        return list(accounts)
    return _with_ranks(
        accounts, lambda process: 0 if process.threads and not is_helper(process) else None
    )


def split_children(accounts: Sequence[Account], sources: Sources) -> tuple[list[Account], list[Account]]:
    """What is told of the process of a rank itself, and of others that were dumped in its name.

    A child has its parent's variables, and so its number: the process that is nobody's child counts.
    """
    with_stack = [account for account in accounts if account.threads and account.pid is not None]
    dumped = sorted(with_stack, key=lambda account: _below(account, sources))
    children = [account for account in dumped if account.pid != dumped[0].pid]
    return [account for account in accounts if account not in children], children


def line(account: Account) -> tuple[str, int] | None:
    """The innermost line of the user's in the main thread of a process."""
    frames = (frame for thread in account.threads if thread["main"] for frame in thread["frames"])
    return next(((file, number) for file, number, _, user in frames if user), None)


def _by_pid(accounts: Sequence[Account]) -> list[Account]:
    """A file that names a process alone tells of that process's rank."""
    ranks: dict[int | None, int] = {
        account.pid: account.rank
        for account in accounts
        if account.pid is not None and account.rank is not None
    }
    return _with_ranks(
        accounts, lambda account: ranks.get(account.pid) if account.rank is None else None
    )


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
    joined = any(
        torch_names.is_distributed_file(frame[0])
        for thread in account.threads
        for frame in thread["frames"]
    )
    return account.kind == gdb_text.KIND or placed_by_title or joined


def is_helper(account: Account) -> bool:
    """True for a process that runs nothing of the user's, or waits for ranks that it has spawned."""
    return not _is_spawned(account) and any(file.endswith(HELPERS) for file in _files(account))


def _is_spawned(account: Account) -> bool:
    """True for a rank that `torch.multiprocessing.spawn` has started."""
    frames = (frame for thread in account.threads if thread["main"] for frame in thread["frames"])
    return any(
        file.endswith(torch_names.SPAWN_FILE) and function == "_wrap" for file, _, function, _ in frames
    )


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
