"""Which calls of `torch.distributed` are noted, and what of each, with a module like torch's."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Iterator
from types import FrameType, ModuleType, SimpleNamespace
from typing import Any

import pytest

from helpers.beacon import call_log, torch_names
from helpers.beacon.call_log import KEPT, MOST_VALUES, CallLog

SOURCE = """
def _rank_not_in_group(group):
    return False

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

def all_gather(tensors, tensor, group=None):
    _rank_not_in_group(group)

def all_gather_object(found, sent, group=None):
    if _rank_not_in_group(group):
        return
    all_gather([], sent, group)
    all_gather([], sent, group)
"""


class ProcessGroup:
    """A group by the name of torch's."""

    group_desc = "shard"


class Tensor:
    """What a call is given."""

    count = 0


@pytest.fixture
def c10d(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    module = ModuleType(torch_names.DISTRIBUTED)
    exec(compile(SOURCE, "/env/torch/distributed/distributed_c10d.py", "exec"), vars(module))
    vars(module)["_world"] = SimpleNamespace(default_pg=object(), pg_names={})
    monkeypatch.setitem(sys.modules, torch_names.DISTRIBUTED, module)
    yield module


@pytest.fixture
def log(c10d: ModuleType) -> CallLog:
    made = CallLog()
    assert call_log.watch(lambda: made)
    return made


def train(c10d: Any, steps: int, act: Callable[[Any], None]) -> None:
    for step in range(steps):
        lr, api_key = 0.1 / (step + 1), "sk-123"
        act(c10d)
        assert lr and api_key


def test_a_call_has_its_group_its_number_and_the_values_of_the_users_frames(
    c10d: Any, log: CallLog
) -> None:
    tensor = Tensor()
    train(c10d, 3, lambda c10d: c10d.all_reduce(tensor))
    assert log.counts == {"default": 3}
    assert [(made["op"], made["group"], made["number"]) for made in log.newest] == [
        ("all_reduce", "default", 1),
        ("all_reduce", "default", 2),
        ("all_reduce", "default", 3),
    ]
    last = log.newest[-1]
    assert [frame[2] for frame in last["frames"][:2]] == ["<lambda>", "train"]
    assert last["values"][1]["step"] == "2"
    assert "api_key" not in last["values"][1] and "sk-123" not in str(last)
    assert log.fault == ""


@pytest.mark.parametrize(
    ("act", "counts", "ops"),
    [
        pytest.param(
            lambda c10d: c10d.all_reduce(Tensor(), group=ProcessGroup()),
            {"shard": 1},
            ["all_reduce"],
            id="a group by name",
        ),
        pytest.param(
            lambda c10d: c10d.send(Tensor(), 1), {"default": 1}, ["send"], id="what it is a part of"
        ),
        pytest.param(
            lambda c10d: c10d.all_gather_object([], Tensor()),
            {"default": 1},
            ["all_gather_object"],
            id="its parts are not noted",
        ),
        pytest.param(lambda c10d: c10d.get_rank(), {}, [], id="no call of the network"),
    ],
)
def test_which_calls_are_noted(
    c10d: Any, log: CallLog, act: Callable[[Any], None], counts: dict[str, int], ops: list[str]
) -> None:
    act(c10d)
    assert (log.counts, [made["op"] for made in log.newest]) == (counts, ops)


def test_only_the_newest_are_kept_and_of_each_a_limited_number_of_values(
    c10d: Any, log: CallLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(call_log, "SHARE", 100.0)
    names = {f"n{number}": number for number in range(3 * MOST_VALUES)}
    program = "def step(c10d, tensor):\n" + "".join(f"    {n} = {v}\n" for n, v in names.items())
    space: dict[str, Any] = {"__name__": "train"}
    exec(compile(program + "    c10d.all_reduce(tensor)\n", "/job/train.py", "exec"), space)
    for _ in range(KEPT + 5):
        space["step"](c10d, Tensor())
    assert len(log.newest) == KEPT and log.newest[-1]["number"] == KEPT + 5
    assert sum(map(len, log.newest[-1]["values"])) == MOST_VALUES


def test_where_calls_come_fast_those_of_every_so_many_are_looked_at(
    c10d: Any, log: CallLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(call_log, "SHARE", 0.0)
    train(c10d, 40, lambda c10d: c10d.all_reduce(Tensor()))
    assert log.counts == {"default": 40}
    assert [made["number"] for made in log.newest] == [1, 2, 4, 8, 16, 32]


def test_nothing_of_the_jobs_is_kept_alive(c10d: Any, log: CallLog) -> None:
    tensor = Tensor()
    gone = weakref.ref(tensor)

    def step(held: Tensor) -> None:
        c10d.all_reduce(held)

    step(tensor)
    del tensor
    assert len(log.newest) == 1 and gone() is None


def test_a_call_that_cannot_be_noted_is_made_all_the_same(
    c10d: Any, log: CallLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(frame: FrameType) -> dict[str, str]:
        raise ValueError("no values")

    monkeypatch.setattr(call_log.scalars, "scalars", fails)
    tensor = Tensor()
    c10d.all_reduce(tensor)
    assert tensor.count == 1 and "no values" in log.fault
