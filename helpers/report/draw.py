"""The lanes of a timeline as SVG: axis, names, segments, captions. The job's text is escaped."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Collection, Iterable, Sequence
from html import escape

from ..model.slow import Share
from ..model.wording import spans
from .lanes import Kind, Lane, Segment
from .layout import BAR, CHARACTER, CROSS, LETTERS, Area, box, px, room, spot, text
from .slow import percent, share_line


def axis(area: Area) -> str:
    """Grid lines and seconds, below the lanes."""
    if not area.timed:
        return ""
    bottom = area.tops[-1]
    step = _step(area.seconds, max(area.plot / 100, 2))
    digits = max(0, -math.floor(math.log10(step)))
    parts = []
    for number in range(math.ceil(area.begin / step - 1e-9), math.floor(area.end / step + 1e-9) + 1):
        x = px(area.x(number * step))
        parts.append(
            f'<path class="grid" d="M{x} {area.top}V{px(bottom + 3)}"/>'
            f'<text x="{x}" y="{px(bottom + 16)}" text-anchor="middle">'
            f"{number * step:.{digits}f} s</text>"
        )
    return "".join(parts)


def _step(seconds: float, most: float) -> float:
    """The smallest of 1, 2, 5, 10, ... seconds that makes `most` ticks at most."""
    least = seconds / most
    power = 10.0 ** math.floor(math.log10(least))
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= least * (1 - 1e-9))


def names(lanes: Sequence[Lane], area: Area, culprits: Collection[int]) -> str:
    """The name of every lane, those of culprits in bold, and the headings above lanes."""
    parts = []
    for index, lane in enumerate(lanes):
        look = "named" if not lane.child and set(culprits).intersection(lane.ranks) else ""
        y = px(area.middle(index) + 4.5)
        parts.append(
            f'<text x="{area.left - 6}" y="{y}" text-anchor="end"{_class(look)}>'
            f"{text(lane.name, 20)}</text>"
        )
        if area.headed[index]:
            heading = text(lane.heading, int((area.width - 12) / CHARACTER))
            parts.append(f'<text class="on" x="6" y="{px(area.tops[index] - 5)}">{heading}</text>')
    return "".join(parts)


def full_name(lane: Lane) -> str:
    """`rank 0`, `worker 1 of rank 0`, `16,383 ranks (0-16, 18-16383)`."""
    if lane.child:
        parent = "?" if lane.ranks[0] is None else lane.ranks[0]
        return f"{lane.name} of rank {parent}"
    return lane.name if len(lane.ranks) == 1 else f"{lane.name} ({spans(lane.ranks)})"


def lane(drawn: Lane, index: int, area: Area) -> str:
    """The segments of one lane with their titles."""
    name = text(full_name(drawn) if len(drawn.ranks) == 1 else _example(drawn), 60)
    height = area.height(index)
    parts = []
    marks = []
    for segment in drawn.segments:
        x = area.x(segment.start)
        wide = max(area.x(segment.end) - x, 1.5)
        thin = segment.kind in ("failed", "ended", "idle")
        shape = box(x, height / 2 - 1.5, wide, 3) if thin else box(x, 0, wide, height)
        description = f"{text(segment.text, 100)}{escape(spot(segment.where))}"
        times = f", {segment.start:.1f} s to {segment.end:.1f} s" if area.timed else ""
        title = f"<title>{name}: {description}{times}</title>"
        parts.append(f'<path class="{segment.kind}" d="{shape}">{title}</path>')
        if segment.kind in ("failed", "ended"):
            marks.append(_end_mark(segment, x, height))
    row = f'<path class="row" d="M{area.left} {px(height / 2)}H{px(area.left + area.plot)}"/>'
    shift = f'transform="translate(0 {px(area.tops[index])})"'
    return f'<g {shift}>{row}<g class="s">{"".join(parts)}</g>{"".join(marks)}</g>'


def _example(lane: Lane) -> str:
    """`16,383 ranks, drawn as rank 0`: what several ranks did before the end differs."""
    first = "?" if lane.ranks[0] is None else lane.ranks[0]
    return lane.name + ("" if lane.segments[-1].kind == "unseen" else f", drawn as rank {first}")


def captions(drawn: Lane, index: int, area: Area) -> str:
    """What the segments of a lane are, in words, each where there is room for it."""
    y = px(area.height(index) / 2 + 4.5)
    parts = []
    ends = [*(area.x(segment.start) for segment in drawn.segments[1:]), area.width + 0.0]
    for segment, end in zip(drawn.segments, ends, strict=True):
        caption, x = _caption(segment, area, end)
        if caption:
            parts.append(f'<text class="on" x="{px(x)}" y="{y}">{text(caption)}</text>')
    shift = f'transform="translate(0 {px(area.tops[index])})"'
    return f"<g {shift}>{''.join(parts)}</g>" if parts else ""


def _caption(segment: Segment, area: Area, end: float) -> tuple[str, float]:
    """The words and their x. A failure has its name behind its cross, as far as `end`."""
    x = area.x(segment.start)
    if segment.kind == "failed":
        return segment.label if x + room(segment.label) <= end else "", x + CROSS
    if segment.kind in ("ended", "idle"):
        return "", x
    return _fitting(segment, area.x(segment.end) - x), x + 5


def _fitting(segment: Segment, wide: float) -> str:
    """The longest label of a segment that fits: its phrase for a wait, a word or two, its number."""
    number = "" if segment.seq is None else f"#{segment.seq}"
    phrase = segment.text if segment.kind in ("waiting", "held", "unseen") else segment.label
    labels = (phrase, segment.label, number)
    return next((label for label in labels if len(label) * CHARACTER + 10 <= wide), "")


def _end_mark(segment: Segment, x: float, height: float) -> str:
    """A cross for a failure, a tick for a good end."""
    size, y = min(height, 10) / 2, height / 2
    if segment.kind == "failed":
        lines = f"M{px(x - size)} {px(y - size)}l{px(2 * size)} {px(2 * size)}m0 {px(-2 * size)}"
        return f'<path class="mark bad" d="{lines}l{px(-2 * size)} {px(2 * size)}"/>'
    lines = f"M{px(x - size)} {px(y)}l{px(size * 0.7)} {px(size * 0.8)}l{px(size)} {px(-size * 1.6)}"
    return f'<path class="mark" d="{lines}"/>'


def share_bar(shares: Sequence[Share], index: int, area: Area) -> str:
    """A bar right of a lane: for how much of the time others waited for its ranks, and these for others.

    Args:
        shares: of its ranks, at least one; those of the rank with the most are drawn.
    """
    waited_for, waits = max(share.waited_for for share in shares), max(share.waits for share in shares)
    x, height = area.width - BAR - 4, area.height(index)
    first, second = (min(part, 1.0) * BAR for part in (waited_for, waits))
    second = min(second, BAR - first)
    parts = (
        f'<path class="awaited" d="{box(x, 0, first, height)}"/>'
        f'<path class="awaits" d="{box(x + first, 0, second, height)}"/>'
        f'<path class="whole" d="{box(x, 0, BAR, height)}"/>'
        f'<text class="on" x="{px(x + 5)}" y="{px(height / 2 + 4.5)}">'
        f"{percent(max(waited_for, waits))}</text>"
    )
    title = text(share_line(shares), 300)
    shift = f'transform="translate(0 {px(area.tops[index])})"'
    return f'<g class="share" {shift}><title>{title}</title>{parts}</g>'


def _class(name: str) -> str:
    return f' class="{name}"' if name else ""


_PATTERNS: dict[Kind, tuple[str, str]] = {
    "starting": ("calm", '<circle cx="2" cy="2" r=".9"/>'),
    "importing": ("calm", '<circle cx="2" cy="2" r="1.1"/><circle cx="6" cy="6" r="1.1"/>'),
    "rendezvous": ("calm", '<path d="M0 0l8 8M-2 6l4 4M6 -2l4 4"/>'),
    "moving": ("good", '<path d="M2 0v8M6 0v8"/>'),
    "collective": ("wait", '<path d="M0 8l8 -8M-2 2l4 -4M6 10l4 -4"/>'),
    "waiting": ("wait", '<path d="M0 2h8M0 6h8"/>'),
    "asleep": ("calm", '<path d="M0 5l2 -3l4 5l2 -2"/>'),
    "held": ("bad", '<path d="M1 0v8M3 0v8"/>'),
    "stopped": ("bad", '<path d="M0 0l8 8M0 8l8 -8"/>'),
}
"""Tone and strokes of an 8 by 8 tile. Strokes differ, since colour alone does not reach every reader;
kinds without a tile are plain or only an outline."""

_LIGHT = ("#1a1a1a", "#ffffff", "#868e96", "#14692b", "#8a5300", "#b02a1a", "#0b57a4")
_DARK = ("#e8e8e8", "#16181a", "#868e96", "#74d68a", "#f0b860", "#ff8a7a", "#86bdf5")
_NAMES = (
    ("text", "ui-font-color1"),
    ("back", "layout-color0"),
    ("line", "border-color1"),
    ("good", "success-color1"),
    ("wait", "warn-color1"),
    ("bad", "error-color1"),
    ("calm", "info-color1"),
)

_RULES = """
#P{color-scheme:light dark;max-width:100%;height:auto;
  font-family:var(--jp-ui-font-family,system-ui,sans-serif)}
