"""The Python stacks of this process, and which of their frames are the user's own code."""

from __future__ import annotations

import functools
import os
import sys
from types import CodeType, FrameType, TracebackType
from typing import TYPE_CHECKING, Dict, List, Optional, Sequence, Tuple

from . import scalars

if TYPE_CHECKING:
    from .record import FrameEntry

LIBRARIES = (
    "torch",
    "lightning",
    "pytorch_lightning",
    "lightning_fabric",
    "lightning_utilities",
    "torchmetrics",
    "deepspeed",
    "accelerate",
    "transformers",
    "IPython",
    "ipykernel",
    "stuck_ranks_beacon",
)
"""Packages that are never user code, even where one is installed from a checkout."""

WORKER_SCRIPTS = ("default_worker.py", "ipykernel_launcher.py", "ipykernel/__main__.py")
"""The programs in which frameworks run a user's code: `ray/_private/workers` (Ray 2.0 to 2.60), and
Jupyter's kernel. They are no user code, although they are what was started."""

START_HOOKS = ("sitecustomize.py", "usercustomize.py")
"""What Python imports before any program (see `site`): it is the environment's or a tool's, and what it
wraps around a function of a library is no line of the user's."""

CELL_FILES = ("<ipython-input-", "<timed exec>", "<timed eval>")
"""How the file names of cells begin outside a kernel, and in one under `%%time` (IPython 7 to 9)."""

MAX_FRAMES = 120

_HERE = os.path.dirname(os.path.abspath(__file__))
_STDLIB = os.path.dirname(os.path.abspath(os.__file__))
_SITE = (os.sep + "site-packages" + os.sep, os.sep + "dist-packages" + os.sep)

_user_files: Dict[Tuple[str, str], bool] = {}


def entries(frame: Optional[FrameType]) -> List[FrameEntry]:
    """The stack that ends in `frame`, innermost first, at most `MAX_FRAMES` frames."""
    stack: List[FrameEntry] = []
    while frame is not None and len(stack) < MAX_FRAMES:
        stack.append(entry(frame, frame.f_lineno))
        frame = frame.f_back
    return stack


def traceback_entries(traceback: Optional[TracebackType]) -> List[FrameEntry]:
    """The frames of a traceback, innermost first."""
    return [entry(link.tb_frame, link.tb_lineno) for link in _links(traceback)]


def traceback_values(traceback: Optional[TracebackType]) -> Dict[int, Dict[str, str]]:
    """The plain values that the user's frames of a traceback can name, by their place in its entries."""
    frames = enumerate(link.tb_frame for link in _links(traceback))
    return {place: scalars.scalars(frame) for place, frame in frames if is_users(frame)}


def _links(traceback: Optional[TracebackType]) -> List[TracebackType]:
    """The links of a traceback, innermost first, at most `MAX_FRAMES`."""
    links: List[TracebackType] = []
    while traceback is not None:
        links.append(traceback)
        traceback = traceback.tb_next
    return links[::-1][:MAX_FRAMES]


def within(frame: Optional[FrameType]) -> List[Tuple[str, str]]:
    """The library's functions below the user's innermost line, outermost first: module and name."""
    functions: List[Tuple[str, str]] = []
    while frame is not None and len(functions) < MAX_FRAMES and not is_users(frame):
        code = frame.f_code
        name = str(getattr(code, "co_qualname", code.co_name))
        functions.append((str(frame.f_globals.get("__name__", "")), name))
        frame = frame.f_back
    return functions[::-1]


def values(frame: Optional[FrameType], ident: int) -> Dict[int, Dict[str, str]]:
    """The plain values that the user's frames can name, by their place in the stack.

    Args:
        ident: of the thread: the innermost has the exception that it handles as `sys.exception()`.
    """
    by_place: Dict[int, Dict[str, str]] = {}
    place = 0
    while frame is not None and place < MAX_FRAMES:
        if is_users(frame):
            handled = scalars.handled(ident) if not by_place else {}
            by_place[place] = {**scalars.scalars(frame), **handled}
        frame, place = frame.f_back, place + 1
    return by_place


def signature(frame: Optional[FrameType]) -> Tuple[Tuple[int, int], ...]:
    """What changes when a thread moves: the code and the instruction of each of its frames."""
    positions: List[Tuple[int, int]] = []
    while frame is not None and len(positions) < MAX_FRAMES:
        positions.append((id(frame.f_code), frame.f_lasti))
        frame = frame.f_back
    return tuple(positions)


def in_place(frame: Optional[FrameType], signature: Sequence[Tuple[int, int]]) -> bool:
    """True for a thread that is where it was when it had this signature.

    The offset of one and the same call changes when Python specialises its instruction (3.11 and newer):
    then the two offsets have the same position in the source.
    """
    for code, last in signature:
        if frame is None or id(frame.f_code) != code:
            return False
        if frame.f_lasti != last and not _one_place(frame.f_code, frame.f_lasti, last):
            return False
        frame = frame.f_back
    return frame is None or len(signature) == MAX_FRAMES


def _one_place(code: CodeType, *offsets: int) -> bool:
    """True for instructions that belong to the same expression of the source."""
    positions = getattr(code, "co_positions", None)
    if positions is None:
        return False
    places = {place for index, place in enumerate(positions()) if 2 * index in offsets}
    return len(places) == 1 and None not in places.pop()


def is_user(file: str, module: str) -> bool:
    """True when a frame of `file`, in the module named `module`, is the user's own code."""
    if file.startswith(CELL_FILES):
        return True
    if file.startswith("<"):
        return module == "__main__" and file in ("<string>", "<stdin>") and not _is_spawned()
    path = os.path.abspath(file)
    if path.endswith(WORKER_SCRIPTS) or os.path.basename(path) in START_HOOKS:
        return False
    if _is_main_target(path):
        return True
    if path.startswith(_HERE + os.sep) or any(part in path for part in _SITE):
        return False
    if path.startswith(_STDLIB + os.sep):
        return False
    return not any(path.startswith(folder) for folder in _library_folders())


def entry(frame: FrameType, line: Optional[int]) -> FrameEntry:
    """One frame of a stack or a traceback."""
    code: CodeType = frame.f_code
    return code.co_filename, line or code.co_firstlineno, code.co_name, is_users(frame)


def is_users(frame: FrameType) -> bool:
    """True for a frame of the user's own code."""
    key = (frame.f_code.co_filename, str(frame.f_globals.get("__name__", "")))
    user = _user_files.get(key)
    if user is None:
        user = _user_files[key] = is_user(*key)
    return user


def _is_main_target(path: str) -> bool:
    """True for the file that was started: the script, or the target of `-m`."""
    file = getattr(sys.modules.get("__main__"), "__file__", None)
    return isinstance(file, str) and os.path.abspath(file) == path


def _is_spawned() -> bool:
    """True in a child of `multiprocessing`, whose `-c` text is multiprocessing's own."""
    return "--multiprocessing-fork" in (getattr(sys, "orig_argv", None) or _started_by())


@functools.lru_cache(maxsize=1)
def _started_by() -> Tuple[str, ...]:
    """The words that this process was started by, as the kernel tells them; Python does since 3.10."""
    try:
        with open("/proc/self/cmdline", "rb") as file:
            return tuple(os.fsdecode(file.read()).split("\0"))
    except OSError:
        return ()


def _library_folders() -> List[str]:
    folders = []
    for name in LIBRARIES:
        for folder in getattr(sys.modules.get(name), "__path__", ()):
            folders.append(os.path.abspath(str(folder)) + os.sep)
    return folders
