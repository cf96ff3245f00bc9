"""The live table of a run, on a terminal that is written to a string."""

from __future__ import annotations

from io import StringIO

import pytest
from histories import lock, rank, snapshot
from rich.console import Console

from helpers.cli.terminal import Terminal
from helpers.model.facts import Verdict
from helpers.session import Sample

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


def test_terminal_codes_of_the_job_do_not_reach_the_live_table() -> None:
    view = rank(0, lock("a\x1b]0;title\x07b.lock", "no process"))

    assert "title" not in shown(Sample(snapshot(view), Verdict("running", "none", summary="\x1b[2Jx")))


def test_a_terminal_that_can_draw_nothing_gets_plain_lines(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TERM", "dumb")
    sample = Sample(snapshot(rank(0)), Verdict("running", "none", summary="Rank 0 waits for rank 1."))
    assert shown(sample) == ""
    assert "Rank 0 waits for rank 1." in capsys.readouterr().err
