"""Lines of torch, Lightning, DeepSpeed and Python that the texts name: which of them have moved.

    python tools/references.py

Of each line that the installed version has elsewhere: its old number, the new ones, nearest first, and
the texts to read again. Exit codes: 0 none has moved, 1 some have.
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from platform import python_version

from lessons import NOTEBOOKS, ROOT

QUOTES = ROOT / "tests" / "references.toml"
PACKAGES = ("torch", "lightning", "deepspeed", "multiprocessing")
"""What the texts refer to; the last is Python's own."""

_LINES = r"\d+(?:-\d+)?(?:, \d+(?:-\d+)?)*"
REFERENCE = re.compile(rf'(\w[\w./-]*\.py)(?::|", line )({_LINES})|`:({_LINES})`')
"""`torch/utils/file_baton.py:49`, `call.py:68-70`, `:238` of the same file, a line of a traceback."""


@dataclass(frozen=True)
class Quote:
    """A line of a library, and a fragment of it.

    Attributes:
        version: `torch 2.1.2`, as a text that names the line says; empty for the installed version.
        file: its path below site-packages.
    """

    version: str
    file: str
    line: int
    fragment: str

    @property
    def package(self) -> str:
        """The first folder of the path."""
        return self.file.partition("/")[0]

    def is_of_installed(self) -> bool:
        """Whether its package, in its version, is installed here."""
        name, _, version = self.version.partition(" ")
        if not name or not files_of(self.package):
            return bool(files_of(self.package))
        here = python_version() if name == "Python" else metadata.version(name)
        return f"{here}.".startswith(f"{version}.")

    def lines(self) -> list[int]:
        """Where the fragment is in the installed file, nearest first; nowhere without such a file."""
        path = files_of(self.package).get(self.file)
        text = path.read_text(encoding="utf-8").splitlines() if path else []
        numbers = [number for number, line in enumerate(text, 1) if self.fragment in line]
        return sorted(numbers, key=lambda number: abs(number - self.line))


@dataclass(frozen=True)
class Reference:
    """A line that a text names; of a range there are two, its first and its last.

    Attributes:
        said: as the text writes it.
        files: what may be meant, by paths below site-packages; of a good reference, one file.
    """

    said: str
    files: tuple[str, ...]
    line: int


@cache
def files_of(package: str) -> dict[str, Path]:
    """The Python files of a package by their paths below site-packages; none if it is not installed."""
    spec = find_spec(package)
    folders = map(Path, (spec and spec.submodule_search_locations) or ())
    return {
        path.relative_to(folder.parent).as_posix(): path
        for folder in folders
        for path in folder.rglob("*.py")
    }


def quotes() -> list[Quote]:
    """Every line in tests/references.toml."""
    content = tomllib.loads(QUOTES.read_text(encoding="utf-8"))
    return [
        Quote(version.removeprefix("installed"), file, int(line), fragment)
        for version, files in content.items()
        for file, lines in files.items()
        for line, fragment in lines.items()
    ]


def texts() -> Iterator[tuple[str, str]]:
    """Each Markdown cell, each page and each table of a lab.toml: where it is, and its text."""
    for path in sorted([*NOTEBOOKS.glob("*.ipynb"), *NOTEBOOKS.glob("[!.]*/*.ipynb")]):
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            if cell["cell_type"] == "markdown":
                yield f"{path.relative_to(ROOT)}, {cell['id']}", "".join(cell["source"])
    for path in sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("helpers/**/*.md")]):
        yield str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")
    for path in sorted(NOTEBOOKS.glob("[!.]*/*.toml")):
        for key, value in tomllib.loads(path.read_text(encoding="utf-8")).items():
            for number, table in enumerate(value if isinstance(value, list) else [value], 1):
                yield f"{path.relative_to(ROOT)}, {key} {number}", "\n".join(_strings(table))


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _strings(part)


def references(text: str) -> Iterator[Reference]:
    """Every reference of a text to a line of a library."""
    files: tuple[str, ...] = ()
    before: list[str] = []
    for match in REFERENCE.finditer(text):
        if match[1]:
            files = _meant(match[1], before)
            before += files if len(files) == 1 else ()
        if files and "/" not in files[0]:
            continue  # a program of a lab: other tests hold what is said of its lines
        for line in re.findall(r"\d+", match[2] or match[3]):
            yield Reference(match[0], files, int(line))


def _meant(name: str, before: list[str]) -> tuple[str, ...]:
    """A whole path and a lab's program mean themselves.

    Another name means the last file named before it that ends so, or else each file that does.
    """
    if name.partition("/")[0] in PACKAGES or name in _programs():
        return (name,)
    named = [file for file in before if file.endswith(f"/{name}")]
    return tuple(named[-1:]) or tuple(
        file for package in PACKAGES for file in files_of(package) if file.endswith(f"/{name}")
    )


@cache
def _programs() -> set[str]:
    """Names of the programs that the lessons run."""
    return {path.name for path in NOTEBOOKS.rglob("*.py")}


def main() -> int:
    """Print what has moved, and where it is named."""
    moved = [quote for quote in quotes() if quote.is_of_installed() and quote.line not in quote.lines()]
    for quote in moved:
        now = ", ".join(map(str, quote.lines()[:3])) or "nowhere"
        print(f"{quote.file}:{quote.line} -> {now}: {quote.fragment}")
        for place, text in texts():
            for reference in references(text):
                if (reference.files, reference.line) == ((quote.file,), quote.line):
                    print(f"    {place}: {reference.said}")
    return 1 if moved else 0


if __name__ == "__main__":
    sys.exit(main())
