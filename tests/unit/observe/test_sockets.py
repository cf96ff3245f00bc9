"""The other end of a connection, by the number of its socket."""

from __future__ import annotations

import math
import os
import socket
import subprocess
import sys
from pathlib import Path

import psutil
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


HEAD = "sl local_address rem_address st tx_queue rx_queue tr tm->when retrnsmt uid timeout inode"
TABLES = {
    "tcp": [
        "0: 014D4D0A:733C 024D4D0A:BB4E 01 00000040:00000000 01:00000060 00000004 0 0 11930 2",
        "1: 014D4D0A:733C 034D4D0A:BB4E 01 00000000:00000000 00:00000000 00000000 0 0 11931 2",
        "2: 014D4D0A:C350 094D4D0A:733C 02 00000001:00000000 01:00000060 00000003 0 0 11932 2",
        "3: 014D4D0A:C351 094D4D0A:733C 02 00000001:00000000 01:00000060 00000001 0 0 11933 2",
    ],
    "tcp6": [
        "0: 0000000000000000FFFF0000014D4D0A:733D 0000000000000000FFFF0000024D4D0A:0050 01 "
        "00000040:00000000 01:00000060 00000005 0 0 11934 2",
    ],
}


def test_ends_that_do_not_answer_are_those_to_which_the_same_is_sent_again_and_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = tmp_path / "7"
    for part in ("net", "ns", "fd"):
        (process / part).mkdir(parents=True)
    for name, rows in TABLES.items():
        (process / "net" / name).write_text("\n".join([HEAD, *rows]) + "\n")
    (process / "ns" / "net").symlink_to("net:[4026531840]")
    for number, target in enumerate(("socket:[11930]", "socket:[11933]", "socket:[11934]", "pipe:[9]")):
        (process / "fd" / str(number)).symlink_to(target)
    monkeypatch.setattr(sockets, "PROC", tmp_path)
    found = sockets.Sockets().look([7, 8], 0.0)
    assert found is not None
    assert {one.remote: one.silent for one in found[7]} == {
        ("10.77.77.2", 47950): True,
        ("10.77.77.9", 29500): False,
        ("::ffff:10.77.77.2", 80): True,
    }, "what other processes have open is not this one's"
    assert 8 not in found, "a process that has ended"


def mine() -> list[sockets.Socket]:
    found = sockets.Sockets().look([os.getpid()], 0.0)
    assert found is not None
    return found.get(os.getpid(), [])


def test_the_sockets_of_a_process() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as caller,
    ):
        found = {one.local: one for one in mine()}
        listens, calls = found[server.getsockname()], found[caller.getsockname()]
        assert listens.remote is None and listens.state == psutil.CONN_LISTEN
        assert calls.remote == server.getsockname() and calls.state == psutil.CONN_ESTABLISHED
        assert not calls.silent
    gone = {one.local for one in mine()}
    assert listens.local not in gone and calls.local not in gone


def test_a_table_of_more_rows_than_fit_into_a_page_is_read_to_its_end() -> None:
    servers = [socket.create_server(("127.0.0.1", 0)) for _ in range(100)]
    try:
        assert {server.getsockname() for server in servers} <= {one.local for one in mine()}
    finally:
        for server in servers:
            server.close()


def test_the_tables_are_read_when_a_socket_is_new_or_gone_or_they_are_old(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sockets, "SHARE", math.inf)  # however slow this machine is
    me, seen, now = os.getpid(), sockets.Sockets(), 0.0
    assert seen.look([me], now) is not None
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert seen.look([me], now + sockets.EVERY / 2) is None, "too early"
        now += sockets.EVERY
        found = seen.look([me], now)
        assert found is not None and server.getsockname() in {one.local for one in found[me]}
        assert seen.look([me], now + sockets.EVERY) is None, "nothing is new"
        now += sockets.AGAIN
        assert seen.look([me], now) is not None
        listens = server.getsockname()
    now += sockets.EVERY
    found = seen.look([me], now)
    assert found is not None and listens not in {one.local for one in found.get(me, ())}
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE) as other:
        assert seen.look([me, other.pid], now + sockets.EVERY) is None, "it has no socket"


def test_the_addresses_of_this_machine() -> None:
    assert any(address in ("127.0.0.1", "::1") for _, address in sockets.interfaces())
