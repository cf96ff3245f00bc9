"""What a condition says with the values that are known: true, false, or nothing. No I/O."""

from __future__ import annotations

import ast
import functools
import operator
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

from .syntax import Plain, dotted

Values = Mapping[str, Plain]
"""Name (`step`, `self.resume`) -> value on one rank, of what can be read and has not changed."""


_ENVIRONMENT = ast.parse("os.environ", mode="eval").body


class UnknownError(Exception):
    """A value that is not known."""


_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Mod: operator.mod,
    ast.FloorDiv: operator.floordiv,
    ast.Div: operator.truediv,
}

_COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.In: lambda part, whole: part in whole,
    ast.NotIn: lambda part, whole: part not in whole,
}


def truth(test: ast.expr, values: Values) -> bool | None:
    """Whether a condition holds; None where that depends on what is not known."""
    try:
        return bool(_value(test, values))
    except (UnknownError, TypeError, ValueError, ArithmeticError):
        return None


def value_of(expression: ast.expr, values: Values) -> tuple[Plain] | None:
    """The value of an expression; None where that depends on what is not known."""
    try:
        value = _value(expression, values)
    except (UnknownError, TypeError, ValueError, ArithmeticError):
        return None
    return (value,) if value is None or isinstance(value, int | float | bool | str) else None


@functools.lru_cache(maxsize=8192)
def names(test: ast.expr) -> tuple[str, ...]:
    """What a condition asks: variables, their lengths, calls without arguments, each once: `rank`."""
    return tuple(dict.fromkeys(_names(test)))


def made_of(test: ast.expr, known_names: Collection[str]) -> bool:
    """True for a condition that depends on nothing but some variables."""
    calls = any(isinstance(node, ast.Call | ast.Await | ast.Subscript) for node in ast.walk(test))
    return not calls and set(names(test)) <= set(known_names)


def subject(name: str) -> str:
    """The variable of which a name says something: `loader` of `len(loader)`."""
    return name.removeprefix("len(").removesuffix(")") if name.startswith("len(") else name


def _name_of(node: ast.AST) -> str | None:
    """`fabric.global_rank`, `dist.get_rank()`, `len(batches)`: a name, and what a call says of one."""
    if isinstance(node, ast.Subscript):
        return _keyed(node.value, node.slice)
    if isinstance(node, ast.Call):
        if dotted(node.func) in ("os.getenv", "os.environ.get") and node.args:
            return _keyed(_ENVIRONMENT, node.args[0])
        if dotted(node.func) == "len" and len(node.args) == 1 and dotted(node.args[0]):
            return f"len({dotted(node.args[0])})"
        name = None if node.args or node.keywords else dotted(node.func)
        return None if name is None else f"{name}()"
    return dotted(node) if isinstance(node, ast.expr) else None


def _keyed(holder: ast.expr, key: ast.expr) -> str | None:
    """`os.environ['RANK']`: of what has a key, only a rank's number is a name."""
    base = dotted(holder)
    text = key.value if isinstance(key, ast.Constant) else None
    return f"{base}['{text}']" if base and isinstance(text, str) and "rank" in text.lower() else None


def _names(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Call | ast.Subscript) and _name_of(node) is not None:
        yield str(_name_of(node))
        return
    if isinstance(node, ast.Call):
        for argument in (*node.args, *(keyword.value for keyword in node.keywords)):
            yield from _names(argument)
        if isinstance(node.func, ast.Attribute):
            yield from _names(node.func.value) if not dotted(node.func) else ()
        return
    name = dotted(node) if isinstance(node, ast.expr) else None
    if name is not None:
        yield name
        return
    if isinstance(node, ast.Lambda | ast.GeneratorExp | ast.ListComp | ast.SetComp | ast.DictComp):
        return
    for child in ast.iter_child_nodes(node):
        yield from _names(child)


def _value(node: ast.expr, values: Values) -> Any:
    match node:
        case ast.Constant(value=int() | float() | str() | None):
            return node.value
        case ast.Call(func=ast.Name(id="int" | "bool" as name), args=[inner], keywords=[]):
            return (int if name == "int" else bool)(_value(inner, values))
        case ast.Name() | ast.Attribute() | ast.Call() | ast.Subscript():
            key = _name_of(node)
            if key is None or key not in values:
                raise UnknownError
            return values[key]
        case ast.Tuple() | ast.List() | ast.Set():
            return tuple(_value(element, values) for element in node.elts)
        case ast.UnaryOp(op=ast.Not()):
            return not _value(node.operand, values)
        case ast.UnaryOp(op=ast.USub()):
            return -_value(node.operand, values)
        case ast.BoolOp():
            return _any_or_all(node, values)
        case ast.BinOp() if type(node.op) in _BINARY:
            lhs, rhs = _value(node.left, values), _value(node.right, values)
            if isinstance(lhs, str) or isinstance(rhs, str):
                raise UnknownError  # no text of any length is made here
            return _BINARY[type(node.op)](lhs, rhs)
        case ast.Compare():
            return _comparison(node, values)
    raise UnknownError


def _comparison(node: ast.Compare, values: Values) -> bool:
    lhs = _value(node.left, values)
    for kind, operand in zip(node.ops, node.comparators, strict=True):
        rhs = _value(operand, values)
        if not _COMPARISONS[type(kind)](lhs, rhs):
            return False
        lhs = rhs
    return True


def _any_or_all(node: ast.BoolOp, values: Values) -> bool:
    """One part may decide although another is not known."""
    decides = isinstance(node.op, ast.Or)
    parts = [truth(part, values) for part in node.values]
    if decides in parts:
        return decides
    if None in parts:
        raise UnknownError
    return not decides
