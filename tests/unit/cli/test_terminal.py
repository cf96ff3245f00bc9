"""The live table of a run, on a terminal that is written to a string."""

from __future__ import annotations

import os
import re
import threading
import time
from io import StringIO

import pytest
from histories import absent, in_collective, lock, on_nodes, rank, sleeping, snapshot, store, working
from msgspec.structs import replace
from rich.console import Console
from waiting import until

from helpers.cli.terminal import PACE, Terminal
from helpers.model.facts import RankView, Snapshot, Verdict
from helpers.model.waits import OnInput
from helpers.session import Sample

GLOO = "RuntimeError: [/gloo/transport/tcp/pair.cc:553] Connection closed by peer [127.0.0.1]:21507"
"""Shortened from what gloo writes; rich takes square brackets in a string for markup of its own."""


@pytest.fixture(autouse=True)
def terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")


def shown(sample: Sample) -> str:
    """What a terminal of 200 columns shows of one sample."""
    console = Console(file=StringIO(), force_terminal=True, width=200, legacy_windows=False)
    file = console.file
    assert isinstance(file, StringIO)
    with Terminal(console) as terminal:
        terminal.show(sample)
        until(file.getvalue)
    return file.getvalue()


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
        *("all_reduce #7", "0-2", "0-16383", ""),
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


def terminal_of(width: int = 100, height: int = 25) -> Console:
    file = StringIO()
    return Console(file=file, force_terminal=True, width=width, height=height, color_system="standard")


