"""When a thread waits for its device, and what is known of its groups from its calls."""

from __future__ import annotations

from typing import Any

import pytest
from beacon_records import call, record, thread

from helpers.beacon.record import CallHistory, Groups
from helpers.model.facts import Collective, ProcessView
from helpers.model.waits import UNKNOWN_CALL, InCollective, OnDevice
from helpers.observe import groups
from helpers.observe.evidence import Evidence, Source
from helpers.observe.issued import issued
from helpers.observe.process_table import Row
from helpers.observe.source import Sources
from helpers.observe.stillness import with_movement
from helpers.observe.waits import thread_waits

AT = ("/job/train.py", 1, "step", True)
MAIN, ANOTHER = 100, 101
READS, TESTS, COMPUTES = "loss.item()", "if loss > best:\n    pass", "y = model(x)"


def sources(text: str) -> Sources:
    return Sources("/job", lambda _: text)


def native(name: str) -> dict[str, Any]:
    return {"call": name, "fd": None, "target": None, "limited": False}


@pytest.mark.parametrize(
    ("text", "spins", "inside", "facts", "waits"),
    [
        (READS, True, None, {"accelerator": "cuda"}, True),
        (TESTS, True, None, {"accelerator": "cuda"}, True),
        (COMPUTES, True, None, {"accelerator": "cuda"}, False),
        (READS, False, None, {"accelerator": "cuda"}, False),
        (READS, True, None, {"accelerator": "cpu"}, False),
        (READS, False, "poll", {"accelerator": "cuda"}, True),
        (READS, False, "read", {"accelerator": "cuda"}, False),
        (READS, False, "poll", {"accelerator": "cpu"}, False),
        (READS, True, None, {"source": "py-spy"}, True),
        (TESTS, True, None, {"source": "py-spy"}, False),
    ],
)
def test_who_waits_for_a_device(
    text: str, spins: bool, inside: str | None, facts: dict[str, Any], waits: bool
) -> None:
    seen = thread(frames=[AT], spins=spins, native=None if inside is None else native(inside))
    found = thread_waits(seen, record(seen, **facts), sources(text))
    assert any(isinstance(wait, OnDevice) for wait in found) is waits


def groups_of(backend: str) -> Groups:
    group: Any = {"name": "default", "id": "0", "ranks": [0, 1], "backend": backend, "guessed": False}
    return {"rank": 0, "world_size": 2, "groups": [group], "made": 1}


def history(count: int, *newest: tuple[int, str], whole: bool = True) -> CallHistory:
    """So many calls; of the newest, number and operation, each made at the line of its number."""
    logged: list[Any] = [
        {"op": op, "group": "default", "number": number, "at": 1.0, "thread": 1, "place": place}
        for place, (number, op) in enumerate(newest)
    ]
    return {
        "collectives": {"default": count},
        "p2p": {},
        "places": [[("/job/train.py", number, "step", True)] for number, _ in newest],
        "newest": [{**one, "values": [{}]} for one in logged],
        "whole": whole,
    }


@pytest.mark.parametrize(
    ("backend", "whole", "counted"),
    [
        ("stand_in", True, True),
        ("cpu:gloo,privateuse1:stand_in", True, True),
        ("stand_in", False, False),
        ("gloo", True, False),
        ("nccl", True, False),
        ("cpu:gloo,cuda:nccl", True, False),
        ("", True, False),
    ],
)
def test_the_calls_count_where_a_backend_has_no_recorder(
    backend: str, whole: bool, counted: bool
) -> None:
    calls = history(3, (2, "all_reduce"), (3, "barrier"), whole=whole)
    sent: Any = {**calls["newest"][0], "op": "send", "number": 3}
    calls["newest"].append(sent)  # numbered apart
    seen = record(dist=groups_of(backend), call_history=calls)
    entries = (
        Collective("default", 1, UNKNOWN_CALL, done=True, logged=True),
        Collective("default", 2, "all_reduce", done=True, logged=True, turn=0),
        Collective("default", 3, "barrier", done=True, logged=True, turn=1),
    )
    assert groups.logged(seen) == (entries if counted else ())
    [*found] = issued(seen, sources("pass"))
    assert [(one.first, [made.op for made in one.calls]) for one in found] == (
        [(2, ["all_reduce", "barrier"])] if counted else []
    )
    if counted:
        assert [made.stack[0].line for made in found[0].calls] == [2, 3]


@pytest.mark.parametrize(
    ("driven", "asleep", "busy", "idle"),
    [
        (False, None, "main", False),
        (True, None, "main", True),
        (True, None, "another", False),
        (False, None, "another", False),
        (False, "nanosleep", "another", True),
        (False, "nanosleep", "main", False),
    ],
)
def test_whose_processor_time_is_movement(
    driven: bool, asleep: str | None, busy: str, idle: bool
) -> None:
    """A driver's own polling is none, and no other thread ends a sleep."""
    row = Row(MAIN, 0, 0.0, ("python",), look_time=0.0)
    for second in range(10):
        used = {MAIN: 0.0, ANOTHER: 0.0, (MAIN if busy == "main" else ANOTHER): 1.0 * second}
        row.work.take(float(second), 1.0 * second)
        row.take_threads(float(second), [(number, seconds, "") for number, seconds in used.items()])
        switches = second if busy == "main" else 0
        row.take_motions(float(second), [(MAIN, busy == "main", switches)], {MAIN: 0.0})
    evidence = Evidence(
        Source.RECORD,
        at=9.0,
        since=0.0,
        waits=(OnDevice(op="item"),) if driven else (),
        thread=thread(native_id=MAIN),
        asleep=asleep,
        driven=driven,
    )
    view = with_movement(ProcessView(MAIN, "rank"), row, evidence, now=9.0, start=0.0)
    assert (view.idle >= 5.0) is idle
    assert (view.woken >= 5.0) is (driven or busy == "another")


@pytest.mark.parametrize(("newest", "number"), [("barrier", 3), ("all_reduce", None)])
def test_a_call_in_progress_has_the_number_of_the_newest(newest: str, number: int | None) -> None:
    inside = thread(frames=[AT], call=call("collective", "barrier", group="default"))
    seen = record(inside, dist=groups_of("stand_in"), call_history=history(3, (3, newest)))
    [wait] = thread_waits(inside, seen, sources(READS))
    assert isinstance(wait, InCollective) and wait.seq == number


@pytest.mark.parametrize(
    ("file", "function", "waits"),
    [
        ("torch/distributed/utils.py", "_verify_param_shape_across_processes", True),
        ("torch/autograd/graph.py", "_engine_run_backward", False),
    ],
)
def test_native_code_that_communicates_and_nothing_else_may_wait_for_a_device(
    file: str, function: str, waits: bool
) -> None:
    library = (f"/venv/lib/python3/site-packages/{file}", 7, function, False)
    seen = thread(frames=[library, AT], spins=True)
    found = thread_waits(seen, record(seen, accelerator="cuda"), sources(COMPUTES))
    assert any(isinstance(wait, OnDevice) for wait in found) is waits
