"""Beacon records, written by hand as a beacon writes them, and what their processes wait for."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import beacon_records
import pytest
from beacon_records import call
from on_disk import sources

from helpers.model.facts import ProcessView
from helpers.model.frames import Frame
from helpers.model.waits import OnInput, OnLock, Wait
from helpers.model.wording import subject
from helpers.observe import ends, waits
from helpers.observe import process_view as views
from helpers.observe.called import called_at
from helpers.observe.evidence import merge
from helpers.observe.judged_thread import judged
from helpers.observe.outside import Outside
from helpers.observe.process_table import Row
from helpers.observe.source import relative
from helpers.observe.stillness import with_movement

JOB = "/job"
START = 90.0
USER = ["/job/train.py", 41, "validate", True]
MAIN = ["/job/train.py", 90, "<module>", True]
C10D = ["/opt/env/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py", 4800]
STDLIB = "/opt/env/lib/python3.11/"

Record = dict[str, Any]


MADE = 3
"""Groups that the process has made."""


def library(file: str, function: str) -> list[Any]:
    return [STDLIB + file, 10, function, False]


BACKWARD = library("torch/autograd/graph.py", "_engine_run_backward")


def thread(
    *frames: list[Any],
    call: Record | None = None,
    native: tuple[str, int | None, str | None] | tuple[str, None, None, bool] | None = None,
    name: str = "MainThread",
    site: Record | None = None,
    since: float = 100.0,
) -> Record:
    """One thread of a record; frames innermost first."""
    standing = None
    if native is not None:
        standing = {
            "call": native[0],
            "fd": native[1],
            "target": native[2],
            "limited": native[3:] == (True,),
        }
    return {
        "name": name,
        "main": name == "MainThread",
        "since": since,
        "frames": list(frames) or [USER, MAIN],
        "call": call,
        "native": standing,
        "site": site,
    }


def entry(seq: int, op: str, group: str = "0", done: bool = False, **facts: Any) -> Record:
    """One collective of the Flight Recorder's tail."""
    usual = {"sizes": [[4]], "created": seq}
    return {**usual, "group": group, "seq": seq, "op": op, "done": done, **facts}


def record(*threads: Record, entries: list[Record] | None = None, **facts: Any) -> Record:
    """A whole record of a rank in a group of two and a smaller one."""
    groups = [
        {"name": "default", "id": "0", "ranks": [0, 1], "backend": "gloo"},
        {"name": "tp", "id": "1", "ranks": [1], "backend": "gloo"},
    ]
    usual = {
        "dist": {"rank": 0, "world_size": 2, "groups": groups, "made": MADE},
        "flight": None if entries is None else {"since": 100.0, "entries": entries},
    }
    return beacon_records.record(*threads, **{**usual, **facts})


def of(one: Record, *, entries: list[Record] | None = None, cwd: str = JOB) -> list[Wait]:
    """The waits of one thread."""
    return waits.thread_waits(one, record(one, entries=entries), sources(cwd))


def process(given: Record | None, *, now: float = 110.0, **facts: Any) -> ProcessView:
    """The whole process behind a record, ten seconds after its last move."""
    row = Row(1000, 900, 0.0, ("python", "train.py"), look_time=100.0)
    for name in ("ended", "status", "stopped", "waits_for_child", "command"):
        if name in facts:
            setattr(row, name, facts.pop(name))
    readings = views.Readings(given, **{"written": None if given is None else now, **facts})
    job = sources(JOB)
    evidence = merge(views.evidence_of(row, readings, now, START, job))
    view = views.of_kernel(row, "rank", now, START)
    view = views.with_evidence(view, given, evidence, job, gil_held=readings.gil_held(row, now))
    return with_movement(view, row, evidence, now, START)


# Collectives


def test_a_thread_blocks_on_the_newest_pending_entry_of_its_group() -> None:
    one = thread(
        [*C10D, "all_reduce", False], USER, call=call("collective", "all_reduce", group="default")
    )
    entries = [
        entry(1, "broadcast", done=True),
        entry(2, "all_reduce"),
        entry(5, "all_gather", group="1"),
        entry(3, "all_reduce", sizes=[[4, 2], []]),
    ]
    found = of(one, entries=entries)
    assert [(w.kind, w.op, w.seq, w.blocking) for w in found] == [
        ("collective", "all_reduce", 2, False),
        ("collective", "all_reduce", 3, True),
    ]
    assert found[1].sizes == ((4, 2), ())
    assert (found[1].group, found[1].members) == ("default", (0, 1))
    assert found[1].where == Frame("train.py", 41, "validate")


def test_a_call_in_a_smaller_group_finds_the_entries_of_that_group() -> None:
    one = thread(USER, call=call("collective", "all_gather", group="tp", ranks=[1]))
    entries = [entry(7, "all_reduce"), entry(5, "all_gather", group="1")]
    (found,) = of(one, entries=entries)
    assert (found.group, found.members, found.seq) == ("tp", (1,), 5)


def test_without_a_flight_recorder_the_call_itself_tells() -> None:
    one = thread(USER, call=call("collective", "barrier", group="default", ranks=[0, 1], sizes=[[8]]))
    (found,) = of(one)
    assert (found.op, found.seq, found.sizes, found.blocking) == ("barrier", None, ((8,),), True)
    assert found.members == (0, 1)


@pytest.mark.parametrize("native", ["futex", "nanosleep"])
@pytest.mark.parametrize(
    ("file", "function", "op"),
    [
        ("torch/distributed/utils.py", "_verify_param_shape_across_processes", "all_gather"),
        ("torch/distributed/utils.py", "_sync_params_and_buffers", "broadcast"),
        ("torch/nn/parallel/distributed.py", "_pre_forward", "broadcast"),
    ],
)
def test_a_call_that_torch_makes_in_native_code(file: str, function: str, op: str, native: str) -> None:
    (found,) = of(thread(library(file, function), USER, native=(native, None, None)))
    assert (found.kind, found.op) == ("collective", op)


def test_without_a_flight_recorder_a_backward_pass_that_waits_is_a_call_for_all() -> None:
    (found,) = of(thread(BACKWARD, USER, native=("futex", None, None)))
    assert (found.kind, found.op, found.members) == ("collective", "backward", ())
    assert of(thread(BACKWARD, USER)) == []


