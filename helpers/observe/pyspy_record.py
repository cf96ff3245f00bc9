"""A dump of py-spy -> a record like a beacon's, with what can be told from outside.

A dump (`py-spy dump --json --locals`, py-spy 0.4) has, for each thread, its frames innermost first,
and each frame's variables as text. A torch object appears there only as its class and address, so the
members of a group, sequence numbers and sizes stay unknown. A group is known to be the default one when
none was given.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import re
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NotRequired, TypedDict

from ..beacon import calls, stacks, torch_names
from ..beacon.launch_variables import ENVIRONMENT
from ..beacon.record import Child, FrameEntry, Members, Record, Site, Thread
from ..beacon.secret_names import is_secret
from ..job_files import ask

LIBRARY = re.compile(r"(?:^|/)(site|dist)-packages/|/lib(64)?/python\d[\d.]*/|/stuck_ranks_beacon/")

_OF_TORCH = re.compile(
    r"(?:^|/)torch/(?:distributed/(?:\w*c10d\w*|rendezvous|run|launch|elastic/.+|launcher/.+|fsdp/.+)"
    r"|nn/modules/\w+|nn/parallel/\w+|autograd/\w+|utils/data/\w+|multiprocessing/\w+)\.py$"
)
"""Files of torch, wherever it was installed or built."""

_OBJECT = re.compile(r"<(?:[\w.]+\.)?(\w+) at 0x")
_RANKS = re.compile(r"[\[(](\d+(?:, \d+)*),?[\])]")
_PLAIN = re.compile(r"None|True|False|[+-]?[\d.]+(e[+-]?\d+)?|\"[^\"\\\\]{0,60}\"")
"""A plain value as py-spy prints it; the end of a long text is cut off."""

_WORDS = {"None": None, "True": True, "False": False}


class Variable(TypedDict):
    """A local variable of a frame, as text; None where py-spy could not read it."""

    name: str
    repr: str | None


class Frame(TypedDict):
    """A frame of a dump; its name is qualified since Python 3.11."""

    name: str
    filename: str
    line: int
    locals: list[Variable] | None


class DumpedThread(TypedDict):
    """A thread of a dump.

    Attributes:
        thread_id: Python's; os_thread_id: the kernel's, None where py-spy cannot tell.
        active: whether it runs; owns_gil: whether it holds the interpreter lock.
        frames: innermost first.
    """

    thread_id: int
    thread_name: str | None
    os_thread_id: int | None
    active: NotRequired[bool]
    owns_gil: NotRequired[bool]
    frames: list[Frame]


class DumpedFrame:
    """A frame of a dump, as `calls.torch_call` reads it.

    Args:
        frame: as py-spy printed it.
        caller: the frame that called it, None for the outermost.
    """

    def __init__(self, frame: Frame, caller: Frame | None) -> None:
        self.file = frame["filename"]
        self.function = _function(frame)
        self._values = _locals(frame)
        self._caller = caller
        self._class = frame["name"].rpartition(".")[0].rpartition(".")[2]
        if self.function == torch_names.LOADER_WAITS[0]:
            self._class = torch_names.LOADER_ITERATOR  # the only one that has it

    def local(self, name: str) -> Any:
        """The value of a variable, as far as its text tells; of a group, what the caller has passed.

        A dump without values tells the class of `self` by the qualified name of the function.
        """
        if name == "group" and self._no_group_was_given():
            return None
        if name == "self" and name not in self._values and self._class:
            return _value(f"<{self._class} at 0x0>")
        return _value(self._values.get(name))

    def group_of(self, value: Any) -> tuple[str | None, Members]:
        """The default group when it is None; any other is unknown, and so are the members of both."""
        return ("default" if value is None else None), {"ranks": []}

    def global_rank(self, within: int) -> int | None:
        """The same number in the default group, which has all ranks in order."""
        return within if self.local("group") is None else None

    def _no_group_was_given(self) -> bool:
        """True when the arguments show it, which torch's wrapper around the function keeps.

        The function itself may have replaced None by the default group.
        """
        if self._caller is None or not torch_names.is_call_wrapper(self._caller["filename"]):
            return False
        arguments = _locals(self._caller)
        words = [arguments.get(name, "...").replace('"group": None', "") for name in ("args", "kwargs")]
        return not any(
            sign in word for word in words for sign in ("...", torch_names.GROUP_CLASS, '"group"')
        )


def record(
    dump: Sequence[DumpedThread],
    *,
    pid: int,
    parent: int,
    started: float,
    argv: Sequence[str],
    environment: Mapping[str, str],
    cwd: str,
) -> Record:
    """The record of process `pid`, its threads in the order of the dump.

    The caller fills in `since` and `native` of each thread.

    Args:
        dump: what py-spy printed, parsed.
        started: monotonic seconds at which the process was started.
        argv: its command line.
        environment: its environment, as it was when it was started.
        cwd: its working directory.
    """
    main = next((thread["frames"] for thread in dump if _is_main(thread, pid)), [])
    target = main_file(main)
    entries = [[_entry(frame, cwd, target, argv) for frame in thread["frames"]] for thread in dump]
    idents = {_thread_object(thread["frames"]): thread["thread_id"] for thread in dump}
    idents.pop("", None)
    threads = [_thread(thread, stack, pid, idents) for thread, stack in zip(dump, entries, strict=True)]
    env = {key: environment[key] for key in ENVIRONMENT if key in environment}
    importing = any(frame["filename"].startswith("<frozen importlib") for frame in main)
    ran = any(entry[3] for thread in threads if thread["main"] for entry in thread["frames"])
    return {
        **blank(),
        "ppid": parent,
        "started": started,
        "argv": list(argv),
        "env": {**env, **_address(main)},
        "process": _child(main),
        "phase": "importing" if importing else "running" if ran else "starting",
        "threads": threads,
    }


def _thread(
    thread: DumpedThread, entries: list[FrameEntry], pid: int, idents: Mapping[str, int]
) -> Thread:
    """A thread as a record has it.

    Args:
        entries: its frames; idents: `threading.Thread`, as py-spy prints it -> Python's id of it.
    """
    frames = thread["frames"]
    return {
        "name": thread["thread_name"] or f"thread {thread['thread_id']}",
        "main": _is_main(thread, pid),
        "since": 0.0,
        "frames": entries,
        "call": calls.torch_call(_library_frames(frames, entries)),
        "native": None,
        "site": _site(frames[0], entries[0]) if entries and entries[0][3] else None,
        "values": _plain(frames, entries),
        "ident": thread["thread_id"],
        "native_id": pid if _is_main(thread, pid) else thread["os_thread_id"],
        "joins": idents.get(_join_target(frames)),
        "holds_gil": thread.get("owns_gil", False),
        "spins": thread.get("active", False) and not thread.get("owns_gil", True),
    }


def _thread_object(frames: Sequence[Frame]) -> str:
    """The `threading.Thread` that runs these frames, as py-spy prints it; empty for the main thread."""
    outermost = frames[-1:]
    return next((_locals(frame).get("self", "") for frame in outermost if _is_threading(frame)), "")


def _join_target(frames: Sequence[Frame]) -> str:
    """The thread for whose end a thread waits, as py-spy prints it; empty for none."""
    joins = (frame for frame in frames[:3] if _function(frame) == "join" and _is_threading(frame))
    return next((_locals(frame).get("self", "") for frame in joins), "")


def _is_threading(frame: Frame) -> bool:
    return os.path.basename(frame["filename"]) == "threading.py"


def blank() -> Record:
    """The record of a process without a beacon, of which nothing is known but that it runs."""
    return {
        "source": "py-spy",
        "ppid": 0,
        "started": 0.0,
        "argv": [],
        "env": {},
        "process": None,
        "phase": "running",
        "threads": [],
        "dist": None,
        "accelerator": "cpu",
        "flight": None,
        "torch": "",
        "unseen": [],
        "workers": {},
        "spawned": {},
        "joining": [],
        "reaped": {},
        "left": [],
        "cut_off": [],
        "error": None,
        "ended": False,
    }


def _is_main(thread: DumpedThread, pid: int) -> bool:
    """True for the main thread.

    For Python 3.8 to 3.10 py-spy knows the kernel's thread id only when it stops the process; there the
    main thread is the one that runs the top level of a module.
    """
    if thread["os_thread_id"] is not None:
        return thread["os_thread_id"] == pid
    return bool(thread["frames"]) and thread["frames"][-1]["name"] == "<module>"


def _library_frames(frames: Sequence[Frame], entries: Sequence[FrameEntry]) -> list[DumpedFrame]:
    """The library frames below the innermost line of the user's code."""
    first = next((index for index, entry in enumerate(entries) if entry[3]), len(entries))
    callers = [*frames[1:], None]
    return list(map(DumpedFrame, frames[:first], callers))


