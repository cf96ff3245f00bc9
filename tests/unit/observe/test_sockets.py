"""The other end of a connection, by the number of its socket."""

from __future__ import annotations

import os
import socket
import sys

import pytest

from helpers.observe import sockets

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads Linux's /proc")


def target(end: socket.socket) -> str:
    return os.readlink(f"/proc/self/fd/{end.fileno()}")


@pytest.mark.parametrize(("family", "host"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")])
def test_the_other_end_of_a_connection(family: socket.AddressFamily, host: str) -> None:
    try:
        server = socket.create_server((host, 0), family=family)
    except OSError as problem:
        pytest.skip(f"no loopback address of this kind: {problem}")
    with server, socket.create_connection(server.getsockname()[:2]) as caller:
        port = server.getsockname()[1]
        assert sockets.peer(os.getpid(), target(caller)) == f"{host}:{port}"
        called, _ = server.accept()
        with called:
            assert sockets.peer(os.getpid(), target(called)) == f"{host}:{caller.getsockname()[1]}"
        assert sockets.peer(os.getpid(), target(server)) is None, "it has no other end"


def test_what_is_no_connection_has_no_other_end() -> None:
    one, other = socket.socketpair()
    with one, other:
        assert sockets.peer(os.getpid(), target(one)) is None
    assert sockets.peer(os.getpid(), "pipe:[12]") is None
    assert sockets.peer(2**22 + 1, "socket:[12]") is None
