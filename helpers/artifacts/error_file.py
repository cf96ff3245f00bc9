"""A torchelastic error file -> the exception that has ended a rank.

`{"message": {"message": "TYPE: TEXT", "extraInfo": {"py_callstack": "...", "timestamp": "..."}}}`, which
`torch.distributed.elastic.multiprocessing.errors.record` writes to $TORCHELASTIC_ERROR_FILE, by default
`.../attempt_0/LOCAL_RANK/error.json` (errors/error_handler.py and api.py in that folder, torch 2.13).
"""

from __future__ import annotations

import re
from typing import Any

from ..beacon.record import Error, FrameEntry
from ..observe import pyspy_record as dumped
from ..observe import tracebacks
from ..observe.account import Account

KIND = "torchelastic error file"

PLACE = re.compile(r"attempt_\d+/(\d+)/[^/]+$")
"""Where torchrun puts what a process writes: the folder is its local rank."""


def is_error_file(value: object) -> bool:
    """True for what torchelastic writes."""
    message = value.get("message") if isinstance(value, dict) else None
    alone = value == {"message": message} and isinstance(message, str)  # records of collectors have more
    return alone or (isinstance(message, dict) and "extraInfo" in message)


def account(value: dict[str, Any], path: str) -> Account:
    """What an error file tells."""
    message = value["message"]
    words = message if isinstance(message, str) else str(message.get("message", ""))
    extra = message.get("extraInfo") if isinstance(message, dict) else None
    extra = extra if isinstance(extra, dict) else {}
    kind, _, text = words.partition(": ")
    raised = tracebacks.first_error(str(extra.get("py_callstack") or ""))
    place = PLACE.search(path)
    stack = raised.stack if raised is not None else ()
    frames: list[FrameEntry] = [
        (frame.file, frame.line, frame.function, dumped.is_user(frame.file, ())) for frame in stack
    ]
    error: Error = {
        "type": raised.type if raised is not None else kind.rpartition(".")[2],
        "message": raised.message if raised is not None else text,
        "frames": frames,
        "time": float(extra["timestamp"]) if str(extra.get("timestamp", "")).isdigit() else 0.0,
        "masked": list(raised.masked) if raised is not None else [],
        "caused_by": raised.caused_by if raised is not None else "",
    }
    return Account(
        file=path,
        kind=KIND,
        rank=int(place[1]) if place is not None else None,
        local_rank=int(place[1]) if place is not None else None,
        error=error,
        exit_code=1,
    )
