"""The command line: `stuck-ranks`, also `python -m helpers`."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from helpers.arguments import UsageError, knob, parse
from helpers.report.files import UnwritableError, check_writable, discard, write_atomically

OK, ERROR, HANG, RUNNING = 0, 1, 2, 3
USAGE, FAULT, INTERRUPTED = 64, 70, 130
OUTCOMES = {"ok": OK, "error": ERROR, "hang": HANG, "running": RUNNING}


class LostFileError(Exception):
    """A file could not be written in the end; what it would have held has been printed."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb.

    Returns:
        The exit code of the contract: 0 ok, 1 error, 2 hang, 3 still running, 64 wrong usage, 70 a
        fault of our own, 130 Ctrl-C.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        options = parse(words)
        return VERBS[options.verb](options)
    except UsageError as problem:
        print(f"stuck-ranks: {problem}", file=sys.stderr)
        return USAGE
    except LostFileError as problem:
        print(f"stuck-ranks: {problem}", file=sys.stderr)
        return FAULT
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        discard(sys.stdout)
        return FAULT
    except Exception as fault:
        if os.environ.get("STUCK_RANKS_DEBUG"):
            raise
        print(
            f"stuck-ranks: a fault of the instrument itself: {type(fault).__name__}: {fault} "
            "(set STUCK_RANKS_DEBUG=1 for the traceback)",
            file=sys.stderr,
        )
        return FAULT


def _diagnose(options: argparse.Namespace) -> int:
    from helpers.session import Session

    if not options.command:
        raise UsageError("no command is given: put it after `--`")
    for path in (options.json, options.html, options.record):
        _ask_for(path)
    session = Session(
        options.command,
        stdin="inherit",
        patience=options.patience,
        max_seconds=options.max_seconds,
        stop_on_suspicion=options.stop_on_suspicion,
        keep_running=options.keep_running,
        record=Path(options.record) if options.record else None,
    )
    return _run(session, options.json, options.html)


def _attach(options: argparse.Namespace) -> int:
    from helpers.attach import AttachError, Attachment

    for path in (options.json, options.html):
        _ask_for(path)
    try:
        session = Attachment(options.pid, patience=options.patience)
    except AttachError as problem:
        raise UsageError(str(problem)) from None
    return _run(session, options.json, options.html)


def _run(session: Any, json_path: str | None, html_path: str | None = None) -> int:
    """Run a session in the terminal; write its report when the verdict is there."""
    from helpers.launch.launch import LaunchError
    from helpers.report.history import History
    from helpers.session import Decided, Sample
    from helpers.terminal import Terminal

    decided: list[Any] = []
    history = History()

    def publish(report: Any) -> None:
        _publish(report, json_path)
        if html_path is not None:
            _write_page(Path(html_path), report, history.snapshots)

    def on_event(event: Any) -> None:
        terminal.show(event)
        if html_path is not None and isinstance(event, Sample):
            history.add(event.snapshot)
        if isinstance(event, Decided):
            decided.append(event.report)
            if session.keep_running:
                publish(event.report)

    asked: list[int] = []
    before = {s: signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM)}
    for number in before:
        signal.signal(number, lambda number, frame: asked.append(number))
    terminal = Terminal()
    try:
        with terminal:
            session.subscribe(on_event)
            try:
                session.start()
            except LaunchError as problem:
                raise UsageError(str(problem)) from None
            report = _wait(session, asked)
        if session.recording_problem is not None:
            print(f"stuck-ranks: {session.recording_problem}", file=sys.stderr)
        if not (session.keep_running and decided):
            publish(report)
        if report.interrupted and not decided:
            return INTERRUPTED
        return OUTCOMES[report.verdict.outcome]
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _wait(session: Any, asked: list[int]) -> Any:
    """The report; Ctrl-C and SIGTERM, noted in `asked`, end the run first, however often they come."""
    while True:
        with suppress(TimeoutError):
            return session.wait(0.1)
        if asked:
            session.stop()


