"""What a rank has issued in its groups, from its record."""

from __future__ import annotations

import functools
from dataclasses import replace

from ..beacon.record import FrameEntry, Record
from ..model.issued import Issued, IssuedCall
from . import waits
from .groups import labels_of
from .source import Sources


def issued(record: Record, sources: Sources) -> tuple[Issued, ...]:
    """The newest calls of each group, as far as the recorder tells the lines that issued them."""
    flight = record["flight"]
    if flight is None:
        return ()
    calls, labels = [], labels_of(record)
    for call in flight.get("calls", ()):
        frames = tuple((file, line, function, user) for file, line, function, user in call["frames"])
        texts = tuple(sources.text(file) if user else "" for file, _, _, user in frames)
        calls.append(_call(call["op"], frames, texts, sources.cwd))
    return tuple(
        Issued(
            group=labels.get(one["group"], ("group " + one["group"], ()))[0],
            first=one["first"],
            calls=tuple(calls[number] for number in one["calls"]),
        )
        for one in flight.get("issued", ())
    )


@functools.lru_cache(maxsize=8192)
def _call(op: str, frames: tuple[FrameEntry, ...], texts: tuple[str, ...], cwd: str) -> IssuedCall:
    known = zip(frames, texts, strict=True)
    return IssuedCall(op, tuple(replace(waits.frame(entry, cwd), text=text) for entry, text in known))
