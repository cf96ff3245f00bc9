"""How a timeline looks: one pattern and one word a kind of segment, and its stylesheet.

Colours are JupyterLab's variables; their fallbacks serve a page of its own, light or dark. Every rule
and every id carries the picture's prefix, so that two pictures on one page do not meet.
"""

from __future__ import annotations

from .lanes import Kind

WORDS: dict[Kind, str] = {
    "starting": "starting",
    "importing": "importing",
    "rendezvous": "rendezvous",
    "running": "running",
    "moving": "several in short turns",
    "collective": "in a collective",
    "waiting": "waiting for something else",
    "asleep": "asleep",
    "held": "in a C call, interpreter locked",
    "stopped": "stopped by a signal",
    "failed": "ended in failure",
    "ended": "ended",
    "missing": "never started",
    "unseen": "out of sight",
    "idle": "worker without a task",
}
"""In the order of the legend."""

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
"""Tone and the strokes of an 8 by 8 tile; kinds without one are plain or only an outline."""

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
#P text{fill:var(--text);font-size:11px}
#P .back{fill:var(--back)}
#P .grid{stroke:var(--line);stroke-width:.5;opacity:.6}
#P .row{stroke:var(--line);stroke-width:.5;opacity:.4}
#P .on{pointer-events:none;paint-order:stroke;stroke:var(--back);stroke-width:3px;stroke-linejoin:round}
#P .small{font-size:10px}
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
#P .thin{stroke-width:1}
#P .pin{stroke:var(--text);stroke-width:1;stroke-dasharray:5 3}
#P .over{stroke-width:1.5;stroke-dasharray:none}
#P .end{stroke:var(--bad);stroke-width:1.5;stroke-dasharray:none}
#P .arrow{fill:none;stroke:var(--text);stroke-width:1;opacity:.8;marker-end:url(#P-tip)}
#P .many{stroke-width:.5;opacity:.6}
#P-tip path{fill:var(--text)}
"""


def head(prefix: str, kinds: set[Kind]) -> str:
    """The `<style>` and the `<defs>` of a picture with segments of these kinds.

    Args:
        prefix: the id of the picture; a name of letters, digits and dashes.
    """
    rules = [
        f"#{prefix}{{{_colours(_LIGHT)}}}",
        f"@media (prefers-color-scheme:dark){{#{prefix}{{{_colours(_DARK)}}}}}",
        _RULES.strip().replace("#P", f"#{prefix}"),
    ]
    tiles = []
    for kind, (tone, strokes) in _PATTERNS.items():
        if kind in kinds:
            rules.append(f"#{prefix} .{kind}{{fill:url(#{prefix}-{kind})}}")
            tiles.append(
                f'<pattern id="{prefix}-{kind}" width="8" height="8" patternUnits="userSpaceOnUse">'
                f'<g style="stroke:var(--{tone});fill:var(--{tone})">'
                '<rect width="8" height="8" stroke="none" fill-opacity=".16"/>'
                f"{strokes}</g></pattern>"
            )
    tip = (
        f'<marker id="{prefix}-tip" viewBox="0 0 6 6" refX="5" refY="3" markerWidth="6"'
        ' markerHeight="6" orient="auto"><path d="M0 0l6 3l-6 3z"/></marker>'
    )
    return f"<style>{chr(10).join(rules)}</style><defs>{''.join(tiles)}{tip}</defs>"


def _colours(values: tuple[str, ...]) -> str:
    return ";".join(
        f"--{name}:var(--jp-{source},{value})"
        for (name, source), value in zip(_NAMES, values, strict=True)
    )
