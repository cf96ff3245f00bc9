"""The command line: `stuck-ranks`, also `python -m helpers`."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

OK, ERROR, HANG, RUNNING = 0, 1, 2, 3
USAGE, FAULT, INTERRUPTED = 64, 70, 130
OUTCOMES = {"ok": OK, "error": ERROR, "hang": HANG, "running": RUNNING}


class UsageError(Exception):
    """The command line cannot be carried out; the text says why in one sentence."""


class LostFileError(Exception):
    """A file could not be written in the end; what it would have held has been printed."""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message} (see {self.prog} --help)")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one verb.

    Returns:
        The exit code of the contract: 0 ok, 1 error, 2 hang, 3 still running, 64 wrong usage, 70 a
        fault of our own, 130 Ctrl-C.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        options = _parser().parse_args(*_split(words))
        run: Callable[[argparse.Namespace], int] = options.run
        return run(options)
    except UsageError as problem:
        print(f"stuck-ranks: {problem}", file=sys.stderr)
        return USAGE
    except LostFileError as problem:
        print(f"stuck-ranks: {problem}", file=sys.stderr)
        return FAULT
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
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


def _split(words: list[str]) -> tuple[list[str], argparse.Namespace]:
    """Options before `--`, the command after it, which is never parsed."""
    if "--" not in words:
        return words, argparse.Namespace(command=[])
    at = words.index("--")
    return words[:at], argparse.Namespace(command=words[at + 1 :])


def _parser() -> _Parser:
    parser = _Parser(prog="stuck-ranks", description="Say which rank, which call, which line, why.")
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    diagnose = verbs.add_parser(
        "diagnose",
        help="run a command and say why it stops",
        usage="stuck-ranks diagnose [options] -- COMMAND [ARG ...]",
    )
    diagnose.set_defaults(run=_diagnose)
    diagnose.add_argument("--json", metavar="FILE", help="write the report as JSON; - is stdout")
    diagnose.add_argument("--html", metavar="FILE", help="write the report as a page with its picture")
    diagnose.add_argument("--max-seconds", type=_positive, metavar="N", help="end the job after N s")
    diagnose.add_argument(
        "--patience",
        type=_positive,
        default=30.0,
        metavar="S",
        help="seconds without CPU or movement after which a rank is suspect (30)",
    )
    diagnose.add_argument("--stop-on-suspicion", action="store_true", help="end on a suspicion")
    diagnose.add_argument("--record", metavar="FILE", help="write every look, for `replay`")
    diagnose.add_argument(
        "--keep-running", action="store_true", help="let the job go on after the verdict"
    )
    attach = verbs.add_parser("attach", help="say why a running job stands still; leave it as it is")
    attach.set_defaults(run=_attach)
    attach.add_argument("pid", type=_pid, help="its launcher, or any of its ranks")
    attach.add_argument("--json", metavar="FILE", help="write the report as JSON; - is stdout")
    attach.add_argument(
        "--patience",
        type=_positive,
        default=10.0,
        metavar="S",
        help="seconds without CPU or movement after which a rank is suspect (10)",
    )
    check = verbs.add_parser("check", help="what is there on this machine, and what runs how")
    check.set_defaults(run=_check)
    lab = verbs.add_parser("lab", help="run a program of a lab under the instrument")
    lab.set_defaults(run=_lab)
    lab.add_argument("name", nargs="?", help="05_spawn_ports, or 05")
    lab.add_argument("--program", help="one of the lab's programs (broken)")
    lab.add_argument("--knob", action="append", default=[], metavar="K=V", help="turn a knob")
    lab.add_argument(
        "--all",
        action="store_true",
        help="run every program of the lab, or of all labs, with every combination of its knobs, and "
        "compare what comes with what lab.toml expects",
    )
    replay = verbs.add_parser("replay", help="the report of a recorded run")
    replay.set_defaults(run=_replay)
    replay.add_argument("file")
    replay.add_argument("--html", metavar="FILE", help="write the report as a page with its picture")
    explain = verbs.add_parser("explain", help="what a cause is, and what to do")
    explain.set_defaults(run=_explain)
    explain.add_argument("cause")
    score = verbs.add_parser("score", help="run a collection of jobs and count what is right")
    score.set_defaults(run=_score)
    score.add_argument("folder", metavar="DIR", help="a folder with a jobs.toml, such as tests/jobs")
    score.add_argument("--suite", help="only the jobs of this suite")
    score.add_argument("--jobs", metavar="A,B", help="only these jobs")
    score.add_argument("--repeat", type=_count, default=1, metavar="N", help="run each job N times")
    score.add_argument(
        "--controls", type=_count, default=0, metavar="N", help="repeat quick controls up to N runs"
    )
    score.add_argument("--at-once", type=_count, default=1, metavar="N", help="run N jobs at a time")
    score.add_argument("--record", metavar="DIR", help="write a recording of each job there")
    score.add_argument("--json", metavar="FILE", help="write the result as JSON, too")
    score.add_argument("--markdown", metavar="FILE", help="write the result as a page, too")
    refresh = verbs.add_parser("refresh", help="run notebooks and keep their new outputs")
    refresh.set_defaults(run=_refresh)
    refresh.add_argument("notebooks", nargs="*")
    return parser


def _positive(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no number") from None
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is not more than 0")
    return value


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 1")
    return int(text)


def _pid(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        raise argparse.ArgumentTypeError(f"{text!r} is no process id")
    return int(text)


def _diagnose(options: argparse.Namespace) -> int:
    from helpers.session import Session

    if not options.command:
        raise UsageError("no command is given: put it after `--`")
    for path in (options.json, options.html, options.record):
        _check_writable(path)
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

    _check_writable(options.json)
    try:
        session = Attachment(options.pid, patience=options.patience)
    except AttachError as problem:
        raise UsageError(str(problem)) from None
    return _run(session, options.json)


def _run(session: Any, json_path: str | None, html_path: str | None = None) -> int:
    """Run a session in the terminal; write its report when the verdict is there."""
    from helpers.history import History
    from helpers.launch import LaunchError
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
    from helpers import report as reports

    text = reports.to_text(report).rstrip("\n")
    if json_path is not None:
        document = json.dumps(reports.to_json(report), indent=2) + "\n"
        if json_path == "-":
            print(text, file=sys.stderr)
            sys.stdout.write(document)
            sys.stdout.flush()
            return
        try:
            _write_atomically(Path(json_path), document)
        except OSError as problem:
            print(text, flush=True)
            raise LostFileError(f"{json_path} cannot be written: {problem.strerror}") from None
    try:
        print(text, flush=True)
    except BrokenPipeError:  # `| head -1`: the verdict stands, and is in the exit code
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _write_page(path: Path, report: Any, snapshots: Any) -> None:
    from helpers.report import to_html

    _write_atomically(path, to_html(report, snapshots))


def _check_writable(path: str | None) -> None:
    """Raises UsageError when a file cannot be written at `path`."""
    if path is None or path == "-":
        return
    target = Path(path)
    if target.is_dir():
        raise UsageError(f"{path} is a folder, not a file")
    if not target.parent.is_dir():
        raise UsageError(f"{path} cannot be written: the folder {target.parent} does not exist")
    if target.exists() and not target.is_file():
        raise UsageError(f"{path} is no regular file; `--json -` writes to standard output")
    try:
        if target.exists():
            with target.open("ab"):
                return
        with tempfile.TemporaryFile(dir=target.parent):
            return
    except OSError as problem:
        raise UsageError(f"{path} cannot be written: {problem.strerror}") from None


def _write_atomically(path: Path, text: str) -> None:
    fd, staged = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(fd, "w", encoding="utf-8") as file:
            file.write(text)
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(staged, 0o666 & ~mask)
        os.replace(staged, path)
    except BaseException:
        os.unlink(staged)
        raise


def _check(options: argparse.Namespace) -> int:
    from helpers import check

    return check.main()


def _lab(options: argparse.Namespace) -> int:
    from helpers import matrix
    from helpers.labs import LabError, all_labs, find_lab

    try:
        if options.all:
            if options.program or options.knob:
                raise UsageError("--all takes every program and knob: leave out --program and --knob")
            return matrix.main([find_lab(options.name)] if options.name else all_labs())
        if not options.name:
            raise UsageError("which lab? name one, such as 05, or say --all")
        knobs = dict(_knob(word) for word in options.knob)
        session = find_lab(options.name).session(options.program or "broken", folder=None, **knobs)
        return _run(session, None)
    except LabError as problem:
        raise UsageError(str(problem)) from None


def _knob(word: str) -> tuple[str, str]:
    name, equals, value = word.partition("=")
    if not equals:
        raise UsageError(f"--knob takes NAME=VALUE, not {word!r}")
    return name.replace("-", "_"), value


def _replay(options: argparse.Namespace) -> int:
    from helpers import report as reports
    from helpers.diagnose import diagnose
    from helpers.recording import RecordingError, replay

    _check_writable(options.html)
    try:
        history = list(replay(Path(options.file)))
    except RecordingError as problem:
        raise UsageError(str(problem)) from None
    if not history:
        raise UsageError(f"{options.file} holds no snapshot")
    verdict = diagnose(history[-16:], final=True)
    seen = (look.time for look in history if any(view.process for view in look.ranks))
    report = reports.build(
        verdict, history[-1], first_rank=next(seen, None), verdict_at=history[-1].time
    )
    if options.html:
        _write_page(Path(options.html), report, history)
    print(reports.to_text(report).rstrip("\n"))
    return OUTCOMES[verdict.outcome]


def _explain(options: argparse.Namespace) -> int:
    from helpers.pages import UnknownCauseError, page

    try:
        print(page(options.cause).markdown.rstrip("\n"))
    except UnknownCauseError as problem:
        raise UsageError(str(problem.args[0])) from None
    return OK


def _score(options: argparse.Namespace) -> int:
    from helpers import collection, score

    for path in (options.json, options.markdown):
        _check_writable(path)
    record = Path(options.record) if options.record else None
    if record is not None and not record.is_dir():
        raise UsageError(f"{record} is no folder; make it for the recordings")
    try:
        folder = Path(options.folder).resolve()
        jobs = collection.select(collection.read(folder), options.suite, options.jobs)
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
        _write_atomically(Path(options.markdown), page)
    if options.json:
        _write_atomically(Path(options.json), json.dumps(score.to_json(found), indent=1) + "\n")
    if len(found.trials) < found.planned:
        return INTERRUPTED
    return OK if all(found.bar().values()) else ERROR


def _refresh(options: argparse.Namespace) -> int:
    from helpers import refresh

    return int(refresh.main(options.notebooks))


if __name__ == "__main__":
    sys.exit(main())
