"""How long what loops go through is: read as `len` would say it, and without running the job's code."""

from __future__ import annotations

import subprocess
import sys
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
import torch
from pythons import python
from torch.utils import data
from torch.utils.data.distributed import DistributedSampler

from helpers.beacon import lengths
from helpers.beacon.lengths import length


class Counted(data.Dataset[int]):
    def __init__(self, count: int) -> None:
        self.settings = SimpleNamespace(count=count)
        self.count = count

    def __len__(self) -> int:
        return self.settings.count  # type: ignore[no-any-return]

    def __getitem__(self, number: int) -> int:
        return number


class Listed(Counted):
    def __len__(self) -> int:
        return len(self.items)

    def __init__(self) -> None:
        self.items = (1, 2, 3)


class Constant(Counted):
    def __len__(self) -> int:
        return 64


class Streamed(data.IterableDataset[int]):
    def __len__(self) -> int:
        return 7

    def __iter__(self) -> Iterator[int]:
        return iter(range(7))


KNOWN = [
    [1, 2],
    (1,),
    {"a": 1},
    range(3),
    deque([1]),
    torch.zeros(3, 2),
    *(
        data.DataLoader(dataset, batch_size=None)
        for dataset in (
            Counted(5),
            Listed(),
            Constant(1),
            data.TensorDataset(torch.zeros(4, 1)),
            data.Subset(Counted(9), [1, 2]),
            data.ConcatDataset([Counted(2), Counted(3)]),
            [1, 2, 3],
        )
    ),
    data.DataLoader(Counted(10), sampler=data.SubsetRandomSampler([1, 2])),
    data.DataLoader(Counted(10), batch_size=3),
    data.DataLoader(Counted(10), batch_size=3, drop_last=True, shuffle=True),
    data.DataLoader(Counted(10), batch_size=None),
    data.DataLoader(Counted(10), sampler=DistributedSampler(Counted(10), 3, 0)),
    data.DataLoader(Counted(10), sampler=data.WeightedRandomSampler([1.0] * 10, 6)),
    data.DataLoader(Counted(10), batch_sampler=data.BatchSampler(range(10), 4, True)),
]


@pytest.mark.parametrize("value", KNOWN, ids=lambda value: type(value).__name__)
def test_it_is_what_len_says(value: Any) -> None:
    assert length(value) == len(value)


class Hostile:
    """Whatever is asked of it is noted."""

    asked: ClassVar[list[str]] = []

    def __len__(self) -> int:
        self.asked.append("len")
        return 3

    @property
    def count(self) -> int:
        self.asked.append("count")
        return 3


class Computed(Counted):
    def __len__(self) -> int:
        return self.count // 2


class ByProperty(Hostile):
    def __len__(self) -> int:
        return self.count


class Sampled(data.Sampler[int]):
    def __len__(self) -> int:
        return 3

    def __iter__(self) -> Iterator[int]:
        return iter(range(2))


class Shorter(data.DataLoader[int]):
    def __iter__(self) -> Any:
        return iter(range(1))


class Twice(list[int]):
    def __len__(self) -> int:
        return 2 * super().__len__()


UNKNOWN = [
    *(None, 3, "text", object(), iter([1]), (n for n in ()), torch.tensor(1)),
    *(Hostile(), Computed(4), ByProperty(), Twice([1])),
    *(data.DataLoader(Streamed()), data.DataLoader(Computed(4)), Counted),
    *(Counted(5), data.DataLoader(Counted(4), sampler=Sampled()), Shorter(Counted(4))),
]


@pytest.mark.parametrize("value", UNKNOWN, ids=lambda value: type(value).__name__)
def test_what_only_the_jobs_code_could_say_is_not_known(value: Any) -> None:
    assert length(value) is None
    assert Hostile.asked == []


def test_no_mode_of_the_job_is_asked_of_a_tensor() -> None:
    tensor = torch.zeros(3)
    with torch.device("cpu"):
        assert length(tensor) is None
    assert length(tensor) == 3


LOOPS = """
import sys
sys.path.insert(0, {helpers!r})
from beacon import lengths, scalars

class Trainer:
    def __init__(self):
        self.loader = [1, 2, 3]

    def run(self, batches, rest):
        for number, batch in enumerate(self.loader):
            losses = [batch for batch in batches]
            for pair in zip(rest, rest):
                pass
        return self.judge(losses, rest)

    def judge(self, losses, batches):
        return sys._getframe()

rest = [4]
frame = Trainer().run([5, 6], rest)
assert {{"self.loader", "batches"}} <= lengths.looped(frame) <= {{"self.loader", "batches", "rest"}}
told = scalars.scalars(frame)
assert told == {{"len(self.loader)": "3", "len(batches)": "1"}}, told
"""


@pytest.mark.parametrize("version", ["3.8", "3.9", "3.10", "3.11", "3.12", "3.13", "3.14"])
def test_what_the_loops_of_a_file_go_through_is_measured(version: str) -> None:
    program = LOOPS.format(helpers=str(Path(lengths.__file__).parents[1]))
    done = subprocess.run([python(version), "-B", "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_no_time_is_taken_where_only_what_is_known_is_asked() -> None:
    frame = sys._getframe()
    lengths._looped.clear()
    assert lengths.looped(frame, cached=True) == frozenset()
    assert "KNOWN" not in lengths.looped(frame)
    assert lengths.looped(frame, cached=True) == lengths.looped(frame)
