"""The live table of a run, on a terminal that is written to a string."""

from __future__ import annotations

import re
from dataclasses import replace
from io import StringIO

import pytest
from histories import absent, in_collective, lock, on_nodes, rank, sleeping, snapshot, store, working
from rich.console import Console

from helpers.cli.terminal import Terminal
from helpers.model.facts import RankView, Snapshot, Verdict
from helpers.session import Output, Sample

GLOO = "RuntimeError: [/gloo/transport/tcp/pair.cc:553] Connection closed by peer [127.0.0.1]:21507"
"""Shortened from what gloo writes; rich takes square brackets in a string for markup of its own."""


@pytest.fixture(autouse=True)
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")


def shown(sample: Sample) -> str:
    """What a terminal of 200 columns shows of one sample."""
    console = Console(file=StringIO(), force_terminal=True, width=200, legacy_windows=False)
    with Terminal(console) as terminal:
        terminal.show(sample)
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


def test_square_brackets_of_the_job_are_text_in_the_live_table() -> None:
    view = rank(0, lock("[/data]/a[0].lock", "no process"), at="[/bold]train.py:3 f")
    verdict = Verdict("error", "error", summary=f"Rank 0 raised {GLOO}.")

    found = shown(Sample(snapshot(view), verdict))

    assert GLOO in " ".join(found.split())
    assert "[/data]/a[0].lock" in found
    assert "[/bold]train.py:3" in found


def rows(newest: Snapshot, culprits: tuple[int, ...] = ()) -> list[list[str]]:
    """The cells of the live table below its head, line by line, as it is drawn first."""
    text = shown(Sample(newest, Verdict("hang", "unknown", culprits=culprits)))
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)
    lines = [line for line in text.partition("└")[0].splitlines() if "│" in line]
    return [[cell.strip() for cell in line.strip().strip("│").split("│")] for line in lines]


def test_many_ranks_that_are_alike_share_a_row_of_the_live_table() -> None:
    views = [
        in_collective(n, "all_reduce", start=7, cpu=float(n % 3), memory=n << 20, ports=[store(n)])
        for n in range(16_384)
    ]
    views[17] = sleeping(17, "prep.py:12 f", ports=(store(4711),))

    (many, odd) = rows(snapshot(*on_nodes(views, 8)))

    assert many == [
        *("16,383 ranks: 0-16, 18-16383", "2,048 nodes", "⏸ waiting", "train.py:10"),
        *("all_reduce #7 of the default group", "0-2", "0-16383", ""),
    ]
    assert odd == ["17", "node 2 (host n2)", "▶ running", "prep.py:12", "asleep", "0", "0", "4711 store"]


@pytest.mark.parametrize(
    ("views", "culprits", "ranks"),
    [
        ([working(n) for n in range(16)], (), [str(n) for n in range(16)]),
        ([working(n) for n in range(17)], (), ["17 ranks: 0-16"]),
        ([working(n) for n in range(17)], (5,), ["16 ranks: 0-4, 6-16", "5"]),
        ([working(n, at=f"a.py:{n + 1} f") for n in range(40)], (), ["40 ranks: 0-39"]),
        (
            [*map(working, range(2)), *(absent(n, "unseen") for n in range(2, 99))],
            (),
            ["0", "1", "97 ranks: 2-98"],
        ),
    ],
)
def test_the_rows_of_the_live_table(
    views: list[RankView], culprits: tuple[int, ...], ranks: list[str]
) -> None:
    assert [row[0] for row in rows(snapshot(*views), culprits)] == ranks


def test_the_live_table_is_in_the_order_of_nodes() -> None:
    views = [replace(working(n), node=n % 2) for n in range(4)]

    assert [row[:2] for row in rows(snapshot(*views))] == [
        *(["0", "node 0"], ["2", "node 0"], ["1", "node 1"], ["3", "node 1"])
    ]


def test_terminal_codes_of_the_job_do_not_reach_the_live_table() -> None:
    view = rank(0, lock("a\x1b]0;title\x07b.lock", "no process"))

    assert "title" not in shown(Sample(snapshot(view), Verdict("running", "none", summary="\x1b[2Jx")))


@pytest.mark.parametrize(
    "code",
    [
        *("\x1b]0;title\x07", "\x1b]8;;http://x\x1b\\", "\x1b]52;c;aGk=\x07", "\x1b[2J", "\x1bc"),
        *("\x9b2J", "\x9d0;title\x9c", "\x90q\x9c", "\a", "\b", "\0", "\u202e", "\x1b[?1049h"),
    ],
)
def test_the_job_cannot_steer_the_terminal(code: str) -> None:
    file = StringIO()
    console = Console(file=file, force_terminal=True, width=100, color_system="standard")
    Terminal(console).show(Output("rank 0", f"\x1b[31mred\x1b[0m {code}<here>"))
    written = file.getvalue()
    assert "\x1b[31mred\x1b[0m" in written and "<here>" in written
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", re.sub(r"\x1b\[[0-9;]*m", "", written))


def test_a_terminal_that_can_draw_nothing_gets_plain_lines(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TERM", "dumb")
    sample = Sample(snapshot(rank(0)), Verdict("running", "none", summary="Rank 0 waits for rank 1."))
    assert shown(sample) == ""
    assert "Rank 0 waits for rank 1." in capsys.readouterr().err
