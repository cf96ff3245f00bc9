"""What decides which value an expression has."""

from __future__ import annotations

import ast
from textwrap import dedent

import pytest

from helpers.program.chosen import chosen_by

SOURCE = dedent(
    """
    class Comm:
        def __init__(self, rank):
            self.rank = rank
            self.fixed = new_group([0, 1])
            if rank in MEMBERS:
                self.own = new_group(MEMBERS)
            else:
                self.own = None

        def of_host(self):
            if self.alone:
                return None
            return self.fixed

        def reduce(self, x, wide, group):
            a = self.fixed
            b = self.fixed if wide else None
            match wide:
                case 1:
                    c = self.fixed
                case _:
                    c = None
            for part in x:
                if part:
                    log(part)
            d = b
            use(a, b, c, d, group, self.fixed, self.own, self.of_host(), GROUPS[self.rank])
    """
)


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (0, []),
        (1, [("reduce", 18)]),
        (2, [("reduce", 19), ("reduce", 19)]),
        (3, [("reduce", 18)]),
        (4, []),
        (5, []),
        (6, [("__init__", 6), ("__init__", 6)]),
        (7, [("of_host", 12)]),
        (8, []),
    ],
    ids=[
        "one binding",
        "a conditional expression",
        "a match",
        "by another name",
        "an argument",
        "an attribute",
        "an attribute under a condition",
        "what a function returns",
        "an item",
    ],
)
def test_what_decides_which_value(number: int, expected: list[tuple[str, int]]) -> None:
    tree = ast.parse(SOURCE)
    function = next(one for one in ast.walk(tree) if getattr(one, "name", "") == "reduce")
    (use,) = (one for one in ast.walk(function) if isinstance(one, ast.Call) and len(one.args) == 9)
    found = chosen_by(use.args[number], function, SOURCE)
    assert [(one.function, one.statement.lineno) for one in found] == expected
