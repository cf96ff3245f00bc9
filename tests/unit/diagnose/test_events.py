"""Which of several ends came first, and which only followed."""

from __future__ import annotations

from typing import Any

import pytest
from histories import (
    LIBRARY,
    child,
    collective,
    ended,
    error,
    frame,
    gone,
    launcher,
    process,
    raised,
    rank,
    snapshot,
    steady,
    wait,
    worker,
    working,
)
from msgspec.structs import replace

from helpers.diagnose.diagnose import diagnose
from helpers.diagnose.events import events
from helpers.model.facts import ProcessView, RankView, Snapshot
from helpers.model.frames import Frame
from helpers.model.waits import OnChild

FOLLOWS = [
    "[/gloo/transport/tcp/pair.cc:547] Connection closed by peer [127.0.0.1]:40123",
    "Connection reset by peer",
    "Broken pipe",
    "[unbound_buffer.cc:78] Timed out waiting 1800000ms for recv operation to complete",
    "Socket Timeout",
    "Application timeout caused pair closure",
    "Rank 1 failed to pass monitoredBarrier in 4000 ms",
    "Failed to recv, got 0 bytes. Connection was likely closed. Did the remote server crash?",
    "Wait timeout",
    "DataLoader worker (pid 4250) is killed by signal: Aborted.",
    "DataLoader worker (pid(s) 4250) exited unexpectedly",
    "NCCL communicator was aborted on rank 1.",
    "wait timeout after 300000ms, keys: /default_pg/0//cpu//0/1",
]


@pytest.mark.parametrize("message", FOLLOWS)
def test_an_error_that_speaks_of_another_end_follows_from_it(message: str) -> None:
    found = events(snapshot(raised(0, "RuntimeError", message, time=1.0), ended(1, 3, time=5.0)))
    assert [event.rank for event in found] == [1, 0]
    assert [event.consequence for event in found] == [False, True]


CONNECTION = Frame("/usr/lib/python3.11/multiprocessing/connection.py", 383, "_recv", user=False)
BROKEN = [
    ("the other end of a connection is gone", "EOFError", CONNECTION, True),
    ("it is gone before the connection", "FileNotFoundError", CONNECTION, True),
    ("the user's own file", "EOFError", LIBRARY, False),
    ("something else went wrong there", "ValueError", CONNECTION, False),
]


@pytest.mark.parametrize(
    ("kind", "inside", "follows"), [row[1:] for row in BROKEN], ids=[row[0] for row in BROKEN]
)
def test_a_broken_connection_follows_from_the_end_of_a_process(
    kind: str, inside: Frame, follows: bool
) -> None:
    failed = error(kind, "", inside, "train.py:9 main", time=1.0)
    killed = gone(worker(0), signal=9, ended=2.0)
    found = events(snapshot(ended(0, 1, error=failed, children=[killed])))
    assert [event.own for event in found] == [not follows, follows]


RELAYED = [
    "ChildFailedError",
    "ProcessRaisedException",
    "ProcessExitedException",
    "SignalException",
    "CalledProcessError",
]


@pytest.mark.parametrize("kind", RELAYED)
def test_what_a_launcher_says_of_its_ranks_follows(kind: str) -> None:
    said = launcher(ended=1.0, exit_code=1, error=error(kind, "train.py failed", time=1.0))
    found = events(snapshot(ended(0, 3, time=5.0), code=1, launchers=[said]))
    assert [event.rank for event in found] == [0, None]
    assert found[1].consequence


def test_a_launcher_that_ends_well_is_no_event() -> None:
    said = launcher(ended=1.0, exit_code=1)
    assert events(snapshot(ended(0), code=0, launchers=[said])) == ()
    assert len(events(snapshot(ended(0), code=1, launchers=[said]))) == 1


WRAPPED = [
    ("its rank has failed", ended(0, 3, time=4.0), {"exit_code": 3}, [(0, False), (0, True)]),
    ("its rank has ended well", ended(0), {"exit_code": 3}, [(0, False)]),
    ("its rank runs on", working(0), {"signal": 9}, [(0, False)]),
]


@pytest.mark.parametrize(
    ("view", "end", "found"), [row[1:] for row in WRAPPED], ids=[row[0] for row in WRAPPED]
)
def test_a_wrapper_ends_for_its_rank(
    view: RankView, end: dict[str, int], found: list[tuple[int, bool]]
) -> None:
    wrapper = process(900, "launcher", parent=1, wraps=0, ended=5.0, **end)
    seen = events(snapshot(view, code=None, launchers=[wrapper]))
    assert [(event.rank, event.consequence) for event in seen if event.own] == found


