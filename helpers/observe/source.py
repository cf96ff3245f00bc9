"""Reads the sources of a program: what a call stands in, and what its arguments are."""

from __future__ import annotations

import ast
import functools
import os
from collections.abc import Iterator, Mapping
from typing import Any


def tree(file: str) -> ast.AST:
    """The parsed source of `file` as it is now, empty where it cannot be read."""
    try:
        return _tree(file, os.stat(file).st_mtime_ns)
    except OSError:
        return ast.Module(body=[], type_ignores=[])


def at(site: Mapping[str, Any]) -> Iterator[ast.expr | ast.With]:
    """The expressions and `with` statements at the place of a `site` (see `helpers.beacon.calls`)."""
    position = tuple(site["position"])
    for node in ast.walk(tree(str(site["file"]))):
        if isinstance(node, ast.expr | ast.With):
            place = (node.lineno, node.end_lineno, node.col_offset, node.end_col_offset)
            if place == position:
                yield node


def text(node: ast.expr | None, values: Mapping[str, str]) -> str | None:
    """What an expression stands for, when it is a text or a path made of known values, else None.

    Args:
        values: name (`path`, `self.path`) -> value, of the variables that can be seen.
    """
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.Name | ast.Attribute):
        return values.get(ast.unparse(node))
    if isinstance(node, ast.List) and node.elts:
        return text(node.elts[0], values)
    if isinstance(node, ast.FormattedValue):
        return text(node.value, values)
    if isinstance(node, ast.JoinedStr):
        return _joined("", [text(part, values) for part in node.values])
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div | ast.Add):
        between = "/" if isinstance(node.op, ast.Div) else ""
        return _joined(between, [text(node.left, values), text(node.right, values)])
    if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in ("Path", "str", "join"):
        return _joined("/", [text(argument, values) for argument in node.args])
    return None


def _joined(between: str, parts: list[str | None]) -> str | None:
    known = [part for part in parts if part is not None]
    return between.join(known) if len(known) == len(parts) else None


@functools.lru_cache(maxsize=64)
def _tree(file: str, _changed: int) -> ast.AST:
    """The parsed source of `file`, read anew when it has changed: programs are edited between runs."""
    try:
        with open(file, encoding="utf-8") as source:
            return ast.parse(source.read())
    except (OSError, ValueError, SyntaxError):
        return ast.Module(body=[], type_ignores=[])
