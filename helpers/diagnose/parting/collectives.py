"""Which calls of a source are collectives of the default group, whatever is decided inside. No I/O."""

from __future__ import annotations

import ast
import functools

from ...program.syntax import dotted

MODULES = ("dist", "distributed", "torch.distributed", "c10d")
"""What programs call `torch.distributed`."""

OPERATIONS = frozenset(
    (
        *("all_gather", "all_gather_into_tensor", "all_gather_object", "all_reduce", "all_to_all"),
        *("all_to_all_single", "barrier", "broadcast", "broadcast_object_list", "gather"),
        *("gather_object", "reduce", "reduce_scatter", "reduce_scatter_tensor", "scatter"),
        *("scatter_object_list",),
    )
)
"""Functions of `torch.distributed` in which all ranks of a group take part (torch 2.0 to 2.15)."""


@functools.lru_cache(maxsize=65536)
def is_collective(node: ast.AST | None) -> bool:
    """True for a call that is a collective of the default group, by its name."""
    if not isinstance(node, ast.Call):
        return False
    module, _, name = (dotted(node.func) or "").rpartition(".")
    elsewhere = any(word.arg == "group" for word in node.keywords)
    return name in OPERATIONS and module in MODULES and not elsewhere
