"""A session in the terminal, from its start to its report."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from ..launch.launch import LaunchError
from ..model.facts import EXIT_CODES, Report, Snapshot
from ..observe.recording import Recorder
from ..report import report as reports
from ..report.files import discard, write_atomically
from ..report.history import History
from ..session import Decided, Event, Sample, Session
from .arguments import INTERRUPTED, LostFileError, UsageError
from .terminal import Terminal


def watch(
    session: Session,
    asked: Sequence[int],
    json_path: str | None = None,
    html_path: str | None = None,
    record: Path | None = None,
) -> int:
    """Run a session, write its report when the verdict is there, and return the exit code.

    Args:
        asked: gets longer when the run is to end (`interrupts.noted`).
        json_path, html_path, record: where the report and the recording go, if anywhere.

    Raises:
        UsageError: the command cannot be started, or the recording cannot be made.
        LostFileError: the report could not be written, and was printed.
    """
    recorder = _recorder(record) if record is not None else None
    decided: list[Report] = []
    published: list[Report] = []
    history = History()

    def put_out(report: Report) -> None:
        publish(report, history.snapshots, json_path, html_path)
        published.append(report)

    def on_event(event: Event) -> None:
        terminal.show(event)
        if html_path is not None and isinstance(event, Sample):
            history.add(event.snapshot)
        if isinstance(event, Decided):
            decided.append(event.report)
            if session.keep_running:
                with suppress(LostFileError, OSError):  # tried again when the job has ended
                    put_out(event.report)

    terminal = Terminal()
    with terminal:
        session.subscribe(on_event)
        if recorder is not None:
            session.record(recorder)
        try:
            session.start()
        except LaunchError as problem:
            raise UsageError(str(problem)) from None
        report = _wait(session, asked)
    if recorder is not None and recorder.problem is not None:
        print(f"stuck-ranks: {recorder.problem}", file=sys.stderr)
    if not published:
        put_out(report)
    if report.interrupted and not decided:
        return INTERRUPTED
    return EXIT_CODES[report.verdict.outcome]


def _recorder(path: Path) -> Recorder:
    try:
        return Recorder(path)
    except OSError as problem:
        raise UsageError(f"{path} cannot be written: {problem.strerror}") from None


def _wait(session: Session, asked: Sequence[int]) -> Report:
    """The report; Ctrl-C and SIGTERM, noted in `asked`, end the run first, however often they come."""
    while True:
        with suppress(TimeoutError):
            return session.wait(0.1)
        if asked:
            session.stop()


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
