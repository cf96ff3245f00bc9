"""For whom the others wait, in real jobs: the programs of `tests/slow`, which note it themselves."""

from __future__ import annotations

import subprocess
import sys

import pytest
from repository import ROOT

TOOL = ROOT / "tools" / "make_slow.py"


def outcome(*words: str) -> str:
    """What the tool says of some programs."""
    run = subprocess.run(
        [sys.executable, str(TOOL), *words], capture_output=True, text=True, timeout=500
    )
    return run.stderr


@pytest.mark.nightly
def test_a_slow_rank_is_named_and_a_job_without_one_is_left_alone() -> None:
    said = outcome("--names", "asleep_request,same_sleep")
    assert said.splitlines() == ["asleep_request: right", "same_sleep: right"], said
