"""Where ranks parted, as it is shown: the lines, the marks, the values, and nothing harmful."""

from __future__ import annotations

import re
from html import unescape

import pytest

from helpers.model.frames import Frame
from helpers.model.parting import Branch, Kind, Parting
from helpers.report.parted import parted_html
from helpers.report.parts import way_text

TEXT = "\n".join(
    [
        "def train():",
        "    for step in range(9):",
        "        if rank == 0:",
        "            prepare()",
        "            a = 1",
        "            b = 2",
        "            save()",
        "        barrier()",
        "    done()",
    ]
)


def frame(line: int, text: str = TEXT, file: str = "train.py", function: str = "train") -> Frame:
    return Frame(file, line, function, text=text)


def parting(**changes: object) -> Parting:
    known: dict[str, object] = {
        "kind": "if",
        "where": frame(3),
        "source": "if rank == 0:",
        "branches": (Branch("in its body", (0,), frame(7)), Branch("after it", (1, 2), frame(8))),
        "values": {"rank": {0: "0", 1: "1", 2: "2"}, "step": {0: "4", 1: "4"}},
        "differ": ("rank",),
    }
    return Parting(**{**known, **changes})  # type: ignore[arg-type]


def plain(html: str) -> str:
    return unescape(re.sub(r"<[^>]+>", "", html))


def test_each_way_is_shown_with_the_statement_and_the_line_marked() -> None:
    shown = parted_html(parting())
    first, second = re.findall(r"<pre.*?</pre>", shown, re.DOTALL)
    assert plain(first).splitlines() == [
        "   2   for step in range(9):",
        "   3 ◆     if rank == 0:",
        "   4           prepare()",
        "   ⋮",
        "   6           b = 2",
        "   7 ▶         save()",
        "   8       barrier()",
    ]
    assert "8 ▶" in plain(second) and "3 ◆" in plain(second)
    assert "True on rank 0" in shown and "False on ranks 1 and 2" in shown


def test_the_values_are_a_table_and_say_which_differ() -> None:
    rows = [plain(row) for row in re.findall(r"<tr>.*?</tr>", parted_html(parting()), re.DOTALL)]
    assert [row.split() for row in rows] == [
        ["namerank", "0rank", "1rank", "2"],
        ["rank", "differs012"],
        ["step44"],
    ]


def test_a_rank_that_has_left_the_function_is_shown_where_it_is() -> None:
    other = frame(1, "barrier()", "other.py", "<module>")
    ways = (Branch("in its body", (0,), frame(7)), Branch("after it", (1,), other))
    second = re.findall(r"<pre.*?</pre>", parted_html(parting(branches=ways)), re.DOTALL)[1]
    assert plain(second).split() == ["1", "▶", "barrier()"] and "other.py" in second


def test_nothing_is_shown_where_no_statement_is_known() -> None:
    assert parted_html(None) == parted_html(Parting()) == ""


def test_whatever_the_source_holds_is_escaped_and_its_secrets_are_hidden() -> None:
    evil = 'if x == "</pre><script>alert(1)</script>":\n    call(api_key="hunter2hunter2", \x1b[31m)\n'
    lines = (Branch("in its body", (0,), frame(2, evil)), Branch("<b>", (1,), None))
    shown = parted_html(
        parting(where=frame(1, evil), source=evil, branches=lines, values={"<i>": {0: "'<u>'"}})
    )
    assert not re.search(r"<(script|b|i|u)>|\x1b|hunter2", shown)


@pytest.mark.parametrize(
    ("kind", "labels", "said"),
    [
        ("if", ("in its body", "after it"), ["true on rank 0", "false on rank 1"]),
        ("if", ("in its else", "after it"), ["false on rank 0", "true on rank 1"]),
        ("if", ("in its elif late", "after it"), ["rank 0 in its elif late", "rank 1 after it"]),
        ("for", ("in its body", "after it"), ["still running on rank 0", "finished on rank 1"]),
    ],
)
def test_how_a_way_is_said(kind: Kind, labels: tuple[str, str], said: list[str]) -> None:
    branches = tuple(Branch(label, (rank,)) for rank, label in enumerate(labels))
    parting = Parting(kind, Frame("train.py", 2, "main"), "if late:", branches)
    assert [way_text(parting, way) for way in branches] == said
