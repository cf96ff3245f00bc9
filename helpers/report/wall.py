"""Snapshots -> one SVG in which each rank of a large job has a thin lane. Equal input, equal text.

What is drawn is what was seen, no verdict: calls that differ have patterns that differ.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from html import escape

from ..model.facts import Snapshot
from ..model.wording import spoken
from .draw import axis, pattern, picture
from .lanes import WORDS, Kind, Lane, Segment, lanes
from .layout import CHARACTER, LINE, Area, box, px, spot, text

ROOM = 448
"""Pixels that all lanes together take, as far as `THINNEST` and `TALLEST` allow."""

THINNEST, TALLEST = 7, 18
"""Pixels of a lane."""

EVERY = 8
"""Where lanes are thinner than a line of text, each whose number it divides is named."""

NAMES_ROOM = 56
"""Pixels left of the lanes."""

OTHER = "other"
"""Class of a call that is not the commonest one of the run."""


class _Thin(Area, frozen=True):
    """Lanes of which 64 fit on a screen; fewer are taller."""

    @cached_property
    def heights(self) -> tuple[float, float]:
        """Height of a lane, and the gap between lanes."""
        return min(max(ROOM // max(len(self.children), 1), THINNEST), TALLEST), 1


def wall(snapshots: Sequence[Snapshot], *, begin: float, until: float, width: int = 900) -> str:
    """Draw what every rank did from when to when.

    Args:
        snapshots: in the order of time, at least one.
        begin: seconds at which the lanes begin; what was before is left out.
        until: seconds at which the axis ends, so that a replay does not change its scale.
        width: of the picture in pixels.

    Returns:
        One `<svg>` element with a title and a description. The group of a lane has its rank in
        `data-rank`.
    """
    entries = [entry for entry in lanes(snapshots, separate=True) if not entry.child]
    now = snapshots[-1].time
    area = _Thin(
        begin=begin,
        now=now,
        end=max(until, now, begin + 1.0),
        width=width,
        left=NAMES_ROOM,
        right=8,
        top=4,
        children=(False,) * len(entries),
        headed=(False,) * len(entries),
    )
    parts = {entry.ranks[0]: [part for part in entry.segments if part.end > begin] for entry in entries}
    looks = _looks(part for segments in parts.values() for part in segments)
    explained, bottom = _legend(looks, area)
    body = [
        f'<rect class="back" width="{width}" height="{bottom}"/>',
        axis(area),
        *(_lane(entry, parts[entry.ranks[0]], looks, area, row) for row, entry in enumerate(entries)),
        explained,
    ]
    title = f"{len(entries)} ranks, {begin:.1f} s to {now:.1f} s"
    kinds = {part.kind for segments in parts.values() for part in segments}
    return picture("wall", title, _description(entries), (width, bottom), body, kinds, _style)


def _looks(parts: Iterable[Segment]) -> dict[str, str]:
    """What is drawn, in words -> its class: the commonest call first, then the others, then the rest."""
    kinds: Counter[Kind] = Counter()
    calls: Counter[str] = Counter()
    for part in parts:
        if part.kind == "collective" and part.op:
            calls[part.op] += 1
        else:
            kinds[part.kind] += 1
    common = [op for op, _ in sorted(calls.items(), key=lambda item: (-item[1], item[0]))]
    looks = {WORDS[kind]: kind for kind in WORDS if kind in kinds}
    return looks | {f"in {op}": OTHER if index else "collective" for index, op in enumerate(common)}


def _lane(entry: Lane, parts: Sequence[Segment], looks: Mapping[str, str], area: Area, row: int) -> str:
    """One lane: a frame to click, and its segments, each with a title."""
    rank, height = entry.ranks[0], area.heights[0]
    drawn = []
    for part in parts:
        x = area.x(part.start)
        wide = max(area.x(part.end) - x, 1.5)
        look = looks[f"in {part.op}"] if part.kind == "collective" and part.op else part.kind
        times = f"{part.start:.1f} s to {part.end:.1f} s"
        title = f"{entry.name}: {text(part.text, 100)}{escape(spot(part.where))}, {times}"
        drawn.append(f'<path class="{look}" d="{box(x, 0, wide, height)}"><title>{title}</title></path>')
    frame = (
        f'<rect class="frame" x="{area.left - 1}" y="-.5"'
        f' width="{px(area.plot + 2)}" height="{height + 1}"/>'
    )
    name = ""
    if isinstance(rank, int) and rank % (EVERY if height < LINE else 1) == 0:
        y = px(min(height, height / 2 + 4.5))
        name = f'<text x="{area.left - 6}" y="{y}" text-anchor="end">{entry.name}</text>'
    return (
        f'<g data-rank="{rank}" transform="translate(0 {px(area.tops[row])})">'
        f'{frame}<g class="s">{"".join(drawn)}</g>{name}</g>'
    )


def _legend(looks: Mapping[str, str], area: Area) -> tuple[str, int]:
    """What each pattern means, and the y at which the picture ends."""
    x, y = area.left, area.tops[-1] + 34
    parts = []
    for word, look in looks.items():
        wide = 24 + len(word) * CHARACTER + 14
        if x + wide > area.width and x > area.left:
            x, y = area.left, y + LINE
        swatch = f'<g class="s"><path class="{look}" d="{box(0, -9, 18, 10)}"/></g>'
        parts.append(f'<g transform="translate({px(x)} {px(y)})">{swatch}<text x="24">{word}</text></g>')
        x += int(wide)
    return "".join(parts), int(y + 8)


def _style(prefix: str) -> str:
    """The pattern of calls that are not the commonest one, and the frame of a chosen lane."""
    rules = (
        f"#{prefix} .{OTHER}{{fill:url(#{prefix}-{OTHER})}}"
        f"#{prefix} .frame{{fill:var(--back);stroke:none}}"
        f"#{prefix} [data-rank]{{cursor:pointer}}"
        f"#{prefix} .chosen .frame{{stroke:var(--text);stroke-width:3}}"
    )
    tile = pattern(prefix, OTHER, "wait", '<path d="M2 0v8M4 0v8M6 0v8"/>')
    return f"<style>{rules}</style><defs>{tile}</defs>"


def _description(lanes: Iterable[Lane]) -> str:
    """What every rank does at the end, in sentences."""
    together: dict[str, list[int]] = {}
    for entry in lanes:
        newest = entry.segments[-1]
        together.setdefault(newest.text + spot(newest.where), []).extend(_numbers(entry))
    return "; ".join(f"{spoken(ranks)}: {what}" for what, ranks in together.items()) + "."


def _numbers(entry: Lane) -> Iterator[int]:
    return (rank for rank in entry.ranks if rank is not None)
