"""Jobs that never ran: their looks, in place of what a sampler sees."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
from beacon_records import call, record, thread

from helpers.beacon.record import Record
from helpers.launch.launch import AT_ONCE, Ending
from helpers.launch.output_pipes import OutputPipes
from helpers.observe.look import AnyQuestion, Look, Program, Told, Usage, Watched
from helpers.observe.recording import Recording

MADE = {"machine": "x86_64, 2 CPU cores", "torch": "2.13.0", "date": "2026-11-21T08:04:05+00:00"}
COMMAND = ("torchrun", "--nproc-per-node=2", "train.py")
LAUNCHER = 900
EVERY = 0.25


@dataclass
class FakeJob:
    """A job that notes what is done to it."""

    calls: list[str] = field(default_factory=list)
    fails_to_close: bool = False
    folder: Path | None = None
    output: OutputPipes | None = None
    session: int = 0
    pid: int = 1000
    started: float = 0.0
    run_id: str = "fake"

    def poll(self) -> int | None:
        return None

    def reaped(self) -> dict[int, int]:
        return {}

    def processes(self) -> list[psutil.Process]:
        return []

    def sessions(self) -> dict[int, int]:
        return {}

    def signal(self, number: int, received: float) -> None:
        self.calls.append(f"signal {number}")

    def stop(self, ending: Ending = AT_ONCE) -> None:
        self.calls.append("stop")

    def close(self) -> None:
        self.calls.append("close")
        if self.fails_to_close:
            raise OSError("the folder is busy")


class FakeEyes:
    """Gives looks from a list, the last of them again and again; notes what it was asked."""

    def __init__(self, watched: Watched, looks: Sequence[Look]) -> None:
        self.watched = watched
        self.looks = list(looks)
        self.asked: list[Collection[AnyQuestion]] = []
        self.closed = False

    def look(self, wanted: Collection[AnyQuestion] = ()) -> Look:
        self.asked.append(wanted)
        return self.looks.pop(0) if len(self.looks) > 1 else self.looks[0]

    def close(self) -> None:
        self.closed = True


def watched(command: tuple[str, ...] = COMMAND) -> Watched:
    """A job in `/job` that was started at the time 0."""
    return Watched(command, "/job", LAUNCHER, 0.0, host="here")


def diverging(ranks: int, odd: int, steps: int = 32) -> Recording:
    """Ranks that train for some looks, until rank `odd` calls a barrier where others call all_reduce."""
    programs = [Program(LAUNCHER, 0, 1, 0.0, COMMAND, {})]
    programs += [
        Program(1000 + n, 0, LAUNCHER, 0.5, ("python", "train.py"), environment(n, ranks))
        for n in range(ranks)
    ]
    times = [1.0 + EVERY * look for look in range(steps + 16)]
    looks = []
    for look, time in enumerate(times):
        trains = look < steps
        told = (
            Told(1000 + n, time, at_step(n, ranks, odd, trains, time) if look <= steps else None)
            for n in range(ranks)
        )
        busy = min(time, times[steps])
        alive = [Usage(LAUNCHER), *(Usage(1000 + n, cpu=busy, memory=10**9) for n in range(ranks))]
        looks.append(Look(time, programs=tuple(programs), alive=tuple(alive), told=tuple(told)))
        programs = []
    return Recording(MADE, watched(), tuple(looks), "a run", {"rank 0": ["hello"]})


def at_step(number: int, ranks: int, odd: int, trains: bool, time: float) -> Record:
    """What the beacon of a rank tells."""
    facts: dict[str, Any] = {"frames": [("/job/train.py", 33, "step", True)]}
    if not trains:
        line, op = (41, "barrier") if number == odd else (33, "all_reduce")
        facts = {
            "frames": [("/job/train.py", line, "step", True)],
            "call": call("collective", op, group="default", ranks=list(range(ranks))),
        }
    entry = {"group": "0", "seq": 7, "op": "", "sizes": [], "done": trains, "created": 7}
    entry["op"] = "all_reduce" if trains else facts["call"]["op"]
    group = {"name": "default", "id": "0", "ranks": list(range(ranks)), "backend": "gloo"}
    return record(
        thread(since=time, **facts),
        ppid=LAUNCHER,
        started=0.5,
        env=environment(number, ranks),
        dist={"rank": number, "world_size": ranks, "groups": [group], "made": 1},
        flight={"since": time, "entries": [entry]},
    )


def environment(number: int, ranks: int) -> dict[str, str]:
    """The launch variables of a rank."""
    return {"RANK": str(number), "LOCAL_RANK": str(number), "WORLD_SIZE": str(ranks)}
