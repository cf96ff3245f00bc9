"""Notes each call of some functions of libraries: which process made it, and inside of what.

Every Python of a run that is judged imports this file at its start, since its folder is on the path.
It is handed to the job and imports nothing of this package.
"""

from __future__ import annotations

import functools
import importlib.util
import json
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import GeneratorType, ModuleType
from typing import Any

WATCHED = [name.split(":") for name in os.environ.get("LAB_WATCHED", "").split()]
NOTES = os.environ.get("LAB_CALLS", "")

_blocks: list[tuple[str, GeneratorType[Any, Any, Any]]] = []
"""Each context that a watched function has made, by the name of the function."""


class _Finder(MetaPathFinder):
    """Finds a module as it would be found without this, and wraps its functions once it is loaded."""

    def __init__(self) -> None:
        self._pending = {module for module, _ in WATCHED}

    def find_spec(
        self, fullname: str, _path: Sequence[str] | None, _target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname not in self._pending:
            return None
        self._pending.remove(fullname)
        spec = importlib.util.find_spec(fullname)
        if spec is not None and spec.loader is not None:
            load = spec.loader.exec_module

            def load_and_wrap(module: ModuleType) -> None:
                load(module)
                for name, function in WATCHED:
                    if name == fullname:
                        _wrap(module, function)

            spec.loader.exec_module = load_and_wrap  # type: ignore[method-assign]
        return spec


def _wrap(module: ModuleType, name: str) -> None:
    *owners, last = name.split(".")
    owner = functools.reduce(getattr, owners, module)
    setattr(owner, last, _noting(getattr(owner, last), f"{module.__name__}:{name}"))


def _noting(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    @functools.wraps(function)
    def noting(*args: Any, **keywords: Any) -> Any:
        _note(name)
        value = function(*args, **keywords)
        block = getattr(value, "gen", None)  # of a function that `contextlib.contextmanager` decorates
        if isinstance(block, GeneratorType):
            _blocks.append((name, block))
        return value

    return noting


def _note(name: str) -> None:
    """Append a line, in one piece; a call of the job's does not fail because it cannot be noted."""
    inside = [block for block, generator in _blocks if generator.gi_frame and generator.gi_suspended]
    note = {"function": name, "pid": os.getpid(), "parent": os.getppid(), "inside": inside}
    with suppress(OSError):
        file = os.open(NOTES, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.write(file, f"{json.dumps(note)}\n".encode())
        os.close(file)


if NOTES:
    sys.meta_path.insert(0, _Finder())

# The next one on the path, which this one hides. Where there is none, `site` passes over the error.
sys.path[:] = [entry for entry in sys.path if entry != os.path.dirname(__file__)]
_self = sys.modules.pop(__name__)
import sitecustomize  # noqa: E402, F401
