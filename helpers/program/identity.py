"""What a program calls the number of a rank, and what it makes of it. No I/O."""

from __future__ import annotations

import ast
import functools
import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

import msgspec

from .condition import Values, names, value_of
from .syntax import Plain, arguments_of, dotted, functions_of, own_nodes, parsed

OF_LIBRARIES: Mapping[str, Callable[[int], Plain]] = {
    "get_rank()": int,
    "global_rank": int,
    "process_index": int,
    "is_global_zero": lambda rank: rank == 0,
    "is_main_process": lambda rank: rank == 0,
    "is_world_process_zero()": lambda rank: rank == 0,
}
"""What torch, Lightning, accelerate and transformers call a rank's own number: it is known without being
read."""

_NUMBER = re.compile(r"^((my|global|world|dist|ddp)_?)?rank(_id)?$", re.IGNORECASE)
"""Names that programs give to a rank's number. Those of a rank on its node or in a smaller group are
left out, since the number does not tell them."""

_WORDS = re.compile(
    r"(^|_|\[')(rank|local_rank|global_rank|process_index)(\(\)|'\])?$|global_zero|main_process|world_process_zero",
    re.IGNORECASE,
)
"""How torch, Lightning, accelerate and transformers call what only one rank is, or a rank's number."""

_CONVERTS = ("int", "bool", "str", "os.getenv", "os.environ.get")
"""Calls that leave a rank's number what it is."""

_TAKE_OVER = (ast.Name, ast.Attribute, ast.Constant, ast.Compare, ast.BoolOp, ast.UnaryOp, ast.Call)
"""Expressions that say of a rank what their parts say."""

DEPTH = 4
"""Names that are set from one another: `self.main`, from `main`, from `is_main()`, from `rank`."""

_Function = ast.FunctionDef | ast.AsyncFunctionDef


class _Binding(msgspec.Struct, frozen=True):
    """What a source sets a name to.

    Attributes:
        value: None where that cannot be told; loop: True for what a loop sets, again and again.
        scope: the function around it, or the module.
    """

    value: ast.expr | None
    loop: bool
    scope: ast.AST


def of_rank(expression: ast.expr, rank: int, text: str, depth: int = DEPTH) -> Values:
    """The values of those names in an expression that say nothing but which rank it is.

    Args:
        text: the source of which the expression is a part.
        depth: how many names set from one another are followed.
    """
    values = {name: _value(name, expression, rank, text, depth) for name in names(expression)}
    return {name: value[0] for name, value in values.items() if value is not None}


def says_rank(name: str, text: str, depth: int = DEPTH) -> bool:
    """True for a name that says which rank it is, or that a source sets to what says so.

    A number in a smaller group, or on a node, is one as well, though it does not follow from the rank's.
    """
    last = name.rpartition(".")[2]
    if _WORDS.search(last) or not depth:
        return bool(depth)
    bindings = _bindings(text)
    values = [b.value for key in (last, f"{last}()") for b in bindings.get(key, ()) if b.value]
    return any(
        says_rank(inner, text, depth - 1)
        for value in values
        for inner in _operands(value)
        if inner != name
    )


def _operands(value: ast.expr) -> Sequence[str]:
    """The names that an expression takes over, or compares; what is computed of them is new."""
    return names(value) if all(map(_takes_over, ast.walk(value))) else ()


def _takes_over(node: ast.AST) -> bool:
    match node:
        case ast.Call(args=[_, *_], func=func):
            return dotted(func) in _CONVERTS
        case ast.Subscript():
            return names(node)[0].endswith("]")
    return not isinstance(node, ast.expr) or isinstance(node, _TAKE_OVER)


@functools.lru_cache(maxsize=8192)
def _value(name: str, expression: ast.expr, rank: int, text: str, depth: int) -> tuple[Plain] | None:
    """The value of a name on a rank; None where its number does not tell it."""
    last = name.rpartition(".")[2]
    tell = OF_LIBRARIES.get(last) if "." in name or name.endswith("()") else None
    if tell is not None:
        return (tell(rank),)
    if name.endswith("]"):
        return _keyed(name, rank)
    return _value_set(_bindings_of(name, expression, text), last, rank, text, depth)


