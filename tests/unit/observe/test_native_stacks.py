"""The C functions of a thread: read of a real process, and when they are asked for."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Any

import pytest
from beacon_records import call, record, thread
from waiting import until

from helpers.model.waits import OnDevice
from helpers.observe import native_stacks
from helpers.observe.device_reads import question, with_native_stack
from helpers.observe.look import NativeStack
from helpers.observe.native_stacks import NativeStacks
from helpers.observe.source import Sources
from helpers.observe.waits import thread_waits

NOW = 100.0
AT = ("/job/train.py", 1, "step", True)
COMPUTES, READS = "y = math.exp(loss)", "loss.item()"
ASKED = NativeStack(700, NOW - 12.0)


def sources(text: str) -> Sources:
    return Sources("/job", lambda _: text)


def spinning(since: float = NOW - 12.0, **facts: Any) -> Any:
    usual: Any = {"frames": [AT], "spins": True, "native_id": 700, "since": since}
    return thread(**{**usual, **facts})


@pytest.mark.parametrize(
    ("main", "text", "accelerator", "asked"),
    [
        (spinning(), COMPUTES, "cuda", ASKED),
        (spinning(), READS, "cuda", None),
        (spinning(), COMPUTES, "cpu", None),
        (spinning(since=NOW - 5.0), COMPUTES, "cuda", None),
        (spinning(spins=False), COMPUTES, "cuda", None),
        (spinning(call=call("collective", "barrier")), COMPUTES, "cuda", None),
        (spinning(native_id=None), COMPUTES, "cuda", None),
    ],
    ids=[
        *("it is not known why", "the line tells", "no device", "not for long", "it rests"),
        *("in a call of torch's", "of unknown number"),
    ],
)
def test_when_c_functions_are_asked_for(
    main: Any, text: str, accelerator: str, asked: NativeStack | None
) -> None:
    assert question(record(main, accelerator=accelerator), NOW, sources(text)) == asked


@pytest.mark.parametrize(
    ("functions", "waits_in"),
    [
        (["clock_gettime", "cuStreamSynchronize", "cudaStreamSynchronize"], "cuStreamSynchronize"),
        (["clock_gettime", "cuMemcpyDtoHAsync_v2", "at::_ops::item::call"], "cuMemcpyDtoHAsync_v2"),
        (["cudaMemcpy", "copy_kernel"], "cudaMemcpy"),
        (["hipEventSynchronize"], "hipEventSynchronize"),
        (["c10::cuda::memcpy_and_sync(void*, void*)"], "c10::cuda::memcpy_and_sync(void*, void*)"),
        (["sgemm_kernel", "at::native::addmm"], None),
        ((), None),
        (None, None),
    ],
)
def test_what_c_functions_tell(functions: Sequence[str] | None, waits_in: str | None) -> None:
    seen = with_native_stack(record(spinning(), accelerator="cuda"), functions)
    found = thread_waits(seen["threads"][0], seen, sources(COMPUTES))
    assert [wait.op for wait in found if isinstance(wait, OnDevice)] == ([waits_in] if waits_in else [])


SPINS = "import time\nprint('ready', flush=True)\nwhile True:\n    sorted(range(10_000_000, 0, -1))\n"


@pytest.mark.skipif(sys.platform != "linux", reason="py-spy reads native stacks on Linux")
def test_they_are_read_once_of_a_real_process() -> None:
    program = [sys.executable, "-c", SPINS]
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        stacks, asked = NativeStacks(), NativeStack(process.pid, 1.0)
        until(lambda: stacks.answer(asked) is not None)
        process.kill()
    functions = stacks.answer(asked)
    assert functions
    assert not any(name.endswith(".py") for name in functions)
    assert stacks.answer(asked) is functions


def test_of_a_process_that_is_gone_nothing_is_read() -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    stacks, asked = NativeStacks(), NativeStack(process.pid, 1.0)
    until(lambda: stacks.answer(asked) is not None)
    assert stacks.answer(asked) == ()


def test_a_reader_that_does_not_end_is_given_up(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    tool = tmp_path / "py-spy"
    tool.write_text("#!/bin/sh\nexec sleep 600\n")
    tool.chmod(0o755)
    monkeypatch.setattr(native_stacks, "find_tool", lambda: tool)
    stacks, asked = NativeStacks(), NativeStack(1, 1.0)
    assert stacks.answer(asked) is None
    now = time.monotonic() + native_stacks.LIMIT
    monkeypatch.setattr(native_stacks.time, "monotonic", lambda: now)
    assert stacks.answer(asked) == ()


def test_without_the_tool_nothing_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native_stacks, "find_tool", lambda: None)
    assert NativeStacks().answer(NativeStack(1, 1.0)) == ()
