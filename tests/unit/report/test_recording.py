"""A recording holds what was seen, and a replay says the same of it."""

from __future__ import annotations

import errno
import gzip
import json
import math
import os
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from histories import (
    absent,
    child,
    collective,
    ended,
    error,
    gone,
    in_collective,
    issued,
    launcher,
    loading,
    lock,
    rank,
    snapshot,
    steady,
    store,
    wait,
    worker,
)

from helpers.diagnose.diagnose import diagnose
from helpers.model.facts import Blocker, Frame, Snapshot
from helpers.report.recording import Recorder, RecordingError, load, provenance, replay


def rich() -> Snapshot:
    """A snapshot with something in every field."""
    failed = error(
        "ValueError",
        "bad \N{SNOWMAN}\nsecond line",
        Frame("/opt/lib/x.py", 1, "f", user=False),
        "train.py:3 g",
        masked=("KeyError: 1",),
    )
    ranks = (
        rank(
            0,
            collective("all_reduce", 7, sizes=((4, 2), ()), group_ranks=(0, 1), blocking=False),
            lock("a.lock", 0),
            wait("p2p", "recv", peers=(1,), thread="saver"),
            at="train.py:41 validate",
            children=[worker(0, 1, loading(), joined_as=0, joined_at="train.py:8 main")],
            ports=(store(29500),),
            command=("python", "train.py", "--name", "it's"),
            memory=123456789,
            cpu=12.5,
            asleep="nanosleep",
            gil_held=True,
            **issued("broadcast", "all_reduce[4x2]", done=1),
        ),
        ended(1, error=failed, children=[gone(child(1), signal=9)]),
        absent(2),
        absent(3, "unseen"),
        replace(rank(None), master="127.0.0.1:29500", node=1),
    )
    return snapshot(
        *ranks,
        world=4,
        code=1,
        launchers=[launcher()],
        strangers=[(29500, Blocker(4711, "owns port 29500", "python old.py"))],
        memory_kills=2,
        hardware="cuda",
        backends=("gloo", "nccl"),
        master="127.0.0.1:29500",
        single_node=False,
        attempt=1,
        script_line=Frame("train.py", 2, "<module>"),
    )


def written(path: Path, *snapshots: Snapshot) -> Path:
    recorder = Recorder(path)
    for one in snapshots:
        recorder.add(one)
    recorder.close()
    return path


def test_what_is_read_back_equals_what_was_written(tmp_path: Path) -> None:
    history = steady(rich())
    path = written(tmp_path / "run.rec", *history, Snapshot(0.0, history[0].job))
    assert tuple(replay(path)) == (*history, Snapshot(0.0, history[0].job))


def test_a_replayed_history_gives_the_same_verdict(tmp_path: Path) -> None:
    for number, newest in enumerate(
        (
            rich(),
            snapshot(in_collective(0, "barrier"), in_collective(1, "all_reduce")),
            snapshot(ended(0), ended(1), code=0),
        )
    ):
        history = steady(newest)
        again = tuple(replay(written(tmp_path / f"{number}.rec", *history)))
        assert diagnose(again) == diagnose(history)


def test_an_empty_recording_has_no_snapshots(tmp_path: Path) -> None:
    assert list(replay(written(tmp_path / "empty.rec"))) == []


def test_a_recording_says_what_it_was_made_with(tmp_path: Path) -> None:
    with gzip.open(written(tmp_path / "run.rec"), "rt") as file:
        head = json.loads(file.readline())
    assert head["made"] == provenance()
    assert {"system", "python"} <= set(provenance())


def test_fields_of_a_later_version_are_passed_over(tmp_path: Path) -> None:
    path = written(tmp_path / "run.rec", rich())
    with gzip.open(path, "rt") as file:
        head, line = file.read().splitlines()
    value = json.loads(line)
    value["mood"] = "calm"
    value["job"]["colour"] = "blue"
    with gzip.open(path, "wt") as file:
        file.write(f"{head}\n{json.dumps(value)}\n")
    assert list(replay(path)) == [rich()]


def test_names_that_are_not_utf_8_and_numbers_without_end_come_back(tmp_path: Path) -> None:
    strange = snapshot(rank(0, at="caf\udce9.py:3 f", still=math.inf, command=("a\udce9",)))
    assert list(replay(written(tmp_path / "run.rec", strange))) == [strange]


def packed(*lines: str) -> bytes:
    return gzip.compress("".join(f"{line}\n" for line in lines).encode())


HEAD = '{"recording":1,"made":{}}'


def flipped() -> bytes:
    """A recording with one byte changed inside what is compressed."""
    data = bytearray(packed(HEAD, *(f'{{"time":{n}.5}}' for n in range(200))))
    for place in range(60, 70):
        data[place] ^= 0xFF
    return bytes(data)


BAD = [
    ("nothing", b""),
    ("no gzip", b"hello\n"),
    ("text that was never packed", HEAD.encode()),
    ("another version", packed('{"recording":99}')),
    ("JSON of another kind", packed("[1, 2]")),
    ("no JSON", packed("hello")),
    ("a snapshot without a job", packed(HEAD, '{"time":1.0}')),
    ("a line that is a list", packed(HEAD, "[]")),
    ("a line that is a number", packed(HEAD, "7")),
    ("a line that is null", packed(HEAD, "null")),
    ("a rank that is a number", packed(HEAD, '{"time":1.0,"job":{"command":[]},"ranks":[7]}')),
    ("lists in lists without end", packed(HEAD, "[" * 100_000)),
    ("a label of another kind", packed('{"recording":1,"made":7}')),
    ("half a line", packed(HEAD, '{"time":1.0,"job":{"comm')),
    ("bytes that are no text", gzip.compress(b"\xff\xfe\n")),
    ("cut off", packed(HEAD, '{"time":1.0,"job":{"command":[]}}')[:-12]),
    ("damaged", flipped()),
]


@pytest.mark.parametrize("data", [row[1] for row in BAD], ids=[row[0] for row in BAD])
def test_a_bad_file_is_refused_in_one_sentence(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "bad.rec"
    path.write_bytes(data)
    with pytest.raises(RecordingError, match=r"bad\.rec") as refused:
        load(path)
    assert "\n" not in str(refused.value)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match=r"gone\.rec"):
        list(replay(tmp_path / "gone.rec"))


def test_a_recorder_says_when_it_cannot_write(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="nowhere"):
        Recorder(tmp_path / "nowhere" / "run.rec")


class FullDisk:
    """A file on a disk that is full from now on."""

    def write(self, text: str) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def close(self) -> None:
        self.write("")


def test_a_full_disk_ends_the_recording_and_nothing_else(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "run.rec")
    recorder.add(snapshot(time=1.0))
    assert recorder.problem is None
    recorder._file = cast(Any, FullDisk())
    for moment in (2.0, 3.0):
        recorder.add(snapshot(time=moment))
    recorder.close()
    assert recorder.problem is not None
    assert recorder.problem.endswith("is not complete: No space left on device")
