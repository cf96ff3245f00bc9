"""What a look at this very process brings in, and what the observer makes of it."""

from __future__ import annotations

import os
import socket
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import psutil
import pytest
from dead_server import dead_server

from helpers.observe import sockets
from helpers.observe.look import AnyQuestion, Dump, ErrorFile, Failure, Look, Owner, Source, Watched
from helpers.observe.observer import Observer
from helpers.observe.process_view import started
from helpers.observe.sampler import Sampler, _Tracker

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="sets the clock that Linux tells psutil")

HERE = os.getpid()


@dataclass
class Here:
    """A job of one process: this one."""

    folder: Path | None = None
    session: int = 0
    pid: int = HERE
    started: float = field(default_factory=lambda: psutil.Process().create_time())

    def poll(self) -> int | None:
        return None

    def reaped(self) -> dict[int, int]:
        return {}

    def processes(self) -> list[psutil.Process]:
        return [psutil.Process()]


@pytest.fixture
def sampler(tmp_path: Path) -> Sampler:
    return Sampler(Here(), ["python"], tmp_path, "inherit")


@pytest.mark.parametrize("seconds", [-3600.0, 1.5, 3600.0])
def test_a_clock_that_is_set_loses_nothing(
    seconds: float, sampler: Sampler, monkeypatch: pytest.MonkeyPatch
) -> None:
    observer = Observer(sampler.watched)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = listening.getsockname()
        observer.take(sampler.look())
    row = observer.table.rows[HERE]
    began = started(row, 0.0)
    assert address in row.all_sockets
    clock, boot = time.time, psutil.boot_time()
    monkeypatch.setattr(time, "time", lambda: clock() + seconds)
    monkeypatch.setattr("psutil._pslinux.boot_time", lambda: boot + seconds)
    assert psutil.boot_time() == boot + seconds
    observer.take(sampler.look())
    assert observer.table.rows[HERE] is row
    assert started(row, 0.0) == began


def test_a_process_that_was_only_told_of_is_known_in_full_once_it_is_seen(sampler: Sampler) -> None:
    observer = Observer(sampler.watched)
    observer.table.ensure(HERE, 1, ("python",), time.monotonic(), time.monotonic())
    assert observer.table.rows[HERE].environment is None
    observer.take(sampler.look())
    assert observer.table.rows[HERE].parent == os.getppid()
    assert observer.table.rows[HERE].environment is not None


def test_a_process_with_the_number_of_one_that_has_ended_is_another_one(
    sampler: Sampler, monkeypatch: pytest.MonkeyPatch
) -> None:
    observer = Observer(sampler.watched)
    observer.take(sampler.look())
    before = observer.table.rows[HERE]
    tick = psutil._pslinux.Process.create_time
    monkeypatch.setattr(
        "psutil._pslinux.Process.create_time", lambda *args, **words: tick(*args, **words) + 0.5
    )
    observer.take(sampler.look())
    assert observer.table.rows[HERE] is not before


def test_a_process_tells_its_program_once_and_no_secret_of_its_environment(
    sampler: Sampler, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        psutil.Process, "environ", lambda _: {"RANK": "1", "MASTER_PORT": "2", "HUB_TOKEN": "x"}
    )
    first, second = sampler.look(), sampler.look()
    (program,) = first.programs
    assert program.environment == {"RANK": "1", "MASTER_PORT": "2"}
    assert second.programs == ()
    assert [usage.pid for usage in second.alive] == [HERE]


def test_an_answer_is_given_when_it_is_new_or_has_changed(sampler: Sampler, tmp_path: Path) -> None:
    file = tmp_path / "train.py"
    asked = Source(str(file))
    looks = [_answers(sampler, asked)]
    looks.append(sampler.look([asked]).answers)
    file.write_text("step()")
    looks.append(_answers(sampler, asked))
    sampler.look([])
    looks.append(_answers(sampler, asked))
    answers = [[told and told[0] for _, told in look] for look in looks]
    assert answers == [[None], [], ["step()"], ["step()"]]
    ((_, (_, changed)),) = looks[-1]
    assert changed == pytest.approx(time.monotonic(), abs=60)


