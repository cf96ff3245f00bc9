"""Reading the records that beacons leave."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from beacon_records import record, thread

from helpers.beacon import files
from helpers.beacon.record import Sample, Samples
from helpers.observe import records
from helpers.observe.inbox import Inbox
from helpers.observe.look import Told
from helpers.observe.records import Beacons, parsed


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "records").mkdir()
    return tmp_path


def write(folder: Path, line: int, moment: int = 0) -> None:
    path = files.record_path(str(folder), 7)
    files.write(path, record(thread(frames=[("/job/train.py", line, "main", True)])))
    stamp = 1_700_000_000_000_000_000 + moment * 1_000_000
    os.utime(path, ns=(stamp, stamp))


def line_of(inbox: Inbox) -> int:
    return inbox.records[7]["threads"][0]["frames"][0][1]


def test_a_record_that_follows_another_at_once_is_read(folder: Path) -> None:
    """A process may write its last words a millisecond after a look."""
    beacons, inbox, seen = Beacons(folder), Inbox(), []
    for moment, line in enumerate((9, 13)):
        write(folder, line, moment)
        inbox.take(beacons.read())
        seen.append(line_of(inbox))
    assert seen == [9, 13]


def test_what_a_beacon_does_not_write_is_left_alone(folder: Path) -> None:
    write(folder, 9)
    os.mkfifo(files.record_path(str(folder), 8))
    os.symlink("/dev/zero", files.stacks_path(str(folder), 9))
    assert [one.pid for one in Beacons(folder).read()] == [7]


def test_what_says_the_same_as_before_is_told_once(folder: Path) -> None:
    beacons = Beacons(folder)
    write(folder, 9)
    assert [one.pid for one in beacons.read()] == [7]
    assert list(beacons.read()) == []


def test_a_record_that_was_only_touched_is_not_told_again(folder: Path) -> None:
    """Its beacon lives, and has nothing new to say."""
    beacons, inbox = Beacons(folder), Inbox()
    for moment in (1, 2):
        write(folder, 9, moment)
        (told,) = beacons.read()
        inbox.take([told])
    assert (told.record, told.failed, told.lost) == (None, "", False)
    assert (told.written, line_of(inbox)) == (inbox.written[7], 9)


def test_the_stacks_of_a_crash_are_told_by_themselves(folder: Path) -> None:
    beacons, inbox = Beacons(folder), Inbox()
    write(folder, 9)
    inbox.take(beacons.read())
    Path(files.stacks_path(str(folder), 7)).write_text("Current thread")
    (told,) = beacons.read()
    inbox.take([told])
    assert (told.record, told.lost, inbox.stacks[7]) == (None, False, "Current thread")
    assert line_of(inbox) == 9


@pytest.mark.parametrize("before", ["seen", "not seen", "none"])
def test_a_record_that_was_emptied_is_lost(folder: Path, before: str) -> None:
    """The beacon could not write the next one, and the one before is no longer true."""
    beacons, inbox = Beacons(folder), Inbox()
    if before != "none":
        write(folder, 9)
    if before == "seen":
        inbox.take(beacons.read())
    files.give_up(files.record_path(str(folder), 7))
    inbox.take(beacons.read())
    assert 7 not in inbox.records and "full disk" in inbox.failures[7]


def test_a_look_that_failed_is_told(folder: Path) -> None:
    files.write(files.record_path(str(folder), 7), {"failed": "KeyError('x')"})
    inbox = Inbox()
    inbox.take(Beacons(folder).read())
    assert (inbox.beacons, inbox.failures) == (set(), {7: "KeyError('x')"})


def test_a_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    main = thread(frames=[("/job/\udcff.py", 9, "main", True)])
    whole = record(main, argv=["\udcff", "\N{SNOWMAN}"], workers={7: 0}, reaped={8: 9})
    path = tmp_path / "7.record"
    files.write(str(path), whole)
    assert parsed(files.read(str(path)) or b"") == whole


def test_a_record_that_is_being_written_is_read_later(folder: Path) -> None:
    """It is written over the one before, whose end may still be there, and longer than its own."""
    beacons, inbox, path = Beacons(folder), Inbox(), Path(files.record_path(str(folder), 7))
    write(folder, 9)
    inbox.take(beacons.read())
    before = path.read_bytes()
    write(folder, 13)
    whole = path.read_bytes()
    for cut in (1, 9, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:cut] + before[cut:])
        inbox.take(beacons.read())
        assert line_of(inbox) == 9
    path.write_bytes(whole + before)
    inbox.take(beacons.read())
    assert line_of(inbox) == 13


@pytest.mark.parametrize("content", [b"", b"{", b"\xff"])
def test_an_empty_or_broken_record_is_none(content: bytes) -> None:
    assert parsed(content) is None


@pytest.mark.parametrize("content", [b"[1]", b"7", b"null", b"{}", b'{"ppid": "one"}'])
def test_what_is_not_a_record_is_told(content: bytes) -> None:
    assert "its record cannot be read: " in str(parsed(content))


def test_what_processes_have_left_that_ended_long_ago_is_removed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "MOST", 4)
    now, alive, ended = time.time(), os.getpid(), range(2**22 + 1, 2**22 + 10)  # no pid is that high
    for age, pid in enumerate((*ended, alive)):
        path = files.record_path(str(folder), pid)
        files.write(path, record(thread()))
        moment = now - 2 * records.OLD - age if pid not in ended[:2] else now - 5
        os.utime(path, (moment, moment))
    beacons = Beacons(folder)
    assert len(list(beacons.read())) == 10
    assert list(beacons.read()) == []
    left = {int(file.stem) for file in (folder / "records").iterdir()}
    assert left == {*ended[:4], alive}


def test_without_a_folder_nothing_is_told() -> None:
    beacons = Beacons(None)
    assert (list(beacons.read()), beacons.failure(7)) == ([], "")


def test_samples_are_told_once(folder: Path) -> None:
    def noted(*numbers: int) -> Samples:
        taken: list[Sample] = [
            {
                "tick": number,
                "due": number,
                "doing": "works",
                "within": "",
                "call": "",
                "place": 0,
                "issued": {"0": number},
                "ran": 0.5,
                "wanted": 0.0,
                "used": 0.5,
                "collections": 0,
                "load": 0.0,
            }
            for number in numbers
        ]
        return {"samples": taken, "places": [("/job/train.py", 9, "main", True)]}

    beacons, path = Beacons(folder), files.samples_path(str(folder), 7)
    inbox, told = Inbox(), []
    for numbers in ((1, 2), (1, 2, 3), (2, 3)):
        files.write(path, noted(*numbers))
        told += [one.samples for one in beacons.read()]
    inbox.take(Told(7, 0.0, samples=one) for one in told)
    assert told == [noted(1, 2), noted(3), None]
    assert [(one["tick"], place) for one, place in inbox.samples[7]] == [
        (number, ("/job/train.py", 9, "main", True)) for number in (1, 2, 3)
    ]


def test_damaged_samples_are_left_out(folder: Path) -> None:
    Path(files.samples_path(str(folder), 7)).write_bytes(files.framed(b'{"samples": [{"tick": "x"}]}'))
    assert [one.samples for one in Beacons(folder).read()] == [None]
