"""What stands on the lanes of a timeline as SVG: arrivals, pins, arrows, legend. Text is escaped."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from ..diagnose.scene import odd_ones
from ..model.wording import spoken
from .draw import full_name
from .fold import meetings
from .lanes import Lane, Segment
from .layout import CHARACTER, GUTTER, LINE, Area, Pin, box, px, text
from .style import WORDS

SHORT = 4.0
"""Pixels below which a segment is too short to be told from its neighbours."""

ARROWS = 96
"""Arrows that a picture holds; each waiting rank has one at least."""

MEETINGS = 40
"""Collectives, the newest, whose arrivals are joined across lanes."""


def met(lanes: Sequence[Lane], area: Area, odd: tuple[str, int] | None) -> str:
    """Lines that join the arrivals at each collective; the first difference outlined.

    Args:
        odd: group and number of the first place at which ranks issued different operations.
    """
    found = {
        key: [(i, part) for i, part in parts if area.x(part.end) - area.x(part.start) >= SHORT]
        for key, parts in meetings(lanes).items()
    }
    found = {key: parts for key, parts in found.items() if len(parts) > 1}
    newest = sorted(found, key=lambda key: (max(part.start for _, part in found[key]), key))[-MEETINGS:]
    parts = []
    for key in newest:
        points = [(px(area.x(part.start)), px(area.middle(index))) for index, part in found[key]]
        line = "M" + "L".join(f"{x} {y}" for x, y in points)
        parts.append(f'<path class="{"odd" if key == odd else "met"}" d="{line}"/>')
    return "".join(parts) + (_odd(found.get(odd, []), area) if odd else "")


def _odd(parts: Sequence[tuple[int, Segment]], area: Area) -> str:
    """Outlines of those outside the majority, of all where there is none; dashed where ops differ."""
    outside = odd_ones({index: part.op for index, part in parts})
    first = next((part.op for index, part in parts if index in outside), None)
    found = []
    for index, part in parts:
        if index in outside:
            left, height = area.x(part.start), area.height(index)
            thin = height < 11
            inset = 1 if thin else 0
            wide = max(area.x(part.end) - left, 3)
            outline = box(left, area.tops[index] + inset, wide, height - 2 * inset)
            look = f"odd{'' if part.op == first else ' other'}{' thin' if thin else ''}"
            found.append(f'<path class="{look}" d="{outline}"/>')
    return "".join(found)


def pinned(pins: Sequence[Pin], area: Area) -> str:
    """The pins, each with a line of text of its own above the lanes."""
    parts = []
    for row, pin in enumerate(pins):
        x, y = area.x(pin.time), LINE * (row + 1)
        left = x > area.width / 2 or len(pin.label) * CHARACTER + 10 < x
        label = text(pin.label, int(((x if left else area.width - x) - 8) / CHARACTER))
        side = f'x="{px(x - 5)}" text-anchor="end"' if left else f'x="{px(x + 5)}"'
        parts.append(
            f'<path class="pin {pin.look}" d="M{px(x)} {y - 10}V{px(area.tops[-1])}"/>'
            f'<text class="on" {side} y="{y}">{label}</text>'
        )
    return "".join(parts)


def arrows(lanes: Sequence[Lane], waited_for: Mapping[int, Sequence[int]], area: Area) -> str:
    """Who waits for whom at the end, right of the lanes.

    Args:
        waited_for: lane -> the lanes it waits for, as their indices.
    """
    waiters = [index for index in sorted(waited_for) if waited_for[index]]
    each = max(1, ARROWS // max(len(waiters), 1))
    x = area.x(area.now) + 2
    look = "arrow" if len(waiters) <= 16 else "arrow many"
    parts = []
    for index in waiters:
        said = text(f"{full_name(lanes[index])} waits for {_named(lanes, waited_for[index])}", 300)
        for peer in waited_for[index][:each]:
            begin, end = area.middle(index), area.middle(peer)
            apart = min(area.heights[0] / 5, 4)
            down = end > begin
            share = abs(end - begin) / (area.tops[-1] - area.top)
            reach = 14 + min(abs(end - begin) / 6, (area.right - 22) * share) * (4 / 3 if down else 1)
            curve = (
                f"M{px(x)} {px(begin - apart)}C{px(x + reach)} {px(begin - apart)}"
                f" {px(x + reach)} {px(end + apart)} {px(x + 1)} {px(end + apart)}"
            )
            parts.append(f'<path class="{look}" d="{curve}"><title>{said}</title></path>')
    return "".join(parts)


def _named(lanes: Sequence[Lane], indices: Sequence[int]) -> str:
    """`ranks 0 and 2`, or `worker 0 of rank 1`."""
    ranks = [lanes[index].rank for index in indices if not lanes[index].child]
    children = [full_name(lanes[index]) for index in indices if lanes[index].child]
    return " and ".join([*([spoken([r for r in ranks if r is not None])] if ranks else []), *children])


def legend(lanes: Sequence[Lane], area: Area, extra: Iterable[tuple[str, str]]) -> tuple[str, int]:
    """What each pattern and line means, and the y at which the picture ends.

    Args:
        extra: class and meaning of the lines that are drawn.
    """
    shown = {segment.kind for lane in lanes for segment in lane.segments}
    entries = [
        (f'<g class="s">{_swatch(kind)}</g>', word) for kind, word in WORDS.items() if kind in shown
    ]
    entries += [(f'<path class="{look}" d="M0 -4H18"/>', word) for look, word in extra]
    x, y = GUTTER, area.tops[-1] + 34
    parts = []
    for swatch, word in entries:
        wide = 24 + math.ceil(len(word) * CHARACTER) + 14
        if x + wide > area.width and x > GUTTER:
            x, y = GUTTER, y + LINE
        parts.append(f'<g transform="translate({x} {px(y)})">{swatch}<text x="24">{word}</text></g>')
        x += wide
    return "".join(parts), math.ceil(y + 8)


def _swatch(kind: str) -> str:
    thin = kind in ("failed", "ended", "idle")
    shape = box(0, -5.5, 18, 3) if thin else box(0, -9, 18, 10)
    return f'<path class="{kind}" d="{shape}"/>'
