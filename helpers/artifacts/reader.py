"""The process in which files are read: a hostile one can end it, and nothing else.

It is told paths, one a line of JSON, and answers each with a line: the content.
"""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from pathlib import Path

import msgspec

from .files import Budget
from .reading import FileContent, content_of

MEMORY = 2 << 30
"""Bytes of address space that it may take."""


def main() -> None:
    """Read files until there are no more; the first argument says how many bytes that may be."""
    with suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    budget = Budget(int(sys.argv[1]))
    for line in sys.stdin:
        content = content_of(Path(json.loads(line)), budget)
        sys.stdout.buffer.write(_encoded(content) + b"\n")
        sys.stdout.flush()


def _encoded(content: FileContent) -> bytes:
    try:
        return msgspec.json.encode(content)
    except UnicodeEncodeError:
        return msgspec.json.encode(FileContent(damaged="it holds text that is no Unicode"))


if __name__ == "__main__":
    main()
