"""Reads a table of TOML and says what is wrong with it, by file and key."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

_MISSING: Any = object()


class LabError(Exception):
    """A lab cannot be used as asked; the text says why in one sentence."""


class Table:
    """One table of a TOML file. What is read is remembered, so that `done` can name the rest.

    Args:
        raw: the table.
        file: how messages name the file.
        path: the table's own key, with the keys above it; empty for the whole file.
    """

    def __init__(self, raw: Mapping[str, Any], file: str, path: str = "") -> None:
        self._raw, self._file, self._path = raw, file, path
        self._left = set(raw)

    def fault(self, key: str, what: str) -> LabError:
        """The error for one of the table's keys, or for the table itself when `key` is empty."""
        return LabError(f"{self._file}: {self._full(key)}: {what}")

    def done(self) -> None:
        """Raise LabError for the first key that nobody has read."""
        if self._left:
            raise self.fault(min(self._left), "this key is not known")

    def any(self, key: str) -> Any:
        """The value of a key that must be there."""
        return self._take(key, object, "a value")

    def text(self, key: str, default: str = _MISSING) -> str:
        """Text that is not empty, without the blank space around it."""
        value = self._take(key, str, "text", default)
        if value is not default and not value.strip():
            raise self.fault(key, "this is empty")
        return str(value).strip()

    def whole(self, key: str, default: Any = _MISSING) -> Any:
        """A whole number above zero."""
        value = self._take(key, int, "a whole number", default)
        if value is default:
            return default
        if isinstance(value, bool) or value <= 0:
            raise self.fault(key, "this must be a whole number above 0")
        return int(value)

    def one_of(self, key: str, known: Collection[str], default: str = _MISSING) -> str:
        """Text that is one of some words."""
        value = self.text(key, default)
        if value not in known and value is not default:
            raise self.fault(key, f'"{value}" is not one of: {", ".join(known)}')
        return value

    def strings(
        self, key: str, default: tuple[str, ...] = _MISSING, *, empty: bool = False
    ) -> tuple[str, ...]:
        """A list of texts, with at least one in it unless it may be empty."""
        values = self._take(key, list, "a list of texts", default)
        if values is default and isinstance(default, tuple):
            return default
        if not (values or empty) or not all(isinstance(one, str) and one.strip() for one in values):
            raise self.fault(key, "this must be a list of texts, none of them empty")
        return tuple(value.strip() for value in values)

    def text_or_texts(self, key: str, default: tuple[str, ...] = _MISSING) -> tuple[str, ...]:
        """A text or a list of texts."""
        one = isinstance(self._raw.get(key), str)
        return (self.text(key),) if one else self.strings(key, default)

    def wholes(self, key: str) -> tuple[int, ...]:
        """A list of whole numbers from 0, which may be empty."""
        values = self._take(key, list, "a list of whole numbers")
        if not all(type(value) is int and value >= 0 for value in values):
            raise self.fault(key, "this must be a list of whole numbers")
        return tuple(values)

    def strings_table(self, key: str) -> dict[str, str]:
        """A table of texts; an empty one when it is not there."""
        values = self._take(key, dict, "a table of texts", {})
        if not all(isinstance(value, str) for value in values.values()):
            raise self.fault(key, "all values must be text")
        return dict(values)

    def choices(self, key: str) -> dict[str, tuple[str, ...]]:
        """A table of texts or lists of texts; an empty one when it is not there."""
        inner = Table(self._take(key, dict, "a table", {}), self._file, self._full(key))
        return {name: inner.text_or_texts(name) for name in inner._raw}

    def table(self, key: str) -> Table:
        """A table below this one."""
        return Table(self._take(key, dict, "a table"), self._file, self._full(key))

    def tables(self, key: str) -> Iterator[tuple[str, Table]]:
        """The tables below a key, with their names."""
        inner = self.table(key)
        if not inner._raw:
            raise self.fault(key, "this is empty")
        for name in inner._raw:
            yield name, inner.table(name)

    def list_of_tables(self, key: str, default: tuple[()] = _MISSING) -> Iterator[Table]:
        """The tables of a list, with at least one in it; none where the key may be missing."""
        values = self._take(key, list, "a list of tables", default)
        if values is default:
            return
        if not values or not all(isinstance(value, dict) for value in values):
            raise self.fault(key, "this must be a list of tables, at least one")
        for number, value in enumerate(values):
            yield Table(value, self._file, self._full(f"{key}[{number}]"))

    def _take(self, key: str, kind: Any, what: str, default: Any = _MISSING) -> Any:
        self._left.discard(key)
        if key not in self._raw:
            if default is _MISSING:
                raise self.fault(key, f"this is missing; it must be {what}")
            return default
        if not isinstance(self._raw[key], kind):
            raise self.fault(key, f"this must be {what}")
        return self._raw[key]

    def _full(self, key: str) -> str:
        return ".".join(part for part in (self._path, key) if part) or "the file"