def test_a_new_group_has_its_number(tmp_path: Path) -> None:
    one = thread(USER, call=call("collective", "new_group", group="default", ranks=[0, 1], counted=True))
    (found,) = process(record(one)).waits
    assert found.group_number == process(record(one)).groups_made == MADE
    one["call"]["counted"] = False
    assert process(record(one)).waits[0].group_number is None


@pytest.mark.parametrize("op", ["new_group", "monitored_barrier", "destroy_process_group"])
def test_what_the_flight_recorder_does_not_know_is_not_mixed_up_with_its_entries(op: str) -> None:
    one = thread(USER, call=call("collective", op, group="default", ranks=[0, 1], key="/k/1"))
    (found,) = of(one, entries=[entry(2, "all_reduce")])
    assert (found.op, found.seq, found.blocking) == (op, None, True)


def test_a_handle_blocks_on_the_oldest_pending_entry() -> None:
    one = thread(BACKWARD, USER, native=("futex", None, None))
    found = of(one, entries=[entry(3, "all_gather"), entry(2, "all_reduce")])
    assert [(w.seq, w.blocking) for w in found] == [(2, True), (3, False)]


@pytest.mark.parametrize(
    ("line", "expected"),
    [("handles[0].wait()", [True]), ("ready.acquire()", [False]), ("large @ large", [False])],
)
def test_only_a_line_that_waits_may_wait_for_a_collective(
    line: str, expected: list[bool], tmp_path: Path
) -> None:
    program = tmp_path / "train.py"
    program.write_text(f"\n{line}\n")
    one = thread([str(program), 2, "step", True], native=("futex", None, None))
    assert [
        wait.blocking for wait in process(record(one, entries=[entry(2, "all_reduce")])).waits
    ] == expected


def test_an_entry_of_a_group_that_is_gone_keeps_its_number() -> None:
    one = thread(BACKWARD, USER, native=("futex", None, None))
    (found,) = of(one, entries=[entry(1, "barrier", group="9")])
    assert found.group is not None and "9" in found.group
    assert found.members == ()


def test_a_thread_that_runs_has_its_operations_pending_only() -> None:
    view = process(record(thread(USER), entries=[entry(2, "all_reduce")]))
    assert [(w.op, w.blocking) for w in view.waits] == [("all_reduce", False)]
    assert view.state == "running"


def test_completed_entries_are_history_and_no_waits() -> None:
    view = process(record(thread(USER), entries=[entry(2, "all_reduce", done=True)]))
    assert view.waits == ()
    assert [(c.seq, c.op, c.done) for c in view.collectives] == [(2, "all_reduce", True)]


# Everything else that torch waits in


def test_a_receive_names_its_sender() -> None:
    (found,) = of(thread(USER, call=call("p2p", "recv", group="default", peers=[1], ranks=[0, 1])))
    assert (found.kind, found.op, found.peers, found.blocking) == ("p2p", "recv", (1,), True)


def test_the_rendezvous() -> None:
    one = thread(USER, call=call("rendezvous", "init_process_group", group="default", key="env://"))
    (found,) = of(one)
    assert (found.kind, found.op) == ("rendezvous", "init_process_group")
    assert process(record(one, dist=None)).state == "rendezvous"


def test_a_data_loader_is_a_wait_for_a_process() -> None:
    one = thread(USER, call=call("process", "DataLoader", workers={"2000": 0}))
    (found,) = of(one)
    assert (found.kind, found.op) == ("process", "DataLoader")


def test_a_lock_file_is_named_relative_to_the_job() -> None:
    (found,) = of(thread(USER, call=call("lock", "lock file", key="/job/build/lock")))
    assert (found.kind, found.op, found.path) == ("lock", "lock file", "build/lock")
    (found,) = of(thread(USER, call=call("lock", "lock file", key="/cache/lock")))
    assert found.path == "/cache/lock"


# The store: the source says which object is called, and with what


SOURCE = """\
def wait_for(store, name, index):
    store.get("ready")
    store.get(name)
    store.wait([f"rank/{index}"])
    self.held.get(compute())
    store.get(*name)
    other.get("x")
    handle.wait()
"""


def site(tmp_path: Path, line: int, source: str = SOURCE) -> Record:
    """A beacon's note of the call that stands on one line of a source file."""
    file = tmp_path / "train.py"
    file.write_text(source)
    text = source.splitlines()[line - 1]
    return beacon_records.site(
        str(file),
        [line, line, len(text) - len(text.lstrip()), len(text)],
        names={"store": "Store", "self.held": "Store", "handle": "Work"},
        strings={"name": "from a variable", "index": "3"},
    )


KEYS = [
    (2, ("Store", "get", "ready")),
    (3, ("Store", "get", "from a variable")),
    (4, ("Store", "wait", "rank/3")),
    (5, ("Store", "get", None)),
    (6, ("Store", "get", None)),
    (7, None),
    (8, ("Work", "wait", None)),
]


@pytest.mark.parametrize(("line", "expected"), KEYS)
def test_the_source_tells_the_key(
    tmp_path: Path, line: int, expected: tuple[str, str, str | None] | None
) -> None:
    assert called_at(site(tmp_path, line), sources()) == expected


def test_a_source_that_was_edited_is_read_again(tmp_path: Path) -> None:
    assert called_at(site(tmp_path, 2), sources()) == ("Store", "get", "ready")
    edited = SOURCE.replace('"ready"', '"other"')
    assert called_at(site(tmp_path, 2, edited), sources()) == ("Store", "get", "other")


@pytest.mark.parametrize("source", ["def broken(:\n", "\0"])
def test_a_source_that_cannot_be_parsed_tells_nothing(tmp_path: Path, source: str) -> None:
    file = tmp_path / "broken.py"
    file.write_text(source)
    place = beacon_records.site(str(file), [1, 1, 0, 14], names={"store": "Store"})
    assert called_at(place, sources()) is None


def test_a_source_that_is_not_utf_8_tells_what_it_can(tmp_path: Path) -> None:
    (tmp_path / "old.py").write_bytes(b"store.get('x')  # \xe9")
    place = beacon_records.site(str(tmp_path / "old.py"), [1, 1, 0, 14], names={"store": "Store"})
    assert called_at(place, sources()) == ("Store", "get", "x")


def test_a_source_that_is_gone_tells_nothing(tmp_path: Path) -> None:
    place = beacon_records.site(str(tmp_path / "gone.py"), [1, 1, 0, 14], names={"s": "Store"})
    assert called_at(place, sources()) is None


