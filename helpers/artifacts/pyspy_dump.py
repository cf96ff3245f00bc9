"""What `py-spy dump` prints, as text or as JSON -> where the threads of a process are.

The text has, for each process, `Process PID: COMMAND`, `Python vVERSION (PATH)`, and for each thread
`Thread ID (idle): "NAME"` with its frames, innermost first: `    function (file:line)`; with `--locals`
also `        Locals:` and `            name: value`; with `--native` frames of C without a line (py-spy
0.4, src/dump.rs). The text shortens the names of files to what Python imports: `torch/utils/...`.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from ..beacon import torch_names
from ..beacon.record import NativeCall, Thread
from ..observe import pyspy_record as dumped
from ..observe.account import Account, UnreadableError
from . import native_call
from .patterns import line_heads

KIND = "py-spy dump"

PROCESS = re.compile(r"Process (\d+): ?(.*)")
THREAD = re.compile(r'Thread (0x[0-9A-Fa-f]+|\d+) \(([\w+]+)\)(?:: "(.*)")?$')
PART = re.compile(r'    |  File "|Python v|Thread (0x[0-9A-Fa-f]+|\d+) |Parent Process ')
"""How lines of a dump begin, also of one by faulthandler."""

_FRAME = re.compile(r" {4}(\S.*) \((.+?)(?::(\d+))?\)$")
_VALUE = re.compile(r" {12}(\w+): (.*)")

_LOCAL_RANK = re.compile(r"--local[_-]rank[= ](\d+)")
"""As launchers of torch before 2.0, and DeepSpeed's, tell a process its place on its machine."""

SYSTEM_CALLS: Mapping[str, str] = {
    "nanosleep": "nanosleep",
    "clock_nanosleep": "nanosleep",
    "pause": "pause",
    "flock": "flock",
    "fcntl": "fcntl",
    "read": "read",
    "recv": "recvfrom",
    "recvfrom": "recvfrom",
    "poll": "poll",
    "select": "select",
    "epoll_wait": "epoll_wait",
    "accept4": "accept",
    "wait4": "wait4",
    "waitpid": "wait4",
    "waitid": "waitid",
    "pthread_cond_wait": "futex",
    "pthread_cond_timedwait": "futex",
    "pthread_cond_wait_common": "futex",
    "pthread_join": "futex",
    "pthread_clockjoin_ex": "futex",
    "futex_wait_cancelable": "futex",
    "futex_abstimed_wait_cancelable": "futex",
    "futex_abstimed_wait_common": "futex",
    "futex_abstimed_wait_common64": "futex",
    "new_sem_wait_slow": "futex",
    "sem_wait": "futex",
    "lll_lock_wait": "futex",
    "syscall": "futex",
}
"""Function of the C library -> the system call in which it waits (glibc 2.31 to 2.41)."""

_INTERNAL = re.compile(r"^_*(?:GI_+|libc_+)?")
"""What names of functions have before them inside the C library."""


class DumpedText(msgspec.Struct):
    """A thread as py-spy prints it; of a text, without what the text does not have."""

    pid: int
    thread_id: int = 0
    thread_name: str | None = None
    os_thread_id: int | None = None
    active: bool = False
    frames: list[dumped.Frame] = []

    def add(self, function: str, file: str, line: int) -> None:
        """One more frame, which called the one before."""
        self.frames.append({"name": function, "filename": file, "line": line, "locals": []})


def is_json(value: object) -> bool:
    """True for what `py-spy dump --json` prints."""
    first = value[0] if isinstance(value, list) and value else None
    return isinstance(first, dict) and {"frames", "thread_id", "pid"} <= first.keys()


def from_json(value: object, path: str) -> Account:
    """What a JSON dump tells.

    Raises:
        UnreadableError: it is not as py-spy writes it.
    """
    try:
        threads = msgspec.convert(value, list[DumpedText])
    except msgspec.ValidationError as problem:
        raise UnreadableError(f"its threads are not as py-spy prints them: {problem}") from None
    return of_threads(threads, (), path)


def from_text(lines: Iterable[str], path: str) -> Account | None:
    """What one process of a text tells; None where there is no thread in it.

    Args:
        lines: from `Process ...` on.
    """
    threads: list[DumpedText] = []
    pid, command = 0, list[str]()
    for line in lines:
        begun = PROCESS.match(line)
        if begun:
            pid, command = int(begun[1]), [begun[2]]
        elif thread := THREAD.match(line):
            number = int(thread[1], 0)
            os_id = number if not thread[1].startswith("0x") else None
            active = "active" in thread[2]
            threads.append(DumpedText(pid, number, thread[3], os_id, active, []))
        elif threads and (frame := _FRAME.match(line)):
            threads[-1].add(frame[1], frame[2], int(frame[3] or 0))
        elif threads and threads[-1].frames and (value := _VALUE.match(line)):
            values = threads[-1].frames[-1]["locals"]
            if values is not None:
                values.append({"name": value[1], "repr": value[2]})
    words = tuple(" ".join(command).split())
    if not pid:
        threads = _with_pid(threads)
    return of_threads(threads, words, path) if threads else None


