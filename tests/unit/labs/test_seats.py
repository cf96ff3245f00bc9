"""A run at many seats: what is printed of it, and what counts as right."""

from __future__ import annotations

import pytest

from helpers.cli.main import main
from helpers.labs import seats
from helpers.labs.seats import Seat

RIGHT = "error address-in-use [0]"


@pytest.mark.parametrize(
    ("taken", "code", "summary"),
    [
        ([Seat(RIGHT, 9.0), Seat(RIGHT, 41.2)], 0, "2 of 2 came to the expected report"),
        ([Seat(RIGHT, 9.0), Seat("hang unknown []", 41.2)], 1, "1 of 2 came to the expected report"),
    ],
)
def test_every_seat_has_a_line_and_all_have_to_be_right(
    taken: list[Seat],
    code: int,
    summary: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    asked = []

    def sat(name: str, number: int) -> tuple[list[Seat], int]:
        asked.append((name, number))
        return taken, 3_210_000_000

    monkeypatch.setattr(seats, "_sat", sat)
    assert main(["check", "--seats", "2"]) == code
    said = capsys.readouterr().out
    assert asked == [("05_spawn_ports", 2)]
    assert f"{summary} ({RIGHT}), after 9 to 41 s; at the least, 3.2 GB of memory were available" in said
    assert [line.split()[2] for line in said.splitlines() if line.startswith("seat ")] == [
        "ok",
        "ok" if code == 0 else "DIFF",
    ]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--seats", "0"], "'0' is not a number of seats"),
        (["--seats", "two"], "'two' is not a number of seats"),
        (["--seats", "1", "--lab", "99"], 'there is no lab "99"'),
    ],
)
def test_wrong_usage_is_one_sentence(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", *words]) == 64
    assert said in capsys.readouterr().err
