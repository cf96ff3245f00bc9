"""The page of `make gpu`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from .rows import Row, Task

NOTHING = "**Nothing of this has run on a GPU yet.**"

COLUMNS = (
    *("part", "what", "command", "expected", "came", "right?", "else", "said", "on"),
    *("GPU use", "seconds"),
)

_MEANING = """\
`shared` is NCCL with two ranks on one GPU: as it refuses it, and with an `NCCL_HOSTID` for each rank.
`dumps` is what `stuck-ranks read` says of the Flight Recorder dumps that NCCL leaves at a time-out.
`labs` is every program of a lab with every setting that uses a GPU, `nccl` and `gloo` are jobs of
tests/jobs with CUDA tensors. A job is expected to get the verdict that it gets on the CPU, and with NCCL
what `jobs.toml` says of NCCL; a lab, what its `lab.toml` says. `JOB FAILED` is a job that ended with an
error of its own where it should not: that says nothing of the instrument. *GPU use* is how often the
first GPU was fully busy while the run lasted: by nccl-tests issue 117, a GPU that waits in NCCL shows
full use, so a busy GPU is no sign of progress.

How NCCL's own account is read and judged was run with torch's recorder of gloo in the place of NCCL's,
which is made from the same template: three jobs of tests/jobs with the backend `nccl_stand_in`. No dump
of NCCL itself has been read. To read how far the groups are takes, with that recorder, 9 microseconds a
look in a process with one group, 26 with 8 groups, 188 with 32 (medians of 400 looks, 2 cores, torch
2.13)."""


def page(where: str, rows: Sequence[Row], never: Sequence[tuple[Task, str]]) -> str:
    """The result in Markdown.

    Args:
        where: what was run with and when, in words.
        rows: what came of each run.
        never: the runs that were not made, and why.
    """
    counted = Counter(row.word for row in rows)
    kinds = ", ".join(
        f"{counted[word]} {word}" for word in ("right", "wrong", "JOB FAILED", "ALARM", "FAULT")
    )
    made = f"Made by `make gpu`: {where}. {len(rows)} runs: {kinds}."
    lines = ["# What the instrument says of jobs on GPUs", "", made if rows else NOTHING, "", _MEANING]
    if rows:
        lines += [
            "",
            _cells(*COLUMNS),
            "|---|---|---|---|---|---|---|---|---|---|---|",
            *map(line, rows),
        ]
    if never:
        lines += ["", "## Never ran", ""]
        for why, count in Counter(why for _, why in never).items():
            lines += [f"{count} runs, because {why}:", ""]
            lines += ["| part | what | command | expected |", "|---|---|---|---|"]
            lines += [
                _cells(task.part, task.name, f"`{task.command}`", task.wanted)
                for task, reason in never
                if reason == why
            ]
            lines.append("")
    return "\n".join(lines).rstrip() + "\n"


def line(row: Row) -> str:
    """A row of the table."""
    word = row.word if row.word == "right" else f"**{row.word}**"
    more = "; ".join((*filter(None, [row.fault, row.failed]), *row.notes))
    said = f"`{row.said}`" if row.said else ""
    command, seconds = f"`{row.command}`", f"{row.seconds:.1f}"
    cells = (row.part, row.name, command, row.wanted, row.got, word, more, said)
    return _cells(*cells, row.hardware, row.use, seconds)


def _cells(*cells: str) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
