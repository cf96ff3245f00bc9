"""A run that is to be made on GPUs, and the row that it becomes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import msgspec
from score.jobs import Job

from helpers.labs.all_cases import Case, words


@dataclass(frozen=True)
class Task:
    """One run that is to be made: a case of a lab, or a job as it runs on the GPUs.

    Attributes:
        said: what the ranks have to print, in any line; "" when nothing is asked.
        why_not: why this machine cannot make it; "" when it can.
    """

    part: str
    what: Case | Job
    said: str = ""
    why_not: str = ""

    @property
    def name(self) -> str:
        """Of the job, or of the case with its knobs."""
        return self.what.name if isinstance(self.what, Job) else self.what.shown

    @property
    def command(self) -> str:
        """As a person would type it."""
        if isinstance(self.what, Job):
            return self.what.command
        return " ".join(self.what.lab.command(self.what.program, self.what.knobs))

    @property
    def wanted(self) -> str:
        """What is expected of it, in words."""
        if isinstance(self.what, Job):
            return words(self.what.outcome, self.what.cause, self.what.culprits)
        return self.what.wanted

    @property
    def control(self) -> bool:
        """True for a run that surely ends well: with NCCL that may be no more than expected."""
        return self.wanted == "ok" and not (isinstance(self.what, Job) and self.what.nccl is not None)


@dataclass(frozen=True)
class Row:
    """What came of a run.

    Attributes:
        got: outcome, cause and culprits, or why there are none.
        notes: what else is not as expected: lines, results, what is left behind.
        fault: what failed in the instrument itself, "" when nothing did.
        failed: the error of its own with which a job ended that should end in another way.
        hardware: what the ranks were seen to use, as the report says it: `cuda` or `cpu`.
        said: the first line of the ranks with what they had to print, word for word.
        use: how busy the first GPU was, and how much of its memory was used, in words.
        control: True where a hang or an error is a false alarm.
    """

    part: str
    name: str
    command: str
    wanted: str
    got: str
    seconds: float
    notes: tuple[str, ...] = ()
    fault: str = ""
    failed: str = ""
    hardware: str = ""
    said: str = ""
    use: str = ""
    control: bool = False

    @property
    def word(self) -> str:
        """`right`, `wrong`, `JOB FAILED`, or one of two that fail the whole: `FAULT` and `ALARM`."""
        if self.fault:
            return "FAULT"
        if self.failed:
            return "JOB FAILED"
        if self.control and self.got.startswith(("hang", "error")):
            return "ALARM"
        return "right" if self.got == self.wanted and not self.notes else "wrong"


def exit_code(rows: Iterable[Row]) -> int:
    """1 when the instrument failed or raised a false alarm, else 0."""
    return int(any(row.word in ("FAULT", "ALARM") for row in rows))


def keep(row: Row, file: Path) -> None:
    """Add a row to a file, a JSON object in a line."""
    with file.open("ab") as growing:
        growing.write(msgspec.json.encode(row) + b"\n")


def kept(file: Path) -> list[Row]:
    """The rows of a file; none when it is not there."""
    if not file.exists():
        return []
    return [msgspec.json.decode(line, type=Row) for line in file.read_bytes().splitlines()]
