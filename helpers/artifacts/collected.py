"""What collectors of logs wrap lines in -> the lines.

Docker's json-file and Fluent Bit write `{"log": ...}`, CloudWatch, Logstash and Vector
`{"message": ...}`, Google's Cloud Logging `{"textPayload": ...}` or `{"jsonPayload": {"message": ...}}`,
Loki `{"line": ...}` or `{"stream": {...}, "values": [[TIME, LINE], ...]}`, journald `{"MESSAGE": ...}`.
torchelastic writes the traceback of a child into one JSON string, `"py_callstack": "..."`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

TEXTS = ("log", "message", "textPayload", "line", "MESSAGE", "msg", "event")
"""Names of the field that holds the text of a record."""

TRACES = ("exc_info", "exception", "stack_trace", "traceback", "error.stack")
"""Names of the field that holds the traceback that was logged with a text."""

SOURCES = (
    *("pod_name", "pod", "logStreamName", "container_name", "container_id", "containerName", "task"),
    *("hostname", "host", "_HOSTNAME", "instance", "filename"),
)
"""Names of fields that tell which process has written a record, the most particular first."""

_CALLSTACK = re.compile(r'^\s*"(?:py_callstack|exc_info|stack_trace)": (?P<text>".*"),?\s*$')


class Record(NamedTuple):
    """The text in a record of a collector.

    Attributes:
        source: the process that has written it, as the collector names it; empty where it does not.
        text: may have several lines.
        quoted: the text as it stands in the file, with its escapes.
        rank: of the process, where the record tells it.
    """

    source: str
    text: str
    quoted: str
    rank: int | None = None


def unwrapped(line: str) -> Iterator[Record]:
    """The records in a line of a file; nothing for a line that is none."""
    if match := _CALLSTACK.match(line):
        text = _decoded(match["text"])
        if isinstance(text, str):
            yield Record("", text, match["text"][1:-1])
    elif line.startswith("{") and line.rstrip().endswith("}"):
        yield from records(_decoded(line))


def records(value: object, source: str = "") -> Iterator[Record]:
    """The records that a value of JSON holds, in their order.

    Args:
        source: of what it is a part of.
    """
    if isinstance(value, list):
        for part in value:
            yield from records(part, source)
    elif isinstance(value, dict):
        source = _source(value) or source
        text = next((words for name in TEXTS if (words := _words(value.get(name)))), None)
        if text is not None:
            trace = next((words for name in TRACES if (words := _words(value.get(name)))), "")
            rank = value.get("rank")
            number = rank if type(rank) is int else None
            yield _record(source, f"{text}\n{trace}" if trace else text, number)
            return
        pairs = value.get("values")
        if isinstance(pairs, list) and all(_is_pair(pair) for pair in pairs):
            for _, text, *_ in pairs:
                yield _record(source, text)
            return
        for part in value.values():
            yield from records(part, source)


def _record(source: str, text: str, rank: int | None = None) -> Record:
    return Record(source, text.rstrip("\n"), json.dumps(text)[1:-1].removesuffix("\\n"), rank)


def _words(value: object) -> str:
    """A field's text, which journald writes as the numbers of its bytes where it has colours."""
    if (
        isinstance(value, list)
        and value
        and all(isinstance(part, int) and 0 <= part < 256 for part in value)
    ):
        return bytes(value).decode("utf-8", "replace")
    return value if isinstance(value, str) else ""


def _is_pair(value: object) -> bool:
    """True for `[TIME, LINE]`, as Loki answers."""
    return (
        isinstance(value, list) and len(value) > 1 and all(isinstance(part, str) for part in value[:2])
    )


def _source(record: Mapping[str, object]) -> str:
    """The source that a record names itself, in a field or in one below it."""
    nested = [record, *(part for part in record.values() if isinstance(part, dict))]
    nested += [part["labels"] for part in nested if isinstance(part.get("labels"), dict)]
    for name in SOURCES:
        for fields in nested:
            source = fields.get(name)
            if isinstance(source, str):
                return source
    return ""


def _decoded(text: str) -> object:
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value
