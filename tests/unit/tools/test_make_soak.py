"""The page of `make soak`, of which each part is written by itself."""

from __future__ import annotations

from pathlib import Path

from make_soak import section
from sections import put
from soak.part import Part

KILLS = section(Part("Kills", ("200 runs",), ()), "At one.")
ROUNDS = section(Part("Rounds", ("100 rounds",), ("It grew.",)), "At two.")


def test_a_part_says_what_is_not_as_promised() -> None:
    assert ROUNDS == "## Rounds\n\nAt two.\n\n100 rounds\n\nNot as promised:\n\n- It grew.\n"
    assert "promised" not in KILLS


def test_a_part_is_added_or_takes_the_place_of_the_one_before(tmp_path: Path) -> None:
    page = tmp_path / "soak.md"
    for one in (KILLS, ROUNDS, ROUNDS):
        put(page, "Long", one)
    text = page.read_text()
    assert text == f"# Long\n\n{KILLS}\n{ROUNDS}"
    put(page, "Long", KILLS.replace("one", "three"))
    assert page.read_text() == text.replace("At one", "At three")