# Waits that end by themselves

LIMITED = """def setting(store, optional):
    try:
        return store.get("lr")
    except RuntimeError:
        return None


def asked(store, span):
    try:
        store.wait(["lr"], timedelta(seconds=5))
        store.wait(["lr"], span)
        store.wait(["lr"], timedelta(minutes=30))
        store.wait(["lr"], timedelta(later))
    except DistStoreError:
        pass


def told(store):
    with suppress(Exception):
        store.get("lr")


def raised_again(store):
    try:
        store.get("lr")
    except Exception as problem:
        print(problem)
        raise


def left(store):
    try:
        store.get("lr")
    except (ValueError, RuntimeError):
        sys.exit(1)


def other(store):
    try:
        store.get("lr")
    except KeyError:
        pass
    finally:
        store.get("lr")


def main(store):
    try:
        bare(store)
    except BaseException:
        pass


def bare(store):
    store.get("lr")
"""

ENDS = [(3, True), (10, True), (11, True), (12, False), (13, True), (20, True)]
ENDS += [(25, False), (33, False), (40, False), (44, False), (55, False)]


@pytest.mark.parametrize(("line", "limited"), ENDS)
def test_a_short_timeout_that_the_program_handles(line: int, limited: bool, tmp_path: Path) -> None:
    place = site(tmp_path, line, LIMITED)
    start = place["position"][2] + len("return ") * (line == 3)
    place["position"][2] = start
    place["limits"] = {"store": 9.0, "span": 4.0}
    one = thread([place["file"], line, "ask", True], site=place)
    (found,) = of(one, cwd=str(tmp_path))
    assert (found.kind, found.limited) == ("store", limited)


def test_a_handler_further_out_counts_and_one_of_a_librarys_does_not(tmp_path: Path) -> None:
    place = {**site(tmp_path, 55, LIMITED), "limits": {"store": 9.0}}
    outer = [place["file"], 49, "main", True]
    (found,) = of(thread([place["file"], 55, "bare", True], outer, site=place))
    assert found.limited
    (found,) = of(thread([place["file"], 55, "bare", True], [*outer[:3], False], site=place))
    assert not found.limited


def test_a_store_that_waits_long_is_waited_for(tmp_path: Path) -> None:
    place = {**site(tmp_path, 55, LIMITED), "limits": {"store": 300.0}}
    outer = [place["file"], 49, "main", True]
    assert not of(thread([place["file"], 55, "bare", True], outer, site=place))[0].limited
    assert not of(thread([place["file"], 55, "bare", True], outer, site={**place, "limits": {}}))[
        0
    ].limited


@pytest.mark.parametrize(("limit", "limited"), [(5.0, True), (1800.0, False), (None, False)])
def test_a_call_of_torchs_that_tells_its_timeout(
    limit: float | None, limited: bool, tmp_path: Path
) -> None:
    file = str(tmp_path / "train.py")
    (tmp_path / "train.py").write_text(
        "try:\n    dist.monitored_barrier()\nexcept RuntimeError:\n    pass\n"
    )
    for call_ in (
        call("collective", "monitored_barrier", limit=limit),
        call("rendezvous", "x", limit=limit),
    ):
        (found,) = of(thread([file, 2, "<module>", True], call=call_))
        assert found.limited is limited


@pytest.mark.parametrize(("line", "limited"), [(10, True), (11, True), (12, False), (55, False)])
def test_where_the_line_alone_is_known_its_calls_tell_the_timeout(
    line: int, limited: bool, tmp_path: Path
) -> None:
    """From outside, and before Python 3.11."""
    place = {**site(tmp_path, line, LIMITED), "position": [line], "limits": {"span": 4.0}}
    (found,) = of(thread([place["file"], line, "ask", True], site=place))
    assert (found.kind, found.limited) == ("store", limited)


LOCKED = """def save():
    lock.acquire()
    with lock:
        write()
    with open(name), self.lock as held:
        pass
"""
LOCKS = [
    ("its method", [2, 2, 4, 18], ("lock", "acquire", None)),
    ("a block, as before Python 3.12", [3, 4, 4, 15], ("lock", "acquire", None)),
    ("the head of a block, as from then on", [3, 3, 9, 13], ("lock", "acquire", None)),
    ("one of several", [5, 6, 4, 12], ("lock", "acquire", None)),
    ("a call inside the block", [4, 4, 8, 15], None),
]


@pytest.mark.parametrize(("position", "expected"), [row[1:] for row in LOCKS], ids=[r[0] for r in LOCKS])
def test_a_lock_of_the_process_is_found_in_the_source(
    tmp_path: Path, position: list[int], expected: tuple[str, str, str | None] | None
) -> None:
    file = tmp_path / "locked.py"
    file.write_text(LOCKED)
    names = {"lock": "lock", "self.lock": "lock"}
    place = beacon_records.site(str(file), position, names=names)
    assert called_at(place, sources()) == expected
    (found,) = of(thread(USER, site=place, native=("futex", None, None))) or (None,)
    assert (found is not None and found.kind == "lock") == (expected is not None)


def test_what_stands_behind_the_users_line_is_no_call_of_it() -> None:
    """`mp.spawn` runs the user's function in a file that also waits for children."""
    behind = library("site-packages/torch/multiprocessing/spawn.py", "_wrap")
    assert of(thread(USER, behind, native=("futex", None, None))) == []
    assert of(thread(behind, USER, native=("futex", None, None)))[0].kind == "process"


def test_a_store_key_becomes_a_wait(tmp_path: Path) -> None:
    (found,) = of(thread(USER, site=site(tmp_path, 2), native=("recvfrom", 5, "socket:[7]")))
    assert (found.kind, found.op, found.key) == ("store", "get", "ready")


HANDLES = """def step(store, handle, handles):
    handle.wait()
    handles[0].wait()
    dist.irecv(border, src=left).wait()
    dist.isend(border, 1).wait()
    dist.irecv(border).wait()
    dist.all_reduce(loss, async_op=True).wait()
"""
KINDS = {"handle": "Work.irecv", "handles[*]": "Work.isend"}
WAITED = [
    (2, ("Work.irecv", "wait", None)),
    (3, ("Work.isend", "wait", None)),
    (4, ("Work.irecv", "wait", "2")),
    (5, ("Work.isend", "wait", "1")),
    (6, ("Work.irecv", "wait", None)),
    (7, None),
]


