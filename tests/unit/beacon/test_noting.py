"""What is noted of stays what it is to its callers."""

from __future__ import annotations

import copy
import functools
import inspect
import os
import pickle
import signal
import sys
import traceback
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from helpers.beacon import beacon, exits, noting

NAMES = ("waitpid", "_exit", "kill", "exit")


@pytest.fixture
def builtins(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """The functions as they were, which are put back at the end."""
    before = {name: getattr(sys if name == "exit" else os, name) for name in NAMES}
    for name, builtin in before.items():
        for module in {os, sys.modules[os.name], builtin.__self__}:
            monkeypatch.setattr(module, name, builtin, raising=False)
    monkeypatch.setattr(exits, "_reaped", {})
    monkeypatch.setattr(exits, "_waits", [])
    exits.watch(lambda: None)
    return before


ALIKE: list[Callable[[Any], Any]] = [
    *(functools.partial(pickle.dumps, protocol=protocol) for protocol in range(6)),
    lambda function: copy.deepcopy(function) is copy.copy(function) is function,
    lambda function: pickle.loads(pickle.dumps(functools.partial(function, 1))).func is function,
    inspect.signature,
    inspect.isbuiltin,
    inspect.getdoc,
    repr,
    callable,
    lambda function: isinstance(function, types.BuiltinFunctionType),
    lambda function: (function.__name__, function.__qualname__, function.__module__, function.__self__),
    lambda function: type("Job", (), {"call": function})().call is function,
]


@pytest.mark.parametrize("name", NAMES)
def test_it_looks_and_is_pickled_as_the_builtin(builtins: dict[str, Any], name: str) -> None:
    function = getattr(sys if name == "exit" else os, name)
    assert function is not builtins[name]
    seen = [look(function) for look in ALIKE]
    for module in {os, sys.modules[os.name], builtins[name].__self__}:
        if hasattr(module, name):
            setattr(module, name, builtins[name])
    assert seen == [look(builtins[name]) for look in ALIKE]


def _raised(call: Callable[[], Any]) -> tuple[str, list[str]]:
    try:
        call()
    except BaseException as error:
        return repr(error), [frame.name for frame in traceback.extract_tb(error.__traceback__)]
    raise AssertionError


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("waitpid", (2**22 + 5, 0)),
        ("waitpid", (1,)),
        ("kill", (2**22 + 5, 0)),
        ("kill", (1, 2, 3)),
        ("kill", ("a", 0)),
        ("_exit", ("a",)),
        ("exit", (3,)),
        ("exit", (1, 2)),
    ],
)
def test_an_exception_passes_through_no_frame_of_ours(
    builtins: dict[str, Any], name: str, arguments: tuple[Any, ...]
) -> None:
    module = sys if name == "exit" else os
    seen = _raised(lambda: getattr(module, name)(*arguments))
    assert seen == _raised(lambda: builtins[name](*arguments))
    assert seen[1] == ["_raised", "<lambda>"]


def test_the_status_of_children(builtins: dict[str, Any]) -> None:
    pids = [os.spawnlp(os.P_NOWAIT, "sh", "sh", "-c", f"exit {code}") for code in (3, 4)]
    statuses = [os.waitpid(pid, 0)[1] for pid in pids]
    _raised(lambda: os.waitpid(pids[0], 0))
    assert exits.reaped() == dict(zip(pids, statuses, strict=True))
    assert len(exits._waits) == 1, "of calls that fail some are kept"
    exits.forget()
    assert exits.reaped() == {}


def test_a_note_that_fails_is_none_of_the_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    box = types.SimpleNamespace(now=os.getpid)
    noting.replace("now", lambda frame: 1 // 0, box)
    assert box.now() == os.getpid()


def _give_up(number: int, frame: types.FrameType | None) -> None:
    raise RuntimeError("a worker has died")


HANDLERS: list[Callable[..., Any]] = [
    _give_up,
    lambda *given: _give_up(*given),
    types.MethodType(lambda self, number, frame: _give_up(number, frame), object()),
    functools.partial(lambda name, number, frame: _give_up(number, frame), "worker"),
]


@pytest.fixture
def handled(request: pytest.FixtureRequest) -> Iterator[None]:
    """A handler that raises stands for SIGUSR1."""
    before = signal.signal(signal.SIGUSR1, request.param)
    yield
    signal.signal(signal.SIGUSR1, before)


@pytest.mark.parametrize("handled", HANDLERS, indirect=True)
@pytest.mark.parametrize("part", ["call", "record"])
def test_what_a_signal_handler_raises_while_a_note_is_taken_is_the_jobs(
    handled: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, part: str
) -> None:
    """As the one of a `DataLoader` does where its worker ends while `os.waitpid` is noted."""
    code = "def interrupted(*_): signal.raise_signal(signal.SIGUSR1)"
    exec(compile(code, noting.__file__, "exec"), namespace := {"signal": signal})
    note = namespace["interrupted"]
    if part == "record":
        (tmp_path / "records").mkdir()
        running = beacon.Beacon(str(tmp_path))
        monkeypatch.setattr(exits, "reaped", note)
        note = functools.partial(beacon.Beacon.look, running)
    box = types.SimpleNamespace(now=os.getpid)
    noting.replace("now", lambda _: note(), box)
    seen = _raised(lambda: box.now())
    direct = _raised(lambda: signal.raise_signal(signal.SIGUSR1))
    assert seen == direct


def test_a_loop_that_asks_who_is_alive_is_noted_once(
    builtins: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("waitpid", "_exit", "kill"):
        monkeypatch.setattr(os, name, builtins[name])
        monkeypatch.setattr(sys.modules[os.name], name, builtins[name])
    monkeypatch.setattr(sys, "exit", builtins["exit"])
    words: list[None] = []
    exits.watch(lambda: words.append(None))
    for _ in range(50):
        os.kill(os.getpid(), 0)
    assert len(words) == 1
    os.kill(os.getpid(), 0)
    assert len(words) == 2
