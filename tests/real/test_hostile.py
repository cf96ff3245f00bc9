"""Machines that lack disk, ports or descriptors: a right verdict or one clear sentence."""

from __future__ import annotations

import os
import sys

import pytest
from soak import hostile

pytestmark = [
    pytest.mark.real,
    pytest.mark.nightly,
    pytest.mark.skipif(sys.platform != "linux" or os.getuid() != 0, reason="makes namespaces"),
]


@pytest.mark.parametrize("name", hostile.QUICK)
def test_a_machine_that_lacks_something(name: str) -> None:
    met = hostile.met(name)
    assert met.fault == "", met
