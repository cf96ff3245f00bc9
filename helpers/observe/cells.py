"""Code of a notebook's cells: whose it is, what it was compiled from, and how that is named. No I/O.

ipykernel gives the code of a cell the file name `TMP/ipykernel_PID/HASH.py`, with the hash of the cell
as it stands in the notebook, magics included (`compiler.py`, ipykernel 6.0 to 7.4). IPython without a
kernel takes `<ipython-input-NUMBER-HASH>` (`compilerop.py`, 7 to 9), as kernels did before.
"""

from __future__ import annotations

import ast
import functools
import re
import struct
from collections.abc import Mapping, Sequence
from typing import Any, cast

import msgspec

from ..beacon.record import FrameEntry, Record, Thread
from ..model.frames import cell_name
from ..program.syntax import holds, parsed

SEED = 0xC70F6907
"""ipykernel's, for its hashes."""

MOST_LETTERS, LONGEST = 1 << 20, 1 << 16
"""Letters of a notebook's cells that are hashed, which takes 0.1 s, and of a cell."""

MOST_MAGICS = 64
"""Magics of a cell that are replaced."""

MOST_NUMBERS = 3
"""Numbers that one name of a cell has."""

NumberedSource = tuple[list[int], str]
"""The possible numbers of a cell, none where unknown, and its source."""

_FILE = re.compile(r"ipykernel_\d+/(?P<hash>\d+)\.py$|^<ipython-input-(?P<number>\d+)-\w+>$")
_TIMED = ("<timed exec>", "<timed eval>")
"""What runs under `%time` and `%%time` (`IPython/core/magics/execution.py`, 7 to 9)."""

_INDENT = r"^(?P<before>[ \t]*(?:[\w., ]+=[ \t]*)?)"
_MAGIC = re.compile(_INDENT + r"%(?P<name>\w[\w.]*)[ \t]*(?P<rest>.*)$")
_SHELL = re.compile(_INDENT + r"!(?P<rest>.*)$")
_HELP = re.compile(r"^\s*\?|\?\s*$")
_CELL_MAGIC = "get_ipython().run_cell_magic("


class NotebookCell(msgspec.Struct):
    """A cell of a notebook's file (nbformat 4), as far as it matters."""

    cell_type: str
    source: str | list[str] = ""
    execution_count: int | None = None


class Notebook(msgspec.Struct):
    """A notebook's file."""

    cells: list[NotebookCell]


def hash_of(file: str) -> int | None:
    """The hash that the file name of a cell holds; None for any other, or one that tells its number."""
    match = _FILE.search(file)
    return int(match["hash"]) if match is not None and match["hash"] else None


@functools.lru_cache(maxsize=4096)
def shown(file: str) -> str:
    """How a file is named of which no more is known than its name: `cell [3]`, `cell [?]`, or itself."""
    if file in _TIMED:
        return cell_name([])
    match = _FILE.search(file) if file.startswith("<ipython") or "ipykernel_" in file else None
    return file if match is None else cell_name([int(match["number"])] if match["number"] else [])


def files(record: Record) -> set[str]:
    """The files of cells on the stacks of a record, of which only a notebook can tell more."""
    paths = (file for thread in record["threads"] for file, _, _, _ in thread["frames"])
    return {file for file in paths if "ipykernel_" in file and hash_of(file) is not None}


def murmur2(text: str) -> int:
    """MurmurHash2 of a text as UTF-8, as `ipykernel/compiler.py` has it (6.0 took no UTF-8)."""
    data, mix = text.encode("utf-8", "surrogatepass"), 0x5BD1E995
    whole = len(data) & ~3
    value = SEED ^ len(data)
    for (word,) in struct.iter_unpack("<I", data[:whole]):
        word = word * mix & 0xFFFFFFFF
        word = (word ^ word >> 24) * mix & 0xFFFFFFFF
        value = (value * mix & 0xFFFFFFFF) ^ word
    if rest := data[whole:]:
        value = (value ^ int.from_bytes(rest, "little")) * mix & 0xFFFFFFFF
    value = (value ^ value >> 13) * mix & 0xFFFFFFFF
    return value ^ value >> 15


