"""The statements around a line of a source that decide whether it runs. No I/O."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator, Sequence

from ..model.frames import Branch

_BODIES = {
    "body": "in its body",
    "orelse": "in its else",
    "finalbody": "in its finally",
}


@functools.lru_cache(maxsize=4096)
def around(text: str, line: int) -> tuple[Branch, ...]:
    """The statements around a line in its function, outermost first; none for what is no Python."""
    try:
        tree: ast.AST = ast.parse(text)
    except (ValueError, SyntaxError):
        return ()
    functions = (
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        and node.lineno <= line <= (node.end_lineno or node.lineno)
    )
    function = max(functions, key=lambda node: node.lineno, default=tree)
    body = getattr(function, "body", [])
    return tuple(_inside(body, line)) if isinstance(body, list) else ()


def _inside(body: Sequence[ast.AST], line: int) -> Iterator[Branch]:
    for node in body:
        if not (isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or node.lineno)):
            continue
        for label, inner in _bodies(node):
            if inner and inner[0].lineno <= line <= (inner[-1].end_lineno or inner[-1].lineno):
                yield Branch(type(node).__name__.lower().removeprefix("async"), node.lineno, label)
                yield from _inside(inner, line)


def _bodies(node: ast.stmt) -> Iterator[tuple[str, list[ast.stmt]]]:
    """The bodies of a compound statement, each with a label."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return
    for field, label in _BODIES.items():
        yield label, getattr(node, field, [])
    for handler in getattr(node, "handlers", []):
        yield "in a handler", handler.body
    for number, case in enumerate(getattr(node, "cases", []), start=1):
        yield f"in case {number}", case.body
