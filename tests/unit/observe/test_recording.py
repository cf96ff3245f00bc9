"""A recording holds what was looked at, and a replay makes the same of it."""

from __future__ import annotations

import errno
import gzip
import itertools
import json
import math
import os
import re
import socket
import stat
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest
from beacon_records import call, child, record, site, thread
from looks import MADE, diverging, watched

from helpers.beacon.record import Record
from helpers.model.facts import LimitView
from helpers.observe import look as questions
from helpers.observe.look import Look, Program, Told, Usage, merged
from helpers.observe.observer import Observer
from helpers.observe.recording import (
    MOST,
    MOST_PROCESSES,
    NEWEST,
    Recorder,
    Recording,
    RecordingError,
    Tape,
    load,
    pack,
    provenance,
)


def rich() -> Look:
    """A look with something in every field."""
    main = thread(
        frames=[("/job/caf\udce9.py", 3, "f", True)],
        call=call("store", "get", key="k", limit=math.inf, workers={7: 0}, spawned={8: 1}),
        native={"call": "flock", "fd": 5, "target": "/job/a.lock", "limited": False},
        site=site("train.py", [3, 3, 0, 9], names={"x": "lock"}),
    )
    told = Told(7, 1.5, record(main, process=child("f", 1), reaped={9: 256}), "KeyError", True, "stacks")
    answers = (
        (questions.Output(7), "printed \udcff"),
        (questions.Holder("flock", "/job/a.lock", 7), 4711),
        (questions.Owner(29500), [4711, "python old.py"]),
        (questions.Peer(7, "socket:[9]"), None),
        (questions.Store("127.0.0.1:29500"), {"reachable": True, "keys": ["a"]}),
    )
    return Look(
        2.0,
        status=256,
        reaped={9: 256},
        programs=(Program(7, 1, 1, 0.5, ("python", "a\udce9"), {"RANK": "0"}),),
        alive=(Usage(7, 1.5, 10**9, True, True, True, True, (("127.0.0.1", 29500),)),),
        told=(told,),
        answers=answers,
        input="pipe:[3]",
        memory_kills=2,
        limit=LimitView(10**9, "guardian", full=True),
    )


def recording(*looks: Look) -> Recording:
    logs, sources = {"rank 0": ["hello"]}, {"train.py:41": "barrier()"}
    return Recording(MADE, watched(), looks, "a run", logs, sources)


def written(path: Path, *looks: Look) -> Path:
    recorder = Recorder(path)
    recorder.begin(watched())
    for one in looks:
        recorder.add(one)
    recorder.close()
    return path


