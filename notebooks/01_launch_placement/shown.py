"""What the lesson shows of a run besides its report: lines that were printed, and open ports."""

import re
import sys

from helpers.labs.lab import find_lab
from helpers.model.facts import Report
from helpers.session import Session


async def before_launch() -> str:
    """What the ranks of broken.py log before they join, in time order."""
    lines = await _printed(find_lab("01").session("broken"))
    found = sorted(line for line in lines if re.search(r"rank \d: (the run|calls)", line))
    return "\n".join(line.split(" ", 2)[2] for line in found)


async def look() -> str:
    """What look.py prints about a healthy job."""
    lines = await _printed(Session([sys.executable, "look.py"]))
    found = sorted(line for line in lines if re.match(r"(one|two) process group|rank 0: ", line))
    return "\n".join(sorted(found, key=lambda line: line.startswith("rank")))


def ports(report: Report) -> str:
    """Which rank listens on which kind of port; store: where the ranks meet; gloo: their data."""
    return "\n".join(
        f"rank {view.rank}: {', '.join(sorted(port.role for port in view.process.ports))}"
        for view in report.snapshot.ranks
        if view.process is not None
    )


async def _printed(session: Session) -> list[str]:
    await session.start().result()
    return [line for label in session.logs.labels() for line in session.logs.tail(label)]