def _publish(report: Any, json_path: str | None) -> None:
    from helpers.report import report as reports

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
    except BrokenPipeError:  # `| head -1`: the verdict stands, and is in the exit code
        discard(sys.stdout)


def _ask_for(path: str | None) -> None:
    """Raises UsageError when a file that the user names cannot be written."""
    if path not in (None, "-"):
        try:
            check_writable(path)
        except UnwritableError as problem:
            raise UsageError(str(problem)) from None


def _write_page(path: Path, report: Any, snapshots: Any) -> None:
    from helpers.report.report import to_html

    write_atomically(path, to_html(report, snapshots))


def _check(options: argparse.Namespace) -> int:
    from helpers.labs import check

    return check.main()


def _lab(options: argparse.Namespace) -> int:
    from helpers.labs import all_cases as matrix
    from helpers.labs.lab import LabError, all_labs, find_lab

    try:
        if options.all:
            if options.program or options.knob:
                raise UsageError("--all takes every program and knob: leave out --program and --knob")
            return matrix.main([find_lab(options.name)] if options.name else all_labs())
        if not options.name:
            raise UsageError("which lab? name one, such as 05, or say --all")
        knobs = dict(knob(word) for word in options.knob)
        session = find_lab(options.name).session(options.program or "broken", folder=None, **knobs)
        return _run(session, None)
    except LabError as problem:
        raise UsageError(str(problem)) from None


def _replay(options: argparse.Namespace) -> int:
    from helpers.diagnose.diagnose import diagnose
    from helpers.report import report as reports
    from helpers.report.recording import RecordingError, replay
    from helpers.session import HISTORY

    _ask_for(options.html)
    try:
        history = list(replay(Path(options.file)))
    except RecordingError as problem:
        raise UsageError(str(problem)) from None
    if not history:
        raise UsageError(f"{options.file} holds no snapshot")
    verdict = diagnose(history[-HISTORY:], final=True)
    seen = (look.time for look in history if any(view.process for view in look.ranks))
    report = reports.build(
        verdict, history[-1], first_rank=next(seen, None), verdict_at=history[-1].time
    )
    if options.html:
        _write_page(Path(options.html), report, history)
    print(reports.to_text(report).rstrip("\n"))
    return OUTCOMES[verdict.outcome]


def _explain(options: argparse.Namespace) -> int:
    from helpers.diagnose.pages import UnknownCauseError, page

    try:
        print(page(options.cause).markdown.rstrip("\n"))
    except UnknownCauseError as problem:
        raise UsageError(str(problem.args[0])) from None
    return OK


def _score(options: argparse.Namespace) -> int:
    from helpers import collection, score

    for path in (options.json, options.markdown):
        _ask_for(path)
    record = Path(options.record) if options.record else None
    if record is not None and not record.is_dir():
        raise UsageError(f"{record} is no folder; make it for the recordings")
    try:
        folder = Path(options.folder).resolve()
        jobs = collection.select(collection.read(folder), options.jobs)
        for job in jobs.values():
            job.lines()
    except collection.CollectionError as problem:
        raise UsageError(str(problem)) from None
    found = score.measure(
        jobs,
        controls=options.controls,
        repeat=options.repeat,
        at_once=options.at_once,
        record=record,
    )
    page = score.to_markdown(found)
    print(page, end="", flush=True)
    if options.markdown:
        write_atomically(Path(options.markdown), page)
    if options.json:
        write_atomically(Path(options.json), json.dumps(score.to_json(found), indent=1) + "\n")
    if len(found.trials) < found.planned:
        return INTERRUPTED
    return OK if all(found.bar().values()) else ERROR


def _refresh(options: argparse.Namespace) -> int:
    from helpers.labs import notebooks as refresh

    return int(refresh.main(options.notebooks))


VERBS: dict[str, Callable[[argparse.Namespace], int]] = {
    "diagnose": _diagnose,
    "attach": _attach,
    "check": _check,
    "lab": _lab,
    "replay": _replay,
    "explain": _explain,
    "score": _score,
    "refresh": _refresh,
}

if __name__ == "__main__":
    sys.exit(main())
