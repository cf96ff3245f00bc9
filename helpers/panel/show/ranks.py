"""The table of the ranks, their children below them. Pure; every outside text is escaped."""

from __future__ import annotations

from ...model.facts import ChildView, ProcessView, RankView, Snapshot, State
from ...model.wording import by_number, child_name, megabytes, place_in, rank_name, wait_text, where_of
from ...report.markup import code, table, text
from .style import mark

_COLUMNS = ("Rank", "State", "Where", "Waits in", "CPU", "Memory", "Ports")
_WIDE = ("Where", "Waits in")


def rank_table(snapshot: Snapshot, caption: str = "Ranks", *, reveal: bool = True) -> str:
    """One row a rank, its children indented below it; errors only when they may be revealed."""
    rows = "".join(_rank_rows(view, reveal) for view in by_number(snapshot.ranks))
    empty = f'<tr><td colspan="{len(_COLUMNS)}">No rank has started yet.</td></tr>'
    return table(caption, _COLUMNS, [rows or empty])


def _rank_rows(view: RankView, reveal: bool) -> str:
    own = _row(rank_name(view), view.state, view.process, "sr-rank", reveal)
    return own + "".join(_child_row(child, reveal) for child in view.children)


def _child_row(child: ChildView, reveal: bool) -> str:
    joined = "" if child.joined_as_rank is None else f", joined as rank {child.joined_as_rank}"
    name = f"↳ {child_name(child)}{joined}"
    return _row(name, child.process.state, child.process, "sr-child", reveal)


def _row(name: str, state: State, process: ProcessView | None, kind: str, reveal: bool) -> str:
    cells = [state_mark(state, process)]
    if process is not None:
        alive = process.alive
        cells += [
            code(place_in(where_of(process))),
            "<br>".join(text(wait_text(wait)) for wait in process.waits),
            f"{process.cpu:.0f} %" if alive else "",
            megabytes(process.memory) if alive else "",
            "<br>".join(text(f"{port.port} {port.role}") for port in process.ports),
        ]
    cells += [""] * (len(_COLUMNS) - 1 - len(cells))
    data = "".join(
        f'<td class="sr-wide">{cell}</td>' if column in _WIDE else f"<td>{cell}</td>"
        for column, cell in zip(_COLUMNS[1:], cells, strict=True)
    )
    row = f'<tr class="{kind}"><th scope="row">{text(name)}</th>{data}</tr>'
    if process is None or process.error is None or not reveal:
        return row
    said = f'<td class="sr-wide" colspan="{len(_COLUMNS)}">{text(process.error.text)}</td>'
    return f'{row}<tr class="sr-error">{said}</tr>'


def state_mark(state: State, process: ProcessView | None) -> str:
    """A state as a glyph, a word and a colour beside it."""
    look = mark(state, process)
    return (
        f'<span class="sr-mark sr-{look.tone}">'
        f'<span aria-hidden="true">{look.glyph}</span> {text(look.word)}</span>'
    )
