"""What a rank has issued in its groups, from its record."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from ..beacon.call_log import USERS_FRAMES
from ..beacon.record import CallHistory, FrameEntry, LoggedCall, Record
from ..beacon.torch_names import P2P_CALLS
from ..model.frames import Frame
from ..model.issued import NEW_GROUP, CallValues, Issued, IssuedCall
from .groups import group_count, labels_of, logged
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
    tails = []
    for tail in flight.get("issued", ()):
        group = labels.get(tail["group"], ("group " + tail["group"], ()))[0]
        newest = tuple(calls[number] for number in tail["calls"])
        tails.append(Issued(group, tail["first"], newest, _values(record, group, newest, sources)))
    return tuple(tails)


def _values(
    record: Record, group: str, calls: Sequence[IssuedCall], sources: Sources
) -> tuple[CallValues, ...]:
    """The values of each call of a group: the newest that two lines have made is one and the same."""
    history = record.get("call_history")
    if history is None:
        return ()
    places = [
        tuple(frame_of((file, line, name, user), sources.cwd) for file, line, name, user in place)
        for place in history["places"]
    ]
    by_place: dict[tuple[str, tuple[Frame, ...]], list[CallValues]] = {}
    for entry in _complete_log(history, group):
        by_place.setdefault((entry["op"], places[entry["place"]]), []).append(_frame_values(entry))
    newest_first: list[CallValues] = []
    for call in reversed(calls):
        users = tuple(frame for frame in call.stack if frame.user)[:USERS_FRAMES]
        values = by_place.get((call.op, users))
        newest_first.append(values.pop() if values else ())
    return tuple(reversed(newest_first)) if any(newest_first) else ()


def _complete_log(history: CallHistory, group: str) -> list[LoggedCall]:
    """The log of a group's collectives, up to its newest one; empty where one of them is not in it."""
    calls = [c for c in history["newest"] if c["group"] == group and c["op"] not in P2P_CALLS]
    newest = history["collectives"].get(group, 0)
    numbers = [call["number"] for call in calls]
    return calls if numbers == [*range(newest - len(calls) + 1, newest + 1)] else []


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
            yield Issued(name, run[0]["number"], calls, tuple(map(_frame_values, run)))


def messages(record: Record, sources: Sources) -> tuple[IssuedCall, ...]:
    """The newest sends and receives that were made through Python, each operation and line once."""
    history = record.get("call_history")
    if history is None:
        return ()
    once = {(call["op"], call["place"]): call for call in history["newest"] if call["op"] in P2P_CALLS}
    return tuple(_of_log(call, history["places"], sources) for call in once.values())


def new_groups(record: Record, sources: Sources) -> Issued | None:
    """The calls that have created groups, besides the default one; None where not all are known."""
    history = record.get("call_history")
    if history is None:
        return None
    log = [call for call in history["newest"] if call["op"] == NEW_GROUP]
    if not log or group_count(record) != 1 + len(log):
        return None
    calls = tuple(_of_log(call, history["places"], sources) for call in log)
    return Issued(NEW_GROUP, 1, calls, tuple(map(_frame_values, log)))


def _frame_values(call: LoggedCall) -> CallValues:
    """What the frames of a call held."""
    return tuple(map(literals, call["values"]))


def _of_log(call: LoggedCall, places: Sequence[Sequence[FrameEntry]], sources: Sources) -> IssuedCall:
    frames = tuple((file, line, function, user) for file, line, function, user in places[call["place"]])
    return _call(call["op"], frames, tuple(sources.text(file) for file, _, _, _ in frames), sources.cwd)


@functools.lru_cache(maxsize=8192)
def _call(op: str, frames: tuple[FrameEntry, ...], texts: tuple[str, ...], cwd: str) -> IssuedCall:
    pairs = zip(frames, texts, strict=True)
    return IssuedCall(op, tuple(replace(frame_of(entry, cwd), text=text) for entry, text in pairs))
