"""A file of tokenised documents. Only one process at a time reads or writes it."""

import fcntl
import json
import logging
import random
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

log = logging.getLogger("store")


class TokenStore:
    """Documents, one JSON list a line, below a header that counts them."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._written: list[list[int]] = []

    @contextmanager
    def opened(self, mode: str) -> Iterator[TextIO]:
        with self.path.open(mode) as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield file

    def documents(self) -> Generator[list[int]]:
        """Every document, read as it is asked for: the file may be larger than the memory."""
        with self.opened("r+") as file:
            header = json.loads(file.readline())
            log.info("%s: %d documents", self.path, header["documents"])
            for line in file:
                yield json.loads(line)

    def write(self, documents: list[list[int]]) -> None:
        with self.opened("w") as file:
            file.write(json.dumps({"documents": len(documents), "version": 2}) + "\n")
            file.writelines(json.dumps(document) + "\n" for document in documents)
        self._written = documents

    def own_copy(self) -> list[list[int]]:
        """What this process has written itself, which need not be read again."""
        return self._written


def write_example(store: TokenStore, documents: int, vocabulary: int, seed: int) -> None:
    """Documents of different lengths, in which each token depends on the one before."""
    chance = random.Random(seed)
    written = []
    for _ in range(documents):
        tokens = [chance.randrange(vocabulary)]
        for _ in range(chance.randrange(16, 40)):
            tokens.append((3 * tokens[-1] + chance.randrange(3)) % vocabulary)
        written.append(tokens)
    store.write(written)
    log.info("wrote %s", store.path)
