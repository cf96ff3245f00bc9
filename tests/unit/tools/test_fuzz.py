"""Damaged and hostile input: every reader refuses it, and none breaks."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest
from soak import fuzz
from soak.fuzz import measure

from helpers.beacon.files import framed, record_path
from helpers.observe.records import Beacons


@pytest.mark.nightly
def test_no_fuzzed_input_breaks_what_reads_it() -> None:
    assert measure(300).faults == ()


@pytest.mark.nightly
def test_a_record_that_is_cut_off_anywhere_is_survived(tmp_path: Path) -> None:
    (tmp_path / "records").mkdir()
    file = Path(record_path(str(tmp_path), 7))
    for data in map(framed, sorted(fuzz._records(), key=len)[:3]):
        for cut in range(len(data)):
            file.write_bytes(data[:cut])
            assert all(told.record is None for told in Beacons(tmp_path).read())
        file.write_bytes(data)
        assert [told.record is None for told in Beacons(tmp_path).read()] == [False]


@pytest.mark.nightly
def test_the_command_line_refuses_damaged_recordings_in_one_sentence(tmp_path: Path) -> None:
    for seed in range(24):
        chance = random.Random(seed)
        data = chance.choice(fuzz._recordings()).read_bytes()
        (tmp_path / f"{seed}.jsonl.gz").write_bytes(fuzz.damaged(chance, data))
    for file in sorted(tmp_path.iterdir()):
        done = subprocess.run(
            [sys.executable, "-m", "helpers", "read", str(file)], capture_output=True, text=True
        )
        assert done.returncode in fuzz.CODES, done.stderr
        assert "Traceback" not in done.stderr and "a fault of its own" not in done.stderr