def index(content: bytes) -> dict[int, NumberedSource]:
    """The cells of a notebook's file as it has them, by the hash of what IPython may compile.

    The number of a cell is the count of its execution, else its place among those with code, unless
    another cell has that number.
    """
    try:
        notebook = msgspec.json.decode(content, type=Notebook)
    except (msgspec.MsgspecError, ValueError):
        return {}
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    counts = {cell.execution_count for cell in code}
    by_hash: dict[int, NumberedSource] = {}
    letters = 0
    for place, cell in enumerate(code, start=1):
        source = cell.source if isinstance(cell.source, str) else "".join(cell.source)
        if len(source) > LONGEST:
            continue
        letters += len(source)
        if letters > MOST_LETTERS:
            break
        number = cell.execution_count or (0 if place in counts else place)
        for part in runs(source):
            earlier = [by_hash[digest]] if (digest := murmur2(part)) in by_hash else []
            by_hash[digest] = merged([*earlier, ([number] if number else [], part)])
    return by_hash


def merged(cells: Sequence[NumberedSource]) -> NumberedSource:
    """Cells with the same source as a single one: nothing tells which of them runs."""
    numbers = sorted({number for candidates, _ in cells for number in candidates})
    certain = all(candidates for candidates, _ in cells) and len(numbers) <= MOST_NUMBERS
    return numbers if certain else [], cells[0][1]


def runs(source: str) -> tuple[str, ...]:
    """What IPython may compile of a cell: all of it, or what a cell magic hands on (`%%capture`)."""
    head, _, body = source.partition("\n")
    return (source, body + "\n" * (not body.endswith("\n"))) if head.startswith("%%") else (source,)


def compiled(source: str) -> str:
    """The source of a cell in Python's own words, with its lines as IPython counts them.

    IPython drops empty lines at the beginning (`leading_empty_lines` of `inputtransformer2.py`) and
    replaces each magic by a call, here in the same words. The line of a cell magic becomes a comment.
    """
    raw = source.rstrip("\n").split("\n")
    first = next((at for at, line in enumerate(raw) if _begins(line)), len(raw))
    heads = [f"# {line}\n" for line in raw[:first] if line.strip()]
    lines = [f"{line}\n" for line in raw[first:]]
    for _ in range(min(len(lines), MOST_MAGICS)):
        bad_line = _bad_line("".join(lines))
        if bad_line is None or (call := _without_magic(lines[bad_line])) == lines[bad_line]:
            break
        lines[bad_line] = call
    return "".join([*heads, *lines])


def _begins(line: str) -> bool:
    """True for a line that is no part of the beginning that IPython takes for itself."""
    return bool(line.strip()) and not line.startswith("%%")


def _bad_line(text: str) -> int | None:
    """Index of the line that is no Python; None where all is."""
    try:
        ast.parse(text)
    except SyntaxError as problem:
        return min(problem.lineno or 1, text.count("\n")) - 1
    except (ValueError, RecursionError, MemoryError):
        pass
    return None


def _without_magic(line: str) -> str:
    """A line in the words of `MagicAssign`, `EscapedCommand` and `HelpEnd` of `inputtransformer2.py`."""
    if match := _MAGIC.match(line):
        return f"{match['before']}get_ipython().run_line_magic({match['name']!r}, {match['rest']!r})\n"
    if match := _SHELL.match(line):
        call = "getoutput" if "=" in match["before"] else "system"
        return f"{match['before']}get_ipython().{call}({match['rest']!r})\n"
    if _HELP.search(line):
        return f"get_ipython().run_line_magic('pinfo', {line.strip(' ?' + chr(10))!r})\n"
    return line


def _source(text: str) -> str:
    """The same of what IPython has compiled: a cell magic is a call with the rest of the cell."""
    tree = parsed(text) if text.startswith(_CELL_MAGIC) else None
    call = tree.body[0].value if tree and isinstance(tree.body[0], ast.Expr) else None
    if not isinstance(call, ast.Call):
        return text.rstrip("\n") + "\n"
    arguments = [str(argument.value) for argument in call.args if isinstance(argument, ast.Constant)]
    if len(arguments) != 3:  # written by hand
        return text
    name, line, body = arguments
    return compiled(f"%%{name} {line}".rstrip() + f"\n{body}")