def main_file(frames: Sequence[Frame]) -> str | None:
    """The file of `__main__`, which is the outermost top level of the main thread; None for `-c`."""
    outermost = next((f for f in reversed(frames) if f["name"] == "<module>"), None)
    file = outermost["filename"] if outermost else "<none>"
    return None if file.startswith("<") else file


def _address(frames: Sequence[Frame]) -> dict[str, str]:
    """Where the process looks for the store, from torch's own rendezvous."""
    for frame in frames:
        values = _locals(frame)
        host = _text(values.get("hostname") or values.get("master_addr"))
        port = _number(values.get("port") or values.get("master_port"))
        if torch_names.is_rendezvous_file(frame["filename"]) and host and port:
            return {"MASTER_ADDR": host, "MASTER_PORT": str(port)}
    return {}


def joining(frames: Sequence[Frame]) -> tuple[int | None, int | None]:
    """Rank and world size with which a process is in torch's rendezvous, where it is in it."""
    for frame in frames:
        if torch_names.is_rendezvous_file(frame["filename"]):
            values = _locals(frame)
            return _number(values.get("rank")), _number(values.get("world_size"))
    return None, None


def _child(frames: Sequence[Frame]) -> Child | None:
    """The part of a child of `multiprocessing`, from the frame of torch that runs it."""
    for frame in reversed(frames):
        for target, (file, variable) in torch_names.INDEX_VARIABLE.items():
            runs_it = _function(frame) == target.rpartition(".")[2]
            if runs_it and frame["filename"].endswith(file):
                index = _number(_locals(frame).get(variable))
                return {"target": target, "index": index, "error_file": None}
    return None


