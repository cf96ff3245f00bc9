"""Asks torch's debug server, which a job may have started, what the Flight Recorder of each rank holds.

`torch.distributed.debug.start_debug_server` (torch 2.10 to 2.15, experimental) serves pages from a child
of rank 0; they show what a small server in each rank answers, even while the rank hangs. The look is a
process of its own (this file, run with HOST and PORT), as in `store_probe`.
"""

from __future__ import annotations

import json
import re
import sys
import time
import urllib.request
from collections.abc import Sequence
from typing import Any

TIMEOUT = 5.0
"""Seconds that the server may take to answer."""

NEWEST = 64
"""Entries of a recorder that are told."""

PAGES = ("fr_trace_json", "fr_trace_nccl_json")
"""torch/distributed/debug/_debug_handlers.py: the recorder of gloo and others, and that of NCCL."""

_OF_RANK = re.compile(r"<h2>Rank (\d+): [^<]*</h2>\s*<pre>(?=\{)")
"""torch/distributed/debug/_frontend.py, JSON_RESP_TEMPLATE: JSON, not escaped, comes behind it."""


def dumps(page: str) -> dict[str, Any]:
    """Rank -> the newest part of its Flight Recorder's dump, where the page shows one with entries."""
    by_rank: dict[str, Any] = {}
    for match in _OF_RANK.finditer(page):
        dump, _ = json.JSONDecoder().raw_decode(page, match.end())
        if dump.get("entries"):
            by_rank[match[1]] = {**dump, "entries": dump["entries"][-NEWEST:]}
    return by_rank


def look(host: str, port: int) -> dict[str, Any]:
    """What `dumps` tells of all pages, and the monotonic time at which the first was asked for."""
    at = time.monotonic()
    ranks: dict[str, Any] = {}
    for page in PAGES:
        try:
            with urllib.request.urlopen(f"http://{host}:{port}/{page}", timeout=TIMEOUT) as answer:
                ranks |= dumps(answer.read().decode("utf-8", "replace"))
        except (OSError, ValueError):
            continue
    return {"at": at, "ranks": ranks}


def main(arguments: Sequence[str]) -> int:
    """Print what the server at HOST PORT tells, as JSON."""
    print(json.dumps(look(arguments[0], int(arguments[1]))))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
