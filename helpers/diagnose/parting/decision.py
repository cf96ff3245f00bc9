"""The statement that decided which way ranks went. No I/O."""

from __future__ import annotations

import ast
from collections.abc import Mapping

import msgspec

from ...model.parting import Kind
from ...program.condition import Values
from .contexts import Context

EXITED, RETURNED, WENT_ON = "exited", "returned", "went on"
"""What is said of ranks at a `return` or an exit."""


class Decision(msgspec.Struct, frozen=True):
    """The statement that decided which way ranks went.

    Attributes:
        context: the function that holds it; step: where it is decided there.
        node: the statement, or the expression.
        expressions: what decides the way: conditions, what a loop goes through, what cases match.
        values: rank -> those of the names it asks for, as they were.
        unchanged: rank -> those of these names that are as they were then; a rank that is left out may
            have bound any that a way from there binds.
    """

    kind: Kind
    context: Context
    step: int
    node: ast.stmt | ast.expr
    expressions: tuple[ast.expr, ...]
    values: Mapping[int, Values] = msgspec.field(default_factory=dict)
    unchanged: Mapping[int, frozenset[str]] = msgspec.field(default_factory=dict)