@pytest.mark.parametrize(("line", "expected"), WAITED)
def test_the_source_tells_the_handle(
    tmp_path: Path, line: int, expected: tuple[str, str, str | None] | None
) -> None:
    found = {**site(tmp_path, line, HANDLES), "names": KINDS, "strings": {"left": "2"}}
    assert called_at(found, sources()) == expected


STORED = [
    ("handle = dist.irecv(border, src=left)", "2"),
    ("handle = dist.irecv(border, 1)", "1"),
    ("handle: object = dist.isend(border, dst=3)", "3"),
    ("handle = dist.irecv(border)", None),
    ("handle = made(border, src=left)", None),
    ("handle = dist.irecv(border, src=left); handle = dist.irecv(border, src=1)", None),
    ("for handle in handles: pass", None),
]


@pytest.mark.parametrize(("made", "peer"), STORED)
def test_the_call_that_made_a_handle_tells_its_peer(made: str, peer: str | None, tmp_path: Path) -> None:
    source = f"def train():\n    {made}\n    handle.wait()\nhandle = dist.irecv(border, src=9)\n"
    found = {**site(tmp_path, 3, source), "names": {"handle": "Work.irecv"}, "strings": {"left": "2"}}
    assert called_at(found, sources()) == ("Work.irecv", "wait", peer)
    told = {**found, "peers": {"handle": 7}}
    assert called_at(told, sources()) == ("Work.irecv", "wait", "7")


@pytest.mark.parametrize(
    ("line", "op", "peers"), [(2, "irecv", ()), (3, "isend", ()), (4, "irecv", (2,)), (5, "isend", (1,))]
)
def test_a_handle_of_a_point_to_point_operation(
    tmp_path: Path, line: int, op: str, peers: tuple[int, ...]
) -> None:
    place = {**site(tmp_path, line, HANDLES), "names": KINDS, "strings": {"left": "2"}}
    one = thread(USER, site=place, native=("futex", None, None))
    (found,) = of(one, entries=[entry(7, "all_reduce")])
    assert (found.kind, found.op, found.peers) == ("p2p", op, peers)


def test_a_handle_that_may_be_for_any_of_several_groups(tmp_path: Path) -> None:
    pending = [entry(3, "broadcast"), entry(4, "all_reduce"), entry(5, "all_reduce")]
    pending.append(entry(1, "all_reduce", group="1"))
    place = {**site(tmp_path, 2, HANDLES), "names": {"handle": "Work.all_reduce"}}
    one = thread(USER, site=place, native=("futex", None, None))
    found = of(one, entries=pending)
    assert {(w.group, w.seq) for w in found if w.blocking} == {("default", 4), ("tp", 1)}
    unnamed = {**place, "names": {"handle": "Work"}}
    found = of({**one, "site": unnamed}, entries=pending)
    assert {(w.group, w.seq) for w in found if w.blocking} == {("default", 3), ("tp", 1)}


def test_the_call_that_a_thread_stands_in_has_its_root() -> None:
    one = thread(call=call("collective", "broadcast", group="default", root=1))
    assert [w.root for w in of(one, entries=[entry(1, "reduce"), entry(2, "broadcast")])] == [None, 1]
    assert [w.root for w in of(one)] == [1]


def test_a_handle_with_nothing_pending_is_point_to_point(tmp_path: Path) -> None:
    (found,) = of(thread(USER, site=site(tmp_path, 8), native=("futex", None, None)))
    assert (found.kind, found.op) == ("p2p", "wait")


# What the system call tells


NATIVE = [
    ("flock", ("flock", 5, "/job/data.lock"), (), ("lock", "flock", "data.lock")),
    ("fcntl", ("fcntl", 5, "/elsewhere/data.lock"), (), ("lock", "fcntl", "/elsewhere/data.lock")),
    ("stdin", ("read", 0, "pipe:[7]"), (), ("input", "read", "pipe:[7]")),
    ("a terminal", ("read", 5, "/dev/pts/3"), (), ("input", "read", "/dev/pts/3")),
    ("a pipe", ("read", 5, "pipe:[7]"), (), ("io", "read", "pipe:[7]")),
    ("a socket", ("recvfrom", 5, "socket:[7]"), (), ("io", "recvfrom", "socket:[7]")),
    ("a full pipe", ("write", 5, "pipe:[7]"), (), ("io", "write", "pipe:[7]")),
    ("poll", ("poll", None, None), (), ("io", "poll", None)),
    ("a call that is not known", ("syscall 999", None, None), (), ("io", "syscall 999", None)),
    ("a signal", ("pause", None, None), (), ("io", "pause", "a signal")),
    ("a child", ("wait4", None, None), (), ("process", "wait", None)),
    (
        "subprocess",
        ("poll", None, None),
        (library("subprocess.py", "communicate"),),
        ("process", "wait", None),
    ),
    (
        "a joined process",
        ("poll", None, None),
        (
            library("multiprocessing/popen_fork.py", "wait"),
            library("multiprocessing/process.py", "join"),
        ),
        ("process", "wait", None),
    ),
    (
        "the debugger's prompt",
        ("read", 7, "socket:[1]"),
        (library("cmd.py", "cmdloop"), library("pdb.py", "interaction")),
        ("input", "read", "socket:[1]"),
    ),
    (
        "a queue of this process",
        ("futex", None, None),
        (library("threading.py", "wait"), library("queue.py", "get")),
        ("thread", "get", None),
    ),
    (
        "a future",
        ("futex", None, None),
        (library("concurrent/futures/_base.py", "result"),),
        ("thread", "result", None),
    ),
]


@pytest.mark.parametrize(
    ("native", "frames", "expected"), [row[1:] for row in NATIVE], ids=[row[0] for row in NATIVE]
)
def test_what_a_system_call_tells(
    native: tuple[str, int | None, str | None],
    frames: tuple[list[Any], ...],
    expected: tuple[str, str, str | None],
) -> None:
    (found,) = of(thread(*frames, USER, MAIN, native=native))
    assert (found.kind, found.op, subject(found)) == expected
    assert found.where == Frame("train.py", 41, "validate")


NO_WAIT = [
    ("it runs", None, ()),
    ("it sleeps", ("nanosleep", None, None), ()),
    ("C code of its own", ("futex", None, None), ()),
    ("a sleep in code run under a debugger", ("nanosleep", None, None), ("bdb.py", "pdb.py")),
]


