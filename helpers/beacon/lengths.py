"""How many items containers, datasets and loaders have, without running anything of the job's."""

from __future__ import annotations

import contextlib
import dis
import functools
from collections import deque
from types import CodeType, FrameType, FunctionType
from typing import Any, Callable, Dict, FrozenSet, Iterator, List, Mapping, Optional, Tuple

from . import attributes, torch_names

CONTAINERS = frozenset((list, tuple, dict, set, frozenset, range, deque))

MOST_FILES = 256
"""Files of which is kept what their functions go through."""

MOST_CLASSES = 1024
"""Classes of which is kept whether they measure their objects."""

_PLAIN = frozenset(
    (
        *("CACHE", "EXTENDED_ARG", "RESUME", "NOP", "PUSH_NULL", "PRECALL", "CALL", "CALL_FUNCTION"),
        *("LOAD_FAST", "LOAD_FAST_BORROW", "LOAD_ATTR", "LOAD_GLOBAL", "LOAD_CONST", "LOAD_SMALL_INT"),
        *("RETURN_VALUE", "RETURN_CONST"),
    )
)
"""Of what `return len(self.items)`, `return self.settings.size` and `return 64` consist (Python 3.8 to
3.14)."""


_LOADS = frozenset(
    ("LOAD_FAST", "LOAD_FAST_BORROW", "LOAD_FAST_CHECK", "LOAD_NAME", "LOAD_GLOBAL", "LOAD_DEREF")
)
_BETWEEN = frozenset(("CACHE", "EXTENDED_ARG", "PUSH_NULL", "PRECALL", "CALL", "CALL_FUNCTION"))
"""What stands between a name and the loop over it, `enumerate` called too."""


Measure = Callable[[Dict[str, Any]], Optional[int]]
"""What an object holds -> a length."""

_looped: Dict[str, FrozenSet[str]] = {}


def length(value: Any) -> Optional[int]:
    """The number of items that a loop over a value goes through; None where that cannot be read.

    What goes through its items by code of the job's own may end at any of them, whatever its `__len__`
    says; what torch goes through for a loader ends where the sampler or the dataset says.
    """
    return _measured(value, _iteration_of)


def _measured(value: Any, measure_of: Callable[[type], Optional[Measure]]) -> Optional[int]:
    if type(value) in CONTAINERS:
        return len(value)
    if torch_names.is_tensor(value):
        return torch_names.rows(value)
    measure = measure_of(type(value))
    return None if measure is None else measure(attributes.instance_dict(value))


@functools.lru_cache(maxsize=MOST_CLASSES)
def _iteration_of(kind: type) -> Optional[Measure]:
    """What tells how many items an object of a class gives; None where nothing does."""
    method = attributes.definition(kind, "__iter__")
    return None if method is None else _ITERATED.get(attributes.full_name(method[0]))


def _size(value: Any) -> Optional[int]:
    """What `len` says of a dataset, or of what one holds; None where only its code could say it."""
    return _measured(value, _size_of)


@functools.lru_cache(maxsize=MOST_CLASSES)
def _size_of(kind: type) -> Optional[Measure]:
    """What tells what `len` says of an object of a class; None where nothing does."""
    method = attributes.definition(kind, "__len__")
    if method is None or type(method[1]) is not FunctionType:
        return None
    return _SIZED.get(attributes.full_name(method[0])) or _returned(method[1].__code__)


def looped(frame: FrameType, cached: bool = False) -> FrozenSet[str]:
    """The names (`batches`, `self.loader`) that functions of a frame's file go through in loops.

    A loop over `enumerate` of one counts, too. In another function the same name may be that of the
    object which is handed over.

    Args:
        cached: True to tell only what has been told before, which takes no time.
    """
    file = frame.f_code.co_filename
    if cached or file in _looped:
        return _looped.get(file, frozenset())
    if len(_looped) >= MOST_FILES:
        _looped.clear()
    codes = {frame.f_code, *_functions(frame.f_globals, file)}
    _looped[file] = names = frozenset().union(*map(_names_in_loops, codes))
    return names


def _functions(namespace: Mapping[str, Any], file: str, deepest: int = 2) -> Iterator[CodeType]:
    """The code of the functions and methods of a file."""
    for value in list(namespace.values()):
        if type(value) is FunctionType and value.__code__.co_filename == file:
            yield from _with_inner(value.__code__)
        elif isinstance(value, type) and deepest:
            yield from _functions(attributes.namespace(value), file, deepest - 1)


