"""What a rank has printed -> the exceptions that have ended its threads."""

from __future__ import annotations

import threading

import pytest
from histories import collective, rank, snapshot, steady, wait
from msgspec.structs import replace

from helpers.diagnose.diagnose import diagnose
from helpers.diagnose.fixes import fitting
from helpers.diagnose.pages import page
from helpers.diagnose.thread_errors import thread_errors
from helpers.model.waits import OnThread


def printed(capsys: pytest.CaptureFixture[str]) -> list[str]:
    """What Python itself prints of a thread that an exception ends."""

    def load() -> None:
        try:
            raise KeyError("a")
        except KeyError:
            raise ValueError("record 7") from None

    thread = threading.Thread(target=load, name="prefetch")
    thread.start()
    thread.join()
    return capsys.readouterr().err.splitlines()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_the_exception_is_told_with_its_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threading, "excepthook", threading.__excepthook__)
    lines = printed(capsys)
    (told,) = thread_errors(["step 1", *lines, "step 2"])
    assert told.startswith("ValueError: record 7 (test_thread_errors.py:")
    assert not list(thread_errors(lines[:-1]))
    assert not list(thread_errors(lines[1:]))


LINES = (
    "Exception in thread Thread-1:",
    "Traceback (most recent call last):",
    '  File "/job/data.py", line 9, in read',
    "    raise ValueError('record 7')",
    "ValueError: record 7",
)


def test_a_secret_in_it_is_not_told() -> None:
    (told,) = thread_errors([*LINES[:-1], "ValueError: password='hunter2'"])
    assert "hunter2" not in told


@pytest.mark.parametrize("waits", [True, False])
def test_a_rank_may_wait_for_what_its_thread_should_have_done(waits: bool) -> None:
    own = wait(OnThread, "get") if waits else collective("broadcast")
    moment = replace(
        snapshot(rank(0, collective("all_reduce")), rank(1, own)), output=((0, ()), (1, LINES))
    )
    verdict = diagnose(steady(moment), patience=1.0, final=True)
    fixes = fitting(page(verdict.cause).fixes, verdict, moment)
    told = "A thread of rank 1 has ended by ValueError: record 7 (data.py:9)"
    assert any(told in fix.advice for fix in fixes) is waits
