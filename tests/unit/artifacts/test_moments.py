"""The last moments of a recording are those of a whole replay, wherever they are found."""

from __future__ import annotations

import io
import os
import pickle
import zlib
from pathlib import Path

import msgspec
import pytest
from looks import diverging, watched
from msgspec.structs import replace
from repository import RECORDINGS

from helpers.artifacts import artifacts
from helpers.artifacts.moments import LARGE, Unpacker, moments, packed
from helpers.diagnose.nodes import together
from helpers.model.facts import Snapshot
from helpers.model.frames import Frame
from helpers.model.part import Part
from helpers.model.samples import Sample
from helpers.observe.look import Look
from helpers.observe.pacing import Pacing
from helpers.observe.recording import Recorder, RecordingError, load, pack
from helpers.session import report_of_artifacts

ALL = sorted(RECORDINGS.iterdir())
ENDS = ("killed", "exits_hard", "left_early", "hangs_after_restart", "well_restarts", "port_taken_spawn")
SAMPLE = sorted({*ALL[::9], *(RECORDINGS / f"{name}.jsonl.gz" for name in ENDS)})


def replayed(path: Path) -> Part:
    """The same, found by making a snapshot of every look."""
    recording = load(path)
    before = last = None
    for last in recording.snapshots():
        views = (view.process for view in last.ranks)
        if before is None or not any(p and (p.error or p.signal or p.exit_code) for p in views):
            before = last
    assert last is not None and before is not None
    return Part(
        last=last,
        before=before,
        over=recording.over,
        name=path.name,
        begun=recording.made.get("date", ""),
        patience=recording.watched.patience,
    )


def told(part: Part) -> object:
    """All that a part tells, also what is left out when facts are compared."""
    return msgspec.to_builtins(replace(part, last=whole(part.last), before=whole(part.before)))


def whole(snapshot: Snapshot) -> Snapshot:
    return together((snapshot,))


@pytest.mark.parametrize("path", SAMPLE, ids=lambda path: path.name.partition(".")[0])
def test_the_moments_of_a_recording_are_those_of_its_replay(path: Path) -> None:
    assert told(moments(path)) == told(replayed(path))


def test_before_is_the_last_moment_at_which_no_rank_had_failed() -> None:
    part = moments(RECORDINGS / "killed.jsonl.gz")
    assert part.before.time < part.last.time
    ends = [[v.process.signal for v in at.ranks if v.process] for at in (part.before, part.last)]
    assert ends == [[None, None], [15, 9]]


def test_a_recording_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    path = tmp_path / "n0.rec"
    recorder = Recorder(path)
    run = diverging(2, 1)
    recorder.begin(run.watched)
    for look in run.looks[:9]:
        recorder.add(look)
    assert moments(path).last.time == run.looks[8].time
    assert not moments(path).over
    path.write_bytes(path.read_bytes()[:-20])
    assert moments(path).last.time == run.looks[7].time
    recorder.close()


def test_ranks_out_of_sight_are_not_told_one_by_one(tmp_path: Path) -> None:
    run = diverging(2, 1)
    looks = [msgspec.to_builtins(look) for look in run.looks]
    for one in (one for look in looks for one in look.get("told", ()) if one.get("record")):
        one["record"]["dist"]["world_size"] = 500
        one["record"]["env"].update(WORLD_SIZE="500", LOCAL_WORLD_SIZE="2")
    far = replace(run, looks=tuple(msgspec.convert(look, Look, str_keys=True) for look in looks))
    (tmp_path / "n0.rec").write_bytes(pack(far))
    part = moments(tmp_path / "n0.rec")
    assert [view.rank for view in part.last.ranks] == [0, 1]
    assert [view.state for view in whole(part.last).ranks] == ["waiting"] * 2 + ["unseen"] * 498


