"""Requests for dumps: through a real pipe, with a dump as torch pickles it."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import pytest
from dumps import done, dump, entry

from helpers.observe import nccl_dumps
from helpers.observe.look import Entries
from helpers.observe.nccl_dumps import NO_DUMP, NO_PIPE, NcclDumps

CONTENT = pickle.dumps(dump(done("all_reduce", 1), entry("all_reduce", 2)))


class Rank:
    """What torch does in a rank: it has opened a pipe, and dumps when something comes."""

    def __init__(self, folder: Path, pipe: str = "7.3.pipe") -> None:
        self.usual = folder / "usual"
        self.dump = folder / "7.3"
        self.dump.symlink_to(self.usual)
        os.mkfifo(folder / pipe)
        self.pipe = os.open(folder / pipe, os.O_RDONLY | os.O_NONBLOCK)

    @property
    def asked(self) -> bool:
        return bool(os.read(self.pipe, 10))

    def question(self, since: float = 1.0) -> Entries:
        return Entries(str(self.dump), since)


@pytest.fixture
def rank(tmp_path: Path) -> Any:
    found = Rank(tmp_path)
    yield found
    os.close(found.pipe)


class Clock:
    """A clock that is set by hand."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        monkeypatch.setattr(nccl_dumps.time, "monotonic", lambda: self.now)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def test_a_rank_dumps_when_it_is_asked(rank: Rank) -> None:
    dumps = NcclDumps()
    assert dumps.answer(rank.question()) is None
    assert rank.asked
    rank.dump.write_bytes(CONTENT[:100])
    assert dumps.answer(rank.question()) is None, "it is not whole"
    rank.dump.write_bytes(CONTENT)
    answer = dumps.answer(rank.question())
    assert isinstance(answer, dict)
    assert [(one["seq"], one["done"]) for one in answer["entries"]] == [(1, True), (2, False)]
    assert dumps.answer(rank.question()) is answer
    assert not rank.usual.exists()


def test_what_torch_dumps_later_goes_where_it_would_without_us(rank: Rank) -> None:
    dumps = NcclDumps()
    dumps.answer(rank.question())
    rank.dump.write_bytes(CONTENT)
    dumps.answer(rank.question())
    rank.dump.write_bytes(b"at a timeout")
    assert rank.usual.read_bytes() == b"at a timeout"


def test_a_rank_is_not_asked_again_before_long(rank: Rank, clock: Clock) -> None:
    dumps = NcclDumps()
    dumps.answer(rank.question())
    rank.dump.write_bytes(CONTENT)
    assert dumps.answer(rank.question()) is not None
    assert rank.asked
    clock.now += nccl_dumps.EVERY / 2
    assert dumps.answer(rank.question(since=2.0)) is None
    assert not rank.asked
    clock.now += nccl_dumps.EVERY
    assert dumps.answer(rank.question(since=2.0)) is None
    assert rank.asked


def test_a_rank_that_does_not_dump(rank: Rank, clock: Clock) -> None:
    dumps = NcclDumps()
    dumps.answer(rank.question())
    clock.now += nccl_dumps.ANSWERS + 1.0
    assert dumps.answer(rank.question()) == NO_DUMP
    assert os.readlink(rank.dump) == str(rank.usual)


def test_the_pipe_may_be_named_by_the_rank_in_a_group(tmp_path: Path) -> None:
    rank = Rank(tmp_path, pipe="7.0.pipe")
    assert NcclDumps().answer(rank.question()) is None
    assert rank.asked
    os.close(rank.pipe)


def test_a_rank_without_a_pipe(tmp_path: Path) -> None:
    assert NcclDumps().answer(Entries(str(tmp_path / "7.3"), 1.0)) == NO_PIPE


def test_a_pipe_that_nobody_reads(rank: Rank, tmp_path: Path) -> None:
    (tmp_path / "7.3.pipe").unlink()
    os.mkfifo(tmp_path / "7.3.pipe")
    assert NcclDumps().answer(rank.question()) == NO_PIPE
    assert os.readlink(rank.dump) == str(rank.usual)