def _with_pid(threads: list[DumpedText]) -> list[DumpedText]:
    """The threads of a text without its head: Linux gives the main one the number of its process."""
    main = [thread.os_thread_id for thread in threads if thread.thread_name == "MainThread"]
    pid = next(filter(None, main), 0)
    return [replace(thread, pid=pid) for thread in threads]


def of_threads(
    threads: list[DumpedText], command: tuple[str, ...], path: str, kind: str = KIND
) -> Account:
    """What the threads of one process tell.

    Args:
        threads: of it; where none is known to be the main one, the one of that name is, else the first.
        command: its command line, as far as it is known.
        path: of the file; kind: of it, in words.
    """
    pid = threads[0].pid
    _mark_main(threads, pid, kind)
    record = dumped.record(
        [*map(_python_part, threads)],
        pid=pid,
        parent=0,
        started=0.0,
        argv=command,
        environment={},
        cwd="",
    )
    record_threads: list[Thread] = record["threads"]
    for thread, text in zip(record_threads, threads, strict=True):
        thread["native"] = _native(text)
        thread["call"] = thread["call"] or native_call.call(_functions(text))
    main = next((thread.frames for thread in threads if thread.os_thread_id == pid), threads[0].frames)
    rank, world_size = dumped.joining(main)
    part = record["process"]
    index = part["index"] if part is not None else None
    worker = part is not None and part["target"] == torch_names.DATALOADER_WORKER
    env = record["env"]
    local = _LOCAL_RANK.search(" ".join(command))
    local_rank = int(local[1]) if local is not None else None
    ranks = (_tensor_rank(command), rank, *(() if worker else (index, local_rank)))
    return Account(
        file=path,
        kind=kind,
        rank=next((number for number in ranks if number is not None), None),
        worker=worker,
        worker_id=index if worker else None,
        world_size=world_size,
        local_rank=local_rank,
        master=f"{env['MASTER_ADDR']}:{env['MASTER_PORT']}" if "MASTER_PORT" in env else None,
        pid=pid or None,
        command=command,
        threads=tuple(record_threads),
        busy=any(
            text.active and (thread["main"] or _is_of_torch(text))
            for text, thread in zip(threads, record_threads, strict=True)
        ),
    )


def _mark_main(threads: Sequence[DumpedText], pid: int, kind: str) -> None:
    """Give the main thread the number that the kernel gives it, where no thread shows that it is."""
    outermost = [thread.frames[-1]["name"] for thread in threads if thread.frames]
    if any(thread.os_thread_id == pid for thread in threads) or "<module>" in outermost:
        return
    by_name = [thread for thread in threads if thread.thread_name == "MainThread"]
    unnamed = [thread for thread in threads if thread.thread_name is None and kind == KIND]
    for thread in [*by_name, *unnamed][:1]:
        thread.os_thread_id = pid


def _python_part(thread: DumpedText) -> dumped.DumpedThread:
    """A thread without its frames of C."""
    return {
        "thread_id": thread.thread_id,
        "thread_name": thread.thread_name,
        "os_thread_id": thread.os_thread_id,
        "frames": [frame for frame in thread.frames if frame["line"] > 0],
    }


def _tensor_rank(command: Sequence[str]) -> int | None:
    """The rank that a process has in its title, where it has no place in other dimensions."""
    titled = line_heads.TITLE.search(" ".join(command))
    if titled is None or titled["others"] or not titled["tensor"]:
        return None
    return int(titled["tensor"])


def _is_of_torch(thread: DumpedText) -> bool:
    """True for a thread in which C++ runs Python, as autograd's do: the main thread waits for these."""
    outermost = thread.frames[-1] if thread.frames else None
    return outermost is not None and not outermost["filename"].endswith("threading.py")


def _functions(thread: DumpedText) -> Iterator[str]:
    """The functions of C and C++ that its innermost function of Python has called, innermost first."""
    frames = itertools.takewhile(lambda frame: frame["line"] == 0, thread.frames)
    return (frame["name"] for frame in frames)


def _native(thread: DumpedText) -> NativeCall | None:
    """The system call that blocks a thread, where its innermost frames are of C."""
    for frame in thread.frames:
        if frame["line"] > 0:
            return None
        name = _INTERNAL.sub("", frame["name"].partition("@")[0])
        call = SYSTEM_CALLS.get(name)
        if call is not None:
            return {"call": call, "fd": None, "target": None, "limited": "timed" in name}
    return None