#P text{fill:var(--text);font-size:LETTERSpx}
#P .back{fill:var(--back)}
#P .grid{stroke:var(--line);stroke-width:.5;opacity:.6}
#P .row{stroke:var(--line);stroke-width:.5;opacity:.4}
#P .on{pointer-events:none;paint-order:stroke;stroke:var(--back);stroke-width:3px;stroke-linejoin:round}
#P .named{font-weight:700}
#P .s path{stroke:var(--line);stroke-width:.5}
#P pattern path{fill:none}
#P .running{fill:var(--good);fill-opacity:.3}
#P .s .missing,#P .s .unseen{fill:var(--back);stroke:var(--bad);stroke-width:1;stroke-dasharray:4 3}
#P .s .unseen{stroke:var(--text);stroke-dasharray:1 3}
#P .s .failed,#P .s .ended,#P .s .idle{fill:var(--text);fill-opacity:.5;stroke:none}
#P .s .failed{fill:var(--bad);fill-opacity:1}
#P .mark{fill:none;stroke-width:2;stroke:var(--text);pointer-events:none}
#P .bad{stroke:var(--bad)}
#P .met{fill:none;stroke:var(--text);stroke-width:1;stroke-dasharray:1 2;opacity:.7;pointer-events:none}
#P .odd{fill:none;stroke:var(--bad);stroke-width:2;pointer-events:none}
#P .other{stroke-dasharray:6 4}
#P .pin{stroke:var(--text);stroke-width:1;stroke-dasharray:5 3}
#P .over{stroke-width:1.5;stroke-dasharray:none}
#P .end{stroke:var(--bad);stroke-width:1.5;stroke-dasharray:none}
#P .awaited{fill:var(--bad);fill-opacity:.75}
#P .awaits{fill:var(--wait);fill-opacity:.3}
#P .whole{fill:none;stroke:var(--line);stroke-width:.5;pointer-events:all}
#P .arrow{fill:none;stroke:var(--text);stroke-width:1;opacity:.8;marker-end:url(#P-tip)}
#P-tip path{fill:var(--text)}
"""


def picture(
    name: str,
    title: str,
    description: str,
    size: tuple[int, int],
    body: Iterable[str],
    kinds: set[Kind],
    style: Callable[[str], str] = lambda _: "",
) -> str:
    """One `<svg>` element with a title and a description. Its id is decided by what it shows.

    Args:
        name: what its id begins with.
        size: width and height in pixels.
        body: the elements, bottom first; empty ones are left out.
        kinds: of all segments.
        style: further styles and patterns, of the id.
    """
    width, height = size
    inside = "\n".join(filter(None, body))
    digest = hashlib.sha256(f"{title}{description}{inside}".encode(errors="replace")).hexdigest()
    prefix = f"{name}-{digest[:10]}"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" id="{prefix}" role="img" lang="en"'
        f' aria-labelledby="{prefix}-title {prefix}-desc"'
        f' width="{width}" height="{height}" viewBox="0 0 {width} {height}">\n'
        f'<title id="{prefix}-title">{title}</title>\n'
        f'<desc id="{prefix}-desc">{text(description, 6000)}</desc>\n'
        f"{head(prefix, kinds)}{style(prefix)}\n{inside}\n</svg>\n"
    )


def head(prefix: str, kinds: set[Kind]) -> str:
    """The `<style>` and the `<defs>` of a picture with segments of these kinds.

    Args:
        prefix: the id of the picture; a name of letters, digits and dashes.
    """
    rules = [
        f"#{prefix}{{{_colours(_LIGHT)}}}",
        f"@media (prefers-color-scheme:dark){{#{prefix}{{{_colours(_DARK)}}}}}",
        _RULES.strip().replace("LETTERS", str(LETTERS)).replace("#P", f"#{prefix}"),
    ]
    tiles = []
    for kind, (tone, strokes) in _PATTERNS.items():
        if kind in kinds:
            rules.append(f"#{prefix} .{kind}{{fill:url(#{prefix}-{kind})}}")
            tiles.append(pattern(prefix, kind, tone, strokes))
    tip = (
        f'<marker id="{prefix}-tip" viewBox="0 0 6 6" refX="5" refY="3" markerWidth="6"'
        ' markerHeight="6" orient="auto"><path d="M0 0l6 3l-6 3z"/></marker>'
    )
    return f"<style>{chr(10).join(rules)}</style><defs>{''.join(tiles)}{tip}</defs>"


def pattern(prefix: str, name: str, tone: str, strokes: str) -> str:
    """A tile that fills the segments of a class; arguments as in `_PATTERNS`."""
    return (
        f'<pattern id="{prefix}-{name}" width="8" height="8" patternUnits="userSpaceOnUse">'
        f'<g style="stroke:var(--{tone});fill:var(--{tone})">'
        '<rect width="8" height="8" stroke="none" fill-opacity=".16"/>'
        f"{strokes}</g></pattern>"
    )


def _colours(values: tuple[str, ...]) -> str:
    return ";".join(
        f"--{name}:var(--jp-{source},{value})"
        for (name, source), value in zip(_NAMES, values, strict=True)
    )
