"""`read`: the report of a job that is dead or elsewhere, from what it has left."""

from __future__ import annotations

import argparse
import gc

from .arguments import UsageError, add_brief, add_html, add_json


def add(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> argparse.ArgumentParser:
    """Declare the options."""
    verb = verbs.add_parser("read", help="the report of a job that is dead or elsewhere")
    verb.add_argument("path", nargs="+", help="dumps, logs and recordings, or folders of them")
    add_json(verb)
    add_html(verb)
    add_brief(verb)
    return verb


def run(options: argparse.Namespace) -> int:
    """Write the report; return the exit code of its verdict."""
    from ..artifacts import artifacts
    from ..artifacts.artifacts import NothingError
    from ..artifacts.files import MissingError
    from ..model.facts import EXIT_CODES
    from ..observe.recording import RecordingError
    from ..session import report_of_artifacts
    from .watch import Forms, publish

    gc.disable()  # what is read stays to the end; looking through it costs a third of the time
    try:
        report, history = report_of_artifacts(artifacts.read(options.path))
        publish(report, history, Forms(options.json, options.html, options.brief))
    except (MissingError, NothingError, RecordingError) as problem:
        raise UsageError(str(problem)) from None
    finally:
        gc.enable()
    return EXIT_CODES[report.verdict.outcome]
