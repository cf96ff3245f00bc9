"""The call that a position in the source stands for, on an object that the beacon has named. No I/O."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from ..beacon.record import Site
from ..program.syntax import scope_at
from . import source
from .source import Sources

MADE_BY = {
    "isend": "Work.isend",
    "irecv": "Work.irecv",
    "batch_isend_irecv": "Work",
    "TCPStore": "Store",
    "FileStore": "Store",
    "HashStore": "Store",
    "PrefixStore": "Store",
    "_get_default_store": "Store",
    "Lock": "lock",
    "RLock": "lock",
    "connect": "sqlite",
}
"""What some functions give, as the beacon names it."""


def called_at(site: Site, sources: Sources) -> tuple[str, str, str | None] | None:
    """(class, method, key) of the call on a known object at a source position, or None.

    `with lock:` counts as its `acquire`; its position is the lock, before Python 3.12 the whole block.

    The beacon names the objects it could see; the source says which of them is called and with what.
    Seen from outside, and before Python 3.11, only the line is known, which is enough when it holds one
    such call.
    """
    if len(site["position"]) == 1:
        return _only_call(site, sources)
    for node in sources.at(site):
        contexts = [item.context_expr for item in node.items] if isinstance(node, ast.With) else [node]
        if any(site["names"].get(ast.unparse(expression)) == "lock" for expression in contexts):
            return "lock", "acquire", None
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        kind = site["names"].get(_expression(node.func.value))
        if kind is not None:
            key = _argument(node, site["strings"]) if kind == "Store" else None
            key = _peer(node.func.value, site, sources) if kind.startswith("Work.") else key
            return kind, node.func.attr, key
        if isinstance(node.func.value, ast.Call) and node.func.attr == "wait":
            name, peer = _handle_of(node.func.value, site["strings"])
            return (f"Work.{name}", "wait", peer) if name else None
    return None


def _peer(handle: ast.expr, site: Site, sources: Sources) -> str | None:
    """The rank at the other end of a handle: as the beacon told, or from the call that made it."""
    peer = site.get("peers", {}).get(_expression(handle))
    if peer is not None:
        return str(peer)
    call = _binding(handle, site, sources) if isinstance(handle, ast.Name) else None
    return _handle_of(call, site["strings"])[1] if isinstance(call, ast.Call) else None


def _binding(name: ast.Name, site: Site, sources: Sources) -> ast.expr | None:
    """The expression that a name stands for at a site, when it is bound once in its function."""
    module = sources.tree(site["file"])
    scope = scope_at(module, site["position"][0])
    values = _values(name.id, scope) or _values(name.id, module)
    return values[0] if len(values) == 1 else None


def _values(name: str, scope: ast.AST) -> list[ast.expr | None]:
    """What a name is bound to in a scope, one for each time; of a loop, what it runs over."""
    return [
        getattr(node, "value", None) or getattr(node, "iter", None)
        for node in ast.walk(scope)
        for target in _targets(node)
        if isinstance(target, ast.Name) and target.id == name
    ]


def _targets(node: ast.AST) -> list[ast.expr]:
    """What a statement or an expression binds."""
    if isinstance(node, ast.Assign):
        return node.targets
    if isinstance(node, ast.AnnAssign | ast.AugAssign | ast.NamedExpr | ast.For | ast.comprehension):
        return [node.target]
    return [node.optional_vars] if isinstance(node, ast.withitem) and node.optional_vars else []


def _only_call(site: Site, sources: Sources) -> tuple[str, str, str | None] | None:
    """The call on a known object in a line, when the line holds one such call."""
    calls = []
    for node, method in sources.calls(site):
        kind = site["names"].get(_expression(method.value))
        if kind in (None, "Work"):
            kind = _class_of(method.value, site, sources) or kind
        if kind is not None:
            key = _argument(node, site["strings"]) if kind == "Store" else None
            key = _peer(method.value, site, sources) if kind.startswith("Work.") else key
            calls.append((kind, method.attr, key))
    return calls[0] if len(calls) == 1 else None


def _class_of(node: ast.expr, site: Site, sources: Sources) -> str | None:
    """The class of what a name stands for, by the call that has made it; a module's are not seen."""
    call = _binding(node, site, sources) if isinstance(node, ast.Name) else None
    return MADE_BY.get(ast.unparse(call.func).rpartition(".")[2]) if isinstance(call, ast.Call) else None


def _expression(node: ast.expr) -> str:
    """An expression as the beacon names it; a member of a container has its container's name."""
    if isinstance(node, ast.Subscript):
        return f"{ast.unparse(node.value)}[*]"
    return ast.unparse(node)


def _handle_of(call: ast.Call, strings: Mapping[str, str]) -> tuple[str, str | None]:
    """Operation and peer of a call that gives a handle: `irecv(part, src=1)`; empty for any other."""
    name = ast.unparse(call.func).rpartition(".")[2]
    if name not in ("isend", "irecv"):
        return "", None
    peers = [word.value for word in call.keywords if word.arg in ("src", "dst")] + call.args[1:2]
    return name, source.text(peers[0], strings) if peers else None


def _argument(node: ast.Call, strings: Mapping[str, str]) -> str | None:
    if not node.args:
        return None
    return source.text(node.args[0], strings)
