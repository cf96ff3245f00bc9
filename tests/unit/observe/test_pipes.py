"""Who holds the other end of a pipe, as the kernel tells."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from helpers.observe import pipes

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads Linux's /proc")

ME = os.getpid()
SAYS_WHEN = "print(flush=True); input()"


def test_a_pipe_belongs_to_who_has_its_other_end() -> None:
    reading, writing = os.pipe()
    target = os.readlink(f"/proc/self/fd/{reading}")
    words = [sys.executable, "-S", "-c", SAYS_WHEN]
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, pass_fds=[writing]
    ) as other:
        assert other.stdout is not None
        other.stdout.readline()
        try:
            assert pipes.other_ends(ME, target, reads=True) == (other.pid,)
            assert pipes.other_ends(ME, target, reads=False) == (ME,), "nobody else has it"
            assert pipes.other_ends(other.pid, target, reads=False) == (ME,)
        finally:
            other.kill()
    os.close(reading)
    os.close(writing)


def test_a_fifo(tmp_path: Path) -> None:
    path = tmp_path / "fifo"
    os.mkfifo(path)
    with subprocess.Popen(
        [sys.executable, "-S", "-c", f"import os; os.open({str(path)!r}, os.O_RDWR); {SAYS_WHEN}"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as other:
        assert other.stdout is not None
        other.stdout.readline()
        assert pipes.other_ends(ME, str(path), reads=True) == (other.pid,)
        assert pipes.other_ends(ME, str(path), reads=False) == (other.pid,)
        other.kill()


def unix_pair() -> tuple[socket.socket, socket.socket]:
    return socket.socketpair()


def tcp_pair(family: socket.AddressFamily, host: str, to: str) -> tuple[socket.socket, socket.socket]:
    """Both ends of a connection to a server at `host`, which the caller knows as `to`."""
    try:
        server = socket.create_server((host, 0), family=family, dualstack_ipv6=host == "::")
    except (OSError, ValueError) as problem:
        pytest.skip(f"no address of this kind: {problem}")
    with server:
        caller = socket.create_connection((to, server.getsockname()[1]))
        return caller, server.accept()[0]


PAIRS = {
    "unix": unix_pair,
    "tcp": lambda: tcp_pair(socket.AF_INET, "127.0.0.1", "127.0.0.1"),
    "tcp6": lambda: tcp_pair(socket.AF_INET6, "::1", "::1"),
    "tcp by a server for both": lambda: tcp_pair(socket.AF_INET6, "::", "127.0.0.1"),
}


@pytest.mark.parametrize("pair", PAIRS)
def test_a_socket_belongs_to_who_has_its_other_end(pair: str) -> None:
    here, there = PAIRS[pair]()
    mine, its = (os.readlink(f"/proc/self/fd/{end.fileno()}") for end in (here, there))
    assert pipes.other_ends(ME, mine, reads=True) == (ME,), "nobody else has it"
    words = [sys.executable, "-S", "-c", SAYS_WHEN]
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, pass_fds=[there.fileno()]
    ) as other:
        assert other.stdout is not None
        other.stdout.readline()
        try:
            there.close()
            assert pipes.other_ends(ME, mine, reads=True) == (other.pid,)
            assert pipes.other_ends(other.pid, its, reads=True) == (ME,)
        finally:
            other.kill()
    here.close()


@pytest.mark.parametrize("target", ["/dev/null", "/nowhere", "socket:[4711]", "pipe:[1]", ""])
def test_what_is_no_pipe_that_anybody_holds(target: str) -> None:
    assert pipes.other_ends(ME, target, reads=True) is None
