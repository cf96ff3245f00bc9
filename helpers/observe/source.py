"""The sources of a program: what a call is part of, and what its arguments are. No I/O."""

from __future__ import annotations

import ast
import functools
import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ..beacon.record import FrameEntry, Site
from ..model.frames import Frame, Scalar
from ..program.syntax import holds, parsed
from . import cells
from .look import AnyQuestion, Source

_EMPTY = ast.Module(body=[], type_ignores=[])


class Sources:
    """The sources of a program, as far as the looks at it have brought them in.

    Args:
        cwd: the job's working directory.
        ask: gives the answer to a question, None before there is one.
        started: time at which the process was started; None when it does not matter.
        cells: name of a notebook's cell that the process runs -> its source.

    Attributes:
        edited: files that have been changed since: they no longer show what the process runs.
    """

    def __init__(
        self,
        cwd: str,
        ask: Callable[[AnyQuestion], Any],
        started: float | None = None,
        cells: Mapping[str, str] | None = None,
    ) -> None:
        self.cwd = cwd
        self.edited: set[str] = set()
        self._ask = ask
        self._started = started
        self._cells = cells or {}

    def of(self, started: float, cells: Mapping[str, str]) -> Sources:
        """The same for a process that was started at a time, and runs such cells."""
        sources = Sources(self.cwd, self._ask, started, cells)
        sources.edited = self.edited
        return sources

    def tree(self, file: str) -> ast.AST:
        """The parsed source of a file; empty where it cannot be read, or has not been yet."""
        return parsed(self.text(file)) or _EMPTY

    def text(self, file: str) -> str:
        """The source of a file; empty where it cannot be read, has not been yet, or has been edited."""
        if file in self._cells:
            return self._cells[file]
        answer = self._ask(Source(os.path.join(self.cwd, file)))
        text, modified = (answer, None) if isinstance(answer, str) else answer or ("", None)
        if modified is not None and self._started is not None and modified > self._started:
            self.edited.add(file)
            return ""
        return str(text)

    def calls(self, site: Site) -> Iterator[tuple[ast.Call, ast.Attribute]]:
        """The calls of methods at the position of a site, or in its line where that alone is known."""
        line = site["position"][0] if len(site["position"]) == 1 else None
        for node in self.at(site) if line is None else ast.walk(self.tree(site["file"])):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                continue
            if line is None or holds(node, line):
                yield node, node.func

    def at(self, site: Site) -> Iterator[ast.expr | ast.With]:
        """The expressions and `with` statements at the position of a site."""
        position = tuple(site["position"])
        for node in ast.walk(self.tree(site["file"])):
            if isinstance(node, ast.expr | ast.With):
                place = (node.lineno, node.end_lineno, node.col_offset, node.end_col_offset)
                if place == position:
                    yield node


def text(node: ast.expr | None, values: Mapping[str, str]) -> str | None:
    """The value of an expression that is a text or a path made of known values, else None.

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
        return _join("", [text(part, values) for part in node.values])
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div | ast.Add):
        between = "/" if isinstance(node.op, ast.Div) else ""
        return _join(between, [text(node.left, values), text(node.right, values)])
    if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in ("Path", "str", "join"):
        return _join("/", [text(argument, values) for argument in node.args])
    return None


def _join(between: str, parts: list[str | None]) -> str | None:
    texts = [part for part in parts if part is not None]
    return between.join(texts) if len(texts) == len(parts) else None


def literals(values: Mapping[str, str]) -> dict[str, Scalar]:
    """Values from their `repr`; what is none of a plain value is left out."""
    scalars = ((name, _literal(representation)) for name, representation in values.items())
    return {name: scalar[0] for name, scalar in scalars if scalar is not None}


@functools.lru_cache(maxsize=16384)
def _literal(representation: str) -> tuple[Scalar] | None:
    """A plain value from its `repr`, read once: the calls that are kept are told at each look."""
    if representation in _FLOATS:
        return (float(representation),)
    try:
        value = ast.literal_eval(representation)
    except (ValueError, SyntaxError):
        return None
    return (value,) if type(value) in (int, float, bool, str, type(None)) else None


_FLOATS = ("nan", "inf", "-inf")


@functools.lru_cache(maxsize=4096)
def relative(file: str, cwd: str) -> str:
    """`file` relative to `cwd` where it lies inside it, else as it is; `cwd` is empty when unknown.

    Code of a notebook's cell is in no file: it is named as a cell.
    """
    file = cells.shown(file)
    if file.startswith("<") or not cwd:
        return file
    absolute = os.path.normpath(os.path.join(cwd, file))
    inside = absolute.startswith(cwd.rstrip(os.sep) + os.sep)
    return os.path.relpath(absolute, cwd) if inside else absolute


def frame_of(entry: FrameEntry, cwd: str) -> Frame:
    """A `Frame` from that of a record, relative to the job's folder."""
    file, line, function, user = entry
    return Frame(relative(file, cwd), line, function, user)