@pytest.mark.parametrize(
    ("native", "files"), [row[1:] for row in NO_WAIT], ids=[row[0] for row in NO_WAIT]
)
def test_what_is_no_wait(
    native: tuple[str, int | None, str | None] | None, files: tuple[str, ...]
) -> None:
    below = [library(file, "run") for file in files]
    assert of(thread(USER, *below, native=native)) == []


@pytest.mark.parametrize("file", ["cmd.py", "queue.py", "threading.py", "subprocess.py"])
@pytest.mark.parametrize("system_call", ["nanosleep", "futex"])
def test_a_file_of_the_users_that_is_named_as_one_of_pythons_is_none(
    file: str, system_call: str
) -> None:
    one = thread([f"/job/tools/{file}", 5, "main", True], native=(system_call, None, None))
    assert of(one) == []


def test_sleep_is_told_apart() -> None:
    view = process(record(thread(USER, native=("nanosleep", None, None))))
    assert (view.asleep, view.waits, view.state) == ("nanosleep", (), "running")
    assert process(record(thread(USER, native=("futex", None, None)))).asleep is None


# Which thread counts


WAITING_MAIN = thread(
    library("threading.py", "wait"), library("queue.py", "get"), USER, native=("futex", None, None)
)
HELPER = thread(
    [*C10D, "all_reduce", False],
    ["/job/async_save.py", 7, "push", True],
    call=call("collective", "all_reduce", group="default", ranks=[0, 1]),
    name="saver",
    since=104.0,
)


def test_a_main_thread_that_waits_for_another_gives_way_to_it() -> None:
    view = process(record(WAITING_MAIN, HELPER))
    assert view.where == Frame("async_save.py", 7, "push")
    assert [(w.op, w.thread) for w in view.waits] == [("all_reduce", "saver")]
    assert view.still == pytest.approx(6.0)


def test_a_main_thread_that_waits_some_time_only_stays_in_view() -> None:
    limited = {**WAITING_MAIN, "native": {**WAITING_MAIN["native"], "limited": True}}
    view = process(record(limited, HELPER))
    assert view.where == Frame("train.py", 41, "validate")
    assert [(w.kind, w.limited) for w in view.waits] == [("thread", True), ("collective", False)]


def test_a_main_thread_that_runs_stays_in_view_beside_the_other_ones_wait() -> None:
    view = process(record(thread(USER), HELPER))
    assert view.where == Frame("train.py", 41, "validate")
    assert [(w.op, w.thread, w.blocking) for w in view.waits] == [("all_reduce", "saver", False)]
    assert view.state == "running"


def test_every_thread_of_which_the_main_one_may_wait_counts() -> None:
    other = {**HELPER, "name": "logger", "call": call("p2p", "recv", peers=[1])}
    view = process(record(WAITING_MAIN, HELPER, other))
    assert [(w.op, w.thread) for w in view.waits] == [("all_reduce", "saver"), ("recv", "logger")]


HOST = thread(
    library("asyncio/base_events.py", "run_forever"),
    library("ray/_private/workers/default_worker.py", "<module>"),
    native=("epoll_wait", 3, "anon_inode:[eventpoll]"),
)
"""The main thread of a framework that runs the user's code in another one."""


def test_a_main_thread_of_a_host_gives_way_to_the_users_code() -> None:
    beats = thread(["/job/progress.py", 3, "beat", True], name="beat")
    view = process(record(HOST, beats, HELPER))
    assert view.where == Frame("async_save.py", 7, "push")
    assert [(w.op, w.thread, w.blocking) for w in view.waits] == [("all_reduce", "saver", True)]
    assert view.state == "waiting"


def test_a_host_whose_threads_are_all_its_own_stays_in_view() -> None:
    pool = thread(library("concurrent/futures/thread.py", "_worker"), name="pool")
    view = process(record(HOST, pool))
    assert (view.where, [w.op for w in view.waits]) == (None, ["epoll_wait"])


def test_a_collective_in_which_a_thread_stands_is_listed_once() -> None:
    main = thread(USER, native=("futex", None, None))
    view = process(record(main, HELPER, entries=[entry(1, "all_reduce"), entry(2, "barrier")]))
    assert [(w.seq, w.op, w.thread) for w in view.waits] == [
        (1, "all_reduce", "saver"),
        (2, "barrier", "MainThread"),
    ]


def test_a_wait_for_a_file_lock_is_no_wait_for_another_thread() -> None:
    main = thread(USER, native=("flock", 5, "/job/data.lock"))
    view = process(record(main, HELPER))
    assert view.where == Frame("train.py", 41, "validate")
    assert [w.path for w in view.waits if isinstance(w, OnLock)] == ["data.lock"]


def test_idle_threads_of_libraries_do_not_count() -> None:
    pool = thread(library("concurrent/futures/thread.py", "_worker"), name="pool")
    queue = thread(library("threading.py", "wait"), name="feeder", native=("futex", None, None))
    view = process(record(thread(USER), pool, queue))
    assert (view.waits, view.state) == ((), "running")


def test_a_record_without_frames_shows_nothing() -> None:
    view = process(record({**thread(), "frames": []}))
    assert (view.stack, view.where, view.waits) == ((), None, ())


# The user's own code


def test_a_place_is_the_innermost_line_of_the_user() -> None:
    one = thread([*C10D, "barrier", False], library("contextlib.py", "inner"), USER, MAIN)
    view = process(record(one))
    assert view.where == Frame("train.py", 41, "validate")
    assert [frame.user for frame in view.stack] == [False, False, True, True]


def test_a_stack_of_libraries_alone_has_no_place() -> None:
    assert process(record(thread([*C10D, "barrier", False]))).where is None


TEXTS = [
    ("/job/train.py", "train.py", True),
    ("train.py", "train.py", True),
    ("/home/me/shared/util.py", "/home/me/shared/util.py", True),
    ("/opt/env/lib/python3.11/queue.py", "/opt/env/lib/python3.11/queue.py", False),
    (
        "/job/.venv/lib/python3.11/site-packages/torch/x.py",
        ".venv/lib/python3.11/site-packages/torch/x.py",
        False,
    ),
    ("/usr/lib/python3/dist-packages/torch/x.py", "/usr/lib/python3/dist-packages/torch/x.py", False),
    ("<frozen runpy>", "<frozen runpy>", False),
    ("/job/lib/python_tools/read.py", "lib/python_tools/read.py", True),
]


