"""Addresses of this machine; the other ends of a process's connections, and which do not answer."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import psutil

PROC = Path("/proc")

REPEATED = 3
"""How often the kernel has sent the same again, without an answer, where an end counts as not answering:
it does so the first time after 0.2 s or 1 s, and then waits twice as long each time."""


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
    number = target.removeprefix("socket:[").removesuffix("]")
    rows = (row for row in _connections(pid) if row[0][9] == number)
    return next((_address(fields[2], family) for fields, family in rows), None)


def unanswered(pid: int) -> frozenset[str]:
    """`address:port` of both ends, `HERE>THERE`, of connections whose other end does not answer.

    Args:
        pid: of any process on the same network: all connections of that are looked at.
    """
    found = (
        (_address(fields[1], family), _address(fields[2], family))
        for fields, family in _connections(pid)
        if int(fields[6], 16) >= REPEATED
    )
    return frozenset(f"{here}>{there}" for here, there in found)


def _connections(pid: int) -> Iterator[tuple[list[str], socket.AddressFamily]]:
    """The rows of `/proc/PID/net/tcp` and `tcp6` (proc(5)), with their family of addresses."""
    for table, family in (("tcp", socket.AF_INET), ("tcp6", socket.AF_INET6)):
        try:
            lines = (PROC / str(pid) / "net" / table).read_text().splitlines()[1:]
        except OSError:
            continue
        yield from ((fields, family) for line in lines if len(fields := line.split()) > 9)


def _address(text: str, family: socket.AddressFamily) -> str | None:
    """An address of `/proc/net/tcp`: words of four bytes in the machine's order, then the port."""
    digits, _, port = text.partition(":")
    words = [bytes.fromhex(digits[i : i + 8])[::-1] for i in range(0, len(digits), 8)]
    host = socket.inet_ntop(family, b"".join(words))
    return f"{host}:{int(port, 16)}" if int(port, 16) else None