def test_the_place_of_a_wrapper_is_the_users_line() -> None:
    failed = error("KeyError", "x", "start.py:9 main")
    wrapper = process(900, "launcher", parent=1, wraps=0, ended=5.0, exit_code=1, error=failed)
    (event,) = events(snapshot(ended(0), code=1, launchers=[wrapper]))
    assert (event.rank, event.where) == (0, frame("start.py:9 main"))


def test_the_place_of_a_launcher_is_no_line_of_the_users() -> None:
    said = launcher(ended=1.0, exit_code=1, error=error("OSError", "x", "run.py:1 main"))
    (event,) = events(snapshot(code=1, launchers=[said]))
    assert event.where is None


CHILDREN = [
    ("its rank goes on", working(0, children=[gone(child(0))]), None, 0),
    ("its rank waits for it", rank(0, wait(OnChild, "wait"), children=[gone(child(0))]), None, 1),
    ("its rank has failed", ended(0, 1, children=[gone(child(0))]), None, 2),
    ("its rank has ended well", ended(0, children=[gone(child(0))]), None, 0),
    ("the job has failed", ended(0, children=[gone(child(0))]), 1, 1),
    ("the job has ended well", ended(0, children=[gone(child(0))]), 0, 0),
    ("it ended well", ended(0, 1, children=[gone(child(0), 0)]), 1, 1),
    ("it only kept the books", ended(0, 1, children=[gone(child(0, kind="helper"))]), 1, 1),
    ("it lives", ended(0, 1, children=[child(0)]), 1, 1),
]


@pytest.mark.parametrize(
    ("view", "code", "count"), [row[1:] for row in CHILDREN], ids=[row[0] for row in CHILDREN]
)
def test_when_the_end_of_a_child_counts(view: RankView, code: int | None, count: int) -> None:
    assert len(events(snapshot(view, code=code))) == count


def test_an_error_is_placed_at_the_innermost_line_of_the_user() -> None:
    found = error("ValueError", "bad", LIBRARY, "model.py:5 forward", "train.py:9 main")
    (event,) = events(snapshot(ended(0, error=found)))
    assert event.where is not None and event.where.file == "model.py"


def test_an_error_without_a_stack_is_placed_where_the_process_last_stood() -> None:
    (event,) = events(snapshot(ended(0, error=error("EnforceNotMet", "x"), at="ext.py:3 call")))
    assert event.where is not None and event.where.line == 3


def test_an_error_inside_a_library_alone_has_no_place() -> None:
    (event,) = events(snapshot(ended(0, error=error("ValueError", "bad", LIBRARY))))
    assert event.where is None


WORDS: list[tuple[Snapshot, str]] = [
    (snapshot(raised(0, "ValueError", "bad\nand more")), "ValueError: bad"),
    (snapshot(raised(0, "MemoryError", "")), "MemoryError"),
    (snapshot(ended(0, signal=11)), "signal 11"),
    (snapshot(ended(0, 3)), "exit code 3"),
]


@pytest.mark.parametrize(("newest", "text"), WORDS)
def test_how_an_event_is_spoken_of(newest: Snapshot, text: str) -> None:
    (event,) = events(newest)
    assert text in event.text
    assert "and more" not in event.text


def test_a_signal_counts_only_when_no_exception_tells_more() -> None:
    aborted = ended(0, signal=6, error=error("EnforceNotMet", "op.preamble"))
    (event,) = events(snapshot(aborted))
    assert event.by_signal is None
    (event,) = events(snapshot(ended(0, signal=6)))
    assert event.by_signal == 6


def test_a_rank_of_unknown_number_that_fails_is_an_event_too() -> None:
    (event,) = events(snapshot(replace(raised(0, "ValueError", "bad"), rank=None)))
    assert event.rank is None and event.own


def test_of_equals_the_earlier_stands_first() -> None:
    found = events(
        snapshot(
            raised(0, "KeyError", "x", time=3.0),
            raised(1, "KeyError", "y", time=2.0),
            ended(2, signal=11, time=1.0, children=[gone(worker(2), signal=9)]),
        )
    )
    assert [event.text.partition(":")[0] for event in found] == [
        "KeyError",
        "KeyError",
        "ended by signal 11",
        "ended by signal 9",
    ]
    assert [event.rank for event in found] == [1, 0, 2, 2]


