"""A slow archive of records, and a gate that keeps its server from being overrun."""

import hashlib
import multiprocessing
import zlib
from dataclasses import dataclass


class DamagedError(Exception):
    """What was read is not what was written."""


@dataclass(frozen=True)
class Entry:
    payload: bytes
    checksum: int


class Archive:
    """Records with checksums; those of the second writer were cut short by one byte."""

    def __init__(self, records: int, size: int) -> None:
        self.records, self.size = records, size

    def __len__(self) -> int:
        return self.records

    def read(self, index: int) -> Entry:
        seed = hashlib.sha256(f"record {index}".encode()).digest()
        payload = (seed * (self.size // len(seed) + 1))[: self.size]
        checksum = zlib.crc32(payload)
        return Entry(payload[:-1] if index % 8 == 5 else payload, checksum)


class Gate:
    """Lets as many readers of this rank through at a time as the server can bear."""

    def __init__(self, readers: int) -> None:
        self._permits = multiprocessing.Semaphore(readers)

    def enter(self) -> None:
        self._permits.acquire()

    def leave(self) -> None:
        self._permits.release()

    def fetch(self, archive: Archive, index: int) -> bytes:
        """The payload of a record. Raises DamagedError."""
        self.enter()
        entry = archive.read(index)
        if zlib.crc32(entry.payload) != entry.checksum:
            raise DamagedError(f"record {index}: checksum {entry.checksum:08x} does not fit")
        self.leave()
        return entry.payload