def _value_set(
    bindings: Sequence[_Binding], name: str, rank: int, text: str, depth: int
) -> tuple[Plain] | None:
    """The value that some bindings of a name give it on a rank."""
    computed = [binding for binding in bindings if not isinstance(binding.value, ast.Constant)]
    if not depth or any(binding.loop for binding in computed):
        return None
    sources = {binding.value for binding in computed}
    values = {value_of(s, of_rank(s, rank, text, depth - 1)) if s else None for s in sources}
    if len(values) == 1 and None not in values:
        return values.pop()
    constants = [binding.value.value for binding in bindings if isinstance(binding.value, ast.Constant)]
    numbered = _NUMBER.match(name) and all(value in (0, -1, None) for value in constants)
    return (rank,) if numbered and values <= {None} else None


def _keyed(name: str, rank: int) -> tuple[Plain] | None:
    """What is under a key: `os.environ['RANK']` is text."""
    holder, _, key = name.removesuffix("']").partition("['")
    if holder == "os.environ":
        return (str(rank),) if key == "RANK" else None
    return (rank,) if _NUMBER.match(key) else None


def _bindings_of(name: str, expression: ast.expr, text: str) -> Sequence[_Binding]:
    """What a source sets a name to: in the function around an expression, if it is set there."""
    bindings = _bindings(text).get(name.rpartition(".")[2], ())
    if "." in name or name.endswith("()"):
        return bindings
    local = [binding for binding in bindings if expression in _nodes_of(binding.scope)]
    return local or [binding for binding in bindings if not binding.loop]


@functools.lru_cache(maxsize=1024)
def _nodes_of(scope: ast.AST) -> frozenset[ast.AST]:
    return frozenset(own_nodes(scope))


@functools.lru_cache(maxsize=256)
def _bindings(text: str) -> Mapping[str, Sequence[_Binding]]:
    """What a source sets variables and attributes of a name to, and what its functions return."""
    bindings = defaultdict[str, list[_Binding]](list)
    tree = parsed(text) or ast.Module(body=[], type_ignores=[])
    functions = functions_of(text)
    for scope in (tree, *functions):
        nodes = [*own_nodes(scope)]
        values, loops = _targets(nodes)
        for node in nodes:
            if isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
                last = (dotted(node) or "").rpartition(".")[2]
                bindings[last].append(_Binding(values.get(node), node in loops, scope))
    for function in functions:
        returned, decorators = _returned(function), map(dotted, function.decorator_list)
        suffix = "()" if {"property", "cached_property"}.isdisjoint(decorators) else ""
        if returned is not None:
            bindings[function.name + suffix].append(_Binding(returned, False, function))
    return bindings


def _targets(nodes: Sequence[ast.AST]) -> tuple[dict[ast.expr, ast.expr], set[ast.AST]]:
    """Targets of assignments with their values, and the targets of loops."""
    values = dict[ast.expr, ast.expr]()
    loops = set[ast.AST]()
    for node in nodes:
        match node:
            case ast.Assign(value=value):
                values |= dict(pair for target in node.targets for pair in _pairs(target, value))
            case ast.AnnAssign() | ast.NamedExpr() if node.value is not None:
                values[node.target] = node.value
            case ast.For() | ast.AsyncFor() | ast.comprehension():
                loops |= {*ast.walk(node.target)}
    return values, loops


def _pairs(target: ast.expr, value: ast.expr) -> list[tuple[ast.expr, ast.expr]]:
    """What an assignment sets, each with its value; `rank, size = get_rank(), 2` sets two."""
    if not isinstance(target, ast.Tuple | ast.List):
        return [(target, value)]
    inner = value.elts if isinstance(value, ast.Tuple | ast.List) else []
    return [*zip(target.elts, inner, strict=False)] if len(inner) == len(target.elts) else []


def _returned(function: _Function) -> ast.expr | None:
    """What a function without arguments returns, if that is all it does."""
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    match body:
        case [ast.Return(value=value)] if arguments_of(function) <= {"self", "cls"}:
            return value
    return None