@pytest.mark.parametrize(("file", "shown", "user"), TEXTS)
def test_frames_that_were_read_from_text(file: str, shown: str, user: bool) -> None:
    (found,) = ends.mark_user([Frame(file, 3, "f")], JOB)
    assert (found.file, found.user) == (shown, user)


RELATIVE = [
    ("/job/train.py", "train.py"),
    ("/job/sub/../train.py", "train.py"),
    ("/jobs/train.py", "/jobs/train.py"),
    ("sub/train.py", "sub/train.py"),
    ("<string>", "<string>"),
]


@pytest.mark.parametrize(("file", "shown"), RELATIVE)
def test_files_are_relative_to_the_job(file: str, shown: str) -> None:
    assert relative(file, JOB) == shown
    assert relative(file, JOB + "/") == shown


# The whole process


CRASH = """\
Fatal Python error: Segmentation fault

Current thread 0x00007f2 (most recent call first):
  File "/job/ext.py", line 8 in poke
  File "/job/train.py", line 41 in validate

Thread 0x00007f1 (most recent call first):
  File "/opt/env/lib/python3.11/threading.py", line 331 in wait

Extension modules: numpy (total: 1)
"""


def test_a_beacon_that_cannot_run_means_that_the_interpreter_lock_is_held() -> None:
    view = process(record(thread(USER)), written=108.0)
    assert view.gil_held
    assert view.state == "running"


IN_MAIN, BESIDE = ["/job/train.py", 44, "validate", True], ["/job/ext.py", 3, "call", True]
HOLDERS = [
    (
        "a thread beside the main one",
        [("MainThread", [IN_MAIN], False), ("prefetch", [BESIDE], True)],
        BESIDE,
    ),
    ("the main thread", [("prefetch", [BESIDE], False), ("MainThread", [IN_MAIN], True)], IN_MAIN),
    ("not known", [("MainThread", [IN_MAIN], False), ("prefetch", [BESIDE], False)], IN_MAIN),
    ("it has no frame", [("prefetch", [], True)], USER),
    ("no thread was seen", [], USER),
]


@pytest.mark.parametrize(
    ("seen", "where"), [row[1:] for row in HOLDERS], ids=[row[0] for row in HOLDERS]
)
def test_the_thread_that_holds_the_interpreter_lock_is_shown(
    seen: list[tuple[str, list[Any], bool]], where: list[Any]
) -> None:
    read = [{**thread(name=name), "frames": frames, "holds_gil": holds} for name, frames, holds in seen]
    view = process(record(thread(USER)), written=108.0, outside=record(*read))
    assert view.gil_held
    assert view.where == Frame(os.path.basename(where[0]), *where[1:])


def test_a_beacon_without_a_processor_does_not_mean_that_the_lock_is_held() -> None:
    """Seen from outside, the main thread waits in the kernel, and nobody holds the lock."""
    printing = thread(USER, native=("write", 1, "/run/out/1000-1"))
    view = process(record(printing), written=108.0, outside=record(printing))
    assert (view.gil_held, [wait.op for wait in view.blocking]) == (False, ["write"])


WITHOUT_BEACON = [
    ("it has not run for a while", {"holds_gil": True, "scheduled": 108.0}, {}, True),
    ("it has just run", {"holds_gil": True, "scheduled": 109.5}, {}, False),
    ("it has not got the lock", {"holds_gil": False}, {}, False),
    ("as records were before", {}, {}, False),
    ("its process is stopped", {"holds_gil": True, "scheduled": 108.0}, {"stopped": True}, False),
    ("its record is of no beacon", {"holds_gil": False}, {"written": 100.0}, False),
]


@pytest.mark.parametrize(
    ("facts", "also", "held"),
    [row[1:] for row in WITHOUT_BEACON],
    ids=[row[0] for row in WITHOUT_BEACON],
)
def test_without_a_beacon_a_thread_that_waits_with_the_lock_holds_it(
    facts: dict[str, Any], also: dict[str, Any], held: bool
) -> None:
    seen = record({**thread(USER), **facts}, source="py-spy")
    assert process(seen, **{"written": None, **also}).gil_held is held


def test_without_a_beacon_a_process_is_still_for_as_long_as_its_lock_is_held() -> None:
    """Another thread wakes up every 5 ms to ask for the lock; it does not get anywhere."""
    asks = thread(USER, since=109.9)
    holds = {**thread(BESIDE, name="prefetch", since=104.0), "holds_gil": True, "scheduled": 104.0}
    view = process(record(asks, holds, source="py-spy"), written=None)
    assert (view.gil_held, view.still) == (True, pytest.approx(6.0))


def test_a_stopped_process_does_not_hold_the_lock() -> None:
    view = process(record(thread(USER)), written=108.0, stopped=True)
    assert (view.gil_held, view.state) == (False, "stopped")


def test_what_py_spy_read_long_ago_grows_no_older() -> None:
    """On a busy machine a look takes seconds: what the process has done since is not known."""
    holds = {**thread(USER, since=104.0), "holds_gil": True, "scheduled": 105.5}
    view = process(record(holds, source="py-spy"), written=106.0)
    assert (view.read_at, view.still, view.gil_held) == (106.0 - START, pytest.approx(2.0), False)


@pytest.mark.parametrize(("age", "still"), [(0.0, 10.0), (0.4, 10.0), (0.8, 9.2), (2.0, 10.0)])
def test_how_long_a_process_is_still_is_what_its_beacon_has_seen(age: float, still: float) -> None:
    """A record may be late; when it stays away, the interpreter lock is held and nothing moves."""
    view = process(record(thread(USER)), written=110.0 - age)
    assert view.still == pytest.approx(still)


IN_RECV = thread(USER, call=call("p2p", "recv", peers=[1]))
RUN = library("concurrent/futures/thread.py", "run")
TIMED = ("futex", None, None, True)
TIMER = library("threading.py", "run")

