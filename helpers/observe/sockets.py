"""Addresses of this machine; the TCP sockets of a process, and which other ends do not answer."""

from __future__ import annotations

import math
import mmap
import os
import socket
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import psutil

from . import unix_sockets

PROC = Path("/proc")

EVERY, SHARE = 0.6, 0.05
"""Seconds between two looks, and the share of the time that they may take: with thousands of sockets
one takes 0.1 s."""

AGAIN = 2.0
"""Seconds after which the kernel's tables are read although no process has opened or closed a socket.

To make a table, the kernel walks through a hash table whose size follows from the machine's memory: 2 ms
with 24 GB, however few sockets there are. What is bound later than it is opened is seen then."""

REPEATED = 3
"""How often the kernel has sent the same again, without an answer, where an end counts as not answering:
it does so the first time after 0.2 s or 1 s, and then waits twice as long each time."""

LONGEST_ROW = 512
"""More bytes than a row has: those of TCP over IPv6 have up to 200."""

_Row = tuple[list[str], socket.AddressFamily]
"""The fields of a row of a table, and the family of its addresses."""

_STATES = {"01": psutil.CONN_ESTABLISHED, "0A": psutil.CONN_LISTEN}
"""The states that matter, in the table (include/net/tcp_states.h of Linux)."""


def interfaces() -> tuple[tuple[str, str], ...]:
    """Name and IP address of every network interface of this machine, one pair for each address."""
    return tuple(
        (name, address.address.partition("%")[0])
        for name, addresses in sorted(psutil.net_if_addrs().items())
        for address in addresses
        if address.family in (socket.AF_INET, socket.AF_INET6)
    )


def peer(pid: int, target: str) -> str | None:
    """`address:port` of the other end of `socket:[NUMBER]`; None for anything but a TCP connection."""
    number = _number(target)
    end = next((_socket(*row).remote for row in _connections(pid) if row[0][9] == number), None)
    return None if end is None else f"{end[0]}:{end[1]}"


def other_end(pid: int, target: str) -> str | None:
    """`socket:[NUMBER]` of the other end of a connection within this machine; None for any other.

    Args:
        pid: the process that has it; target: `socket:[NUMBER]`.
    """
    number = _number(target)
    inodes = {
        (_ipv4_end(fields[1], family), _ipv4_end(fields[2], family)): fields[9]
        for fields, family in _connections(pid)
    }
    ends = next((pair for pair, inode in inodes.items() if inode == number), None)
    peer = inodes.get(ends[::-1]) if ends is not None else unix_sockets.peer(int(number))
    return f"socket:[{peer}]" if peer else None


def _ipv4_end(end: str, family: socket.AddressFamily) -> tuple[str, int]:
    """An end by its IPv4 address where it has one, which IPv6 has as `::ffff:127.0.0.1` (RFC 4291)."""
    address, port = _end(end, family)
    return address.removeprefix("::ffff:"), port


class Socket(NamedTuple):
    """A TCP socket that a process has open.

    Attributes:
        local, remote: (address, port) of its ends; `remote` is None for one that has no other end.
        state: as psutil names it.
        silent: True while its other end does not answer what it is sent.
    """

    local: tuple[str, int]
    remote: tuple[str, int] | None
    state: str
    silent: bool


class Sockets:
    """The TCP sockets of processes, from look to look."""

    def __init__(self) -> None:
        self._inodes: dict[int, tuple[str, ...]] = {}
        self._next = self._read_time = -math.inf

    def look(self, pids: Iterable[int], now: float) -> dict[int, list[Socket]] | None:
        """Those that each process has open, if any; None where it is too early, or nothing seems new.

        Args:
            pids: all processes to look at.
            now: `time.monotonic()`.
        """
        if now < self._next:
            return None
        start = time.monotonic()
        inodes = {pid: numbers for pid in pids if (numbers := _socket_inodes(pid))}
        sockets = None
        if inodes != self._inodes or now - self._read_time >= AGAIN:
            sockets = _tcp_sockets(inodes)
            self._inodes, self._read_time = inodes, now
        self._next = now + max(EVERY, (time.monotonic() - start) / SHARE)
        return sockets


def _socket_inodes(pid: int) -> tuple[str, ...]:
    """The numbers of all sockets that a process has open; none where that cannot be listed."""
    numbers, folder = [], f"{PROC}/{pid}/fd"
    with suppress(OSError):
        for descriptor in os.listdir(folder):
            with suppress(OSError):  # it has been closed meanwhile
                target = os.readlink(f"{folder}/{descriptor}")
                if target.startswith("socket:"):
                    numbers.append(_number(target))
    return tuple(numbers)


def _tcp_sockets(opened: Mapping[int, Iterable[str]]) -> dict[int, list[Socket]]:
    """The TCP sockets among these: the table of a network is read once for all processes on it."""
    networks: dict[str, dict[str, _Row]] = {}
    sockets = {}
    for pid, numbers in opened.items():
        with suppress(OSError):
            network = os.readlink(PROC / str(pid) / "ns" / "net")
            if network not in networks:
                networks[network] = {row[0][9]: row for row in _connections(pid)}
            rows = map(networks[network].get, numbers)
            sockets[pid] = [_socket(*row) for row in rows if row is not None]
    return sockets


def _number(target: str) -> str:
    """The number in `socket:[NUMBER]`."""
    return target.removeprefix("socket:[").removesuffix("]")


def _socket(fields: list[str], family: socket.AddressFamily) -> Socket:
    return Socket(
        local=_end(fields[1], family),
        remote=_end(fields[2], family) if not fields[2].endswith(":0000") else None,
        state=_STATES.get(fields[3], psutil.CONN_NONE),
        silent=int(fields[6], 16) >= REPEATED,
    )


def _connections(pid: int) -> Iterator[_Row]:
    """The rows of `/proc/PID/net/tcp` and `tcp6` (proc(5)), with their family of addresses."""
    for table, family in (("tcp", socket.AF_INET), ("tcp6", socket.AF_INET6)):
        try:
            lines = _table(f"{PROC}/{pid}/net/{table}").splitlines()[1:]
        except OSError:
            continue
        yield from ((fields, family) for line in lines if len(fields := line.split()) > 9)


def _table(path: str) -> str:
    """A table of the kernel, which is read no further than where it must have come to its end.

    A read that returns nothing takes the kernel as long as one that returns all rows, and is not needed:
    it fills a page before it returns (`seq_read_iter` in fs/seq_file.c of Linux), and with less than
    that there are no more rows.
    """
    parts, file = [], os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        while (part := os.read(file, 1 << 20)) and len(part) > mmap.PAGESIZE - LONGEST_ROW:
            parts.append(part)
        return b"".join((*parts, part)).decode()
    finally:
        os.close(file)


def _end(text: str, family: socket.AddressFamily) -> tuple[str, int]:
    """An end in `/proc/net/tcp`: words of four bytes in the machine's order, then the port."""
    digits, _, port = text.partition(":")
    words = [bytes.fromhex(digits[i : i + 8])[::-1] for i in range(0, len(digits), 8)]
    return socket.inet_ntop(family, b"".join(words)), int(port, 16)
