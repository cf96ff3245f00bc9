"""A look into the store of a job that was running: the verdict waits for what it shows."""

from __future__ import annotations

from typing import Any

from test_dumped import frame, record

from helpers.observe.look import Dump, Look, Program, Store, Usage, Watched
from helpers.observe.observer import Observer
from helpers.observe.store import FIRST_AFTER

C10D = "/env/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py"
ENVIRONMENT = {"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "10.0.0.9", "MASTER_PORT": "29500"}
STORE = Store("10.0.0.9:29500")


def look(at: float, *answers: Any) -> Look:
    """Rank 1, which meets nobody."""
    command = ("python", "train.py")
    program = Program(9, 0, 1, 0.0, command, environment=ENVIRONMENT)
    return Look(time=at, programs=(program,), alive=(Usage(9, cpu=1.0, sockets=()),), answers=answers)


def test_a_store_that_is_looked_into_is_waited_for() -> None:
    observer = Observer(Watched(("python", "train.py"), "/job", 9, 0.0, attached=True))
    observer.take(look(1.0))
    seen = dict(record(frame("init_process_group", C10D), frame("main"), **ENVIRONMENT))
    seen["threads"][0]["since"] = 1.0
    assert not observer.take(look(1.2, (Dump(9), {**seen, "pid": 9}))).asked
    assert observer.take(look(1.0 + FIRST_AFTER)).asked and STORE in observer.wanted
    nobody = {"reachable": False, "keys": None, "problem": "does not answer"}
    told = observer.take(look(1.2 + FIRST_AFTER, (STORE, nobody)))
    assert not told.asked and told.stores[0].problem == "does not answer"
