"""Pipes of a run: taken by processes, read by a thread that nothing but its sink holds up."""

from __future__ import annotations

import itertools
import os
import resource
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from histories import launcher, snapshot, working
from msgspec.structs import replace
from waiting import until

from helpers.beacon import output
from helpers.launch import output_pipes
from helpers.launch.output_pipes import OutputPipes
from helpers.observe.logs import Logs
from helpers.observe.relay import Relay

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="opens FIFOs for reading and writing")

PRINTS = "import os, sys; from helpers.beacon import output; output.separate(sys.argv[1]); "
"""A program of which the beacon has separated the output."""


@pytest.fixture
def pipes(tmp_path: Path) -> Iterator[OutputPipes]:
    opened = OutputPipes(tmp_path / "output")
    opened.take_stock()
    yield opened
    opened.close()


class Sink:
    """Notes what it gets; blocks while `full`."""

    def __init__(self) -> None:
        self.pieces: list[tuple[str, bytes]] = []
        self.pids: list[int | None] = []
        self.room = threading.Event()
        self.room.set()

    def write(self, pid: int | None, label: str, data: bytes) -> None:
        self.pids.append(pid)
        self.pieces.append((label, data))
        self.room.wait()


def program(folder: Path, text: str) -> subprocess.Popen[bytes]:
    """A process whose standard output is the command's pipe when it starts."""
    with open(folder / "output" / "job", "r+b", buffering=0) as job:
        words = [sys.executable, "-c", PRINTS + text, str(folder)]
        return subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=job)


def read_all(pipes: OutputPipes) -> dict[int | None, bytes]:
    found: dict[int | None, bytes] = {}
    while pieces := list(pipes.read(0)):
        for pid, data in pieces:
            found[pid] = found.get(pid, b"") + data
    return found


def test_what_a_process_prints_is_not_lost_however_soon_it_ends(
    tmp_path: Path, pipes: OutputPipes
) -> None:
    first, second = program(tmp_path, "print('one')"), program(tmp_path, "print('two')")
    assert (first.wait(60), second.wait(60)) == (0, 0)
    assert read_all(pipes) == {first.pid: b"one\n", second.pid: b"two\n"}
    assert {name.partition("-")[0] for name in os.listdir(tmp_path / "output")} == {"spare"}


def test_a_program_that_replaces_itself_keeps_its_pipe(tmp_path: Path, pipes: OutputPipes) -> None:
    again = "os.execv(sys.executable, [sys.executable, '-c', os.environ['AGAIN'], sys.argv[1]])"
    os.environ["AGAIN"] = PRINTS + "print('two')"
    process = program(tmp_path, "print('one', flush=True); " + again)
    assert process.wait(60) == 0
    assert read_all(pipes) == {process.pid: b"one\ntwo\n"}


def test_what_the_job_has_redirected_stays(tmp_path: Path, pipes: OutputPipes) -> None:
    script = (
        "import os, sys; from helpers.beacon import output; "
        "os.dup2(os.open('/dev/null', os.O_WRONLY), 1); "
        "output.separate(sys.argv[1]); print(os.readlink('/proc/self/fd/1'), file=sys.stderr)"
    )
    with open(tmp_path / "output" / "job", "r+b", buffering=0) as job:
        words = [sys.executable, "-c", script, str(tmp_path)]
        process = subprocess.Popen(words, stdout=job, stderr=job)
    assert process.wait(60) == 0
    assert read_all(pipes) == {process.pid: b"/dev/null\n"}


def test_the_run_may_be_reached_through_a_link(tmp_path: Path, pipes: OutputPipes) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    process = program(tmp_path / "link", "print('one')")
    assert process.wait(60) == 0
    assert read_all(pipes) == {process.pid: b"one\n"}


def test_without_a_spare_pipe_a_process_prints_where_its_parent_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output_pipes, "SPARE", 0)
    monkeypatch.setattr(output_pipes, "_spare", lambda: 0)
    pipes = OutputPipes(tmp_path / "output")
    pipes.take_stock()
    assert program(tmp_path, "print('one')").wait(60) == 0
    assert read_all(pipes) == {None: b"one\n"}
    pipes.close()


