"""A session in the terminal, from its start to its report."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec.structs import replace

from ..launch.launch import LaunchError
from ..model.facts import EXIT_CODES, Report, Snapshot
from ..observe.recording import Recorder
from ..report import report as reports
from ..report.annotation import annotation
from ..report.files import discard, write_atomically
from ..report.history import History
from ..session import Decided, Event, Sample, Session, Signalled
from .arguments import INTERRUPTED, LostFileError, UsageError
from .interrupts import Signals
from .terminal import Terminal


class Forms(msgspec.Struct, frozen=True):
    """The forms in which a report is wanted.

    Attributes:
        json, html: where it goes in these forms, if anywhere; `-` is standard output.
        brief: True for the lines that are printed to be at most eight.
        workspace: the checkout in which GitHub Actions runs the job, for an annotation at the line.
    """

    json: str | None = None
    html: str | None = None
    brief: bool = False
    workspace: Path | None = None


def watch(
    session: Session,
    signals: Signals,
    forms: Forms,
    record: Path | None = None,
    *,
    grace: float | None = None,
    terminal: Terminal | None = None,
) -> int:
    """Run a session, write its report when the verdict is there, and return the exit code.

    The report is also written when the first signal is passed to the job, which may be the last moment
    that is left for it.

    Args:
        signals: those that this process gets (`interrupts.noted`).
        forms: those of the report; record: where the recording goes, if anywhere.
        grace: seconds that a job may take to end after a signal that asks for it; None: the job gets no
            signal, and such a one ends the run.
        terminal: shows the run.

    Raises:
        UsageError: the command cannot be started, or the recording cannot be made.
        LostFileError: the report could not be written, and was printed.
    """
    recorder = _recorder(record) if record is not None else None
    terminal = terminal or Terminal()
    reports_of_run = _Reports(forms, at_verdict=session.keep_running)
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
        obeys = threading.Thread(target=_obey, args=(session, signals, grace, terminal))
        obeys.start()
        try:
            report = _wait(session, terminal, reports_of_run)
        finally:
            signals.end()
            obeys.join()
        interrupted = any(received.number == signal.SIGINT for received in signals.received)
        if interrupted and not session.keep_running:
            report = replace(report, interrupted=True)  # also where the job ended before it had it
        reports_of_run.write_files(report)  # whoever does not read what is printed has these
    if recorder is not None and recorder.problem is not None:
        print(f"stuck-ranks: {recorder.problem}", file=sys.stderr)
    reports_of_run.print_last(report)
    return INTERRUPTED if report.interrupted else EXIT_CODES[report.verdict.outcome]


def _recorder(path: Path) -> Recorder:
    try:
        return Recorder(path)
    except OSError as problem:
        raise UsageError(f"{path} cannot be written: {problem.strerror}") from None


class _Reports:
    """The reports of a run: noted as they come, written by the main thread, which may wait for a reader.

    Args:
        forms: those that are wanted.
        at_verdict: write the report when the verdict is there, while the job goes on.
    """

    def __init__(self, forms: Forms, *, at_verdict: bool) -> None:
        self._forms = forms
        self._printed_early: tuple[type[Event], ...] = (Decided,) if at_verdict else ()
        if forms.json != "-":  # one document is all that a reader of standard output expects
            self._printed_early += (Signalled,)
        self._history = History()
        self._due: deque[tuple[Report, bool]] = deque()
        self._written: list[Report] = []
        self._printed: list[Report] = []
        self._problem: LostFileError | None = None

    def take(self, event: Event) -> None:
        """Take one event."""
        if isinstance(event, Sample):
            if self._forms.html is not None:
                self._history.add(event.snapshot)
        elif isinstance(event, Decided | Signalled):
            self._due.append((event.report, isinstance(event, self._printed_early)))

    def write_due(self, terminal: Terminal) -> None:
        """Write those that have come; one that cannot be written is tried again at the end.

        The files of a verdict are written although nobody may read what is left of the job's output.
        """
        while self._due:
            report, is_printed = self._due.popleft()
            self.write_files(report)
            if is_printed:
                with suppress(LostFileError), terminal.cleared():
                    self.print_last(report)

    def write_files(self, report: Report) -> None:
        """Write the files that are wanted of a report, once."""
        if report in self._written:
            return
        self._problem = write_files(report, self._history.snapshots, self._forms)
        if self._problem is None:
            self._written.append(report)

    def print_last(self, report: Report) -> None:
        """Print a report, unless that has been done.

        Raises:
            LostFileError: a file of it could not be written.
        """
        if report not in self._printed:
            print_report(report, self._forms)
            self._printed.append(report)
        if self._problem is not None:
            raise self._problem


def _wait(session: Session, terminal: Terminal, reports_of_run: _Reports) -> Report:
    """The report of the whole run; others are written meanwhile."""
    while True:
        with suppress(TimeoutError):
            return session.wait(0.1)
        reports_of_run.write_due(terminal)


def _obey(session: Session, signals: Signals, grace: float | None, terminal: Terminal) -> None:
    """Pass signals to the job, or end the run by them, until the run is over.

    In a thread that writes nothing, so that no reader who does not read keeps a job from saving.
    """
    for received in signals:
        number = received.number
        passed = grace is not None and not (received.asks and received.earlier)
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


def publish(report: Report, snapshots: Sequence[Snapshot], forms: Forms) -> None:
    """Write the report as JSON, and as a page with its picture, where that is wanted, and print it.

    Raises:
        LostFileError: a file could not be written.
    """
    problem = write_files(report, snapshots, forms)
    print_report(report, forms)
    if problem is not None:
        raise problem


def write_files(report: Report, snapshots: Sequence[Snapshot], forms: Forms) -> LostFileError | None:
    """Write the report as JSON, and as a page with its picture, where that is wanted.

    Returns:
        What could not be written.
    """
    try:
        path = forms.json
        if path is not None and path != "-":
            write_atomically(Path(path), _document(report))
        path = forms.html
        if path is not None:
            from ..report.page import to_html  # here: no job is to wait until templates are compiled

            write_atomically(Path(path), to_html(report, snapshots))
    except OSError as problem:
        return LostFileError(f"{path} cannot be written: {problem.strerror}")
    return None


def print_report(report: Report, forms: Forms) -> None:
    """Print the report to standard output, or to standard error where JSON goes to standard output.

    Raises:
        LostFileError: standard output cannot be written.
    """
    text = (reports.brief(report) if forms.brief else reports.to_text(report)).rstrip("\n")
    if forms.workspace is not None:
        text = f"{text}\n{annotation(report, Path.cwd(), forms.workspace)}".rstrip("\n")
    try:
        if forms.json == "-":
            print(text, file=sys.stderr)
            sys.stdout.write(_document(report))
            sys.stdout.flush()
        else:
            print(text, flush=True)
    except BrokenPipeError:  # `| head -1`: the verdict is still in the exit code
        discard(sys.stdout)
    except OSError as problem:
        discard(sys.stdout)
        raise LostFileError(f"the report cannot be printed: {problem.strerror}") from None


def _document(report: Report) -> str:
    return json.dumps(reports.to_json(report), indent=2) + "\n"