def _answers(sampler: Sampler, asked: AnyQuestion) -> tuple[tuple[AnyQuestion, Any], ...]:
    """The first answers that looks bring: one that takes long on a busy machine is for a later look."""
    return next(answers for answers in iter(lambda: sampler.look([asked]).answers, None) if answers)


def test_a_look_does_not_wait_for_a_dead_server_and_keeps_what_it_knew(
    sampler: Sampler, tmp_path: Path
) -> None:
    (tmp_path / "a.py").write_text("a()")
    (tmp_path / "b.py").write_text("b()")
    with dead_server(tmp_path) as server:
        known, other = Source(server.file("a.py")), Source(server.file("b.py"))
        failed = ErrorFile(server.file("error"))
        server.come_back()
        ((_, (text, _)),) = _answers(sampler, known)
        server.die()
        begun = time.monotonic()
        looks = [sampler.look([known, other, failed]) for _ in range(5)]
        assert time.monotonic() - begun < 2.0
        assert (text, {look.answers for look in looks}) == ("a()", {()})
        server.come_back()
        found: dict[AnyQuestion, Any] = {}
        while not found.keys() >= {other, failed}:
            found |= dict(sampler.look([known, other, failed]).answers)
        assert (found[other][0], found[failed]) == ("b()", None)


def test_the_owner_of_a_port_is_never_a_process_of_the_job(sampler: Sampler) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        asked = Owner(listening.getsockname()[1])
        sampler.look()
        assert sampler.look([asked]).answers == ((asked, None),)


def test_a_look_is_the_same_when_it_was_written_and_read(sampler: Sampler) -> None:
    for look in (sampler.look([Failure(HERE), Source("/dev/null/x")]), sampler.look()):
        assert msgspec.json.decode(msgspec.json.encode(look), type=Look) == look
    watched = sampler.watched
    assert msgspec.json.decode(msgspec.json.encode(watched), type=Watched) == watched


def test_a_look_of_a_later_version_can_be_read() -> None:
    look = msgspec.json.decode(
        b'{"time": 1.5, "weather": "fine", "alive": [{"pid": 7, "age": 3}]}', type=Look
    )
    assert look.time == 1.5 and look.alive[0].pid == 7


def test_what_is_read_from_outside_is_asked_for_where_there_is_no_beacon(sampler: Sampler) -> None:
    observer = Observer(sampler.watched)
    assert sampler.watched.attached
    observer.take(sampler.look())
    assert Dump(HERE) in observer.wanted


HERE_IT_IS, THERE = "10.0.0.1", "10.0.0.2"
SILENT, ANSWERS = psutil.CONN_SYN_SENT, psutil.CONN_ESTABLISHED
ATTEMPTS = [
    ("between two attempts to connect", [SILENT, None], True),
    ("a new attempt, of which it is too early to say", [SILENT, None, "begins"], True),
    ("a connection that stands", [SILENT, ANSWERS], False),
    ("none that was silent", [ANSWERS, None], False),
    ("long ago", [SILENT, *[None] * 8], False),
]


@pytest.mark.parametrize(
    ("looks", "silent"), [row[1:] for row in ATTEMPTS], ids=[row[0] for row in ATTEMPTS]
)
def test_an_end_that_has_not_answered_is_remembered_for_a_while(
    looks: list[str | None], silent: bool
) -> None:
    process = _Tracker(psutil.Process(), 0.0, 1, 0)
    for number, state in enumerate(looks):
        connection = sockets.Socket(
            local=(HERE_IT_IS, 40000 + number),
            remote=(THERE, 4242),
            state=SILENT if state == "begins" else str(state),
            silent=state == SILENT,
        )
        ends = process._unanswered_of([connection] if state else [], 1000.0 + 3 * number)
    assert ends == ((f"{THERE}:4242",) if silent else ())
