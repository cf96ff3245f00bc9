"""Reading the records that beacons leave."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from helpers.beacon import format as records
from helpers.observe.inbox import Inbox
from helpers.observe.records import Beacons


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "records").mkdir()
    return tmp_path


def write(folder: Path, line: int, moment: int = 0) -> None:
    path = records.record_path(str(folder), 7)
    records.write(path, {"v": records.VERSION, "threads": [line], "workers": {}, "spawned": {}})
    stamp = 1_700_000_000_000_000_000 + moment * 1_000_000
    os.utime(path, ns=(stamp, stamp))


def test_a_record_that_follows_another_at_once_is_read(folder: Path) -> None:
    """A process may write its last words a millisecond after a look."""
    beacons, inbox, read = Beacons(folder), Inbox(), []
    for moment, line in enumerate((9, 13)):
        write(folder, line, moment)
        inbox.take(beacons.read())
        read.append(inbox.records[7]["threads"])
    assert read == [[9], [13]]


def test_what_says_the_same_as_before_is_told_once(folder: Path) -> None:
    beacons = Beacons(folder)
    write(folder, 9)
    assert [one.pid for one in beacons.read()] == [7]
    assert list(beacons.read()) == []


def test_the_stacks_of_a_process_whose_beacon_cannot_run_are_told_by_themselves(folder: Path) -> None:
    beacons, inbox = Beacons(folder), Inbox()
    write(folder, 9)
    inbox.take(beacons.read())
    Path(records.stacks_path(str(folder), 7)).write_text("Current thread")
    (told,) = beacons.read()
    inbox.take([told])
    assert (told.record, told.lost, inbox.stacks[7]) == (None, False, "Current thread")
    assert inbox.records[7]["threads"] == [9]


def test_a_record_that_was_emptied_is_lost(folder: Path) -> None:
    """The beacon could not write the next one, and the one before is no longer true."""
    beacons, inbox = Beacons(folder), Inbox()
    write(folder, 9)
    inbox.take(beacons.read())
    records.give_up(records.record_path(str(folder), 7))
    inbox.take(beacons.read())
    assert 7 not in inbox.records and "full disk" in inbox.failures[7]


def test_without_a_folder_nothing_is_told() -> None:
    beacons = Beacons(None)
    assert (list(beacons.read()), beacons.output(7), beacons.failure(7)) == ([], "", "")
