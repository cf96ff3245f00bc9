"""Snapshots and a verdict -> one SVG: lanes of ranks over time. Equal input, equal text.

The picture holds no script and loads nothing. What is drawn is also said: each segment has a title, and
the description of the picture says what every rank is doing at the end.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from ..diagnose.graph import Graph
from ..diagnose.matching import Divergence, divergence
from ..diagnose.scene import minority
from ..model.clauses import grouped
from ..model.facts import Job, Snapshot, Verdict
from ..model.slow import Share
from ..model.waits import OnChild
from ..model.wording import group_name, plural, spoken, verdict_line
from .draw import axis, captions, full_name, lane, names, picture, share_bar
from .lanes import LASTING, WORDS, Lane, Segment, folded, lanes, meetings, without_errors
from .layout import CHARACTER, LINE, Area, Pin, box, px, room, spot, text
from .slow import SHARES, share_line

SEGMENTS = 1500
"""Segments that a picture holds; short ones are folded until no more are left."""

NARROWEST = 320
"""Pixels below which a picture does not shrink."""

NAMES_ROOM = 80
"""Pixels left of the lanes at least."""

ARROWS_ROOM = 74
"""Pixels right of the lanes where there are arrows, or bars."""


def timeline(
    snapshots: Sequence[Snapshot],
    verdict: Verdict | None = None,
    *,
    width: int = 900,
    verdict_at: float | None = None,
    until: float | None = None,
    reveal: bool = True,
    shares: Sequence[Share] = (),
) -> str:
    """Draw what every rank did from when to when, as one self-contained SVG.

    Args:
        snapshots: in the order of time, as a session or a recording yields them; there may be none.
        verdict: pinned at the start of the stall and where it became provable.
        width: of the picture in pixels, `NARROWEST` at least.
        verdict_at: seconds at which the verdict was reached; the newest snapshot's unless given.
        until: seconds at which the axis ends at least, so that a replay does not change its scale.
        reveal: False shows what was seen and nothing that gives the answer away: no verdict, no first
            difference, no arrows of waiting, no shares, no error.
        shares: how the time of each rank went, where some were waited for: a bar right of its lane, in
            place of arrows, which are of the end alone.

    Returns:
        One `<svg>` element with a title and a description.
    """
    verdict, shares = (verdict, shares) if reveal else (None, ())
    culprits = (*(verdict.culprits if verdict else ()), *(shares[0].ranks if shares else ()))
    entries = lanes(snapshots, culprits) if reveal else without_errors(lanes(snapshots))
    graph = Graph.of(snapshots[-1] if snapshots else Snapshot(0.0, Job(())))
    odd = divergence(graph.ranks) if reveal else None
    place = odd[:2] if odd else None
    waited_for = _waited_for(graph, entries) if reveal and not shares else {}
    now = snapshots[-1].time if snapshots else 1.0
    pins = _pins(entries, now if verdict_at is None else verdict_at, verdict, odd)
    area = _area(entries, now, until, max(width, NARROWEST), beside=bool(waited_for or shares))
    timed = not snapshots or snapshots[-1].timed
    area = replace(area, top=area.top + LINE * len(pins), timed=timed)
    drawn = folded(entries, SHORT * area.seconds / area.plot, SEGMENTS)
    arrivals = met(drawn, area, place)
    lines = [("met", "arrivals at one collective")] if 'class="met"' in arrivals else []
    lines += [("arrow", "waits for, at the end")] if waited_for else []
    shared = _shared(drawn, shares)
    explained, bottom = legend(drawn, area, lines, SHARES.items() if shared else ())
    body = [
        f'<rect class="back" width="{area.width}" height="{bottom}"/>',
        axis(area),
        *(lane(entry, index, area) for index, entry in enumerate(drawn)),
        arrivals,
        arrows(drawn, waited_for, area),
        *(share_bar(lane_shares, index, area) for index, lane_shares in shared.items()),
        pinned(pins, area),
        names(drawn, area, culprits),
        *(captions(entry, index, area) for index, entry in enumerate(drawn)),
        explained,
    ]
    if not drawn:
        body.append(f'<text x="{area.left}" y="{area.top + 10}">No rank has been seen.</text>')
    description = " ".join(
        [_description(entries, verdict, odd, timed=timed), *map(share_line, shared.values())]
    )
    kinds = {segment.kind for entry in drawn for segment in entry.segments}
    return picture("timeline", _title(drawn, area), description, (area.width, bottom), body, kinds)


def _title(drawn: Sequence[Lane], area: Area) -> str:
    count = sum(len(entry.ranks) for entry in drawn if not entry.child)
    times = f", {area.begin:.1f} s to {area.end:.1f} s" if area.timed else ""
    return f"Timeline of {count:,} rank{'' if count == 1 else 's'}{times}"


def _shared(drawn: Sequence[Lane], shares: Sequence[Share]) -> dict[int, list[Share]]:
    """Lane -> how the time of its ranks went, of those of which that is known."""
    owners = {rank: share for share in shares for rank in share.ranks}
    by_lane = {
        index: [owners[rank] for rank in entry.ranks if rank in owners]
        for index, entry in enumerate(drawn)
        if not entry.child
    }
    return {index: list(dict.fromkeys(parts)) for index, parts in by_lane.items() if parts}


class Waits(msgspec.Struct, frozen=True):
    """What the ranks of a lane wait for at the end.

    Attributes:
        lanes: of what they wait for, by their indices.
        names: what that is, in words: `ranks 0 and 2`, `worker 0 of rank 1`.
    """

    lanes: tuple[int, ...]
    names: str


def _waited_for(graph: Graph, lanes: Sequence[Lane]) -> dict[int, Waits]:
    """Lane -> what it waits for at the end: ranks, or workers of its own."""
    rows = {rank: i for i, entry in enumerate(lanes) if not entry.child for rank in entry.ranks}
    peers: dict[int, set[frozenset[int]]] = {}
    for rank, awaited in graph.waited_for.items():
        if rank in rows and awaited:
            peers.setdefault(rows[rank], set()).add(awaited)
    waits = {}
    for index, sets in sorted(peers.items()):
        awaited = frozenset[int]().union(*sets) & rows.keys()
        waits[index] = Waits(tuple(sorted({rows[peer] for peer in awaited})), spoken(sorted(awaited)))
    waits |= _waited_for_workers(graph, lanes)
    return {index: targets for index, targets in waits.items() if targets.lanes}


def _waited_for_workers(graph: Graph, lanes: Sequence[Lane]) -> dict[int, Waits]:
    waits = {}
    for index, entry in enumerate(lanes):
        number = None if entry.child else entry.ranks[0]
        process = graph.alive.get(number) if number is not None else None
        if process and any(isinstance(wait, OnChild) for wait in process.blocking):
            children = [i for i, child in enumerate(lanes) if child.child and child.ranks == entry.ranks]
            workers = [i for i in children if lanes[i].segments[-1].kind not in LASTING]
            waits[index] = Waits(tuple(workers), " and ".join(full_name(lanes[i]) for i in workers))
    return waits


def _area(lanes: Sequence[Lane], now: float, until: float | None, width: int, *, beside: bool) -> Area:
    """The lanes' place: from the first thing seen to the newest snapshot, and room right of them.

    That is for arrows or bars, and for the names of failures, which often come last; in a replay it is
    always the same.
    """
    headings = [entry.heading for entry in lanes]
    begin = min([now, *(entry.segments[0].start for entry in lanes)])
    end = max(now, until or now)
    area = Area(
        begin=begin if end - begin > 1e-3 else end - 1.0,
        now=now,
        end=end,
        width=width,
        left=max([NAMES_ROOM, *(9 * len(entry.name) for entry in lanes if len(entry.ranks) > 1)]),
        right=ARROWS_ROOM if beside or until is not None else 14,
        top=8,
        children=tuple(entry.child for entry in lanes),
        headed=tuple(
            heading not in ("", before)
            for before, heading in zip(["", *headings], headings, strict=False)
        ),
    )
    if until is not None:
        return area
    last = [entry.segments[-1] for entry in lanes]
    over = [area.x(s.start) + room(s.label) - width for s in last if s.kind == "failed"]
    return replace(area, right=area.right + math.ceil(max([0.0, *over])))


def _pins(
    lanes: Sequence[Lane], verdict_at: float, verdict: Verdict | None, odd: Divergence | None
) -> list[Pin]:
    """The first difference, the stall and the verdict, the latest first."""
    pins = []
    arrived = meetings(lanes).get(odd[:2]) if odd else None
    if odd and arrived:
        ops = " / ".join(dict.fromkeys(issue.op for _, issue in sorted(odd[2].items())))
        label = f"\N{NOT EQUAL TO} first difference: #{odd[1]} of {group_name(odd[0])}, {ops}"
        pins.append(Pin(min(part.start for _, part in arrived), label, "differs"))
    if verdict and verdict.since is not None:
        pins.append(Pin(verdict.since, f"stall from {verdict.since:.1f} s", "stall"))
    if verdict and lanes and verdict.outcome != "running":
        pins.append(Pin(verdict_at, verdict_line(verdict), "over" if verdict.outcome == "ok" else "end"))
    return sorted(pins, key=lambda pin: -pin.time)


def _description(
    lanes: Sequence[Lane], verdict: Verdict | None, odd: Divergence | None, *, timed: bool
) -> str:
    """What every rank does at the end, what differs first, and the verdict, in sentences."""
    sentences = [_newest(lanes, timed=timed)]
    if odd:
        ops = grouped({rank: issue.op for rank, issue in odd[2].items()})
        issued = ", ".join(f"{spoken(ranks)} {op}" for op, ranks in ops.items())
        sentences.append(f"First difference at #{odd[1]} of {group_name(odd[0])}: {issued}.")
    if verdict and verdict.since is not None:
        sentences.append(f"Stall from {verdict.since:.1f} s.")
    if verdict and verdict.outcome != "running":
        sentences.append(f"Verdict: {verdict_line(verdict)}. {verdict.summary}")
    return " ".join(sentences)


def _newest(lanes: Sequence[Lane], *, timed: bool) -> str:
    """What every rank does at the end, and since when, as one sentence."""
    together: dict[tuple[str, str], list[tuple[Lane, Segment]]] = {}
    for entry in lanes:
        newest = entry.segments[-1]
        if not entry.child or newest.kind not in ("idle", "ended", "running"):
            who = full_name(entry) if entry.child or None in entry.ranks else ""
            together.setdefault((who, newest.text + spot(newest.where)), []).append((entry, newest))
    parts = []
    for (who, what), members in together.items():
        ranks = [rank for entry, _ in members for rank in entry.ranks if rank is not None]
        # Of ranks that share a lane, only the first is known to be there since then.
        since = timed and all(len(entry.ranks) == 1 for entry, _ in members)
        begun = f" from {max(segment.start for _, segment in members):.1f} s" if since else ""
        parts.append(f"{who or spoken(ranks)}: {what}{begun}")
    return "; ".join(parts) + "." if parts else "No rank has been seen."


SHORT = 4.0
"""Pixels below which a segment is too short to be told from its neighbours."""

ARROWS = 96
"""Arrows that a picture holds; each waiting lane has one at least."""

MEETINGS = 40
"""Collectives, the newest, whose arrivals are joined across lanes."""


def met(lanes: Sequence[Lane], area: Area, odd: tuple[str, int] | None) -> str:
    """Lines that join the arrivals at each collective; the first difference outlined.

    Args:
        odd: group and number of the first place at which ranks issued different operations.
    """
    joins = {
        key: [(i, part) for i, part in parts if area.x(part.end) - area.x(part.start) >= SHORT]
        for key, parts in meetings(lanes).items()
    }
    joins = {key: parts for key, parts in joins.items() if len(parts) > 1}
    newest = sorted(joins, key=lambda key: (max(part.start for _, part in joins[key]), key))[-MEETINGS:]
    parts = []
    for key in newest:
        points = [(px(area.x(part.start)), px(area.middle(index))) for index, part in joins[key]]
        line = "M" + "L".join(f"{x} {y}" for x, y in points)
        parts.append(f'<path class="{"odd" if key == odd else "met"}" d="{line}"/>')
    return "".join(parts) + (_odd(joins.get(odd, []), lanes, area) if odd else "")


def _odd(parts: Sequence[tuple[int, Segment]], lanes: Sequence[Lane], area: Area) -> str:
    """Outlines of those outside the majority, of all where there is none; dashed where ops differ."""
    # Each rank counts, whether it has a lane of its own or shares one.
    ranks = [(index, part.op) for index, part in parts for _ in lanes[index].ranks]
    outside = {ranks[n][0] for n in minority({n: op for n, (_, op) in enumerate(ranks)})}
    first = next((part.op for index, part in parts if index in outside), None)
    outlines = []
    for index, part in parts:
        if index in outside:
            x = area.x(part.start)
            outline = box(x, area.tops[index], max(area.x(part.end) - x, 3), area.height(index))
            look = "odd" if part.op == first else "odd other"
            outlines.append(f'<path class="{look}" d="{outline}"/>')
    return "".join(outlines)


def pinned(pins: Sequence[Pin], area: Area) -> str:
    """The pins, each with a line of text of its own above the lanes."""
    parts = []
    for row, pin in enumerate(pins):
        x, y = area.x(pin.time), LINE * (row + 1)
        leftward = x > area.width / 2 or len(pin.label) * CHARACTER + 10 < x
        label = text(pin.label, int(((x if leftward else area.width - x) - 8) / CHARACTER))
        side = f'x="{px(x - 5)}" text-anchor="end"' if leftward else f'x="{px(x + 5)}"'
        parts.append(
            f'<path class="pin {pin.look}" d="M{px(x)} {y - 10}V{px(area.tops[-1])}"/>'
            f'<text class="on" {side} y="{y}">{label}</text>'
        )
    return "".join(parts)


def arrows(lanes: Sequence[Lane], waited_for: Mapping[int, Waits], area: Area) -> str:
    """Arrows from the lanes of waiting ranks to those they wait for at the end, right of the lanes."""
    limit = max(1, ARROWS // max(len(waited_for), 1))
    x = area.x(area.now) + 2
    parts = []
    for index, waits in sorted(waited_for.items()):
        verb = plural(lanes[index].ranks, "waits", "wait")
        title = text(f"{full_name(lanes[index])} {verb} for {waits.names}", 300)
        for peer in waits.lanes[:limit]:
            begin, end = area.middle(index), area.middle(peer)
            gap = min(area.heights[0] / 5, 4)
            down = end > begin
            share = abs(end - begin) / (area.tops[-1] - area.top)
            reach = 14 + min(abs(end - begin) / 6, (area.right - 22) * share) * (4 / 3 if down else 1)
            curve = (
                f"M{px(x)} {px(begin - gap)}C{px(x + reach)} {px(begin - gap)}"
                f" {px(x + reach)} {px(end + gap)} {px(x + 1)} {px(end + gap)}"
            )
            parts.append(f'<path class="arrow" d="{curve}"><title>{title}</title></path>')
    return "".join(parts)


def legend(
    lanes: Sequence[Lane],
    area: Area,
    extra: Iterable[tuple[str, str]],
    parts_of_bars: Iterable[tuple[str, str]],
) -> tuple[str, int]:
    """What each pattern and line means, and the y at which the picture ends.

    Args:
        extra: class and meaning of the lines that are drawn; parts_of_bars: the same of these.
    """
    shown = {segment.kind for lane in lanes for segment in lane.segments}
    entries = [
        (f'<g class="s">{_swatch(kind)}</g>', word) for kind, word in WORDS.items() if kind in shown
    ]
    entries += [(f'<path class="{look}" d="M0 -4H18"/>', word) for look, word in extra]
    entries += [(_swatch(look), word) for look, word in parts_of_bars]
    x, y = area.left, area.tops[-1] + 40
    parts = []
    for swatch, word in entries:
        wide = 24 + math.ceil(len(word) * CHARACTER) + 14
        if x + wide > area.width and x > area.left:
            x, y = area.left, y + LINE
        parts.append(f'<g transform="translate({x} {px(y)})">{swatch}<text x="24">{word}</text></g>')
        x += wide
    return "".join(parts), math.ceil(y + 8)


def _swatch(kind: str) -> str:
    thin = kind in ("failed", "ended", "idle")
    shape = box(0, -5.5, 18, 3) if thin else box(0, -9, 18, 10)
    return f'<path class="{kind}" d="{shape}"/>'
