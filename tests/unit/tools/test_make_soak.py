"""The page of `make soak`, of which each part is written by itself."""

from __future__ import annotations

from make_soak import section, with_section
from soak.part import Part

KILLS = section(Part("Kills", ("200 runs",), ()), "At one.")
ROUNDS = section(Part("Rounds", ("100 rounds",), ("It grew.",)), "At two.")


def test_a_part_says_what_is_not_as_promised() -> None:
    assert ROUNDS == "## Rounds\n\nAt two.\n\n100 rounds\n\nNot as promised:\n\n- It grew.\n"
    assert "promised" not in KILLS


def test_a_part_is_added_or_takes_the_place_of_the_one_before() -> None:
    page = with_section(with_section("", KILLS), ROUNDS)
    assert page == f"# What holds over a long time\n\n{KILLS}\n{ROUNDS}"
    again = KILLS.replace("one", "three")
    assert with_section(page, again) == page.replace("At one", "At three")
    assert with_section(page, ROUNDS) == page