def saved(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def test_what_is_read_back_equals_what_was_packed(tmp_path: Path) -> None:
    whole = recording(Look(1.0), rich())
    assert load(saved(tmp_path / "run.gz", pack(whole))) == whole
    assert pack(whole) == pack(whole)


def test_looks_come_back_as_they_were_written(tmp_path: Path) -> None:
    assert load(written(tmp_path / "run.gz", Look(1.0), rich())).looks == (Look(1.0), rich())


def test_a_replay_gives_the_snapshots_of_the_run(tmp_path: Path) -> None:
    run = diverging(3, 1)
    observer = Observer(run.watched)
    live = [observer.take(look) for look in run.looks]
    assert list(load(saved(tmp_path / "run.gz", pack(run))).snapshots()) == live


def test_a_recording_says_what_it_was_made_with_and_of_what(tmp_path: Path) -> None:
    before = provenance()
    found = load(written(tmp_path / "run.gz", Look(1.0)))
    after = provenance()
    assert before["date"] <= found.made["date"] <= after["date"]
    assert {**found.made, "date": ""} == {**after, "date": ""}
    assert {"system", "python"} <= set(after)
    assert found.watched == watched()


def test_fields_of_a_later_version_are_passed_over(tmp_path: Path) -> None:
    with gzip.open(written(tmp_path / "run.gz", rich()), "rt") as file:
        head, line, _ = file.read().splitlines()
    value = json.loads(line)
    value["mood"] = value["told"][0]["mood"] = value["told"][0]["record"]["mood"] = "calm"
    assert load(saved(tmp_path / "new.gz", packed(head, json.dumps(value)))).looks == (rich(),)


def test_a_recording_that_breaks_off_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    looks = tuple(Look(float(second)) for second in range(40))
    whole = written(tmp_path / "run.gz", *looks).read_bytes()
    read = []
    for kept in range(len(whole)):
        try:
            found = load(saved(tmp_path / "cut.gz", whole[:kept]))
        except RecordingError:
            assert not read, "what can be read stays readable as more is written"
            continue
        read.append(len(found.looks))
        assert found.looks == looks[: read[-1]]
    assert set(read) == set(range(1, 41))
    assert read == sorted(read)


def test_every_look_can_be_read_as_soon_as_it_is_written(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "run.gz")
    recorder.begin(watched())
    for number in range(1, 4):
        recorder.add(Look(float(number)))
        found = load(tmp_path / "run.gz")
        assert len(found.looks) == number
        assert not found.over
    recorder.close()
    assert load(tmp_path / "run.gz").over


def test_recorders_make_files_of_their_own_in_a_folder(tmp_path: Path) -> None:
    for _ in range(3):
        recorder = Recorder(tmp_path)
        recorder.begin(watched())
        recorder.add(rich())
        recorder.close()
    found = sorted(tmp_path.iterdir())
    assert [load(file).looks for file in found] == [(rich(),)] * 3
    assert all(re.fullmatch(rf"{re.escape(socket.gethostname())}-\w+\.rec", file.name) for file in found)
    assert {stat.S_IMODE(file.stat().st_mode) for file in found} == {0o600}


def long_tape(looks: int, processes: int = 0) -> tuple[Look, ...]:
    """What a tape keeps of a run with a look every second."""
    tape = Tape()
    tape.begin(watched())
    alive = tuple(map(Usage, range(processes)))
    for second in range(looks):
        tape.add(Look(float(second), alive=alive, answers=((questions.Output(second % 7), second),)))
    return tape.recording().looks


def test_of_a_long_run_older_looks_are_merged() -> None:
    kept = long_tape(4 * MOST)
    times = [look.time for look in kept]
    assert len(kept) == MOST
    assert times[0] == 0.0
    assert times[-NEWEST:] == [4.0 * MOST - NEWEST + n for n in range(NEWEST)]
    assert times == sorted(times)
    assert max(later - earlier for earlier, later in itertools.pairwise(times)) <= 0.04 * MOST
    answered = {question.pid for look in kept for question, _ in look.answers}
    assert answered == set(range(7))


def test_of_many_processes_fewer_looks_are_kept() -> None:
    assert len(long_tape(400, processes=99)) == MOST_PROCESSES // 100
    assert len(long_tape(90, processes=999)) == 2 * NEWEST


def test_of_a_short_run_every_look_is_kept() -> None:
    assert [look.time for look in long_tape(MOST)] == [float(second) for second in range(MOST)]


def test_merged_looks_make_the_snapshot_that_each_by_itself_makes() -> None:
    run = diverging(3, 1)
    apart, together = Observer(run.watched), Observer(run.watched)
    for look in run.looks[:3]:
        last = apart.take(look)
    first = merged(merged(run.looks[0], run.looks[1]), run.looks[2])
    (one, other) = (msgspec.to_builtins(snapshot) for snapshot in (together.take(first), last))
    for view in (*one["ranks"], *other["ranks"]):
        view["process"]["cpu"] = None  # the share is that of the time between two looks
    assert one["ranks"] == other["ranks"]


EARLIER = Look(
    1.0,
    reaped={9: 0},
    programs=(Program(7, 0, 1, 0.5),),
    alive=(Usage(7, sockets=(("::", 1),)), Usage(8)),
    told=(Told(7, 1.0, record(), stacks="s"), Told(8, 1.0, record())),
    answers=((questions.Output(7), "old"), (questions.Output(8), "its")),
)

MERGED = [
    (Look(2.0), Look(2.0, reaped={9: 0}, told=EARLIER.told)),
    (Look(2.0, reaped={10: 1}), Look(2.0, reaped={9: 0, 10: 1}, told=EARLIER.told)),
    (
        Look(2.0, alive=(Usage(7, cpu=2.0),)),
        Look(2.0, reaped={9: 0}, told=EARLIER.told, alive=(Usage(7, cpu=2.0, sockets=(("::", 1),)),)),
    ),
    (
        Look(2.0, alive=(Usage(7, sockets=()),)),
        Look(2.0, reaped={9: 0}, told=EARLIER.told, alive=(Usage(7, sockets=()),)),
    ),
    (
        Look(2.0, told=(Told(7, 2.0),)),
        Look(2.0, reaped={9: 0}, told=(Told(7, 2.0, record(), stacks="s"), EARLIER.told[1])),
    ),
    (
        Look(2.0, told=(Told(7, 2.0, record(torch="3")),)),
        Look(2.0, reaped={9: 0}, told=(Told(7, 2.0, record(torch="3"), stacks="s"), EARLIER.told[1])),
    ),
    (
        Look(2.0, told=(Told(7, 2.0, lost=True),)),
        Look(2.0, reaped={9: 0}, told=(Told(7, 2.0, lost=True, stacks="s"), EARLIER.told[1])),
    ),
]


@pytest.mark.parametrize(("later", "wanted"), MERGED, ids=range(len(MERGED)))
def test_two_looks_in_one(later: Look, wanted: Look) -> None:
    wanted = msgspec.structs.replace(wanted, programs=EARLIER.programs, answers=EARLIER.answers)
    assert merged(EARLIER, later) == wanted


@pytest.mark.parametrize(
    ("written", "lost"), [(None, True), (record(), False)], ids=["stacks", "record"]
)
def test_a_record_stays_lost_until_there_is_another(written: Record | None, lost: bool) -> None:
    earlier, later = Told(7, 1.0, lost=True), Told(7, 1.0, written, stacks="s")
    assert merged(Look(1.0, told=(earlier,)), Look(2.0, told=(later,))).told == (
        Told(7, 1.0, written, lost=lost, stacks="s"),
    )


def test_of_two_answers_the_later_one_holds() -> None:
    seven, eight = questions.Output(7), questions.Output(8)
    found = merged(EARLIER, Look(2.0, answers=((seven, "new"),))).answers
    assert dict(found) == {seven: "new", eight: "its"}


def test_a_process_with_the_number_of_another_is_another() -> None:
    later = Look(2.0, programs=(Program(7, 1, 1, 1.5), Program(7, 1, 1, 1.5, ("x",))))
    assert [p.command for p in merged(EARLIER, later).programs] == [(), ("x",)]


def packed(*lines: str) -> bytes:
    return gzip.compress("".join(f"{line}\n" for line in lines).encode())


HEAD = '{"recording":2,"made":{},"watched":{"command":[],"cwd":"/job","pid":1,"start":0.0}}'


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
    ("an older version", packed('{"recording":1,"made":{}}')),
    ("only a label", packed(HEAD)),
    ("a label without a job", packed('{"recording":2,"made":{}}', '{"time":1.0}')),
    ("a look without a time", packed(HEAD, "{}")),
    ("a time that is none", packed(HEAD, '{"time":"soon"}')),
    ("a question that is none", packed(HEAD, '{"time":1.0,"answers":[[["<b>",1],null]]}')),
    ("a line that is a list", packed(HEAD, "[]")),
    ("a line that is a number", packed(HEAD, "7")),
    ("a line that is null", packed(HEAD, "null")),
    ("a process that is a number", packed(HEAD, '{"time":1.0,"alive":[7]}')),
    ("a record that is none", packed(HEAD, '{"time":1.0,"told":[{"pid":7,"written":1,"record":{}}]}')),
    ("lists in lists without end", packed(HEAD, "[" * 100_000)),
    ("a label of another kind", packed(HEAD.replace("{}", "7"))),
    ("half a line", packed(HEAD, '{"time":1.0,"alive":[{"pi')),
    ("bytes that are no text", gzip.compress(b"\xff\xfe\n")),
    ("cut off", packed(HEAD, '{"time":1.0}')[:-12]),
    ("damaged", flipped()),
]