ACTING = [
    ("it computes", thread(USER, name="upload"), "upload"),
    ("it sleeps", thread(USER, name="upload", native=("nanosleep", None, None)), "upload"),
    ("it reads", thread(USER, name="upload", native=("read", 5, "/a")), "upload"),
    ("an executor runs it", thread(library("ssl.py", "read"), RUN, name="pool"), "pool"),
    ("a library runs it", thread(library("ssl.py", "read"), name="monitor"), None),
    (
        "it waits for another thread",
        thread(library("queue.py", "get"), USER, name="logs", native=("futex", None, None)),
        None,
    ),
    (
        "it waits some time for another thread",
        thread(library("threading.py", "wait"), USER, name="beat", native=TIMED),
        "beat",
    ),
    (
        "it is a timer",
        thread(library("threading.py", "wait"), TIMER, name="Thread-1", native=TIMED),
        "Thread-1",
    ),
    (
        "a library's thread looks now and then",
        thread(
            library("threading.py", "wait"), library("tqdm/_monitor.py", "run"), name="bar", native=TIMED
        ),
        None,
    ),
    (
        "it waits for an event that no timer brings",
        thread(library("threading.py", "wait"), TIMER, name="idle", native=("futex", None, None)),
        None,
    ),
    ("it waits for a rank", thread(USER, name="p2p", call=call("p2p", "recv", peers=[1])), None),
]


@pytest.mark.parametrize(
    ("other", "expected"), [row[1:] for row in ACTING], ids=[row[0] for row in ACTING]
)
def test_which_thread_may_still_act(other: Record, expected: str | None) -> None:
    assert process(record(IN_RECV, other)).acting_thread == expected
    assert process(record(thread(USER), other)).acting_thread is None


def test_a_crash_shows_the_thread_that_crashed() -> None:
    view = process(record(thread(USER)), written=108.0, ended=109.0, status=11, crash=CRASH)
    assert (view.signal, view.state, view.gil_held) == (11, "exited", False)
    assert view.where == Frame("ext.py", 8, "poke")


def test_how_a_process_has_ended_is_told_with_its_source(tmp_path: Path) -> None:
    file = tmp_path / "train.py"
    file.write_text("poke()")
    line = [str(file), 1, "<module>", True]
    stacks = f'Current thread 0x7 (most recent call first):\n  File "{file}", line 1 in <module>\n'
    crashed = process(record(thread(line)), written=108.0, ended=109.0, status=11, crash=stacks)
    raised = process(record(thread(), error=failure(frames=[line], values={0: {"step": "3"}})))
    assert raised.error is not None
    frames = (*crashed.stack, *raised.error.stack)
    assert [(frame.text, dict(frame.values)) for frame in frames] == [
        ("poke()", {}),
        ("poke()", {"step": 3}),
    ]


def test_what_has_ended_waits_for_nothing() -> None:
    one = thread(USER, call=call("p2p", "recv", peers=[1]))
    assert process(record(one), ended=109.0, status=0).waits == ()
    assert process(record(one, ended=True)).waits == ()


def test_the_line_of_os_exit_is_that_of_the_thread_that_called_it() -> None:
    watchdog = [["/job/watch.py", 14, "watch", True]]
    one = record(thread(USER), cut_off=watchdog)
    assert process(one, ended=109.0, status=7 << 8).where == Frame("watch.py", 14, "watch")
    assert process(one).where == Frame("train.py", 41, "validate")
    raised = record(thread(USER), cut_off=watchdog, error=failure())
    assert process(raised, ended=109.0, status=7 << 8).where == Frame("train.py", 41, "validate")


def test_what_was_ended_by_a_signal_tells_whether_it_waited_for_others() -> None:
    one = thread(USER, call=call("p2p", "recv", peers=[1]))
    assert process(record(one), ended=109.0, status=15).ended_in_call
    assert not process(record(thread(USER)), ended=109.0, status=15).ended_in_call
    assert not process(record(one)).ended_in_call


def test_the_words_that_a_spawned_rank_leaves_count_however_it_ended() -> None:
    text = 'Traceback (most recent call last):\n  File "/job/train.py", line 9, in f\nKeyError: 3\n'
    view = process(record(thread(USER), ended=True), ended=109.0, status=15, traceback=text)
    assert view.error is not None
    assert view.error.type == "KeyError"
    assert not view.interpreter_finished
    assert process(record(thread(USER)), ended=109.0, status=15, log=text).error is None


def test_a_process_without_a_beacon_that_waits_for_a_child() -> None:
    view = process(None, command=("sh", "run.sh"), waits_for_child=True)
    assert [w.kind for w in view.waits] == ["process"]
    assert not view.beacon


STATES = [
    ("starting", [library("site.py", "main")], "starting"),
    ("importing", [library("importlib/__init__.py", "import_module")], "importing"),
    ("running", [USER], "running"),
]


@pytest.mark.parametrize(("phase", "frames", "state"), STATES)
def test_the_phase_of_a_rank_that_does_not_wait(phase: str, frames: list[list[Any]], state: str) -> None:
    assert process(record(thread(*frames), phase=phase)).state == state


def test_a_pending_operation_counts_from_its_own_start() -> None:
    one = thread(USER, call=call("collective", "all_reduce", group="default"), since=95.0)
    view = process(record(one, entries=[entry(2, "all_reduce")]))
    assert view.still == pytest.approx(10.0)


# Errors


def failure(**facts: Any) -> Record:
    """What `beacon.exits` says of an exception."""
    usual = {"type": "ValueError", "message": "bad", "frames": [USER], "time": 109.0, "masked": []}
    return {**usual, **facts}


def test_the_error_of_a_record() -> None:
    view = process(record(thread(), error=failure(masked=["KeyError: 'x'"])), ended=110.0, status=256)
    assert view.error is not None
    assert view.error.text == "ValueError: bad"
    assert view.error.time == pytest.approx(19.0)
    assert view.error.stack == (Frame("train.py", 41, "validate"),)
    assert view.error.masked == ("KeyError: 'x'",)


WORKER_TEXT = """\
Caught ValueError in DataLoader worker process 0.
Original Traceback (most recent call last):
  File "/env/site-packages/torch/utils/data/_utils/worker.py", line 358, in _worker_loop
    data = fetcher.fetch(index)
  File "/job/data.py", line 9, in __getitem__
    raise ValueError("bad sample 7")
ValueError: bad sample 7
"""
SPAWN_TEXT = """\

-- Process 1 terminated with the following error:
Traceback (most recent call last):
  File "/opt/env/lib/python3.11/site-packages/torch/multiprocessing/spawn.py", line 96, in _wrap
    fn(i, *args)
  File "/job/train.py", line 12, in main
    raise KeyError("loss")
KeyError: 'loss'
"""


