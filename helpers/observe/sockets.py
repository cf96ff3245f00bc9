"""Addresses of this machine; the TCP sockets of a process, and which other ends do not answer."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import psutil

PROC = Path("/proc")

REPEATED = 3
"""How often the kernel has sent the same again, without an answer, where an end counts as not answering:
it does so the first time after 0.2 s or 1 s, and then waits twice as long each time."""

_Row = tuple[list[str], socket.AddressFamily]
"""The fields of a row of a table, and the family of its addresses."""

_STATES = {"01": psutil.CONN_ESTABLISHED, "0A": psutil.CONN_LISTEN}
"""The states that matter, in the table (include/net/tcp_states.h of Linux)."""


def interfaces() -> tuple[tuple[str, str], ...]:
    """Name and IP address of every network interface of this machine, one pair for each address."""
    return tuple(
        (name, one.address.partition("%")[0])
        for name, addresses in sorted(psutil.net_if_addrs().items())
        for one in addresses
        if one.family in (socket.AF_INET, socket.AF_INET6)
    )


def peer(pid: int, target: str) -> str | None:
    """`address:port` of the other end of `socket:[NUMBER]`; None for anything but a TCP connection."""
    number = _number(target)
    end = next((_socket(*row).there for row in _connections(pid) if row[0][9] == number), None)
    return None if end is None else f"{end[0]}:{end[1]}"


class Socket(NamedTuple):
    """A TCP socket that a process has open.

    Attributes:
        here, there: (address, port) of its ends; `there` is None for one that has no other end.
        state: as psutil names it.
        silent: True while its other end does not answer what it is sent.
    """

    here: tuple[str, int]
    there: tuple[str, int] | None
    state: str
    silent: bool


class Tables:
    """The TCP sockets of processes at one moment: the table of a network is read once for all on it.

    Attributes:
        spent: seconds that reading has taken.
    """

    def __init__(self) -> None:
        self.spent = 0.0
        self._networks: dict[str, dict[str, _Row]] = {}

    def of(self, pid: int) -> list[Socket]:
        """Those that a process has open; none of a process whose descriptors cannot be listed."""
        begun = time.monotonic()
        try:
            return list(self._open(pid))
        except OSError:
            return []
        finally:
            self.spent += time.monotonic() - begun

    def _open(self, pid: int) -> Iterator[Socket]:
        network = os.readlink(PROC / str(pid) / "ns" / "net")
        if network not in self._networks:
            self._networks[network] = {row[0][9]: row for row in _connections(pid)}
        table = self._networks[network]
        for link in (PROC / str(pid) / "fd").iterdir():
            with suppress(OSError):  # it has been closed meanwhile
                if (row := table.get(_number(os.readlink(link)))) is not None:
                    yield _socket(*row)


def _number(target: str) -> str:
    """The number in `socket:[NUMBER]`."""
    return target.removeprefix("socket:[").removesuffix("]")


def _socket(fields: list[str], family: socket.AddressFamily) -> Socket:
    return Socket(
        here=_end(fields[1], family),
        there=_end(fields[2], family) if not fields[2].endswith(":0000") else None,
        state=_STATES.get(fields[3], psutil.CONN_NONE),
        silent=int(fields[6], 16) >= REPEATED,
    )


def _connections(pid: int) -> Iterator[_Row]:
    """The rows of `/proc/PID/net/tcp` and `tcp6` (proc(5)), with their family of addresses."""
    for table, family in (("tcp", socket.AF_INET), ("tcp6", socket.AF_INET6)):
        try:
            lines = (PROC / str(pid) / "net" / table).read_text().splitlines()[1:]
        except OSError:
            continue
        yield from ((fields, family) for line in lines if len(fields := line.split()) > 9)


def _end(text: str, family: socket.AddressFamily) -> tuple[str, int]:
    """An end in `/proc/net/tcp`: words of four bytes in the machine's order, then the port."""
    digits, _, port = text.partition(":")
    words = [bytes.fromhex(digits[i : i + 8])[::-1] for i in range(0, len(digits), 8)]
    return socket.inet_ntop(family, b"".join(words)), int(port, 16)
