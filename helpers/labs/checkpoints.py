"""Reads the tensors of a file of `torch.save`, without torch: nothing in the file is run.

Such a file is a zip archive: `data.pkl` says which tensors there are, and each storage is a member.
"""

from __future__ import annotations

import io
import math
import pickle
import zipfile
from array import array
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

TYPES = {"FloatStorage": "f", "DoubleStorage": "d", "LongStorage": "q", "IntStorage": "i"}
"""Type code of `array` by the class of a storage."""


class CheckpointError(Exception):
    """A file is no complete checkpoint; the text says why, as the end of a sentence."""


class Tensor(msgspec.Struct, frozen=True):
    """A tensor of a checkpoint: its shape, its values in the order of memory."""

    shape: tuple[int, ...]
    values: array[Any]


class _Made:
    """What the pickle makes of a class that is not known here: its arguments, never an object of it."""

    def __init__(self, *arguments: Any) -> None:
        self.arguments = arguments

    def __setstate__(self, state: Any) -> None:
        self.arguments = (*self.arguments, state)


class _OrderedDict(dict[Any, Any]):
    """A plain one, whose attributes (a state dict has `_metadata`) are dropped."""

    def __setstate__(self, state: Any) -> None:
        pass


class _Reader(pickle.Unpickler):
    """Reads `data.pkl`; the classes that it names are never imported."""

    def __init__(self, archive: zipfile.ZipFile, root: str) -> None:
        super().__init__(io.BytesIO(archive.read(f"{root}data.pkl")))
        self._archive, self._root = archive, root

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return _tensor
        if (module, name) == ("collections", "OrderedDict"):
            return _OrderedDict
        return TYPES[name] if module == "torch" and name in TYPES else type(name, (_Made,), {})

    def persistent_load(self, pid: Any) -> array[Any]:
        _, code, key, _, _ = pid
        if not isinstance(code, str):
            raise CheckpointError("holds tensors of a type that is not read here")
        values = array(code)
        values.frombytes(self._archive.read(f"{self._root}data/{key}"))
        return values


def _tensor(
    values: array[Any], offset: int, shape: tuple[int, ...], _stride: tuple[int, ...], *_: Any
) -> Tensor:
    part = values[offset : offset + math.prod(shape)]
    if len(part) != math.prod(shape):
        raise CheckpointError("is cut off")
    return Tensor(tuple(shape), part)


def tensors(path: Path) -> dict[str, Tensor]:
    """All tensors of a checkpoint, by their names: `model.head.weight`.

    Raises:
        CheckpointError: it is missing, cut off, or no file of `torch.save`.
    """
    if not path.exists():
        raise CheckpointError("does not exist")
    try:
        with zipfile.ZipFile(path) as archive:
            root = next((n for n in archive.namelist() if n.endswith("data.pkl")), "")
            if not root:
                raise CheckpointError("is no file of `torch.save`")
            saved = _Reader(archive, root.removesuffix("data.pkl")).load()
    except (OSError, zipfile.BadZipFile):
        raise CheckpointError("cannot be opened as a checkpoint") from None
    except (pickle.UnpicklingError, LookupError, TypeError, ValueError, EOFError, AttributeError):
        raise CheckpointError("holds no state that can be read") from None
    return dict(_named_tensors(saved, ""))


def _named_tensors(saved: Any, name: str) -> Iterator[tuple[str, Tensor]]:
    if isinstance(saved, Tensor):
        yield name, saved
    elif isinstance(saved, Mapping):
        for key, value in saved.items():
            yield from _named_tensors(value, f"{name}.{key}" if name else str(key))