def test_a_process_reads_nothing_of_what_it_prints(tmp_path: Path, pipes: OutputPipes) -> None:
    """As asyncio finds out: a pipe that can be read is one whose reader has gone."""
    script = "import fcntl; print(fcntl.fcntl(1, fcntl.F_GETFL) & os.O_ACCMODE == os.O_WRONLY)"
    process = program(tmp_path, script)
    assert process.wait(60) == 0
    assert read_all(pipes) == {process.pid: b"True\n"}


@pytest.mark.parametrize("limit", [16, 64, 1024])
def test_few_descriptors_are_taken_where_few_may_be_open(
    limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (limit, limit))
    assert output_pipes._spare() == {16: 2, 64: 8, 1024: 64}[limit]


def test_new_spare_pipes_come_for_those_that_are_taken(tmp_path: Path, pipes: OutputPipes) -> None:
    for _ in range(3):
        taken = [output._take(str(tmp_path / "output")) for _ in range(output_pipes.SPARE)]
        assert None not in taken
        assert output._take(str(tmp_path / "output")) is None
        read_all(pipes)


def test_a_process_with_its_reader_gone_is_not_ended(tmp_path: Path) -> None:
    pipes = OutputPipes(tmp_path / "output")
    pipes.take_stock()
    process = program(
        tmp_path, "print('one', flush=True); sys.stdin.readline(); print('two', flush=True)"
    )
    pipes.close()
    assert process.wait(60) == 0


def test_output_waits_until_it_is_known_whose_it_is(tmp_path: Path, pipes: OutputPipes) -> None:
    logs, sink = Logs(900), Sink()
    process = program(tmp_path, "print('one')")
    process.wait(60)
    with Relay(pipes, logs, sink) as relay:
        until(lambda: logs.end(process.pid))
        assert sink.pieces == []
        view = working(0)
        assert view.process is not None
        logs.take(snapshot(replace(view, process=replace(view.process, pid=process.pid))))
        until(lambda: sink.pieces)
        relay.finish(60)
    assert sink.pieces == [("rank 0", b"one\n")]


def test_nothing_overtakes_the_output_of_a_process_that_is_not_known_yet(
    tmp_path: Path, pipes: OutputPipes
) -> None:
    logs, sink = Logs(900), Sink()
    logs.take(snapshot(launchers=[replace(launcher(), pid=900)]))
    processes = []
    with (
        open(tmp_path / "output" / "job", "r+b", buffering=0) as job,
        Relay(pipes, logs, sink) as relay,
    ):
        for word in ("one", "two"):
            processes.append(program(tmp_path, f"print({word!r})"))
            processes[-1].wait(60)
            job.write(f"after {word}\n".encode())
            until(lambda: f"after {word}" in logs.end(900))  # noqa: B023 (called at once)
        relay.finish(60)
    assert b"".join(data for _, data in sink.pieces) == b"one\nafter one\ntwo\nafter two\n"
    turns = [pid for pid, _ in itertools.groupby(sink.pids)]
    assert turns == [processes[0].pid, None, processes[1].pid, None]


def test_what_comes_after_the_end_is_read_and_not_shown(tmp_path: Path, pipes: OutputPipes) -> None:
    logs, sink = Logs(900), Sink()
    with (
        Relay(pipes, logs, sink) as relay,
        open(tmp_path / "output" / "job", "r+b", buffering=0) as job,
    ):
        job.write(b"before\n")
        relay.finish(60)
        job.write(b"after\n" * (1 << 18))  # more than a pipe holds
    assert sink.pieces == [("job", b"before\n")]
    assert logs.tail("job") == ["before"]


def test_a_sink_that_blocks_holds_up_the_writer_and_nobody_else(
    tmp_path: Path, pipes: OutputPipes
) -> None:
    logs, sink = Logs(900), Sink()
    sink.room.clear()
    text = b"x" * 99 + b"\n"
    with (
        Relay(pipes, logs, sink),
        open(tmp_path / "output" / "job", "r+b", buffering=0) as job,
    ):
        writer = threading.Thread(target=lambda: [job.write(text * 1000) for _ in range(40)])
        writer.start()
        until(lambda: sink.pieces)
        writer.join(0.3)
        assert writer.is_alive()
        sink.room.set()
        writer.join(60)
    assert not writer.is_alive()
