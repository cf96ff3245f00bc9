"""Damaged and hostile input: every reader refuses it, and none breaks."""

from __future__ import annotations

import pytest
from soak.fuzz import measure


@pytest.mark.nightly
def test_no_fuzzed_input_breaks_what_reads_it() -> None:
    assert measure(300).faults == ()
