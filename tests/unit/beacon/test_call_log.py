"""Which calls of `torch.distributed` are noted, and what of each, with a module like torch's."""

from __future__ import annotations

import inspect
import itertools
import json
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from pythons import python

from helpers.beacon import call_log, scalars, threads, torch_names
from helpers.beacon.call_log import (
    KEPT,
    LONGEST_LABEL,
    LONGEST_NAME,
    MOST_GROUPS,
    MOST_VALUES,
    USERS_FRAMES,
    CallLog,
)
from helpers.beacon.process import Process

C10D = """
def _rank_not_in_group(group):
    if group is None:
        return False
    return group == "outside"

def get_rank(group=None):
    return -1 if _rank_not_in_group(group) else 0

def all_reduce(tensor, op="sum", group=None, async_op=False):
    if _rank_not_in_group(group):
        return
    tensor.count += 1

def isend(tensor, dst, group=None):
    if _rank_not_in_group(group):
        return
    return tensor

def send(tensor, dst, group=None):
    return isend(tensor, dst, group)

def batch_isend_irecv(tensors):
    for tensor in tensors:
        isend(tensor, 1)

def all_gather(tensors, tensor, group=None):
    _rank_not_in_group(group)

def all_gather_object(objects, obj, group=None):
    if _rank_not_in_group(group):
        return
    all_gather([], obj, group)
    all_gather([], obj, group)
"""

JOB = """
def train(act, steps):
    for step in range(steps):
        lr, api_key = 0.1 / (step + 1), "sk-123"
        act()

def keeps_its_locals(act):
    step = 3
    held = locals()
    act()
    return sorted(held)

def wrapper(act, *given):
    step = 4
    act(*given)

def enter(act, deeper):
    level = deeper
    enter(act, deeper - 1) if deeper else act()
"""

TENSOR = SimpleNamespace


class ProcessGroup:
    """A group with the name that a program gives it."""

    def __init__(self, name: str) -> None:
        self.group_desc = name