def test_what_is_equal_in_several_parts_is_held_once(tmp_path: Path) -> None:
    (tmp_path / "n0.rec").write_bytes(pack(diverging(LARGE, 1)))
    unpacker = Unpacker()
    one, other = (unpacker.part(packed(moments(tmp_path / "n0.rec"))) for _ in range(2))
    views = [view for part in (one, other) for view in part.last.ranks]
    groups = [group for view in views if view.process for group in view.process.groups]
    assert len(groups) == 2 * LARGE
    assert {id(group.members) for group in groups} == {id(groups[0].members)}


def test_the_same_call_of_several_parts_is_one() -> None:
    content = packed(moments(RECORDINGS / "skips_a_turn.jsonl.gz"))
    unpacker = Unpacker()
    parts = [unpacker.part(content) for _ in range(2)]
    processes = [view.process for part in parts for view in part.last.ranks if view.process]
    calls = [call for process in processes for told in process.issued for call in told.calls]
    same = {(call.op, call.stack) for call in calls}
    assert len({id(call) for call in calls}) == len(same) > 1


@pytest.mark.parametrize(
    "sent",
    [os.system, Path("/"), len, pytest.raises, io.BytesIO()],
    ids=["a function", "a class of Python's", "a builtin", "a class of a library's", "a file"],
)
def test_nothing_but_facts_is_taken_from_a_reader(sent: object) -> None:
    with pytest.raises(pickle.UnpicklingError, match="no fact"):
        Unpacker().part(pickle.dumps(sent))


BAD = [
    ("no look", b"", "it holds no look at a job"),
    ("damage", b'{"time":"soon"}\n', "it cannot be read as a recording: "),
    ("contradiction", b'{"time":1.0,"alive":[{"pid":7}]}\n', "it cannot be replayed: KeyError(7)"),
]


@pytest.mark.parametrize(("content", "said"), [row[1:] for row in BAD], ids=[row[0] for row in BAD])
def test_a_recording_that_cannot_be_read_costs_one_sentence(
    tmp_path: Path, content: bytes, said: str
) -> None:
    (tmp_path / "n0.rec").write_bytes(pack(diverging(2, 1)))
    recorder = Recorder(tmp_path / "n1.rec")
    recorder.begin(watched())
    line = recorder._packer.compress(content) + recorder._packer.flush(zlib.Z_SYNC_FLUSH)
    recorder._file.write(line)
    found = artifacts.read([str(tmp_path)])
    assert [path.name for path, _ in found.recordings] == ["n0.rec"]
    assert [path.name for path, _ in found.damaged] == ["n1.rec"]
    assert found.damaged[0][1].startswith(said)
    report, _ = report_of_artifacts(found)
    assert report.verdict.cause == "collective-mismatch"
    assert any(line.startswith(f"n1.rec is not used: {said}") for line in report.snapshot.not_seen)


def test_a_recording_that_cannot_be_read_is_refused_alone(tmp_path: Path) -> None:
    Recorder(tmp_path / "n0.rec").begin(watched())
    with pytest.raises(artifacts.NothingError, match=r"n0\.rec is damaged: it holds no look at a job"):
        artifacts.read([str(tmp_path)]).parts()
    with pytest.raises(RecordingError, match=r"^holds no look"):
        moments(tmp_path / "n0.rec")


def test_the_pace_of_ranks_arrives_as_it_was() -> None:
    frame = Frame("train.py", 7, "augment")
    samples = [
        Sample(tick, tick, 0.1 * tick, "works" if tick % 2 else "waits", frame, issued={"0": tick // 2})
        for tick in range(60)
    ]
    pacing = Pacing()
    pacing.take(dict.fromkeys((0, 1), samples), 12.0)
    part = replace(moments(RECORDINGS / "skips_a_turn.jsonl.gz"), pace=pacing.pace())
    assert part.pace is not None
    assert part.pace.groups["0"].blocks[0] == {frozenset(): 1}
    assert Unpacker().part(packed(part)).pace == part.pace
