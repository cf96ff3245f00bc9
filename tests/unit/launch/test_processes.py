"""A free port, as it is chosen for a job."""

from __future__ import annotations

import random
import socket

import pytest

from helpers.launch.processes import PORTS, free_port


def test_a_port_that_is_taken_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = free_port()
    with socket.create_server(("127.0.0.1", taken)):
        other = free_port()
        monkeypatch.setattr(random, "sample", lambda ports, number: [taken, other])
        assert free_port() == other
        monkeypatch.setattr(random, "sample", lambda ports, number: [taken])
        with pytest.raises(OSError, match="no port from 10000 to 28999 is free"):
            free_port()
    assert {taken, other} <= {*PORTS}
