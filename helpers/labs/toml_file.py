"""Reads a TOML file into a msgspec type; an error is one sentence with file and key."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import msgspec

T = TypeVar("T")

Text = Annotated[str, msgspec.Meta(min_length=1)]
Texts = Annotated[tuple[Text, ...], msgspec.Meta(min_length=1)]

UNKNOWN_WORD = "Invalid enum value"
"""How msgspec 0.22 begins to say that a text is none of a Literal's (`msgspec/_core.c`)."""


class TomlError(Exception):
    """A file cannot be used; the text says why in one sentence."""


def read(path: Path, kind: type[T]) -> T:
    """Read a file.

    Args:
        path: the file; messages name it with its folder.
        kind: what its top table is: a msgspec Struct, or a dict of them.

    Raises:
        TomlError: it cannot be read, is not TOML, or does not fit the type.
    """
    shown = f"{path.parent.name}/{path.name}"
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise TomlError(f"{shown} is not valid TOML: {error}") from error
    except (OSError, UnicodeDecodeError) as error:
        raise TomlError(f"{shown} cannot be read: {error}") from error
    return convert(table, kind, shown)


def convert(table: Mapping[str, Any], kind: type[T], shown: str) -> T:
    """Convert a table; `shown` names its file in messages. Raises TomlError."""
    try:
        return msgspec.convert(table, kind)
    except msgspec.ValidationError as error:
        what, _, path = str(error).partition(" - at `$")
        place, value, wanted = _locate(table, kind, path)
        if what.startswith(UNKNOWN_WORD):
            what = f'"{value}" is not one of: {", ".join(_words(wanted))}'
        raise TomlError(": ".join(part for part in (shown, place, what) if part)) from error


def _locate(value: Any, kind: Any, path: str) -> tuple[str, Any, Any]:
    """The key, the value and the wanted type at a path of msgspec, which says `[...]` for any name."""
    place = ""
    for field, index in re.findall(r"\.(\w+)|\[(\d+|\.\.\.)\]", path):
        if get_origin(kind) is Annotated:
            kind = get_args(kind)[0]
        if field:
            value, kind = value[field], _kind_of(field, kind)
            place += f".{field}"
        elif index == "...":
            kind = get_args(kind)[1]
            name, value = next((n, member) for n, member in value.items() if not _fits(member, kind))
            place += f".{name}"
        else:
            kind = get_args(kind)[0] if get_origin(kind) is tuple else kind
            value, place = value[int(index)], f"{place}[{index}]"
    return place.removeprefix("."), value, kind


def _kind_of(field: str, kind: Any) -> Any:
    """The type of a field; of a union, that in the first type which has the field."""
    for member in get_args(kind) or (kind,):
        hints = get_type_hints(member, include_extras=True)
        if field in hints:
            return hints[field]
    return Any


def _fits(value: Any, kind: Any) -> bool:
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError:
        return False
    return True


def _words(kind: Any) -> tuple[str, ...]:
    """The texts that a type allows."""
    if get_origin(kind) is Literal:
        return get_args(kind)
    return tuple(word for part in get_args(kind) for word in _words(part))


def one_of(key: str, value: str, choices: Mapping[str, object] | tuple[str, ...]) -> None:
    """Raise ValueError unless a key has one of the known values; the text names them."""
    if value not in choices:
        raise ValueError(f'{key}: "{value}" is not one of: {", ".join(choices) or "none"}')