def _entry(frame: Frame, cwd: str, target: str | None, argv: Sequence[str]) -> FrameEntry:
    file = frame["filename"]
    path = file if file.startswith("<") else os.path.join(cwd, file)
    started = file == target and not file.endswith(stacks.WORKER_SCRIPTS)
    return path, frame["line"], _function(frame), started or is_user(path, argv)


def is_user(file: str, argv: Sequence[str]) -> bool:
    """True when code in `file` is the user's own, as far as its path tells.

    A relative path is one that py-spy has shortened to what Python imports.
    """
    if file.startswith(stacks.CELL_FILES):
        return True
    if file.startswith("<"):
        return file == "<string>" and "-c" in argv and not any("multiprocessing" in w for w in argv)
    if os.path.basename(file) in stacks.START_HOOKS:
        return False
    if _OF_TORCH.search(file):
        return False
    if not os.path.isabs(file):
        return not LIBRARY.search(file) and not _is_imported(file.partition("/")[0])
    try:
        return not LIBRARY.search(file) and _package(os.path.dirname(file)) not in stacks.LIBRARIES
    except TimeoutError:  # asked again the next time
        return True


@functools.lru_cache(maxsize=4096)
def _is_imported(name: str) -> bool:
    """True for what Python's library, or a library that is installed here, is imported as."""
    module = name.removesuffix(".py")
    if module in sys.stdlib_module_names or module in stacks.LIBRARIES:
        return True
    with suppress(ValueError, ImportError):
        spec = importlib.util.find_spec(module) if module.isidentifier() else None
        return spec is not None and bool(LIBRARY.search(spec.origin or ""))
    return False


@functools.lru_cache(maxsize=4096)
def _package(folder: str) -> str:
    """Name of the outermost package that `folder` belongs to: a library may run from a checkout."""
    if not ask(os.path.exists, os.path.join(folder, "__init__.py")):
        return ""
    parent = os.path.dirname(folder)
    return _package(parent) or os.path.basename(folder)


def _site(frame: Frame, entry: FrameEntry) -> Site:
    """The line of a frame, the torch objects among its variables, and its texts."""
    names: dict[str, str] = {}
    strings: dict[str, str] = {}
    for name, text in _locals(frame).items():
        kind = torch_names.class_named(_class(text))
        if kind is not None:
            names[name] = kind
        elif not text.startswith("<") and not is_secret(name, _text(text)):
            strings[name] = _text(text)
    file, line, _, _ = entry
    return {"file": file, "position": [line], "names": names, "strings": strings, "limits": {}}


def _plain(frames: Sequence[Frame], entries: Sequence[FrameEntry]) -> dict[int, dict[str, str]]:
    """The variables of the user's frames that are plain values, as a beacon tells them."""
    return {
        place: {
            name: text
            for name, text in _locals(frame).items()
            if _PLAIN.fullmatch(text)
            and not text.endswith('..."')
            and not is_secret(name, text.strip("'\""))
        }
        for place, (frame, entry) in enumerate(zip(frames, entries, strict=True))
        if entry[3]
    }


def _function(frame: Frame) -> str:
    """The function's own name, without that of a class."""
    return frame["name"].rpartition(".")[2]


def _locals(frame: Frame) -> dict[str, str]:
    return {variable["name"]: variable["repr"] or "" for variable in frame["locals"] or ()}


def _value(text: str | None) -> Any:
    """The value that a text shows; where it shows none, an empty object of a class of that name."""
    if text in _WORDS:
        return _WORDS[text]
    if text and (text.isdecimal() or text.startswith('"')):
        return int(text) if text.isdecimal() else _text(text)
    if listed := _RANKS.fullmatch(text or ""):
        return [int(number) for number in listed[1].split(", ")]
    return type(_class(text), (), {})()


def _class(text: str | None) -> str:
    match = _OBJECT.match(text or "")
    return match[1] if match else ""


def _text(text: str | None) -> str:
    return (text or "").strip('"') if text != "None" else ""


def _number(text: str | None) -> int | None:
    bare = _text(text)
    return int(bare) if bare.isdigit() else None
