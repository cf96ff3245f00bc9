"""What the lesson shows of a run besides its report: lines that were printed, and open ports."""

import re
import sys

import psutil
from stuck_ranks.labs.lab import find_lab
from stuck_ranks.session import Decided, Event, Session


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


async def stuck() -> str:
    """How many ports each rank of broken.py listens on while it hangs."""
    session = find_lab("01").session("broken")
    session.keep_running = True
    told: list[str] = []

    def count(event: Event) -> None:
        if isinstance(event, Decided):
            for view in event.report.snapshot.ranks:
                open_now = psutil.Process(view.process.pid).net_connections("tcp")
                ports = sum(connection.status == psutil.CONN_LISTEN for connection in open_now)
                plural = "" if ports == 1 else "s"
                told.append(f"stuck: rank {view.rank} listens on {ports} port{plural}")
            session.stop()

    session.subscribe(count)
    await session.start().result()
    return "\n".join(told)


async def _printed(session: Session) -> list[str]:
    await session.start().result()
    return [line for label in session.logs.labels() for line in session.logs.tail(label)]
