"""`lab`: run a program of a lab under the instrument."""

from __future__ import annotations

import argparse

from .arguments import UsageError, guide
from .interrupts import noted


def add(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> argparse.ArgumentParser:
    """Declare the options."""
    verb = verbs.add_parser("lab", help="run a program of a lab and watch it")
    verb.add_argument("name", nargs="?", help="05_spawn_ports, or 05")
    verb.add_argument("--program", help="one of the lab's programs (broken)")
    verb.add_argument(
        "--knob", action="append", default=[], metavar="K=V", help="give a setting a value"
    )
    verb.add_argument(
        "--all",
        action="store_true",
        help="run every program of the lab, or of all labs, with every combination of its settings, and "
        "compare what comes with what lab.toml expects",
    )
    verb.add_argument(
        "--reset",
        action="store_true",
        help="forget your progress in the lab, or in all labs, and set your copies aside",
    )
    return verb


def run(options: argparse.Namespace) -> int:
    """Run the program, or all of them; return the exit code."""
    with guide():
        from ..labs import all_cases, reset
        from ..labs.lab import LabError, all_labs, find_lab
        from ..labs.progress import ProgressError
        from .watch import Forms, watch
    try:
        if options.all:
            if options.program or options.knob:
                raise UsageError("--all takes every program and setting: leave out --program and --knob")
            return all_cases.main([find_lab(options.name)] if options.name else all_labs())
        if options.reset:
            return reset.main([find_lab(options.name)] if options.name else all_labs())
        if not options.name:
            raise UsageError("which lab? name one, such as 05, or say --all")
        knobs = dict(knob(word) for word in options.knob)
        session = find_lab(options.name).session(options.program or "broken", folder=None, **knobs)
        with noted() as signals:
            return watch(session, signals, Forms())
    except (LabError, ProgressError) as problem:
        raise UsageError(str(problem)) from None


def knob(word: str) -> tuple[str, str]:
    """Name and value of a `--knob`.

    Raises:
        UsageError: it is not NAME=VALUE.
    """
    name, equals, value = word.partition("=")
    if not equals:
        raise UsageError(f"--knob takes NAME=VALUE, not {word!r}")
    return name.replace("-", "_"), value