@pytest.mark.parametrize("data", [row[1] for row in BAD], ids=[row[0] for row in BAD])
def test_a_bad_file_is_refused_in_one_sentence(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "bad.rec"
    path.write_bytes(data)
    with pytest.raises(RecordingError, match=r"bad\.rec") as refused:
        load(path)
    assert "\n" not in str(refused.value)


def test_looks_that_contradict_each_other_are_refused_in_one_sentence(tmp_path: Path) -> None:
    nameless = load(saved(tmp_path / "bad.rec", packed(HEAD, '{"time":1.0,"alive":[{"pid":7}]}')))
    with pytest.raises(RecordingError, match="cannot be replayed: KeyError"):
        list(nameless.snapshots())


@pytest.mark.parametrize("second", [0.5, 1e300, math.inf, math.nan])
def test_looks_out_of_the_order_of_time_are_refused(tmp_path: Path, second: float) -> None:
    first, *_ = diverging(2, 1).looks
    path = written(
        tmp_path / "run.jsonl.gz", *(msgspec.structs.replace(first, time=time) for time in (1.0, second))
    )
    with pytest.raises(RecordingError, match="not in the order of time"):
        load(path)


@pytest.mark.parametrize("start", [-1e308, 1e308, math.nan])
def test_a_run_that_began_at_no_time_of_a_clock_is_refused(tmp_path: Path, start: float) -> None:
    one = diverging(2, 1)
    began = msgspec.structs.replace(one.watched, start=start)
    path = saved(tmp_path / "run.jsonl.gz", pack(msgspec.structs.replace(one, watched=began)))
    with pytest.raises(RecordingError, match="a time that no clock tells"):
        load(path)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match=r"gone\.rec"):
        load(tmp_path / "gone.rec")


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
    recorder.begin(watched())
    assert recorder.problem is None
    recorder._file = cast(Any, FullDisk())
    for moment in (2.0, 3.0):
        recorder.add(Look(moment))
    recorder.close()
    assert recorder.problem is not None
    assert recorder.problem.endswith("is not complete: No space left on device")


def test_the_source_of_a_cell_is_kept_as_that_of_a_file_without_its_secrets(tmp_path: Path) -> None:
    text = "password = 'hunter2hunter2'\nlogin(token=tok)\n"
    told = Told(7, 1.5, record(thread(), cells={"/tmp/ipykernel_7/1.py": (2, text)}))
    answers = [
        (asked, [[2], text])
        for asked in (questions.Cell(7, "/tmp/ipykernel_7/1.py"), questions.Source("train.py"))
    ]
    look = load(written(tmp_path / "a.rec", Look(1.0, told=(told,), answers=tuple(answers)))).looks[0]
    (_, cell), (_, source) = look.answers
    assert cell == source == [[2], "password = '***'\nlogin(token=tok)\n"]
    assert look.told[0].record is not None
    assert look.told[0].record["cells"]["/tmp/ipykernel_7/1.py"] == (2, source[1])
