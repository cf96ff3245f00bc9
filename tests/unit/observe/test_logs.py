"""What the processes of a job print, by label, from the files of a run."""

from __future__ import annotations

import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from histories import absent, child, launcher, rank, snapshot, worker, working

from helpers.model.facts import RankView, Snapshot
from helpers.observe import logs as logs_module
from helpers.observe.logs import CHUNK, KEEP, Logs

ROOT = 900

NEWEST = snapshot(
    working(0, children=[worker(0, 0), worker(0, 1), child(0)]),
    working(1),
    absent(2),
    launchers=[replace(launcher(), command=("python", "/env/bin/torchrun", "train.py"))],
)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    (tmp_path / "output").mkdir()
    return tmp_path


def prints(run: Path, name: str, text: str | bytes) -> None:
    with (run / "output" / name).open("ab") as file:
        file.write(text if isinstance(text, bytes) else text.encode())


def read(logs: Logs, run: Path, newest: Snapshot = NEWEST, **more: bool) -> list[tuple[str, str]]:
    return list(logs.read(run, ROOT, newest, **more))


def test_each_process_has_its_label(run: Path) -> None:
    for name in ("1000", "1001", "2000", "2001", "3000", "4711", "job"):
        prints(run, f"{name}.log", f"{name}\n")
    logs = Logs()
    assert {line: label for label, line in read(logs, run)} == {
        "1000": "rank 0",
        "1001": "rank 1",
        "2000": "rank 0 worker 0",
        "2001": "rank 0 worker 1",
        "3000": "rank 0 child",
        "4711": "job",
        "job": "launcher",
    }
    assert logs.labels()[:2] == ["rank 0", "rank 0 child"]
    assert logs.labels()[-2:] == ["job", "launcher"]


def test_labels_of_ranks_stand_in_the_order_of_their_numbers(run: Path) -> None:
    many = snapshot(*(working(n) for n in range(12)))
    for number in (10, 2, 1):
        prints(run, f"{1000 + number}.log", "x\n")
    logs = Logs()
    read(logs, run, many)
    assert logs.labels() == ["rank 1", "rank 2", "rank 10"]


def test_the_command_counts_as_the_job_until_it_is_a_rank(run: Path) -> None:
    logs = Logs()
    prints(run, "job.log", "before\n")
    assert read(logs, run, snapshot(world=0)) == [("job", "before")]
    prints(run, "job.log", "after\n")
    newest = snapshot(working(0))
    assert list(logs.read(run, 1000, newest)) == [("rank 0", "after")]


def test_a_process_of_unknown_rank_is_the_job(run: Path) -> None:
    prints(run, "1099.log", "x\n")
    assert read(Logs(), run, snapshot(rank(None))) == [("job", "x")]


ALONE = replace(working(0), rank=None, local_rank=None, joined=False)


@pytest.mark.parametrize("newest", [ALONE, replace(ALONE, rank=0)], ids=["running", "ended"])
def test_a_program_of_no_rank_keeps_its_name_to_the_end(run: Path, newest: RankView) -> None:
    """At its end it counts as rank 0, since there was no other; what it prints has one label."""
    prints(run, "1000.log", "x\n")
    assert read(Logs(), run, snapshot(newest, world=1)) == [("job", "x")]


def test_a_program_that_launches_its_ranks_itself_is_the_job(run: Path) -> None:
    prints(run, "job.log", "x\n")
    newest = snapshot(working(0), launchers=[replace(launcher(), command=("python", "train.py"))])
    assert read(Logs(), run, newest) == [("job", "x")]


def test_lines_come_once_and_in_order(run: Path) -> None:
    logs = Logs()
    prints(run, "1000.log", "one\ntwo\n")
    assert read(logs, run) == [("rank 0", "one"), ("rank 0", "two")]
    assert read(logs, run) == []
    prints(run, "1000.log", "three\n\nfive\n")
    assert [line for _, line in read(logs, run)] == ["three", "", "five"]
    assert logs.tail("rank 0") == ["one", "two", "three", "", "five"]


def test_a_line_comes_when_it_is_complete(run: Path) -> None:
    logs = Logs()
    prints(run, "1000.log", "load")
    assert read(logs, run) == []
    prints(run, "1000.log", "ing\nne")
    assert read(logs, run) == [("rank 0", "loading")]
    assert read(logs, run, last=True) == [("rank 0", "ne")]
    assert read(logs, run, last=True) == []


def test_a_character_that_is_written_in_two_parts_stays_whole(run: Path) -> None:
    logs = Logs()
    snow = "\N{SNOWMAN}".encode()
    prints(run, "1000.log", snow[:1])
    assert read(logs, run) == []
    prints(run, "1000.log", snow[1:] + b"\n")
    assert read(logs, run) == [("rank 0", "\N{SNOWMAN}")]


def test_bytes_that_are_no_text_do_not_stop_it(run: Path) -> None:
    prints(run, "1000.log", b"\xff\xfe ok\n")
    ((label, line),) = read(Logs(), run)
    assert label == "rank 0" and line.endswith(" ok")


