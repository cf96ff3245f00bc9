"""How a process has NCCL's recorder dumped on request, and where its other dumps go."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from helpers.beacon import torch_names
from helpers.beacon.nccl import DUMPS, PIPE, THREAD_NAMES, Nccl, ask_for_dumps

OURS, OF_PARENT = f"nccl/{os.getpid()}.", "nccl/1."
NEW = {PIPE: OURS, DUMPS[0]: OURS, THREAD_NAMES: "1"}
OLD = {PIPE: OURS, DUMPS[1]: OURS, THREAD_NAMES: "1"}


@pytest.mark.parametrize(
    ("version", "before", "after"),
    [
        ("2.11.0+cu130", {}, NEW),
        ("2.9.1", {}, NEW),
        ("2.8.0", {}, OLD),
        ("2.11.0", {THREAD_NAMES: "0"}, {**NEW, THREAD_NAMES: "0"}),
        ("2.11.0", {DUMPS[1]: "/u/d"}, {DUMPS[1]: "/u/d", THREAD_NAMES: "1"}),
        ("2.11.0", {PIPE: "/u/p"}, {PIPE: "/u/p", THREAD_NAMES: "1"}),
        ("2.11.0", {PIPE: OF_PARENT, DUMPS[1]: OF_PARENT}, NEW),
        ("2.8.0", {PIPE: OF_PARENT, DUMPS[0]: OF_PARENT}, OLD),
    ],
    ids=[
        *("a new torch", "the first with the new name", "the last with the old one"),
        *("names of threads are set", "a dump is set", "a pipe is set"),
        *("started by a process of the run", "which had another torch"),
    ],
)
def test_which_variables_are_set(
    version: str,
    before: dict[str, str],
    after: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def within(names: dict[str, str]) -> dict[str, str]:
        return {name: f"{tmp_path}/{text}" if text[0] == "n" else text for name, text in names.items()}

    (tmp_path / "nccl").mkdir()
    monkeypatch.setattr(torch_names, "has_nccl", lambda: True)
    monkeypatch.setattr(torch_names, "version", lambda: version)
    monkeypatch.setattr(os, "environ", within(before))
    ask_for_dumps(str(tmp_path))
    assert os.environ == within(after)


@pytest.mark.parametrize(("built", "folder"), [(False, True), (True, False)])
def test_nothing_is_set_without_nccl_or_where_no_pipe_can_be_made(
    built: bool, folder: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ("nccl" if folder else "other")).mkdir()
    monkeypatch.setattr(torch_names, "has_nccl", lambda: built)
    monkeypatch.setattr(os, "environ", {})
    ask_for_dumps(str(tmp_path))
    assert os.environ == {}


STATUS = b"""{"pg_status": {
    "0": {"last_enqueued_collective": "7", "last_completed_collective": "5"},
    "4": {"last_enqueued_collective": "2", "last_completed_collective": "2"}
}}"""


@pytest.fixture
def nccl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Nccl:
    """That of a process with three groups, in the last of which nothing was issued."""
    monkeypatch.setattr(torch_names, "nccl_status", lambda: lambda entries, active: STATUS)
    monkeypatch.setattr(torch_names, "nccl_groups", lambda: {"0": 0, "1": 4, "2": 5})
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "nccl").mkdir()
    return Nccl(str(tmp_path))


def test_how_far_each_group_is(nccl: Nccl) -> None:
    account = nccl.look(rank=3)
    assert account is not None
    assert account["groups"] == {"0": (7, 5), "1": (2, 2), "2": (-1, -1)}
    assert nccl.look(rank=3) == account, "nothing has moved since"


def test_while_a_group_moves_it_is_told_once_a_second(
    nccl: Nccl, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, completed = 100.0, 5

    def told() -> tuple[float, tuple[int, int]]:
        account = nccl.look(rank=0)
        assert account is not None
        return account["since"], account["groups"]["0"]

    monkeypatch.setattr("helpers.beacon.nccl.time.monotonic", lambda: now)
    status = STATUS.replace(b'"5"', b'"%d"')
    monkeypatch.setattr(torch_names, "nccl_status", lambda: lambda *_: status % completed)
    assert told() == (100.0, (7, 5))
    now, completed = 100.4, 6
    assert told() == (100.0, (7, 5))
    now = 100.6
    assert told() == (100.4, (7, 6)), "it stands"
    now, completed = 101.7, 7
    assert told() == (101.7, (7, 7)), "a second has passed"


def test_nothing_is_known_before_nccl_serves_a_group(
    nccl: Nccl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch_names, "nccl_groups", dict)
    assert nccl.look(rank=0) is None


def test_what_torch_dumps_by_itself_goes_where_it_would(
    nccl: Nccl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PIPE, f"{tmp_path}/nccl/9.")
    account = nccl.look(rank=3)
    assert account is not None
    usual = tmp_path / "cache" / "torch" / "comm_lib_trace_rank_3"
    usual.parent.mkdir(parents=True)
    Path(account["dump"]).write_text("a dump at a timeout")
    assert usual.read_text() == "a dump at a timeout"


@pytest.mark.parametrize("pipe", ["", "/the/users/own"])
def test_a_rank_whose_pipe_is_not_ours_is_not_asked(
    pipe: str, nccl: Nccl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PIPE, pipe)
    account = nccl.look(rank=3)
    assert account is not None
    assert account["dump"] == ""


def test_before_there_was_a_cache_torch_dumped_into_tmp(
    nccl: Nccl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch_names, "version", lambda: "2.6.0+cu124")
    monkeypatch.setenv(PIPE, f"{tmp_path}/nccl/9.")
    account = nccl.look(rank=1)
    assert account is not None
    assert os.readlink(account["dump"]) == "/tmp/nccl_trace_rank_1"
