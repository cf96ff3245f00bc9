"""The other end of a Unix socket (Linux), which the kernel tells by netlink (sock_diag(7)) alone."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from contextlib import suppress

SOCK_DIAG, BY_FAMILY, SHOW_PEER, PEER = 4, 20, 4, 2
"""Of include/uapi/linux: `NETLINK_SOCK_DIAG` of netlink.h, `SOCK_DIAG_BY_FAMILY` of sock_diag.h,
`UDIAG_SHOW_PEER` and `UNIX_DIAG_PEER` of unix_diag.h."""

REQUEST, ANY = 1, 0xFFFFFFFF
"""`NLM_F_REQUEST` of netlink.h; any state of a socket, and any cookie."""

PATIENCE = 0.2
"""Seconds for an answer, which the kernel gives at once."""

_HEADER, _ASKS, _SOCKET = struct.Struct("=IHHII"), struct.Struct("=BBHIIIII"), struct.Struct("=BBBBIII")
_ATTRIBUTE, _NUMBER = struct.Struct("=HH"), struct.Struct("=I")


def peer(number: int) -> int | None:
    """The number of the socket at the other end; None where it has none, or the system does not tell.

    Args:
        number: that of a Unix socket of this network namespace, as in `socket:[NUMBER]`.
    """
    request = _ASKS.pack(socket.AF_UNIX, 0, 0, ANY, number, SHOW_PEER, ANY, ANY)
    head = _HEADER.pack(_HEADER.size + len(request), BY_FAMILY, REQUEST, 1, 0)
    reply = b""
    with suppress(OSError), socket.socket(socket.AF_NETLINK, socket.SOCK_DGRAM, SOCK_DIAG) as kernel:
        kernel.settimeout(PATIENCE)
        kernel.send(head + request)
        reply = kernel.recv(1 << 12)
    length, kind, *_ = _HEADER.unpack_from(reply.ljust(_HEADER.size, b"\0"))
    if kind != BY_FAMILY:  # that there is no such socket
        return None
    attributes = dict(_attributes(reply[_HEADER.size + _SOCKET.size : length]))
    return int(_NUMBER.unpack(attributes[PEER])[0]) if PEER in attributes else None


def _attributes(content: bytes) -> Iterator[tuple[int, bytes]]:
    """Type and content of each. Its length counts its head; the next begins at a multiple of 4."""
    while len(content) >= _ATTRIBUTE.size:
        length, kind = _ATTRIBUTE.unpack_from(content)
        yield kind, content[_ATTRIBUTE.size : length]
        content = content[max(length + 3 & ~3, _ATTRIBUTE.size) :]