def text_of(console: Console) -> str:
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize(
    "code",
    [
        *("\x1b]0;title\x07", "\x1b]8;;http://x\x1b\\", "\x1b]52;c;aGk=\x07", "\x1b[2J", "\x1bc"),
        *("\x9b2J", "\x9d0;title\x9c", "\x90q\x9c", "\a", "\b", "\0", "\u202e", "\x1b[?1049h"),
    ],
)
def test_the_job_cannot_steer_a_terminal_with_a_table(code: str) -> None:
    console = terminal_of()
    with Terminal(console) as terminal:
        terminal.write(1, "rank 0", f"\x1b[31mred\x1b[0m {code}<here>".encode())
    written = text_of(console)
    assert "\x1b[31mred\x1b[0m" in written and "<here>" in written
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", re.sub(r"\x1b\[[0-9;]*m", "", written))


def test_without_a_table_every_byte_of_the_job_arrives() -> None:
    console = terminal_of()
    with Terminal(console, live=False) as terminal:
        terminal.write(1, "rank 0", b" 10%\r\x1b[2J 20%\r")
        terminal.write(1, "rank 0", b" 30%\n")
    assert text_of(console) == "[rank 0]  10%\r\x1b[2J 20%\r 30%\n"


def test_quiet_shows_the_table_and_no_output() -> None:
    console = terminal_of()
    with Terminal(console, output=False) as terminal:
        terminal.write(1, "rank 0", b"printed\n")
        terminal.show(Sample(snapshot(rank(0)), Verdict("running", "none", summary="It runs.")))
        until(lambda: "It runs." in text_of(console))
    assert "printed" not in text_of(console)


TABLE = re.compile(r"\x1b\[(\d+)A\x1b\[J")
"""What takes a table off the terminal."""


def test_the_table_is_drawn_four_times_a_second_at_most_whatever_is_printed() -> None:
    console = terminal_of()
    begun = time.monotonic()
    with Terminal(console) as terminal:
        terminal.show(Sample(snapshot(rank(0)), Verdict("running", "none", summary="It runs.")))
        for number in range(20_000):
            terminal.write(1, "rank 0", b"%d\n" % number)
        until(lambda: text_of(console).count("It runs.") >= 2)
    drawings = (time.monotonic() - begun) / PACE + 1
    assert text_of(console).count("It runs.") <= drawings
    written = TABLE.sub("", text_of(console)).replace("\r", "")
    lines = [line for line in written.splitlines() if line.startswith("[rank 0]")]
    assert lines == [f"[rank 0] {number}" for number in range(20_000)]


def test_nothing_of_the_table_is_left_at_the_end() -> None:
    console = terminal_of()
    with Terminal(console) as terminal:
        terminal.show(Sample(snapshot(rank(0)), Verdict("running", "none", summary="It runs.")))
        until(lambda: "It runs." in text_of(console))
    drawn, erased, rest = re.split(TABLE, text_of(console))[-3:]
    assert drawn.count("\n") >= int(erased) and rest == ""


def test_a_table_is_no_higher_than_the_terminal() -> None:
    console = terminal_of(height=6)
    with Terminal(console) as terminal:
        views = [working(n, at=f"a.py:{n + 1} f") for n in range(12)]
        terminal.show(Sample(snapshot(*views), Verdict("running", "none", summary="It runs.")))
        until(lambda: text_of(console))
    assert {int(lines) for lines in TABLE.findall(text_of(console))} == {5}


def test_a_progress_bar_is_shown_below_the_output_as_it_moves() -> None:
    console = terminal_of()
    with Terminal(console) as terminal:
        terminal.show(Sample(snapshot(rank(0)), Verdict("running", "none")))
        terminal.write(1, "rank 0", b" 10%\r 20%\r")
        until(lambda: "[rank 0]  20%" in text_of(console))
        terminal.write(1, "rank 0", b" 30%\r")
        until(lambda: "[rank 0]  30%" in text_of(console))


def goes_on() -> Sample:
    return Sample(snapshot(rank(0)), Verdict("running", "none", summary="It goes on."))


def test_while_a_person_is_asked_the_terminal_is_theirs() -> None:
    console = terminal_of()
    asks = rank(0, OnInput(op="read", source="/dev/pts/0"))
    with Terminal(console) as terminal:
        terminal.show(Sample(snapshot(rank(0)), Verdict("running", "none", summary="It runs.")))
        until(lambda: "It runs." in text_of(console))
        terminal.write(1, "rank 0", b"name? ")
        terminal.show(Sample(snapshot(asks), Verdict("running", "none", summary="It asks.")))
        until(lambda: text_of(console).endswith("\x1b[J[rank 0] name? "))
        terminal.show(goes_on())
        terminal.write(1, "rank 0", b"hello\n")
        until(lambda: "hello" in text_of(console))
        assert "It goes on." not in text_of(console), "a look may find it between two questions"
        until(lambda: terminal.show(goes_on()) or "It goes on." in text_of(console))
    assert "[rank 0] name? [rank 0] hello\n" in text_of(console)  # the answer was typed between them
    assert "It asks." not in text_of(console)


def test_a_reader_who_does_not_read_holds_up_the_output_and_nothing_else() -> None:
    reading, writing = os.pipe()
    with os.fdopen(writing, "w") as file:
        console = Console(file=file)
        with Terminal(console) as terminal:
            text = b"x" * 99 + b"\n"
            writer = threading.Thread(
                target=lambda: [terminal.write(1, "a", text * 1000) for _ in range(40)]
            )
            writer.start()
            writer.join(0.5)
            assert writer.is_alive()
            for number in range(1000):
                terminal.say(f"{number}")
                terminal.show(Sample(snapshot(rank(0)), Verdict("running", "none", summary=f"{number}")))
            read = 0
            while read < 40 * 100_000:
                read += len(os.read(reading, 1 << 20))
            drained = threading.Thread(
                target=lambda: [None for _ in iter(lambda: os.read(reading, 1 << 20), b"")]
            )
            drained.start()
    drained.join(60)
    os.close(reading)


def test_a_terminal_that_can_draw_nothing_gets_plain_lines(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TERM", "dumb")
    sample = Sample(snapshot(rank(0)), Verdict("running", "none", summary="Rank 0 waits for rank 1."))
    assert shown(sample) == "[  20.0 s] Rank 0 waits for rank 1.\n"