@pytest.mark.parametrize(
    ("message", "text", "place"),
    [
        (WORKER_TEXT, "ValueError: bad sample 7", Frame("data.py", 9, "__getitem__")),
        (SPAWN_TEXT, "KeyError: 'loss'", Frame("train.py", 12, "main")),
    ],
    ids=["a DataLoader worker", "mp.spawn"],
)
def test_an_error_that_a_parent_raises_again_is_the_childs(
    message: str, text: str, place: Frame
) -> None:
    view = process(record(thread(), error=failure(message=message)), ended=110.0, status=256)
    assert view.error is not None
    assert view.error.text == text
    assert next(frame for frame in view.error.stack if frame.user) == place
    assert view.error.stack[-1] == Frame("train.py", 41, "validate")


def test_the_log_tells_the_error_when_the_beacon_does_not() -> None:
    log = 'Traceback (most recent call last):\n  File "/job/a.py", line 3, in f\nKeyError: 1\n'
    view = process(record(thread()), ended=110.0, status=256, log=log)
    assert view.error is not None
    assert view.error.text == "KeyError: 1"
    assert view.error.stack == (Frame("a.py", 3, "f"),)


def test_a_log_of_a_process_that_ended_well_tells_nothing() -> None:
    log = 'Traceback (most recent call last):\n  File "/job/a.py", line 3, in f\nKeyError: 1\n'
    assert process(record(thread()), ended=110.0, status=0, log=log).error is None


@pytest.mark.parametrize(("status", "known"), [(15, True), (9, True), (0, False), (6, False)])
def test_a_launcher_may_end_a_process_that_was_about_to_fail(status: int, known: bool) -> None:
    """torch has printed the exception that nobody catches; one that is caught has no rank before it."""
    traceback = ["Traceback (most recent call last):", '  File "/job/a.py", line 3, in f', "KeyError: 1"]
    uncaught = "\n".join(f"[rank0]: {line}" for line in traceback)
    view = process(record(thread()), ended=110.0, status=status, log=f"step 1\n{uncaught}\n")
    assert (view.error is not None) is known
    caught = "\n".join(traceback)
    assert process(record(thread()), ended=110.0, status=status, log=caught).error is None


def test_an_abort_in_cpp_tells_what_was_thrown() -> None:
    log = (
        "terminate called after throwing an instance of 'gloo::EnforceNotMet'\n"
        "  what():  [enforce fail at pair.cc:456] op.preamble.length <= op.nbytes. 512 vs 64\n"
    )
    view = process(record(thread()), ended=110.0, status=6, log=log)
    assert view.error is not None
    assert "op.preamble.length <= op.nbytes" in view.error.message


@pytest.mark.parametrize(
    ("job", "rank", "kind"),
    [
        ("pipe:[1]", "pipe:[1]", "input"),
        ("pipe:[1]", "pipe:[2]", "io"),
        ("pipe:[1]", "/dev/pts/3", "io"),
        ("/dev/pts/0", "/dev/pts/0", "input"),
        ("", "pipe:[2]", "input"),
        ("pipe:[1]", None, "input"),
    ],
)
def test_a_pipe_of_the_jobs_own_at_standard_input_is_not_its_users(
    job: str, rank: str | None, kind: str
) -> None:
    outside = Outside(JOB, "here", lambda _: None)
    outside.input = job
    assert outside.completed(OnInput(op="read", source=rank), os.getpid()).kind == kind


# What threads of libraries wait for

POOL = library("multiprocessing/pool.py", "_handle_results")
CLIENT = library("site-packages/client/reader.py", "run")
HEARTBEAT = library("site-packages/ipykernel/heartbeat.py", "run")
GETS = thread(
    library("threading.py", "wait"),
    library("queue.py", "get"),
    USER,
    library("site-packages/ipykernel/zmqshell.py", "run_cell"),
    native=("futex", None, None),
)
THROUGH = [
    ("a pipe", POOL, ("read", 5, "pipe:[7]"), [], ["pipe:[7]"]),
    ("two pipes", POOL, ("poll", None, None), ["pipe:[7]", "pipe:[8]"], ["pipe:[7]", "pipe:[8]"]),
    ("what cannot be told", CLIENT, ("poll", None, None), [], [None]),
    ("a thread of what runs the program", HEARTBEAT, ("poll", None, None), ["socket:[7]"], []),
    ("a thread that waits inside, too", POOL, ("futex", None, None), [], []),
]


@pytest.mark.parametrize(
    ("frames", "native", "polled", "targets"),
    [row[1:] for row in THROUGH],
    ids=[row[0] for row in THROUGH],
)
def test_what_a_thread_of_a_library_waits_for_may_end_the_wait_for_it(
    frames: list[Any], native: tuple[str, int | None, str | None], polled: list[str], targets: list[Any]
) -> None:
    beside = thread(frames, name="beside", native=native)
    if polled:
        beside["native"]["polled"] = polled
    view = process(record(GETS, beside))
    assert [wait.kind for wait in view.waits] == ["thread"]
    assert [wait.target for wait in view.through] == targets


def test_a_rank_that_waits_for_others_does_not_wait_through_libraries() -> None:
    reads = thread(POOL, name="beside", native=("read", 5, "pipe:[7]"))
    assert process(record(IN_RECV, reads)).through == ()


def test_a_thread_whose_target_is_a_queue_waits_in_the_queue() -> None:
    below = [library("threading.py", name) for name in ("run", "_bootstrap_inner", "_bootstrap")]
    gets = [library("threading.py", "wait"), library("queue.py", "get"), *below]
    (wait,) = of(thread(*gets, name="gets", native=("futex", None, None)))
    assert (wait.kind, wait.op) == ("thread", "get")
    assert of(thread(*below, name="in C", native=("futex", None, None))) == []


@pytest.mark.parametrize(
    ("file", "expected"), [("client/reader.py", ["beside"]), ("ipykernel/control.py", [])]
)
def test_an_event_loop_may_end_a_wait_unless_it_is_of_what_runs_the_program(
    file: str, expected: list[str]
) -> None:
    loop = library("asyncio/base_events.py", "run_forever")
    own = library(f"site-packages/{file}", "run")
    beside = thread(loop, own, name="beside", native=("epoll_wait", None, None))
    evidence = judged(record(GETS, beside), 100.0, sources())
    assert evidence is not None
    assert [one["name"] for one, _ in evidence.freeing or ()] == expected
