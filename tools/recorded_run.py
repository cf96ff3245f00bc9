"""Runs a session to its end, and keeps how it was looked at."""

from __future__ import annotations

from pathlib import Path

from make_recordings import scrubbed
from thin import thinned

from helpers.observe.recording import Tape
from helpers.panel.run.export import Finished, recording
from helpers.report.source_lines import Sources
from helpers.session import Session


def run_recorded(session: Session, file: Path, expected: tuple[object, object, object]) -> bytes:
    """The recording of a run, without what names this machine.

    Args:
        session: that has not been started.
        file: where the recording is written, in the folder of the program.
        expected: outcome, cause and culprits.

    Raises:
        RuntimeError: it does not end as expected; the text says how it does.
    """
    tape = Tape()
    session.record(tape)
    report = session.start().wait()
    verdict = report.verdict
    ended = (verdict.outcome, verdict.cause, verdict.culprits)
    if ended != expected:
        raise RuntimeError(" ".join(map(str, ended)))
    finished = Finished(
        name="",
        report=report,
        snapshots=(report.snapshot,),
        logs=session.logs,
        sources=Sources(file.parent),
        recording=tape.recording,
    )
    file.write_bytes(recording(finished))
    return thinned(scrubbed(file))
