"""Names say what a thing is: a grep for a concept of the field finds it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from repository import ROOT

HELPERS = ROOT / "helpers"
FILES = sorted(HELPERS.rglob("*.py"))

NO_NOUN = frozenset(
    (
        *(
            "one",
            "found",
            "told",
            "said",
            "known",
            "here",
            "there",
            "mine",
            "its",
            "asked",
            "these",
            "those",
        ),
        *(
            "other",
            "others",
            "given",
            "made",
            "seen",
            "left",
            "kept",
            "put",
            "got",
            "both",
            "each",
            "all",
        ),
        *(
            "any",
            "some",
            "own",
            "away",
            "aside",
            "apart",
            "past",
            "late",
            "ahead",
            "gone",
            "come",
            "came",
        ),
        *("went", "taken", "called", "named", "meant", "held"),
    )
)
"""Pronouns, participles and adverbs: that a thing is meant, or what happened to it, is all they say."""

WRITTEN = {
    ("beacon/record.py", "made"),
    ("beacon/record.py", "asked"),
    ("beacon/record.py", "left"),
    ("observe/look.py", "apart"),
    ("observe/look.py", "told"),
    ("observe/recording.py", "made"),
    ("model/facts.py", "asked"),
    ("model/findings.py", "late"),
    ("diagnose/statement.py", "both"),
    ("labs/questions.py", "said"),
    ("labs/questions.py", "asked"),
    ("labs/check.py", "here"),
}
"""What stands under such a name in recordings, pages and lessons."""

IN_USE = {
    ("labs/asked.py", "asked"),
    ("observe/called.py", "called"),
    ("report/layout.py", "left"),  # beside `right` and `top`
    ("diagnose/events.py", "own"),
}
"""Others that have stayed."""

MOST = 0.02
"""The share of such names among all that are bound, at most."""


def public(tree: ast.AST) -> Iterator[str]:
    """The names of functions, classes, parameters, and attributes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        if isinstance(node, ast.ClassDef):
            fields = (line.target for line in node.body if isinstance(line, ast.AnnAssign))
            yield from (field.id for field in fields if isinstance(field, ast.Name))
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr


def local(tree: ast.AST) -> Iterator[str]:
    """The names of variables."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


def is_no_noun(name: str) -> bool:
    """True for a word of the list, with or without an underscore before it."""
    return name.lstrip("_") in NO_NOUN


def test_what_others_use_is_called_by_a_word_of_the_field() -> None:
    found = set()
    for file in FILES:
        names = {file.stem, *public(ast.parse(file.read_text(encoding="utf-8")))}
        path = file.relative_to(HELPERS).as_posix()
        found |= {(path, name.lstrip("_")) for name in names if is_no_noun(name)}
    assert found == WRITTEN | IN_USE, "no other one, and none of these without need"


def test_few_variables_are_called_by_none() -> None:
    trees = [ast.parse(file.read_text(encoding="utf-8")) for file in FILES]
    names = [name for tree in trees for name in (*public(tree), *local(tree))]
    assert sum(map(is_no_noun, names)) <= MOST * len(names)


def test_names_of_every_kind_are_looked_at() -> None:
    tree = ast.parse(
        "class Rows:\n    kept: int\n    def f(self, told, *, rank):\n"
        "        seen = 2\n        self._left = 3\n"
    )
    assert {*public(tree)} == {"Rows", "kept", "f", "self", "told", "rank", "_left"}
    assert [*local(tree)] == ["kept", "seen"]
