"""Files of any kind, from anywhere: what is read of them, and what is not."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import os
import pickle
import random
import tarfile
import zipfile
from pathlib import Path

import pytest
from dumps import dump, entry
from looks import watched

from helpers.artifacts import files as files_module
from helpers.artifacts.artifacts import ENDS_ITS_READER, NothingError, read
from helpers.artifacts.files import Budget, MissingError, files, pieces, whole
from helpers.artifacts.reading import content_of
from helpers.model.facts import Verdict
from helpers.observe.account import UnreadableError
from helpers.observe.look import Look
from helpers.observe.recording import Recorder
from helpers.session import report_of_artifacts

DUMP = pickle.dumps(dump(entry("all_reduce", line=12)))
LATE = (
    "[rank1]:[E1123 12:00:00.123456789 ProcessGroupNCCL.cpp:629] [Rank 1] Watchdog caught collective "
    "operation timeout: WorkNCCL(SeqNum=57, OpType=ALLREDUCE, NumelIn=10, NumelOut=10, "
    "Timeout(ms)=600000) ran for 600029 milliseconds before timing out.\n"
)


def kinds(file: Path) -> list[str]:
    return [one.kind for one in content_of(file, Budget()).accounts]


def test_a_folder_is_read_with_all_that_is_in_it(tmp_path: Path) -> None:
    (tmp_path / "node0").mkdir()
    (tmp_path / "node0" / "rank_0").write_bytes(DUMP)
    (tmp_path / "rank_1.gz").write_bytes(gzip.compress(DUMP))
    (tmp_path / "job.log").write_text(LATE)
    (tmp_path / "model.bin").write_bytes(bytes(range(256)))
    found = read([str(tmp_path)])
    assert sorted((one.kind, one.rank) for one in found.accounts) == [
        ("Flight Recorder dump", 0),
        ("Flight Recorder dump", 1),
        ("log", 1),
    ]
    assert [(file.name, size) for file, size in found.unrecognised] == [("model.bin", 256)]
    told = found.not_seen(found.parts()[0].last, Verdict("hang", "unknown"))
    assert any("model.bin (256 bytes) is not recognised" in one for one in told)


def test_a_recording_is_recognised_from_its_first_look_on(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path)
    recorder.begin(watched())
    recorder.add(Look(1.0))
    found = read([str(tmp_path)])
    recorder.close()
    assert (len(found.recordings), found.damaged) == (1, ())


def test_of_many_files_that_are_not_recognised_some_are_named(tmp_path: Path) -> None:
    (tmp_path / "rank_0").write_bytes(DUMP)
    for number in range(30):
        (tmp_path / f"part{number:02}.bin").write_bytes(bytes(6))
    found = read([str(tmp_path)])
    told = found.not_seen(found.parts()[0].last, Verdict("hang", "missing-rank"))
    assert told[-2:] == (
        "part19.bin (6 bytes) is not recognised",
        "10 more files are not recognised (60 bytes)",
    )


def test_what_is_no_ordinary_file_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "rank_0").write_bytes(DUMP)
    (tmp_path / "again").symlink_to(tmp_path / "rank_0")
    (tmp_path / "circle").symlink_to(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "zero").symlink_to("/dev/zero")
    assert [file.name for file in files([str(tmp_path)])] == ["rank_0"]
    for name in ("pipe", "zero"):
        with pytest.raises(MissingError, match="neither a file nor a folder"):
            list(files([str(tmp_path / name)]))
    assert [file.name for file in files([str(tmp_path / "again")])] == ["again"]


def test_links_to_files_elsewhere_are_followed_as_kubernetes_keeps_its_logs(tmp_path: Path) -> None:
    (tmp_path / "pods").mkdir()
    (tmp_path / "pods" / "0.log").write_text(LATE)
    (tmp_path / "containers").mkdir()
    (tmp_path / "containers" / "train-1.log").symlink_to(tmp_path / "pods" / "0.log")
    assert [one.rank for one in read([str(tmp_path / "containers")]).accounts] == [1]


PACKED = {
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "utf-16": lambda data: data.decode().encode("utf-16"),
    "a NUL in its head": lambda data: b"progress\0bar\n" + data,
}


@pytest.mark.parametrize("way", PACKED)
def test_a_log_is_read_as_it_is_kept(tmp_path: Path, way: str) -> None:
    (tmp_path / "job.log").write_bytes(PACKED[way](LATE.encode()))
    assert [one.rank for one in read([str(tmp_path)]).accounts] == [1]


def test_archives_have_to_be_unpacked(tmp_path: Path) -> None:
    (tmp_path / "job.log").write_text(LATE)
    with tarfile.open(tmp_path / "logs.tar.gz", "w:gz") as archive:
        archive.add(tmp_path / "job.log")
    with zipfile.ZipFile(tmp_path / "logs.zip", "w") as zipped:
        zipped.write(tmp_path / "job.log")
    problems = {file.name: problem for file, problem in read([str(tmp_path)]).damaged}
    assert problems == {
        "logs.tar.gz": "it is a tar archive: unpack it, and read the folder",
        "logs.zip": "it is a zip archive: unpack it, and read the folder",
    }


@pytest.mark.parametrize("name", ["gone", "a\0b", "x" * 5000])
def test_a_path_that_is_not_there(tmp_path: Path, name: str) -> None:
    with pytest.raises(MissingError, match="cannot be read"):
        list(files([f"{tmp_path}/{name}"]))


def test_a_file_is_read_once(tmp_path: Path) -> None:
    (tmp_path / "rank_0").write_bytes(DUMP)
    assert len(list(files([str(tmp_path), str(tmp_path / "rank_0")]))) == 1


def test_a_text_comes_in_whole_lines_however_it_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "".join(f"line {number} {'x' * (number % 50)}\n" for number in range(500)) + "the end"
    for size in (16, 100, 1000, 1 << 16):
        monkeypatch.setattr(files_module, "PIECE", size)
        found = list(pieces(io.BytesIO(text.encode()), Budget()))
        lines = [line for piece in found for line in piece.split(b"\n")]
        if size > 64:
            assert b"\n".join(lines).decode() == text
        assert max(map(len, found)) <= 3 * size


def test_a_bomb_is_not_unpacked_to_its_end(tmp_path: Path) -> None:
    bomb = tmp_path / "bomb.gz"
    with gzip.open(bomb, "wb", compresslevel=9) as file:
        for _ in range(64):
            file.write(b"a line without an end " * 48_000)
    found = content_of(bomb, Budget(1 << 20))
    assert "not read to its end" in found.damaged


def test_a_damaged_archive(tmp_path: Path) -> None:
    packed = gzip.compress(LATE.encode() * 100)
    for size in (3, 12, len(packed) // 2, len(packed) - 4):
        file = tmp_path / "job.log.gz"
        file.write_bytes(packed[:size])
        assert content_of(file, Budget()).damaged
    file.write_bytes(packed[:20] + b"\0\0\0\0" + packed[24:])
    assert content_of(file, Budget()).damaged


def test_what_is_larger_than_any_dump_is_not_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files_module, "WHOLE", 100)
    with pytest.raises(UnreadableError, match="no dump has"):
        whole(io.BytesIO(bytes(101)), Budget())


def test_a_recording_is_known_by_its_first_line(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "run")
    recorder._write({"recording": 2})
    recorder.close()
    found = read([str(tmp_path)])
    assert found.damaged[0][1].startswith("it cannot be read as a recording")


def test_one_file_that_ends_its_reader_does_not_end_the_others(tmp_path: Path) -> None:
    deep = b"\x80\x04}(" + b")" + b"\x85" * 2_000_000 + b"K\x01u."
    for number in range(4):
        (tmp_path / f"rank_{number}").write_bytes(deep if number % 2 else DUMP)
    found = read([str(tmp_path)])
    assert sorted(one.rank or 0 for one in found.accounts) == [0, 2]
    assert [(file.name, problem) for file, problem in found.damaged] == [
        ("rank_1", ENDS_ITS_READER),
        ("rank_3", ENDS_ITS_READER),
    ]


def test_a_value_of_another_type_is_damage(tmp_path: Path) -> None:
    (tmp_path / "rank_0").write_bytes(
        pickle.dumps(dump({**entry("all_reduce"), "input_sizes": [["x"]]}))
    )
    found = read([str(tmp_path)])
    assert [problem.partition(":")[0] for _, problem in found.damaged] == [
        "it is not as any software writes it"
    ]


def test_nothing_that_is_recognised(tmp_path: Path) -> None:
    (tmp_path / "notes.bin").write_bytes(bytes(7))
    with pytest.raises(NothingError, match=r"notes\.bin \(7 bytes\) is not recognised"):
        read([str(tmp_path)]).parts()
    with pytest.raises(NothingError, match="there is no file"):
        read([]).parts()


SEEDS = [
    DUMP,
    pickle.dumps(dump(entry("send 0->1")), protocol=2),
    json.dumps(dump(entry("all_reduce"))).encode(),
    json.dumps([{"pid": 1, "thread_id": 2, "frames": []}]).encode(),
    json.dumps({"message": {"message": "E: x", "extraInfo": {"py_callstack": "x"}}}).encode(),
    LATE.encode() * 3,
    b'Process 7: python\nPython v3.11 (x)\n\nThread 7 (idle): "MainThread"\n    f (a.py:3)\n',
    b'Current thread 0x01 (most recent call first):\n  File "a.py", line 3 in f\n',
    b'[rank0]: Traceback (most recent call last):\n[rank0]:   File "a.py", line 3, in f\n'
    b"[rank0]: ValueError: x\n",
    gzip.compress(LATE.encode()),
]


def fuzzed(seed: int) -> bytes:
    """One of the files above, changed in some places."""
    choose = random.Random(seed)
    data = bytearray(choose.choice(SEEDS))
    odd = [b"\x1b[31m", b"<script>", b"\xff\xfe", b"\0", b"\xf0\x9f", b"r\xff\xff\xff\xef"]
    for _ in range(choose.randint(1, 8)):
        at = choose.randrange(len(data) or 1)
        match choose.randint(0, 3):
            case 0:
                data[at : at + 1] = bytes([choose.randrange(256)])
            case 1:
                del data[at : at + choose.randint(1, 20)]
            case 2:
                data[at:at] = choose.choice(SEEDS)[: choose.randint(1, 60)]
            case _:
                data[at:at] = choose.choice(odd)
    return bytes(data)


def test_whatever_is_in_a_file_it_is_read_or_refused_in_one_sentence(tmp_path: Path) -> None:
    for seed in range(10_000):
        (tmp_path / f"rank_{seed}").write_bytes(fuzzed(seed))
    found = read([str(tmp_path)])
    assert all("\n" not in problem for _, problem in found.damaged)
    assert ENDS_ITS_READER not in {problem for _, problem in found.damaged}
    assert len(found.accounts) > 1000
    report, _ = report_of_artifacts(found)
    assert report.verdict.outcome in ("hang", "error", "running")