@pytest.fixture
def c10d(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    module = ModuleType(torch_names.DISTRIBUTED)
    file = tmp_path / "distributed_c10d.py"
    file.write_text(C10D)
    exec(compile(C10D, str(file), "exec"), vars(module))
    vars(module)["_world"] = SimpleNamespace(default_pg=object(), pg_names={})
    vars(module)["destroy_process_group"] = None  # the last name of the real module
    monkeypatch.setitem(sys.modules, torch_names.DISTRIBUTED, module)
    return module


@pytest.fixture
def log(c10d: ModuleType) -> CallLog:
    made = CallLog()
    assert call_log.watch(TENSOR(calls=made))
    return made


@pytest.fixture
def job() -> SimpleNamespace:
    """A program of the user's, without what pytest makes of an `assert` in a function."""
    space: dict[str, Any] = {"__name__": "train"}
    exec(compile(JOB, "/job/train.py", "exec"), space)
    return SimpleNamespace(**space)


def history(log: CallLog, stands: bool = True) -> Any:
    return log.history(lambda *_: stands)


def values(log: CallLog) -> dict[str, str]:
    """What the newest call's frame of the job's could name."""
    record = history(log)
    last = record["newest"][-1]
    frames = record["places"][last["place"]]
    return next(
        named for frame, named in zip(frames, last["values"], strict=True) if frame[0] == "/job/train.py"
    )


def test_a_call_has_its_group_its_number_and_the_values_of_the_users_frames(
    c10d: Any, log: CallLog, job: Any
) -> None:
    job.train(lambda: c10d.all_reduce(TENSOR(count=0)), 3)
    record = history(log)
    assert record["collectives"] == {"default": 3} and record["p2p"] == {}
    assert [(call["op"], call["group"], call["number"]) for call in record["newest"]] == [
        ("all_reduce", "default", 1),
        ("all_reduce", "default", 2),
        ("all_reduce", "default", 3),
    ]
    assert [frame[1:] for frame in record["places"][0][:2]][1] == (5, "train", True)
    assert values(log) == {"steps": "3", "step": "2", "lr": repr(0.1 / 3)}
    assert {call["thread"] for call in record["newest"]} == {threading.get_ident()}
    assert log.fault == ""


@pytest.mark.parametrize(
    ("act", "collectives", "p2p", "ops"),
    [
        pytest.param(
            lambda c10d: c10d.all_reduce(TENSOR(count=0), group=ProcessGroup("shard")),
            {"shard": 1}, {}, ["all_reduce"], id="a group by name",
        ),
        pytest.param(
            lambda c10d: c10d.send(TENSOR(), 1), {}, {"default": 1}, ["send"], id="what asks for another"
        ),
        pytest.param(
            lambda c10d: c10d.batch_isend_irecv([TENSOR(), TENSOR()]),
            {}, {"default": 2}, ["isend", "isend"], id="each of a batch",
        ),
        pytest.param(
            lambda c10d: c10d.all_gather_object([], TENSOR()),
            {"default": 1}, {}, ["all_gather_object"], id="its parts are not noted",
        ),
    ],
)  # fmt: skip
def test_which_calls_are_noted(
    c10d: Any,
    log: CallLog,
    act: Callable[[Any], None],
    collectives: dict[str, int],
    p2p: dict[str, int],
    ops: list[str],
) -> None:
    act(c10d)
    record = history(log)
    assert (record["collectives"], record["p2p"]) == (collectives, p2p)
    assert [call["op"] for call in record["newest"]] == ops


def test_nothing_is_noted_of_what_is_no_call_or_not_of_this_rank(c10d: Any, log: CallLog) -> None:
    tensor = TENSOR(count=0)
    c10d.get_rank()
    c10d.all_reduce(tensor, group="outside")
    assert history(log) is None and tensor.count == 0


def test_a_function_of_the_users_may_be_called_as_one_of_torchs(
    c10d: Any, log: CallLog, job: Any
) -> None:
    """The wrapper around torch's own functions has that name."""
    job.wrapper(c10d.all_reduce, TENSOR(count=0))
    assert values(log) == {"step": "4"}


def test_a_new_group_of_all_ranks_is_a_call(log: CallLog) -> None:
    def wrapper(**kwargs: Any) -> None:
        log.note_new_group(sys._getframe())

    wrapper(ranks=[0, 1])
    wrapper(ranks=[0], use_local_synchronization=True)
    assert history(log)["collectives"] == {"default": 1}
    assert history(log)["newest"][0]["op"] == "new_group" and log.fault == ""


def test_only_the_newest_are_kept_and_of_each_a_limited_number_of_values(
    c10d: Any, log: CallLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many and long the names, the record has a limit."""
    monkeypatch.setattr(call_log, "SHARE", 100.0)
    long = {"n" * (LONGEST_NAME - 2) + f"{number:02}": "x" * 60 for number in range(2 * MOST_VALUES)}
    named = {"n" * (LONGEST_NAME + 1): "too long", **long}
    program = "def step(act):\n" + "".join(f"    {name} = {text!r}\n" for name, text in named.items())
    space: dict[str, Any] = {"__name__": "train"}
    exec(compile(program + "    act()\n", "/job/train.py", "exec"), space)
    for _ in range(KEPT + 5):
        space["step"](lambda: c10d.all_reduce(TENSOR(count=0)))
    record = history(log)
    assert len(record["newest"]) == KEPT and record["newest"][-1]["number"] == KEPT + 5
    assert sum(map(len, record["newest"][-1]["values"])) == MOST_VALUES
    assert len(json.dumps(record)) < 320_000


def test_of_deep_stacks_the_innermost_frames_are_kept(c10d: Any, log: CallLog, job: Any) -> None:
    job.enter(lambda: c10d.all_reduce(TENSOR(count=0)), 20)
    record = history(log)
    assert len(record["places"][0]) == USERS_FRAMES
    assert [named.get("level") for named in record["newest"][0]["values"][1:3]] == ["0", "1"]


def test_where_calls_come_fast_those_of_every_so_many_are_read(
    c10d: Any, log: CallLog, job: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(call_log, "SHARE", 0.0)
    monkeypatch.setattr(call_log, "BURST", 0.0)
    job.train(lambda: c10d.all_reduce(TENSOR(count=0)), 40)
    record = history(log)
    assert record["collectives"] == {"default": 40}
    assert [call["number"] for call in record["newest"]] == [1, 2, 4, 8, 16, 32]


def test_the_first_calls_are_read_on_a_slow_machine_too(
    c10d: Any, log: CallLog, job: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each takes a millisecond here, five times what it takes on a machine of 2024."""
    milliseconds = itertools.count()
    monkeypatch.setattr(call_log.time, "thread_time", lambda: 0.001 * next(milliseconds))
    job.train(lambda: c10d.all_reduce(TENSOR(count=0)), 8)
    assert [call["number"] for call in history(log)["newest"]] == list(range(1, 9))


def test_the_order_of_calls_is_told_of_those_that_are_not_read_too(
    c10d: Any, log: CallLog, job: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(call_log, "SHARE", 0.0)
    monkeypatch.setattr(call_log, "BURST", 0.0)
    pair = ProcessGroup("pair")

    def act() -> None:
        c10d.all_reduce(TENSOR(count=0), group=pair)
        c10d.isend(TENSOR(count=0), 1)
        c10d.all_gather_object([], None)

    job.train(act, 5)
    record = history(log)
    made = [(number, op) for number in range(1, 6) for op in ("all_reduce", "all_gather_object")]
    labels = {"all_reduce": "pair", "all_gather_object": "default"}
    assert record["order"] == [(labels[op], number, op) for number, op in made]
    assert len(record["newest"]) < len(made)


def test_whose_handle_it_is(c10d: Any, log: CallLog, job: Any) -> None:
    job.train(lambda: c10d.all_reduce(TENSOR(count=0), async_op=True), 1)
    job.train(lambda: c10d.all_reduce(TENSOR(count=0)), 1)
    assert [call["handle"] for call in history(log)["newest"]] == [True, False]


def test_once_there_is_time_again_more_calls_are_read(
    c10d: Any, log: CallLog, job: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as hurry:
        hurry.setattr(call_log, "BURST", 0.0)
        hurry.setattr(call_log, "SHARE", 0.0)
        job.train(lambda: c10d.all_reduce(TENSOR(count=0)), 8)
    monkeypatch.setattr(call_log, "BURST", 1000.0)
    monkeypatch.setattr(call_log, "SHARE", 1e12)
    job.train(lambda: c10d.all_reduce(TENSOR(count=0)), 60)
    assert [call["number"] for call in history(log)["newest"]][-3:] == [66, 67, 68]


def test_calls_of_several_threads_are_all_counted(c10d: Any, log: CallLog, job: Any) -> None:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        doing = [
            threading.Thread(
                target=job.train, args=(lambda: c10d.all_reduce(TENSOR(count=0)), 2000), daemon=True
            )
            for _ in range(8)
        ]
        for thread in doing:
            thread.start()
        for thread in doing:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    assert history(log)["collectives"] == {"default": 16_000} and log.fault == ""


def test_calls_are_told_once_their_thread_stands(c10d: Any, log: CallLog) -> None:
    c10d.all_reduce(TENSOR(count=0))
    moving = history(log, stands=False)
    assert moving == {
        "collectives": {"default": 1},
        "p2p": {},
        "places": [],
        "newest": [],
        "whole": True,
        "order": [],
    }
    standing = history(log)
    assert len(standing["newest"]) == len(standing["places"]) == 1
    assert history(log)["newest"] is standing["newest"]
    assert history(log, stands=False) == moving


def test_a_process_that_has_called_nothing_has_no_history() -> None:
    assert "call_history" not in Process("").look(0, ended=True)


def test_a_process_tells_its_calls_as_it_ends(c10d: Any) -> None:
    process = Process("")
    call_log.watch(TENSOR(calls=process.log))
    c10d.all_reduce(TENSOR(count=0))
    assert process.look(0, ended=False)["call_history"]["newest"] == []
    record = process.look(0, ended=True)
    assert [call["op"] for call in record["call_history"]["newest"]] == ["all_reduce"]


def test_calls_of_a_thread_that_has_ended_are_told_a_moment_later(
    c10d: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = Process("")
    call_log.watch(TENSOR(calls=process.log))
    thread = threading.Thread(target=c10d.all_reduce, args=(TENSOR(count=0),))
    thread.start()
    thread.join()
    monkeypatch.setattr(threads, "VALUES_AFTER", 3600.0)
    assert process.look(0, ended=False)["call_history"]["newest"] == []
    monkeypatch.setattr(threads, "VALUES_AFTER", 0.0)
    assert len(process.look(0, ended=False)["call_history"]["newest"]) == 1


def test_counts_are_told_anew_after_a_while_and_when_the_thread_stands(
    c10d: Any, log: CallLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else each look would find another record, and have it written."""
    clock = SimpleNamespace(now=100.0)
    monkeypatch.setattr(call_log.time, "monotonic", lambda: clock.now)
    told = []
    for after, stands in ((0.0, False), (0.5, False), (1.0, False), (1.2, True), (1.4, False)):
        clock.now = 100.0 + after
        c10d.all_reduce(TENSOR(count=0))
        told.append(history(log, stands=stands)["collectives"]["default"])
    assert told == [1, 1, 3, 4, 5]


@pytest.mark.parametrize("group", [None, object()])
def test_calls_before_the_watch_are_missing(c10d: Any, group: object) -> None:
    c10d._world, c10d.destroy_process_group = SimpleNamespace(default_pg=group, pg_names={}), print
    owner = TENSOR(calls=CallLog())
    call_log.watch(owner)
    c10d.all_reduce(TENSOR(count=0))
    assert history(owner.calls)["whole"] is (group is None)


def test_a_forked_child_begins_anew(c10d: Any) -> None:
    logs = [CallLog(), CallLog()]
    owner = TENSOR(calls=logs[0])
    call_log.watch(owner)
    for owner.calls in logs:
        c10d.all_reduce(TENSOR(count=0))
    assert [history(log)["collectives"] for log in logs] == [{"default": 1}, {"default": 1}]


def test_a_call_that_cannot_be_noted_is_made_all_the_same(
    c10d: Any, log: CallLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any) -> Any:
        raise ValueError("no values")

    monkeypatch.setattr(scalars, "plain", fails)
    tensor = TENSOR(count=0)
    c10d.all_reduce(tensor)
    assert tensor.count == 1 and "no values" in log.fault


def test_a_call_that_fails_has_the_same_traceback(c10d: Any, job: Any) -> None:
    def failure() -> str:
        with pytest.raises(AttributeError) as caught:
            job.train(lambda: c10d.all_reduce(None), 1)
        return "".join(traceback.format_tb(caught.value.__traceback__))

    before = failure()
    log = CallLog()
    assert call_log.watch(TENSOR(calls=log))
    assert failure() == before and history(log)["collectives"] == {"default": 1}


def test_torchs_function_is_as_before_to_whoever_looks(c10d: Any) -> None:
    def look() -> tuple[Any, ...]:
        function = c10d._rank_not_in_group
        return (
            function.__name__,
            function.__qualname__,
            function.__module__,
            function.__doc__,
            inspect.signature(function),
            inspect.getsource(function),
            [function("outside"), function(None), function("inside")],
        )

    before, original = look(), c10d._rank_not_in_group
    call_log.watch(TENSOR(calls=CallLog()))
    assert look() == before and inspect.unwrap(c10d._rank_not_in_group) is original
    assert c10d._rank_not_in_group.__code__.co_filename == original.__code__.co_filename


def test_the_package_has_the_same_function(c10d: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    package = ModuleType(torch_names.PACKAGE)
    vars(package)["_rank_not_in_group"] = c10d._rank_not_in_group
    monkeypatch.setitem(sys.modules, torch_names.PACKAGE, package)
    call_log.watch(TENSOR(calls=CallLog()))
    assert vars(package)["_rank_not_in_group"] is c10d._rank_not_in_group


def test_a_torch_without_that_function_is_left_alone(c10d: Any) -> None:
    del c10d._rank_not_in_group
    before = dict(vars(c10d))
    assert not call_log.watch(TENSOR(calls=CallLog()))
    assert vars(c10d) == before


def test_what_is_no_function_is_left_alone(c10d: Any) -> None:
    c10d._rank_not_in_group = bool
    assert not call_log.watch(TENSOR(calls=CallLog()))
    assert c10d._rank_not_in_group is bool


def test_groups_without_end_do_not_fill_the_record(c10d: Any, log: CallLog) -> None:
    groups = [ProcessGroup(f"{number} {'x' * 1000}") for number in range(3 * MOST_GROUPS)]
    for group in groups:
        c10d.all_reduce(TENSOR(count=0), group=group)
    counts = history(log)["collectives"]
    assert len(counts) == MOST_GROUPS and max(map(len, counts)) <= LONGEST_LABEL
    assert len(log.counters) <= 2 * MOST_GROUPS
    c10d.all_reduce(TENSOR(count=0), group=groups[0])
    assert next(iter(history(log)["collectives"].values())) == 2


def test_a_group_may_come_to_the_place_in_memory_of_another(c10d: Any, log: CallLog) -> None:
    group = ProcessGroup("first")
    for group.group_desc in ("first", "second", "second", "first"):
        c10d.all_reduce(TENSOR(count=0), group=group)
    assert [(call["group"], call["number"]) for call in history(log)["newest"]][1:3] == [
        ("second", 1),
        ("second", 2),
    ]


def test_variables_that_a_function_holds_as_a_dictionary_stay_as_they_were(
    c10d: Any, log: CallLog, job: Any
) -> None:
    assert job.keeps_its_locals(lambda: c10d.all_reduce(TENSOR(count=0))) == ["act", "step"]
    assert history(log)["collectives"] == {"default": 1}


ANY_PYTHON = """
import gc, pickle, sys, types, weakref
sys.path.insert(0, {helpers!r})
from beacon import call_log, torch_names

module = types.ModuleType(torch_names.DISTRIBUTED)
exec(compile({c10d!r}, "/env/torch/distributed/distributed_c10d.py", "exec"), vars(module))
for name in ("torch", "torch.distributed"):
    sys.modules[name] = types.ModuleType(name)
sys.modules[torch_names.DISTRIBUTED] = module
log = call_log.CallLog()
assert call_log.watch(types.SimpleNamespace(calls=log))

class Tensor:
    count = 0

def step(number):
    tensor = Tensor()
    known = weakref.ref(tensor)
    references = sys.getrefcount(tensor)
    module.all_reduce(tensor)
    assert sys.getrefcount(tensor) == references
    del tensor
    assert known() is None
    return known

gc.disable()
assert [step(number)() for number in range(3)] == [None] * 3
assert pickle.loads(pickle.dumps(module._rank_not_in_group)) is module._rank_not_in_group
history = log.history(lambda *_: True)
assert [call["values"][0]["number"] for call in history["newest"]] == ["0", "1", "2"], history
assert log.fault == ""
"""


@pytest.mark.parametrize("version", ["3.8", "3.9", "3.10", "3.11", "3.12", "3.13"])
def test_nothing_of_the_jobs_is_kept_alive(version: str) -> None:
    helpers = str(Path(call_log.__file__).parents[1])
    program = ANY_PYTHON.format(helpers=helpers, c10d=C10D)
    done = subprocess.run([python(version), "-B", "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
