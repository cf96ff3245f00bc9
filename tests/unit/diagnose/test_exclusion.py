"""A source and a line of rank 0 -> the condition that keeps rank 1 from there, by its number alone."""

from __future__ import annotations

import pytest

from helpers.diagnose.parting.exclusion import exclusion
from helpers.model.frames import Frame

CASES = [
    ("a condition around it", "if rank == 0:\n    HERE", 1),
    ("no condition", "HERE", None),
    ("one that says nothing of the rank", "if due:\n    HERE", None),
    ("the other branch", "if rank != 0:\n    log()\nelse:\n    HERE", 1),
    ("one that both meet", "if rank < 4:\n    HERE", None),
    ("a return before it", "if due:\n    log()\nif rank:\n    return\nHERE", 3),
    (
        "another iteration does not help",
        "for step in steps:\n    if rank > 0:\n        continue\n    HERE",
        2,
    ),
    ("there is another way", "if rank == 0 or due:\n    HERE", None),
    ("of two, the outer", "if rank == 0:\n    if rank == 0:\n        HERE", 1),
    (
        "past an exception",
        "try:\n    step()\n    if rank == 0:\n        HERE\nexcept OSError:\n    pass",
        3,
    ),
    (
        "an exception leads there",
        "try:\n    step()\n    if rank == 0:\n        log()\nexcept OSError:\n    HERE",
        None,
    ),
    (
        "only its own exception does",
        "try:\n    if rank == 0:\n        step()\nexcept OSError:\n    HERE",
        2,
    ),
]


@pytest.mark.parametrize(("body", "line"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_what_keeps_a_rank_away(body: str, line: int | None) -> None:
    text = (
        "def train():\n" + "".join(f"    {one}\n" for one in body.splitlines()) + "rank = get_rank()\n"
    )
    at = next(n for n, one in enumerate(text.splitlines(), start=1) if "HERE" in one)
    found = exclusion((Frame("train.py", at, "train", text=text),), 0, 1)
    assert (found and found.choice.statement.lineno - 1) == line
    assert found is None or found.decided
