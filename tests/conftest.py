"""Gives every session the same surroundings; fails it when a process that a test started outlives it."""

from __future__ import annotations

import os
import signal
import uuid
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress

import psutil
import pytest
from score.trial import left_processes

MARKER = "STUCK_RANKS_TEST_SESSION"
SESSION = uuid.uuid4().hex


def pytest_configure() -> None:
    os.environ[MARKER] = SESSION
    # A shell, or `nohup`, has a program in the background ignore these; here it stands in front.
    for number, action in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, action)


def left_behind() -> list[psutil.Process]:
    """Processes of this session's runs that do not end; the score holds them to 2 s."""
    return left_processes(MARKER, SESSION, within=60)


@pytest.fixture
def processes_left() -> Callable[[], list[psutil.Process]]:
    """What to call, after a run, for the processes that it has left behind."""
    return left_behind


@contextmanager
def unnamed() -> Iterator[None]:
    """Hide from jobs which test runs them: their reports would name it."""
    name = "PYTEST_CURRENT_TEST"
    environ = os.environ  # a test may put another in its place until it is torn down
    running = environ.pop(name, None)
    try:
        yield
    finally:
        if running is not None:
            environ[name] = running


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call() -> Generator[None, object, object]:
    with unnamed():
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup() -> Generator[None, object, object]:
    with unnamed():
        return (yield)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    alive = left_behind()
    if not alive:
        return
    lines = []
    for process in alive:
        with suppress(psutil.Error):
            lines.append(f"left behind: pid {process.pid}: {' '.join(process.cmdline())}")
            process.kill()
    psutil.wait_procs(alive, timeout=10)
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    for line in lines:
        reporter.write_line(f"\n{line}", red=True)
    session.exitstatus = pytest.ExitCode.TESTS_FAILED
