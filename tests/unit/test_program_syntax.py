"""What is around a line of a source."""

from __future__ import annotations

import ast

import pytest

from helpers.program.syntax import dotted, innermost, parsed, scope_at

TEXT = """\
class Trainer:
    def fit(self):
        while self.step < 3:
            while True: self.turn()
        return [
            self.step
        ]
done = 1
"""


def tree() -> ast.Module:
    found = parsed(TEXT)
    assert found is not None
    return found


@pytest.mark.parametrize(("line", "first"), [(2, None), (3, 3), (4, 4), (5, None), (8, None)], ids=str)
def test_the_innermost_loop_around_a_line(line: int, first: int | None) -> None:
    loop = innermost(tree(), line, ast.While)
    assert (loop.lineno if loop is not None else None) == first


@pytest.mark.parametrize(("line", "name"), [(1, None), (2, "fit"), (6, "fit"), (8, None)])
def test_the_function_around_a_line(line: int, name: str | None) -> None:
    assert getattr(scope_at(tree(), line), "name", None) == name


def test_what_is_no_python_has_no_tree() -> None:
    assert parsed("def :") is None


@pytest.mark.parametrize(
    ("text", "name"), [("a", "a"), ("self.step", "self.step"), ("a().b", None), ("a[0]", None)]
)
def test_dotted_names(text: str, name: str | None) -> None:
    assert dotted(ast.parse(text, mode="eval").body) == name
