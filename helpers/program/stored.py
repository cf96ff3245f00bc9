"""What a source stores where a call may change it. No I/O."""

from __future__ import annotations

import ast
import functools
from dataclasses import dataclass

from .syntax import own_nodes, parsed


@dataclass(frozen=True)
class Stored:
    """What a source stores: a call may change it.

    Attributes:
        names: declared global or nonlocal.
        at_first: attributes stored in an `__init__`; later: elsewhere.
    """

    names: frozenset[str]
    at_first: frozenset[str]
    later: frozenset[str]

    @staticmethod
    @functools.lru_cache(maxsize=256)
    def of(text: str) -> Stored:
        """That of a source."""
        found: tuple[set[str], set[str], set[str]] = (set(), set(), set())
        tree = parsed(text)
        every = () if tree is None else ast.walk(tree)
        for function in (node for node in every if isinstance(node, ast.FunctionDef)):
            for node in own_nodes(function):
                if isinstance(node, ast.Global | ast.Nonlocal):
                    found[0].update(node.names)
                elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store | ast.Del):
                    found[1 if function.name == "__init__" else 2].add(node.attr)
        return Stored(*map(frozenset, found))
