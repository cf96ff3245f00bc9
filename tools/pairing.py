"""Draws notebooks/method/pairing.svg: the calls of two ranks of train.py pair by order, not by line.

    python tools/pairing.py

Rank 41 leaves out the call of one iteration, as the Flight Recorder's counts say; the numbers follow.
"""

from __future__ import annotations

from pathlib import Path

from helpers.report.draw import head
from helpers.report.layout import box, px

FIGURE = Path(__file__).resolve().parents[1] / "notebooks" / "method" / "pairing.svg"

ITERATIONS, LEFT_OUT = 24, 10
SHOWN = (8, 9, 10, 11, 12, 22, 23)
"""Iterations that have a column; the barrier after the loop has the last one."""

WIDTH, LEFT, COLUMN, WIDE, HIGH = 900, 96, 98, 82, 34
ROWS = {"rank 40": 46, "rank 41": 150}
"""The y of each rank's row."""


def calls(rank: str) -> dict[int, tuple[int, str]]:
    """Column -> number and operation of the call that a rank makes there."""
    made = [i for i in range(ITERATIONS) if rank == "rank 40" or i != LEFT_OUT]
    numbered = {i: (number, "all_reduce") for number, i in enumerate(made, start=1)}
    if rank == "rank 41":
        numbered[ITERATIONS] = (len(made) + 1, "barrier")
    columns = (*SHOWN, ITERATIONS)
    return {columns.index(i): call for i, call in numbered.items() if i in columns}


def middle(column: int) -> float:
    """The x of a column's middle; there is a gap where iterations are left out."""
    return LEFT + COLUMN * (column + 0.5)


def call(column: int, y: int, number: int, op: str) -> str:
    """One call as a box with its number and name."""
    look = "waiting" if op == "barrier" else "collective"
    line = 23 if op == "barrier" else 12
    x = middle(column)
    return (
        f'<g class="s"><path class="{look}" d="{box(x - WIDE / 2, y, WIDE, HIGH)}"/></g>'
        f'<text class="on named" x="{px(x)}" y="{y + 15}" text-anchor="middle">#{number}</text>'
        f'<text class="on" x="{px(x)}" y="{y + 28}" text-anchor="middle">line {line}</text>'
    )


def pairs() -> str:
    """A line from each call of the first rank to the call of the same number of the other one."""
    upper, lower = (calls(rank) for rank in ROWS)
    top, bottom = ROWS["rank 40"] + HIGH, ROWS["rank 41"]
    drawn = []
    for column, (number, op) in upper.items():
        other = next((c for c, made in lower.items() if made[0] == number), None)
        if other is not None:
            look = "grid pair" if lower[other][1] == op else "odd"
            drawn.append(
                f'<path class="{look}" d="M{px(middle(column))} {top}L{px(middle(other))} {bottom}"/>'
            )
    return "".join(drawn)


def figure() -> str:
    """The figure as one SVG."""
    said = (
        "Rank 40 makes an all_reduce in every iteration, number 11 in iteration 10. Rank 41 leaves out "
        "that of iteration 10, so that its number 11 is the call of iteration 11, and its number 24 is "
        "the barrier after the loop."
    )
    columns = [*(f"iteration {i}" for i in SHOWN), "after the loop"]
    bottom = ROWS["rank 41"] + HIGH + 36
    parts = [f'<rect class="back" width="{WIDTH}" height="{bottom}"/>']
    parts += [
        f'<text x="{px(middle(i))}" y="26" text-anchor="middle">{name}</text>'
        for i, name in enumerate(columns)
    ]
    parts.append(pairs())
    for rank, y in ROWS.items():
        parts.append(f'<text class="named" x="{LEFT - 8}" y="{y + 21}" text-anchor="end">{rank}</text>')
        parts += [call(column, y, *made) for column, made in calls(rank).items()]
    skipped = middle(SHOWN.index(LEFT_OUT))
    y = ROWS["rank 41"]
    parts.append(f'<text x="{px(skipped)}" y="{y + 15}" text-anchor="middle">returns in</text>')
    parts.append(f'<text x="{px(skipped)}" y="{y + 28}" text-anchor="middle">line 10</text>')
    gap = middle(SHOWN.index(22)) - COLUMN / 2
    parts.append(f'<path class="pin" d="M{px(gap)} 36V{y + HIGH}"/>')
    for column, (look, word) in enumerate((("collective", "all_reduce"), ("waiting", "barrier"))):
        swatch = (
            f'<g class="s"><path class="{look}" d="{box(0, -9, 18, 10)}"/></g><text x="24">{word}</text>'
        )
        parts.append(f'<g transform="translate({LEFT + COLUMN * column} {y + HIGH + 24})">{swatch}</g>')
    said_last = "number 24 is two calls: both ranks wait for ever"
    x = middle(len(SHOWN)) + WIDE / 2
    parts.append(f'<text x="{px(x)}" y="{y + HIGH + 24}" text-anchor="end">{said_last}</text>')
    style = "<style>#pairing .pair{stroke:var(--text);stroke-width:1.5;opacity:1}</style>"
    inside = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" id="pairing" role="img" lang="en"'
        f' aria-labelledby="pairing-title pairing-desc" width="{WIDTH}" height="{bottom}"'
        f' viewBox="0 0 {WIDTH} {bottom}">\n'
        '<title id="pairing-title">Collectives pair by order, not by line</title>\n'
        f'<desc id="pairing-desc">{said}</desc>\n'
        f"{head('pairing', {'collective', 'waiting'})}{style}\n{inside}\n</svg>\n"
    )


if __name__ == "__main__":
    FIGURE.write_text(figure(), encoding="utf-8")
    print(FIGURE.name)
