"""What a rank has issued in its groups, from its record."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from ..beacon.call_log import USERS_FRAMES
from ..beacon.record import FrameEntry, LoggedCall, Record
from ..beacon.torch_names import P2P_CALLS
from ..model.frames import Frame
from ..model.issued import NEW_GROUP, CallValues, Issued, IssuedCall
from .groups import labels_of, logged, made
from .source import Sources, frame_of, literals


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
    known = []
    for one in flight.get("issued", ()):
        group = labels.get(one["group"], ("group " + one["group"], ()))[0]
        made = tuple(calls[number] for number in one["calls"])
        known.append(Issued(group, one["first"], made, _values(record, group, made, sources)))
    return tuple(known)


def _values(
    record: Record, group: str, made: Sequence[IssuedCall], sources: Sources
) -> tuple[CallValues, ...]:
    """What was kept of each call of a group: the newest that two lines have made is one and the same."""
    history = record.get("call_history")
    noted = [
        call
        for call in (history["newest"] if history is not None else ())
        if call["group"] == group and call["op"] not in P2P_CALLS
    ]
    numbers = [call["number"] for call in noted]
    if history is None or not noted or numbers != [*range(numbers[0], numbers[-1] + 1)]:
        return ()
    if numbers[-1] != history["collectives"].get(group):
        return ()
    places = [
        tuple(frame_of((file, line, name, user), sources.cwd) for file, line, name, user in place)
        for place in history["places"]
    ]
    kept: dict[tuple[str, tuple[Frame, ...]], list[CallValues]] = {}
    for call in noted:
        kept.setdefault((call["op"], places[call["place"]]), []).append(_held(call))
    found: list[CallValues] = []
    for one in reversed(made):
        users = tuple(frame for frame in one.stack if frame.user)[:USERS_FRAMES]
        values = kept.get((one.op, users))
        found.append(values.pop() if values else ())
    return tuple(reversed(found)) if any(found) else ()


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
            calls = tuple(_of_log(call, history["places"], sources) for call in run)
            yield Issued(name, run[0]["number"], calls, tuple(map(_held, run)))


def messages(record: Record, sources: Sources) -> tuple[IssuedCall, ...]:
    """The newest sends and receives that were made through Python, each operation and line once."""
    history = record.get("call_history")
    if history is None:
        return ()
    once = {(call["op"], call["place"]): call for call in history["newest"] if call["op"] in P2P_CALLS}
    return tuple(_of_log(call, history["places"], sources) for call in once.values())


def new_groups(record: Record, sources: Sources) -> Issued | None:
    """The calls that have created groups, besides the default one; None where not all are known."""
    history, count = record.get("call_history"), made(record)
    found = (
        [call for call in history["newest"] if call["op"] == NEW_GROUP] if history is not None else []
    )
    if history is None or not found or count != 1 + len(found):
        return None
    calls = tuple(_of_log(call, history["places"], sources) for call in found)
    return Issued(NEW_GROUP, 1, calls, tuple(map(_held, found)))


def _held(call: LoggedCall) -> CallValues:
    """What the frames of a call held."""
    return tuple(map(literals, call["values"]))


def _of_log(call: LoggedCall, places: Sequence[Sequence[FrameEntry]], sources: Sources) -> IssuedCall:
    frames = tuple((file, line, function, user) for file, line, function, user in places[call["place"]])
    return _call(call["op"], frames, tuple(sources.text(file) for file, _, _, _ in frames), sources.cwd)


@functools.lru_cache(maxsize=8192)
def _call(op: str, frames: tuple[FrameEntry, ...], texts: tuple[str, ...], cwd: str) -> IssuedCall:
    known = zip(frames, texts, strict=True)
    return IssuedCall(op, tuple(replace(frame_of(entry, cwd), text=text) for entry, text in known))
