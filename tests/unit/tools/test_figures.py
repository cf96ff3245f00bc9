"""The figures of the method are what their tools draw, and say what the program does."""

from __future__ import annotations

import re

import make_first_hang
import pairing
from repository import NOTEBOOKS

METHOD = NOTEBOOKS / "method"


def test_the_figures_are_those_of_their_tools() -> None:
    assert (METHOD / "pairing.svg").read_text() == pairing.figure(), "run: tools/pairing.py"
    drawn = (METHOD / make_first_hang.PICTURE).read_text()
    assert drawn == make_first_hang.picture(), "run: tools/make_first_hang.py --picture"


def test_the_pairs_follow_from_the_program() -> None:
    program = (METHOD / "train.py").read_text()
    left_out = rf"get_rank\(\) == {make_first_hang.ODD} and number == {pairing.LEFT_OUT}:"
    assert re.search(left_out, program)
    assert f"range({pairing.ITERATIONS})" in program
    lines = program.splitlines()
    assert (lines[9].strip(), lines[11].strip(), lines[22].strip()) == (
        "return",
        "dist.all_reduce(gradient)",
        "dist.barrier()",
    )
    assert pairing.calls("rank 41")[len(pairing.SHOWN)] == (pairing.ITERATIONS, "barrier")
