"""A session in the terminal, from its start to its report."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
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
    reports_due: deque[Report] = deque()
    published: list[Report] = []
    history = History()
    terminal = terminal or Terminal()

    def on_event(event: Event) -> None:
        terminal.show(event)
        if html_path is not None and isinstance(event, Sample):
            history.add(event.snapshot)
        if isinstance(event, Signalled if json_path != "-" else ()) or (
            isinstance(event, Decided) and session.keep_running
        ):
            reports_due.append(event.report)

    def publish_due() -> None:
        while reports_due:
            report = reports_due.popleft()
            with suppress(LostFileError, OSError), terminal.cleared():  # tried again at the end
                publish(report, history.snapshots, json_path, html_path)
                published.append(report)

    with terminal:
        session.sink = terminal
        session.subscribe(on_event)
        if recorder is not None:
            session.record(recorder)
        try:
            session.start()
        except LaunchError as problem:
            raise UsageError(str(problem)) from None
        obeyed = 0
        while True:
            with suppress(TimeoutError):
                report = session.wait(0.1)
                break
            for one in received[obeyed:]:
                _obey(session, one, grace, terminal)
                obeyed += 1
            publish_due()
    if not session.keep_running and any(one.number == signal.SIGINT for one in received):
        # It may have come when all was decided: a job that is quick ends before it is passed on.
        report = replace(report, interrupted=True)
    if recorder is not None and recorder.problem is not None:
        print(f"stuck-ranks: {recorder.problem}", file=sys.stderr)
    if report not in published:
        publish(report, history.snapshots, json_path, html_path)
    return INTERRUPTED if report.interrupted else EXIT_CODES[report.verdict.outcome]


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


def _recorder(path: Path) -> Recorder:
    try:
        return Recorder(path)
    except OSError as problem:
        raise UsageError(f"{path} cannot be written: {problem.strerror}") from None


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