def test_a_timeout_says_so() -> None:
    (event,) = events(snapshot(raised(0, "RuntimeError", "Timed out waiting 5ms for recv")))
    assert event.timeout
    (event,) = events(snapshot(raised(0, "RuntimeError", "bad")))
    assert not event.timeout


def test_a_script_may_go_on_after_a_step_that_failed_before_its_ranks() -> None:
    script = process(800, "launcher", parent=1)
    step = process(850, "launcher", parent=800, ended=1.0, signal=9, state="exited")
    above = launcher(ended=1.0, signal=9, state="exited")
    runs = snapshot(working(0), launchers=[script, step])
    assert events(runs) == ()
    assert [e.process.pid for e in events(snapshot(working(0), launchers=[script, step], code=1))] == [
        850
    ]
    assert [e.process.pid for e in events(snapshot(working(0), launchers=[script, above]))] == [900]


def test_a_rank_that_waits_for_a_living_child_needs_none_that_has_ended() -> None:
    build, job = gone(child(0), signal=9), child(0)
    job = replace(job, process=replace(job.process, pid=3100))
    joins = wait(OnChild, "wait")
    assert events(snapshot(rank(0, joins, children=[build, job]))) == ()
    assert [e.by_signal for e in events(snapshot(rank(0, joins, children=[build])))] == [9]


def _ended_by(number: int, script: ProcessView, *others: RankView, **job: Any) -> Snapshot:
    """Rank 0 was ended by a signal at 5 s; `script` has started it."""
    view = rank(0, parent=script.pid, state="exited", ended=5.0, signal=number)
    return snapshot(view, *others, launchers=[script], **{"started_by": "python", **job})


GOES_ON = launcher()
MEANT = [
    ("SIGTERM, and the script goes on", _ended_by(15, GOES_ON), True),
    ("SIGKILL, and the script goes on", _ended_by(9, GOES_ON), True),
    ("the script has ended well", _ended_by(15, launcher(ended=6.0, exit_code=0), code=0), True),
    ("a fault of its own", _ended_by(11, GOES_ON), False),
    ("the script had ended before", _ended_by(15, launcher(ended=4.0, exit_code=0)), False),
    ("the script has failed", _ended_by(15, launcher(ended=6.0, exit_code=1)), False),
    ("the script has raised", _ended_by(15, replace(GOES_ON, error=error("OSError", "x"))), False),
    ("the job has failed", _ended_by(15, GOES_ON, code=1), False),
    ("a launcher that only watches", _ended_by(15, GOES_ON, started_by="torchrun"), False),
    ("the kernel ended something for memory", replace(_ended_by(9, GOES_ON), memory_kills=1), False),
]


@pytest.mark.parametrize(("seen", "meant"), [row[1:] for row in MEANT], ids=[row[0] for row in MEANT])
def test_a_script_may_end_the_ranks_that_it_has_started(seen: Snapshot, meant: bool) -> None:
    assert (diagnose([seen]).cause == "none") is meant


def test_the_end_of_a_rank_that_another_waits_for_is_no_matter_of_its_starter() -> None:
    waits = rank(1, collective("barrier"))
    assert diagnose(steady(_ended_by(15, GOES_ON, waits))).cause == "rank-crashed"


def test_ranks_that_a_script_has_ended_are_told_when_it_has_ended_well() -> None:
    seen = _ended_by(15, launcher(ended=6.0, exit_code=0), code=0)
    told = "The job ended well: rank 0 was ended by SIGTERM, and the command went on."
    assert diagnose([seen]).summary == told


@pytest.mark.parametrize("failed", [False, True])
def test_what_a_library_runs_in_a_spawned_process_is_at_the_line_that_had_it_started(
    failed: bool,
) -> None:
    inside = ended(0, 1, error=error("AttributeError", "no pickle", LIBRARY))
    told = error("ProcessRaisedException", "no pickle", LIBRARY, "train.py:42 main") if failed else None
    parent = replace(launcher(), where=None if failed else frame("train.py:42 main"), error=told)
    spawned = snapshot(inside, launchers=[parent], started_by="mp.spawn")
    assert events(spawned)[0].where == frame("train.py:42 main")
    assert events(snapshot(inside, launchers=[parent]))[0].where is None