class Cells:
    """The cells that a process runs, and how its record names them.

    Args:
        sources: file name of the code of each -> its possible numbers, and what was compiled.

    Attributes:
        texts: name of a cell -> its source, where only one has that name.
    """

    def __init__(self, sources: Mapping[str, tuple[Sequence[int], str]]) -> None:
        self.texts: dict[str, str] = {}
        self._places: dict[str, tuple[str, int]] = {}
        # A cell magic may run what follows it as a cell of its own, whose number is the next one's.
        cells = {file: (cell_name(numbers), _source(text)) for file, (numbers, text) in sources.items()}
        magic = [cell for cell in cells.values() if cell[1].startswith("# %%")]
        for file, cell in cells.items():
            text = cell[1]
            name, whole = next(
                (outer for outer in magic if text and outer[1].endswith(f"\n{text}")), cell
            )
            self._places[file] = name, whole.count("\n") - text.count("\n")
            unique = self.texts.setdefault(name, whole) == whole
            self.texts[name] = whole if unique else ""

    def in_record(self, record: Record) -> Record:
        """The record with its cells by their names."""
        if not self._places:
            return record
        threads = [self._thread(thread) for thread in record["threads"]]
        return cast(Record, {**self._renamed(cast(dict[str, Any], record)), "threads": threads})

    def in_text(self, text: str) -> str:
        """What is printed or raised in the process, with its cells by their names."""
        for file, (name, _) in self._places.items():
            text = text.replace(file, name)
        return text

    def _thread(self, thread: Thread) -> Thread:
        frames = self._frames(thread["frames"])
        renames = dict(zip(thread["frames"], frames, strict=True))
        renamed: Thread = {**thread, "frames": frames}
        user = next((entry for entry in thread["frames"] if entry[3]), None)
        if (site := thread["site"]) is not None and user is not None:
            file, line, _, _ = renames[user]
            shift = line - user[1]
            lines, columns = site["position"][:2], site["position"][2:]
            position = [*(number + shift for number in lines), *columns]
            renamed["site"] = {**site, "file": file, "position": position}
        if "locks" in thread:
            places = {old[:2]: new[:2] for old, new in renames.items()}
            locks = [(lock, places.get((lock["file"], lock["line"]))) for lock in thread["locks"]]
            renamed["locks"] = [
                {**lock, "file": place[0], "line": place[1]} if place else lock for lock, place in locks
            ]
        return renamed

    def _frames(self, entries: Sequence[FrameEntry]) -> list[FrameEntry]:
        """A stack, innermost frame first: what runs under `%time` belongs to the cell that called it."""
        frames: list[FrameEntry] = []
        enclosing = cell_name([]), 0
        for file, line, function, user in reversed(entries):
            if file in _TIMED:
                file, first = enclosing if self._is_in(enclosing, function, line) else (cell_name([]), 0)
                line += first
            elif file in self._places:
                file, first = self._places[file]
                line += first
                head = self.texts[file].startswith("# %%")
                enclosing = file, 1 if head and line == 1 else line - 1
            frames.append((file, line, function, user))
        return frames[::-1]

    def _is_in(self, enclosing: tuple[str, int], function: str, line: int) -> bool:
        """True for the code of a cell; a function may come from another one that ran under `%%time`."""
        name, first = enclosing
        tree = parsed(self.texts.get(name, ""))
        return function == "<module>" or any(
            node.name == function and holds(node, line + first)
            for node in ast.walk(tree or ast.Module([], []))
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        )

    def _renamed(self, value: Any) -> Any:
        """All frames and texts in a part of a record."""
        if isinstance(value, dict):
            return {
                key: part if key == "threads" else self._renamed(part) for key, part in value.items()
            }
        if isinstance(value, list) and value and isinstance(value[0], tuple) and len(value[0]) == 4:
            return self._frames(value)
        if isinstance(value, list | tuple):
            return type(value)(map(self._renamed, value))
        return self.in_text(value) if isinstance(value, str) else value
