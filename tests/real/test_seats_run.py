"""Two seats at the same moment, as a leader tries a machine."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from repository import ROOT

pytestmark = [pytest.mark.real, pytest.mark.nightly]


def test_two_seats_come_to_the_expected_report() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "helpers", "check", "--seats", "2"],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=290,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 of 2 came to the expected report" in done.stdout
    assert len(re.findall(r"^seat +\d+  ok +\d+\.\d s", done.stdout, re.M)) == 2
