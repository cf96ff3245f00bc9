"""What the lesson shows of a run besides its report: how its ranks were started, and by whom."""

import re
from pathlib import PurePath

from stuck_ranks.model.facts import ProcessView, Report


def started(report: Report) -> str:
    """A line for each process of the job: what started it, and its command line."""
    ranks = {v.process.pid: f"rank {v.rank}" for v in report.snapshot.ranks if v.process}
    others = {process.pid: "the main process" for process in report.snapshot.launchers}
    found = [*report.snapshot.launchers, *(v.process for v in report.snapshot.ranks if v.process)]
    names = ranks | others
    return "\n".join(
        f"{names[one.pid]}, started by {names.get(one.parent or 0, 'you')}: {_command(one)}"
        for one in found
    )


def _command(process: ProcessView) -> str:
    """The command line without folders, numbers and Python's own options, which differ by machine."""
    words = [PurePath(word).name if word.startswith("/") else word for word in process.command]
    words = [word for word in words if not re.fullmatch(r"-[A-Zbdsuv]+", word)]
    return re.sub(r"^python[\d.]*", "python", re.sub(r"\(.*\)", "(...)", " ".join(words)))
