"""`diagnose`: run a command and say why it stops."""

from __future__ import annotations

import argparse
import os
from contextlib import closing
from pathlib import Path

from ..launch.guardian import inheritable
from ..launch.launch import Launch, LaunchError, clear_up, launch
from .arguments import UsageError, add_brief, add_html, add_json, add_patience, add_record, positive
from .interrupts import noted


def add(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> argparse.ArgumentParser:
    """Declare the options."""
    verb = verbs.add_parser(
        "diagnose",
        help="run a command and say why it stops",
        usage="stuck-ranks diagnose [options] -- COMMAND [ARG ...]",
    )
    add_json(verb)
    add_html(verb)
    verb.add_argument("--max-seconds", type=positive, metavar="N", help="end the job after N s")
    add_patience(verb, 30.0)
    verb.add_argument("--stop-on-suspicion", action="store_true", help="end on a suspicion")
    add_record(verb)
    verb.add_argument("--keep-running", action="store_true", help="let the job go on after the verdict")
    verb.add_argument(
        "--grace",
        type=positive,
        default=25.0,
        metavar="S",
        help="seconds that the job has to end after SIGTERM, SIGINT, SIGHUP or SIGQUIT (25)",
    )
    verb.add_argument(
        "--stop-all",
        action="store_true",
        help="end also what a job that ends well leaves running in a session of its own",
    )
    add_brief(verb)
    verb.add_argument("--quiet", action="store_true", help="show no output of the job")
    verb.add_argument("--no-live", action="store_true", help="draw no table on the terminal")
    return verb


def run(options: argparse.Namespace) -> int:
    """Run the command; return the exit code."""
    if not options.command:
        raise UsageError("no command is given: put it after `--`")
    with noted() as signals, closing(_started(options.command)) as job:
        from ..session import Session  # while the job imports what it needs
        from .terminal import Terminal
        from .watch import Forms, watch

        session = Session(
            options.command,
            cwd=_folder(),
            stdin="inherit",
            patience=options.patience,
            max_seconds=options.max_seconds,
            stop_on_suspicion=options.stop_on_suspicion,
            keep_running=options.keep_running,
            stop_all=options.stop_all,
            start_job=lambda: job,
        )
        return watch(
            session,
            signals,
            Forms(options.json, options.html, options.brief, _workspace()),
            options.record,
            grace=options.grace,
            terminal=Terminal(output=not options.quiet, live=not options.no_live),
        )


def _started(command: list[str]) -> Launch:
    try:
        clear_up()
        job = launch(command, stdin="inherit")
    except LaunchError as problem:
        raise UsageError(str(problem)) from None
    for descriptor in inheritable():  # the job has them, and we would hold open what it closes
        os.close(descriptor)
    return job


def _folder() -> Path:
    """The current folder; as the shell has it where that has been removed, which hinders no job."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        return Path(os.sep, os.environ.get("PWD", ""))


def _workspace() -> Path | None:
    """The checkout in which GitHub Actions runs this, None elsewhere."""
    return Path(os.environ.get("GITHUB_WORKSPACE", "")) if "GITHUB_ACTIONS" in os.environ else None
