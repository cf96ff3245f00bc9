"""The other end of a connection that a process waits on (Linux)."""

from __future__ import annotations

import socket
from pathlib import Path


def peer(pid: int, target: str) -> str | None:
    """`address:port` of the other end of `socket:[NUMBER]`; None for anything but a TCP connection."""
    number = target.removeprefix("socket:[").removesuffix("]")
    for table, family in (("tcp", socket.AF_INET), ("tcp6", socket.AF_INET6)):
        try:
            lines = Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]
        except OSError:
            continue
        for fields in (line.split() for line in lines):
            if len(fields) > 9 and fields[9] == number:
                return _address(fields[2], family)
    return None


def _address(text: str, family: socket.AddressFamily) -> str | None:
    """An address of `/proc/net/tcp`: words of four bytes in the machine's order, then the port."""
    digits, _, port = text.partition(":")
    words = [bytes.fromhex(digits[i : i + 8])[::-1] for i in range(0, len(digits), 8)]
    host = socket.inet_ntop(family, b"".join(words))
    return f"{host}:{int(port, 16)}" if int(port, 16) else None
