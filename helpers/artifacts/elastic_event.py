"""A record of torchelastic's about one of its workers -> how that rank has ended.

`{"name": "torchelastic.worker.status.FAILED", "metadata": {"global_rank": 3, "raw_error": ...}}`, a line
each, of which a log may have the beginning alone (torch 1.9 to 2.15, torch/distributed/elastic/events
and torch/distributed/elastic/agent/server/api.py).
"""

from __future__ import annotations

import json
import re

from msgspec.structs import replace

from ..observe.account import Account
from . import error_file
from .log_rank import KIND
from .patterns import exit_lines
from .writers import Line

_FIELDS = {
    "rank": re.compile(r'"global_rank": (\d+)'),
    "pid": re.compile(r'"worker_id": "(\d+)"'),
    "world": re.compile(r'role_world_size\\?": \[(\d+)\]'),
    "local": re.compile(r'\\?"local_rank\\?": \[(\d+)\]'),
}
_HOST = re.compile(r'"hostname": "([^"]+)"')
_ERROR = re.compile(r'"raw_error": ("(?:[^"\\]|\\.)*")')

UNKNOWN = "<NONE>"
"""What torchelastic writes where a worker has left no error file."""


def account(line: Line, path: str) -> Account | None:
    """What a line tells of a worker that has failed; None for any other line."""
    if exit_lines.WORKER_FAILED.search(line.text) is None:
        return None
    matches = {name: pattern.search(line.text) for name, pattern in _FIELDS.items()}
    numbers = {name: int(match[1]) for name, match in matches.items() if match is not None}
    if "rank" not in numbers:
        return None
    host = _HOST.search(line.text)
    ended = Account(
        file=path,
        kind=KIND,
        rank=numbers["rank"],
        local_rank=numbers.get("local"),
        world_size=numbers.get("world"),
        pid=numbers.get("pid"),
        host=host[1] if host is not None else "",
        died=True,
        quotes=((line.number, line.raw),),
    )
    value = _error(line.text)
    if not error_file.is_error_file(value) or value == {"message": UNKNOWN}:
        return ended
    assert isinstance(value, dict)
    raised = error_file.account(value, path)
    return replace(ended, error=raised.error, exit_code=raised.exit_code)


def _error(text: str) -> object:
    """The content of the worker's error file, which the record has as text."""
    written = _ERROR.search(text)
    try:
        return json.loads(json.loads(written[1])) if written is not None else None
    except (ValueError, RecursionError):
        return None
