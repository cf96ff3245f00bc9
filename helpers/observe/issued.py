"""What a rank has issued in its groups, from its record."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import replace

from ..beacon.record import FrameEntry, LoggedCall, Record
from ..beacon.torch_names import P2P_CALLS
from ..model.issued import Issued, IssuedCall
from .groups import labels_of, logged
from .source import Sources, frame_of


def issued(record: Record, sources: Sources) -> tuple[Issued, ...]:
    """The newest calls of each group, as far as the recorder tells the lines that issued them."""
    flight = record["flight"]
    if flight is None or not flight["entries"]:
        return tuple(_logged(record, sources))
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


def _logged(record: Record, sources: Sources) -> Iterator[Issued]:
    """The newest calls that were made through Python, in groups whose backend has no recorder."""
    history = record.get("call_history")
    for name in dict.fromkeys(entry.group for entry in logged(record)):
        assert history is not None, "what is logged is in it"
        run: list[LoggedCall] = []
        for call in history["newest"]:
            if call["group"] == name and call["op"] not in P2P_CALLS:
                run = [*run, call] if run and call["number"] == run[-1]["number"] + 1 else [call]
        if run:
            calls = (_of_log(call, history["places"], sources) for call in run)
            yield Issued(name, run[0]["number"], tuple(calls))


def _of_log(call: LoggedCall, places: Sequence[Sequence[FrameEntry]], sources: Sources) -> IssuedCall:
    frames = tuple((file, line, function, user) for file, line, function, user in places[call["place"]])
    return _call(call["op"], frames, tuple(sources.text(file) for file, _, _, _ in frames), sources.cwd)


@functools.lru_cache(maxsize=8192)
def _call(op: str, frames: tuple[FrameEntry, ...], texts: tuple[str, ...], cwd: str) -> IssuedCall:
    known = zip(frames, texts, strict=True)
    return IssuedCall(op, tuple(replace(frame_of(entry, cwd), text=text) for entry, text in known))
