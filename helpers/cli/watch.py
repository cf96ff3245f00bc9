"""A session in the terminal, from its start to its report."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from ..launch.launch import LaunchError
from ..model.facts import EXIT_CODES, Report, Snapshot
from ..observe.recording import Recorder
from ..report import report as reports
from ..report.files import discard, write_atomically
from ..report.history import History
from ..session import Decided, Event, Sample, Session, Signalled
from .arguments import INTERRUPTED, LostFileError, UsageError
from .interrupts import Received
from .terminal import Terminal


def watch(
    session: Session,
    received: Sequence[Received],
    json_path: str | None = None,
    html_path: str | None = None,
    record: Path | None = None,
    *,
    grace: float | None = None,
    terminal: Terminal | None = None,
) -> int:
    """Run a session, write its report when the verdict is there, and return the exit code.

    The report is also written when the first signal is passed to the job, which may be the last moment
    that is left for it.

    Args:
        received: gets longer with each signal (`interrupts.noted`).
        json_path, html_path, record: where the report and the recording go, if anywhere.
        grace: seconds that a job may take to end after a signal that asks for it; None: the job gets no
            signal, and such a one ends the run.
        terminal: shows the run.

    Raises:
        UsageError: the command cannot be started, or the recording cannot be made.
        LostFileError: the report could not be written, and was printed.
    """
    recorder = _recorder(record) if record is not None else None
    terminal = terminal or Terminal()
    reports_of_run = _Reports(json_path, html_path, at_verdict=session.keep_running)
    with terminal:
        session.sink = terminal
        session.subscribe(terminal.show)
        session.subscribe(reports_of_run.take)
        if recorder is not None:
            session.record(recorder)
        try:
            session.start()
        except LaunchError as problem:
            raise UsageError(str(problem)) from None
        report = _wait(session, received, grace, terminal, reports_of_run)
    if recorder is not None and recorder.problem is not None:
        print(f"stuck-ranks: {recorder.problem}", file=sys.stderr)
    reports_of_run.write_last(report)
    return INTERRUPTED if report.interrupted else EXIT_CODES[report.verdict.outcome]


def _recorder(path: Path) -> Recorder:
    try:
        return Recorder(path)
    except OSError as problem:
        raise UsageError(f"{path} cannot be written: {problem.strerror}") from None


class _Reports:
    """The reports of a run: noted as they come, written by the main thread, which may wait for a reader.

    Args:
        json_path, html_path: where they go, if anywhere.
        at_verdict: write the report when the verdict is there, while the job goes on.
    """

    def __init__(self, json_path: str | None, html_path: str | None, *, at_verdict: bool) -> None:
        self._json_path, self._html_path = json_path, html_path
        self._early: tuple[type[Decided | Signalled], ...] = (Decided,) if at_verdict else ()
        if json_path != "-":  # one document is all that a reader of standard output expects
            self._early += (Signalled,)
        self._history = History()
        self._due: deque[Report] = deque()
        self._written: list[Report] = []

    def take(self, event: Event) -> None:
        """Take one event."""
        if isinstance(event, Sample):
            if self._html_path is not None:
                self._history.add(event.snapshot)
        elif isinstance(event, self._early):
            self._due.append(event.report)

    def write_due(self, terminal: Terminal) -> None:
        """Write those that have come; one that cannot be written is tried again at the end."""
        while self._due:
            report = self._due.popleft()
            with suppress(LostFileError, OSError), terminal.cleared():
                self._write(report)

    def write_last(self, report: Report) -> None:
        """Write the report of the whole run, unless that has been done.

        Raises:
            LostFileError: it could not be written, and was printed.
        """
        if report not in self._written:
            self._write(report)

    def _write(self, report: Report) -> None:
        publish(report, self._history.snapshots, self._json_path, self._html_path)
        self._written.append(report)


def _wait(
    session: Session,
    received: Sequence[Received],
    grace: float | None,
    terminal: Terminal,
    reports_of_run: _Reports,
) -> Report:
    """The report of the whole run; signals are obeyed, and reports written, meanwhile."""
    obeyed = 0
    while True:
        with suppress(TimeoutError):
            return session.wait(0.1)
        for signalled in received[obeyed:]:
            _obey(session, signalled, grace, terminal)
            obeyed += 1
        reports_of_run.write_due(terminal)


def _obey(session: Session, received: Received, grace: float | None, terminal: Terminal) -> None:
    """Pass a signal to the job, or end the run by it."""
    number = received.number
    passed = grace is not None and not (received.asks and received.asked)
    passed = passed and session.signal(number, received.time)
    if passed and received.asks and grace is not None:
        session.end_within(grace)
        terminal.say(f"{signal.Signals(number).name} passed to the job; again ends it now")
    elif received.asks and (grace is None or number == signal.SIGINT):
        session.stop()
    elif received.asks:
        session.end_within(0)
    if number == signal.SIGTSTP:
        os.kill(os.getpid(), signal.SIGSTOP)


def publish(
    report: Report, snapshots: Sequence[Snapshot], json_path: str | None, html_path: str | None
) -> None:
    """Print the report, and write it as JSON, and as a page with its picture, where that is wanted.

    Raises:
        LostFileError: it could not be written, and was printed.
    """
    _print(report, json_path)
    if html_path is not None:
        from ..report.page import to_html  # here: a job is not to wait until templates are compiled

        try:
            write_atomically(Path(html_path), to_html(report, snapshots))
        except OSError as problem:
            raise LostFileError(f"{html_path} cannot be written: {problem.strerror}") from None


def _print(report: Report, json_path: str | None) -> None:
    text = reports.to_text(report).rstrip("\n")
    if json_path is not None:
        document = json.dumps(reports.to_json(report), indent=2) + "\n"
        if json_path == "-":
            print(text, file=sys.stderr)
            sys.stdout.write(document)
            sys.stdout.flush()
            return
        try:
            write_atomically(Path(json_path), document)
        except OSError as problem:
            print(text, flush=True)
            raise LostFileError(f"{json_path} cannot be written: {problem.strerror}") from None
    try:
        print(text, flush=True)
    except BrokenPipeError:  # `| head -1`: the verdict is still in the exit code
        discard(sys.stdout)
