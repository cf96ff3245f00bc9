"""What a source stores where a call may change it. No I/O."""

from __future__ import annotations

import ast
import functools

import msgspec

from .condition import subject
from .syntax import dotted, own_nodes, parsed

RESIZES = ("append", "extend", "insert", "pop", "remove", "clear", "add", "discard", "update", "popleft")
"""Methods of containers that make them longer or shorter."""


class Stored(msgspec.Struct, frozen=True):
    """What a source stores: a call may change it.

    Attributes:
        names: declared global or nonlocal.
        at_first: attributes stored in an `__init__`; later: elsewhere.
        resized: what a method makes longer or shorter.
    """

    names: frozenset[str]
    at_first: frozenset[str]
    later: frozenset[str]
    resized: frozenset[str]

    def may_change(self, name: str) -> bool:
        """True for a name that a call may change, or whose length it may."""
        base, *attributes = subject(name).split(".")
        of_self = base == "self" and attributes[:1] and attributes[0] not in self.at_first
        resized = name != subject(name) and subject(name).split(".")[-1] in self.resized
        return base in self.names or not self.later.isdisjoint(attributes) or bool(of_self) or resized

    @staticmethod
    @functools.lru_cache(maxsize=256)
    def of(text: str) -> Stored:
        """That of a source."""
        sets: tuple[set[str], set[str], set[str], set[str]] = (set(), set(), set(), set())
        tree = parsed(text)
        every = [] if tree is None else [*ast.walk(tree)]
        calls = [node.func for node in every if isinstance(node, ast.Call)]
        resizes = [func for func in calls if isinstance(func, ast.Attribute) and func.attr in RESIZES]
        sets[3].update((dotted(func.value) or "").rpartition(".")[2] for func in resizes)
        for function in (node for node in every if isinstance(node, ast.FunctionDef)):
            for node in own_nodes(function):
                if isinstance(node, ast.Global | ast.Nonlocal):
                    sets[0].update(node.names)
                elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store | ast.Del):
                    sets[1 if function.name == "__init__" else 2].add(node.attr)
        return Stored(*map(frozenset, sets))