def test_blank_lines_at_the_end_are_left_out(run: Path) -> None:
    prints(run, "1000.log", "bye\n\n\n")
    assert [line for _, line in read(Logs(), run, last=True)] == ["bye"]


def test_the_tail_is_bounded(run: Path) -> None:
    prints(run, "1000.log", "".join(f"{n}\n" for n in range(KEEP + 10)))
    logs = Logs()
    read(logs, run)
    assert len(logs.tail("rank 0", lines=10 * KEEP)) == KEEP
    assert logs.tail("rank 0", lines=2) == [str(KEEP + 8), str(KEEP + 9)]
    assert logs.tail("rank 7") == []


def test_the_end_of_a_long_output_is_not_lost(run: Path) -> None:
    line = "x" * 99 + "\n"
    prints(run, "1000.log", line * (3 * CHUNK // len(line)) + "Traceback of the end\n")
    logs = Logs()
    read(logs, run)
    read(logs, run, last=True)
    assert logs.tail("rank 0", 1) == ["Traceback of the end"]


def test_a_run_that_prints_nothing(run: Path) -> None:
    logs = Logs()
    assert read(logs, run, last=True) == []
    assert logs.labels() == []
    assert list(logs.read(run / "gone", ROOT, NEWEST)) == []


@pytest.mark.skipif(sys.platform != "linux", reason="punches holes into files")
def test_the_disk_space_of_what_was_read_is_given_back(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs_module, "FREED_AT_ONCE", 1 << 19)
    logs, path = Logs(), run / "output" / "1000.log"
    lines = [f"{number:09d}" + "x" * 90 for number in range(100_000)]
    seen = []
    for start in range(0, len(lines), 10_000):
        prints(run, "1000.log", "\n".join(lines[start : start + 10_000]) + "\n")
        seen += [line for _, line in read(logs, run)]
        logs.trim(run)
    seen += [line for _, line in read(logs, run, last=True)]
    assert seen == lines
    assert path.stat().st_size == 100 * len(lines)
    assert path.stat().st_blocks * 512 <= logs_module.BEHIND + (1 << 20) + 8192
    with path.open("rb") as file:
        file.seek(-20_000, 2)
        assert file.read().endswith(lines[-1].encode() + b"\n")


def test_where_no_space_can_be_given_back_nothing_else_changes(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs_module, "FREED_AT_ONCE", 0)
    monkeypatch.setattr(logs_module, "BEHIND", 0)
    asked: list[tuple[int, int]] = []

    def punch(path: Path, start: int, end: int) -> bool:
        asked.append((start, end))
        return False

    monkeypatch.setattr(logs_module, "punch", punch)
    logs = Logs()
    for word in ("one", "two"):
        prints(run, "1000.log", word + "\n")
        assert read(logs, run) == [("rank 0", word)]
        assert not logs.trim(run)
    assert asked == [(0, 4), (0, 8)]


@pytest.mark.skipif(sys.platform != "linux", reason="punches holes into files")
def test_what_comes_too_fast_to_be_read_is_given_back_unread(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs_module, "FREED_AT_ONCE", 1 << 19)
    monkeypatch.setattr(logs_module, "BACKLOG", 4 << 20)
    logs, path = Logs(), run / "output" / "1000.log"
    prints(run, "1000.log", "first\n")
    assert read(logs, run) == [("rank 0", "first")]
    prints(run, "1000.log", ("y" * 99 + "\n") * 200_000 + "Traceback of the end\n")
    assert logs.trim(run)
    assert path.stat().st_blocks * 512 <= (4 << 20) + 8192
    assert not logs.trim(run)
    prints(run, "1000.log", "and more\n")
    lines = [line for _, line in read(logs, run)]
    assert "left out" in lines[0]
    assert set(lines[1:-2]) == {"y" * 99}
    assert lines[-2:] == ["Traceback of the end", "and more"]


def test_the_files_are_trimmed_while_nobody_reads(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    freed, logs = threading.Event(), Logs()
    monkeypatch.setattr(logs_module, "BACKLOG", 0)
    monkeypatch.setattr(logs_module, "FREED_AT_ONCE", 1)
    monkeypatch.setattr(logs_module, "punch", lambda path, start, end: freed.set() or True)
    with logs.trimmed(run):
        prints(run, "1000.log", "word\n")
        assert freed.wait(60)


def test_a_file_that_is_gone_gives_no_space_back(tmp_path: Path) -> None:
    assert not logs_module.punch(tmp_path / "gone", 0, 1)


def test_of_a_process_that_prints_too_fast_the_newest_lines_come(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs_module, "BACKLOG", 4 << 20)
    prints(run, "1000.log", ("y" * 99 + "\n") * 80_000 + "Traceback of the end\n")
    logs = Logs()
    lines = [line for _, line in read(logs, run)]
    assert lines[0] == "... 6 MB of output came too fast and are left out ..."
    assert lines[-1] == "Traceback of the end"
    assert set(lines[1:-1]) == {"y" * 99}
    assert len(lines) < 12_000
