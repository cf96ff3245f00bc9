"""The lanes of a timeline as SVG: axis, names, segments, captions. The job's text is escaped."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from .lanes import Lane, Segment
from .layout import CHARACTER, CHILD, GUTTER, Area, box, px, spot, text


def axis(area: Area) -> str:
    """Grid lines and seconds, below the lanes."""
    bottom = area.tops[-1]
    step = _step(area.seconds, max(area.plot / 90, 3))
    digits = max(0, -math.floor(math.log10(step)))
    parts = []
    for number in range(math.ceil(area.begin / step - 1e-9), math.floor(area.end / step + 1e-9) + 1):
        x = px(area.x(number * step))
        parts.append(
            f'<path class="grid" d="M{x} {area.top}V{px(bottom + 3)}"/>'
            f'<text x="{x}" y="{px(bottom + 14)}" text-anchor="middle">'
            f"{number * step:.{digits}f} s</text>"
        )
    return "".join(parts)


def _step(seconds: float, most: float) -> float:
    """The smallest of 1, 2, 5, 10, ... seconds that makes `most` ticks at most."""
    least = seconds / most
    power = 10.0 ** math.floor(math.log10(least))
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= least * (1 - 1e-9))


def names(lanes: Sequence[Lane], area: Area, culprits: Sequence[int]) -> str:
    """The name of every lane; of every eighth rank, and of a few culprits, when lanes are thin."""
    dense = sum(area.heights) < 12
    named = [i for i, lane in enumerate(lanes) if not lane.child and lane.rank in culprits]
    apart = [index for index in named if dense and len(named) <= 4]
    parts = []
    for index, lane in enumerate(lanes):
        crowded = any(abs(area.middle(index) - area.middle(other)) < 12 for other in apart)
        if dense and index not in apart and (index % 8 or crowded):
            continue
        look = "named" if index in named else "small" if lane.child else ""
        y = px(area.middle(index) + (3.5 if lane.child else 4))
        parts.append(
            f'<text x="{GUTTER - 6}" y="{y}" text-anchor="end"{_class(look)}>'
            f"{text(lane.name, 20)}</text>"
        )
    return "".join(parts)


def full_name(lane: Lane) -> str:
    """`rank 0`, or `worker 1 of rank 0`."""
    parent = "?" if lane.rank is None else lane.rank
    return f"{lane.name} of rank {parent}" if lane.child else lane.name


def lane(drawn: Lane, index: int, area: Area) -> str:
    """The segments of one lane with their titles."""
    height = area.height(index)
    parts = []
    marks = []
    for segment in drawn.segments:
        left = area.x(segment.start)
        wide = max(area.x(segment.end) - left, 1.5)
        thin = segment.kind in ("failed", "ended", "idle")
        shape = box(left, height / 2 - 1.5, wide, 3) if thin else box(left, 0, wide, height)
        said = f"{text(segment.text, 100)}{escape(spot(segment.where))}"
        times = f"{segment.start:.1f} s to {segment.end:.1f} s"
        title = f"<title>{text(full_name(drawn), 40)}: {said}, {times}</title>"
        parts.append(f'<path class="{segment.kind}" d="{shape}">{title}</path>')
        if segment.kind in ("failed", "ended"):
            marks.append(_end_mark(segment, left, height))
    row = f'<path class="row" d="M{GUTTER} {px(height / 2)}H{px(GUTTER + area.plot)}"/>'
    shift = f'transform="translate(0 {px(area.tops[index])})"'
    return f'<g {shift}>{row}<g class="s">{"".join(parts)}</g>{"".join(marks)}</g>'


def captions(drawn: Lane, index: int, area: Area) -> str:
    """What the segments of a lane are, in words, each where there is room for it."""
    height = area.height(index)
    if height < CHILD:
        return ""
    y = px(height / 2 + (3.5 if drawn.child else 4))
    look = "on small" if drawn.child else "on"
    parts = []
    free = area.width - area.right + 0.0
    for segment in reversed(drawn.segments):
        said, x = _caption(segment, area, free, newest=segment is drawn.segments[-1])
        if said and x > GUTTER:
            parts.append(f'<text class="{look}" x="{px(x)}" y="{y}">{text(said)}</text>')
            free = x - 4
    shift = f'transform="translate(0 {px(area.tops[index])})"'
    return f"<g {shift}>{''.join(reversed(parts))}</g>" if parts else ""


def _caption(segment: Segment, area: Area, free: float, *, newest: bool) -> tuple[str, float]:
    """The words and their x. A failure, and the newest collective, may say theirs to the left.

    Args:
        free: x from which on there are words already.
    """
    left, right = area.x(segment.start), min(area.x(segment.end), free)
    size = len(segment.label) * CHARACTER
    if segment.kind == "failed":
        after = left + size + 12 <= free
        return segment.label, left + 9 if after else left - 9 - size
    if segment.kind in ("ended", "idle"):
        return "", left
    said = _fitting(segment, right - left)
    if newest and segment.op and len(said) < len(segment.label):
        return segment.label, right - 5 - size
    return said, left + 5


def _fitting(segment: Segment, wide: float) -> str:
    """The longest label of a segment that fits: its phrase for a wait, a word or two, its number."""
    number = "" if segment.seq is None else f"#{segment.seq}"
    phrase = segment.text if segment.kind in ("waiting", "held") else segment.label
    labels = (phrase, segment.label, number)
    return next((said for said in labels if len(said) * CHARACTER + 10 <= wide), "")


def blocks(lanes: Sequence[Lane], area: Area) -> str:
    """What thin neighbouring lanes have in common at the end, said once for all of them."""
    if area.heights[0] >= CHILD:
        return ""
    together: list[list[int]] = []
    for index, entry in enumerate(lanes):
        newest = entry.segments[-1]
        if together and _alike(newest, lanes[together[-1][-1]].segments[-1]):
            together[-1].append(index)
        else:
            together.append([index])
    parts = []
    for group in together:
        label = lanes[group[0]].segments[-1].label
        left = max(area.x(lanes[index].segments[-1].start) for index in group)
        said = f"{label}, {len(group)} ranks" if len(group) > 1 else label
        high = area.tops[group[-1]] + area.height(group[-1]) - area.tops[group[0]]
        if high >= 8 and label and len(said) * CHARACTER + 10 <= area.x(area.now) - left:
            y = px(area.tops[group[0]] + high / 2 + 4)
            parts.append(f'<text class="on" x="{px(left + 5)}" y="{y}">{text(said)}</text>')
    return "".join(parts)


def _alike(one: Segment, other: Segment) -> bool:
    return (one.kind, one.label) == (other.kind, other.label)


def _end_mark(segment: Segment, left: float, height: float) -> str:
    """A cross for a failure, a tick for a good end."""
    size, y = min(height, 10) / 2, height / 2
    if segment.kind == "failed":
        lines = f"M{px(left - size)} {px(y - size)}l{px(2 * size)} {px(2 * size)}m0 {px(-2 * size)}"
        return f'<path class="mark bad" d="{lines}l{px(-2 * size)} {px(2 * size)}"/>'
    lines = f"M{px(left - size)} {px(y)}l{px(size * 0.7)} {px(size * 0.8)}l{px(size)} {px(-size * 1.6)}"
    return f'<path class="mark" d="{lines}"/>'


def _class(name: str) -> str:
    return f' class="{name}"' if name else ""
