"""Two programs side by side, the lines that differ marked. Pure; the programs' text is escaped."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from ..model.wording import printable

CONTEXT = 3
"""Equal lines shown around a change; longer stretches are left out, and counted."""

_COLUMNS = '<colgroup><col class="sr-number"><col><col class="sr-number"><col></colgroup>'


@dataclass(frozen=True)
class Side:
    """One line of one program; `number` 0 where the other program alone has a line."""

    number: int = 0
    text: str = ""


@dataclass(frozen=True)
class Pair:
    """A line of each program that stand beside each other.

    Attributes:
        change: `same`, `changed`, `removed` (the old program alone has it) or `added`.
        skipped: equal lines that are left out here; such a pair has no lines of its own.
    """

    old: Side
    new: Side
    change: str = "same"
    skipped: int = 0


def pairs(old: Sequence[str], new: Sequence[str]) -> Iterator[Pair]:
    """The lines of two programs, aligned."""
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    blocks = matcher.get_opcodes()
    for at, (tag, i, i_end, j, j_end) in enumerate(blocks):
        if tag == "equal":
            head = 0 if at == 0 else CONTEXT
            tail = 0 if at == len(blocks) - 1 else CONTEXT
            size = i_end - i
            hidden = range(head, size - tail) if size > head + tail + 1 else range(0)
            for k in range(size):
                if k not in hidden:
                    yield Pair(Side(i + k + 1, old[i + k]), Side(j + k + 1, new[j + k]))
                elif k == hidden[0]:
                    yield Pair(Side(), Side(), skipped=len(hidden))
            continue
        for k in range(max(i_end - i, j_end - j)):
            left = Side(i + k + 1, old[i + k]) if i + k < i_end else Side()
            right = Side(j + k + 1, new[j + k]) if j + k < j_end else Side()
            change = "changed" if left.number and right.number else "removed" if left.number else "added"
            yield Pair(left, right, change)


def side_by_side(old: str, new: str, names: tuple[str, str]) -> str:
    """Two programs as one table. A changed line has a sign and a word, not only a colour.

    Args:
        old, new: the text of the programs.
        names: their titles.
    """
    lines = list(pairs(old.splitlines(), new.splitlines()))
    if all(pair.change == "same" for pair in lines):
        return f"<p>{escape(names[0])} and {escape(names[1])} are the same.</p>"
    rows = "".join(map(_row, lines))
    heads = "".join(f'<th scope="col" colspan="2">{escape(printable(name))}</th>' for name in names)
    return (
        '<div class="sr-wide-box" tabindex="0" role="region" aria-label="What changes">'
        f'<table class="sr-diff">{_COLUMNS}<thead><tr>{heads}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
    )


def _row(pair: Pair) -> str:
    if pair.skipped:
        lines = "1 equal line" if pair.skipped == 1 else f"{pair.skipped} equal lines"
        return f'<tr class="sr-skipped"><td colspan="4">{lines}</td></tr>'
    marks = {"changed": ("-", "+"), "removed": ("-", ""), "added": ("", "+")}.get(pair.change, ("", ""))
    pieces = _pieces(pair.old.text, pair.new.text) if pair.change == "changed" else None
    left = _cell(pair.old, marks[0], pieces[0] if pieces else None)
    right = _cell(pair.new, marks[1], pieces[1] if pieces else None)
    return f"<tr>{left}{right}</tr>"


def _cell(side: Side, sign: str, marked: str | None) -> str:
    look = {"-": "sr-removed", "+": "sr-added"}.get(sign, "")
    tag = {"-": "del", "+": "ins"}.get(sign, "span")
    body = escape(printable(side.text)) if marked is None else marked
    shown = f'<{tag}><span aria-hidden="true">{sign or " "} </span>{body}</{tag}>' if side.number else ""
    return f'<td class="sr-number">{side.number or ""}</td><td class="{look}"><code>{shown}</code></td>'


def _pieces(old: str, new: str) -> tuple[str, str]:
    """Both lines with the words that differ marked, unless little is the same."""
    words = [re.findall(r"\w+|\s+|.", printable(line)) for line in (old, new)]
    matcher = difflib.SequenceMatcher(None, words[0], words[1], autojunk=False)
    if matcher.ratio() < 0.5:
        return escape(printable(old)), escape(printable(new))
    left = right = ""
    for tag, i, i_end, j, j_end in matcher.get_opcodes():
        before, after = escape("".join(words[0][i:i_end])), escape("".join(words[1][j:j_end]))
        equal = tag == "equal"
        left += before if equal or not before else f"<b>{before}</b>"
        right += after if equal or not after else f"<b>{after}</b>"
    return left, right