def _with_inner(code: CodeType) -> Iterator[CodeType]:
    yield code
    for inner in code.co_consts:
        if type(inner) is CodeType:
            yield from _with_inner(inner)


def lengths(frame: FrameType, visible: Dict[str, Any], cached: bool = False) -> List[Tuple[str, int]]:
    """`len(self.loader)` and its value, of what a frame holds.

    That is what functions of the file go through, and each object whose class measures it: it may be
    handed over to a loop by another name.

    Args:
        visible: the variables of the frame; cached: as `looped` has it.
    """
    kinds: Dict[str, type] = {name: type(value) for name, value in visible.items()}
    measured = (name for name, kind in kinds.items() if _iteration_of(kind) is not None)
    sizes = []
    for name in {*looped(frame, cached), *measured}:
        base, *fields = name.split(".")
        value = visible.get(base)
        for field in fields:
            value = attributes.instance_dict(value).get(field)
        with contextlib.suppress(RecursionError):  # what holds itself
            size = length(value)
            if size is not None:
                sizes.append((f"len({name})", size))
    return sizes


def _names_in_loops(code: CodeType) -> FrozenSet[str]:
    names: List[str] = []
    name = ""
    for step in dis.get_instructions(code):
        if step.opname in _LOADS:
            name = str(step.argval)
        elif step.opname == "LOAD_ATTR" and name:
            name += f".{step.argval}"
        elif step.opname == "GET_ITER" and name:
            names.append(name)
        elif step.opname not in _BETWEEN:
            name = ""
    return frozenset(names)


def _of_loader(fields: Dict[str, Any]) -> Optional[int]:
    by = "batch_sampler" if fields.get("batch_sampler") is not None else "sampler"
    has_numbers = fields.get("_dataset_kind") == 0
    return length(fields.get(by)) if has_numbers else None


def _of_batches(fields: Dict[str, Any]) -> Optional[int]:
    items, size = length(fields.get("sampler")), fields.get("batch_size")
    if items is None or type(size) is not int or size < 1:
        return None
    return items // size if fields.get("drop_last") is True else -(-items // size)


def _of_random(fields: Dict[str, Any]) -> Optional[int]:
    number = fields.get("_num_samples")
    return number if type(number) is int else _size(fields.get("data_source"))


def _of_tensors(fields: Dict[str, Any]) -> Optional[int]:
    tensors = fields.get("tensors")
    return _size(tensors[0]) if type(tensors) is tuple and tensors else None


def _of_parts(fields: Dict[str, Any]) -> Optional[int]:
    sizes = fields.get("cumulative_sizes")
    return _number(sizes[-1]) if type(sizes) is list and sizes else None


_SAMPLER = "torch.utils.data.sampler."
_ITERATED: Dict[str, Measure] = {
    "torch.utils.data.dataloader.DataLoader": _of_loader,
    _SAMPLER + "BatchSampler": _of_batches,
    _SAMPLER + "RandomSampler": _of_random,
    _SAMPLER + "SequentialSampler": lambda fields: _size(fields.get("data_source")),
    _SAMPLER + "SubsetRandomSampler": lambda fields: _size(fields.get("indices")),
    _SAMPLER + "WeightedRandomSampler": lambda fields: _number(fields.get("num_samples")),
    "torch.utils.data.distributed.DistributedSampler": lambda fields: _number(fields.get("num_samples")),
}
_SIZED: Dict[str, Measure] = {
    "torch.utils.data.dataset.TensorDataset": _of_tensors,
    "torch.utils.data.dataset.ConcatDataset": _of_parts,
}
"""Classes by the `__iter__` and the `__len__` of which is known what they do (torch 2.0 to 2.13)."""


def _returned(code: CodeType) -> Optional[Measure]:
    """What a `__len__` returns that does nothing else; None for one that does."""
    if not _PLAIN.issuperset(step.opname for step in dis.get_instructions(code)):
        return None
    asks_length = code.co_names[:1] == ("len",)
    names = code.co_names[asks_length:]
    constants = [constant for constant in code.co_consts if type(constant) is int]
    if not names:
        return (lambda _: constants[0]) if len(constants) == 1 and not asks_length else None

    def measure(fields: Dict[str, Any]) -> Optional[int]:
        value: Any = None
        for name in names:
            if name not in fields:
                return None
            value = fields[name]
            fields = attributes.instance_dict(value)
        return _size(value) if asks_length else _number(value)

    return measure


def _number(value: Any) -> Optional[int]:
    return value if type(value) is int else None
