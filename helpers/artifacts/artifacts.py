"""All files that a user names -> what they hold, read side by side."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
from collections.abc import Collection, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path

import msgspec
from msgspec.structs import replace

from ..model.facts import Snapshot, Verdict
from ..model.part import Part
from ..observe.account import Account
from ..observe.recording import Recording, load
from ..observe.source import Sources
from . import job, program
from .files import UNPACKED, files
from .missing import not_seen
from .moments import Unpacker
from .reading import FileContent
from .telling import excerpt
from .whose import placed

PACKAGE = Path(__file__).resolve().parents[1]
START = """
import runpy, sys
sys.path.insert(0, sys.argv.pop(1))
runpy.run_module(sys.argv.pop(1), run_name="__main__")
"""
"""A program that finds this package wherever it is installed, and nothing that the environment names."""

MOST_QUOTED, LETTERS = 6, 500
"""Lines that are quoted as evidence, and letters of each."""

MOST_NAMED = 5
"""Files that a sentence names."""

ENDS_ITS_READER = "it ends the process that reads it, which may take 2 GiB of memory"


class NothingError(Exception):
    """None of the files tells of a rank; the text says what they are in one sentence."""


class Artifacts(msgspec.Struct, frozen=True, dict=True):
    """What was found in some files.

    Attributes:
        accounts: of processes; output: what they have printed, in the same form.
        recordings: of ours, and the last moments that each shows.
        unrecognised: files that are no text, and hold nothing that is known here, with their bytes.
        damaged: files that look like something that is known here, and why they cannot be read.
        telling: of each text, the lines that say most: `FILE:NUMBER: LINE`.
        alarming: True where one of them tells of a failure.
    """

    accounts: tuple[Account, ...]
    recordings: tuple[tuple[Path, Part], ...] = ()
    unrecognised: tuple[tuple[Path, int], ...] = ()
    damaged: tuple[tuple[Path, str], ...] = ()
    output: tuple[Account, ...] = ()
    telling: tuple[str, ...] = ()
    alarming: bool = False

    @property
    def are_one_run(self) -> bool:
        """True for one recording and nothing beside it: all that was seen of a run, with its seconds."""
        return len(self.recordings) == 1 and not (self.damaged or self._tell_of_ranks)

    def run(self) -> Recording:
        """The recording of the one run that they are.

        Raises:
            RecordingError: it cannot be read.
        """
        return load(self.recordings[0][0])

    def parts(self) -> tuple[Part, ...]:
        """The last moments of the job, from each place from which it was seen.

        Raises:
            NothingError: nothing was recognised.
        """
        parts = [part for _, part in self.recordings]
        if self._tell_of_ranks or (self.telling and not parts):
            snapshot = job.snapshot(self.accounts, self._sources, self.output)
            if self.alarming or not self._tell_of_ranks:
                snapshot = replace(snapshot, telling=self.telling, alarming=self.alarming)
            parts.append(Part(snapshot, snapshot))
        if not parts:
            raise NothingError(self._nothing())
        return tuple(parts)

    def quotes(self, ranks: Collection[int]) -> tuple[str, ...]:
        """The lines of the files that tell of some ranks, as `FILE:NUMBER: LINE`; of all, where none do.

        Args:
            ranks: of which a verdict speaks.
        """
        quoted = [(account, *quote) for account in self.accounts for quote in account.quotes]
        of_ranks = [entry for entry in quoted if entry[0].rank is None or entry[0].rank in ranks]
        chosen = of_ranks if ranks and any(entry[0].rank is not None for entry in of_ranks) else quoted
        lines = sorted({(account.file, number, text) for account, number, text in chosen})
        return tuple(quote(file, number, text) for file, number, text in lines[:MOST_QUOTED])

    def not_seen(self, snapshot: Snapshot, verdict: Verdict) -> tuple[str, ...]:
        """What is missing, one sentence each.

        Args:
            snapshot: of all parts together; verdict: on it.
        """
        return tuple(not_seen(snapshot, self.accounts, self.unrecognised, self.damaged, verdict))

    @cached_property
    def _sources(self) -> Sources:
        return program.sources(self.accounts)

    @cached_property
    def _tell_of_ranks(self) -> bool:
        accounts = placed(self.accounts, self._sources)
        return any(
            account.rank is not None
            or account.error
            or account.memory_kills
            or account.threads
            or account.warned
            or account.signal
            or account.exit_code
            or account.ended_by
            or account.absent
            or account.lock
            for account in accounts
        )

    def _nothing(self) -> str:
        problems = [f"{file.name} is damaged: {problem}" for file, problem in self.damaged]
        problems += [f"{file.name} ({size} bytes) is not recognised" for file, size in self.unrecognised]
        listed = "; ".join(problems[:MOST_NAMED]) or "there is no file"
        return f"nothing here can be read: {listed}"


def quote(file: str, number: int, text: str) -> str:
    """`FILE:NUMBER: LINE`; of a long line the part that tells."""
    text = text.strip()
    return f"{file}:{number}: {text if len(text) <= LETTERS else excerpt(text, LETTERS)}"


def read(paths: Iterable[str]) -> Artifacts:
    """Read files and folders.

    Raises:
        MissingError: one that is named cannot be read.
    """
    file_list = list(files(paths))
    contents = dict(zip(file_list, _contents(file_list), strict=True))
    unpacker = Unpacker()
    return Artifacts(
        accounts=tuple(account for content in contents.values() for account in content.accounts),
        output=tuple(account for content in contents.values() for account in content.output),
        recordings=tuple(
            (file, unpacker.part(content.part)) for file, content in contents.items() if content.part
        ),
        unrecognised=tuple(
            (file, size)
            for file, content in contents.items()
            if not content.recognised and (size := file.stat().st_size)
        ),
        damaged=tuple((file, content.damaged) for file, content in contents.items() if content.damaged),
        telling=tuple(
            quote(str(file), number, text)
            for file, content in contents.items()
            for number, text in content.telling
        )[:MOST_QUOTED],
        alarming=any(content.alarming for content in contents.values()),
    )


def _contents(file_list: list[Path]) -> list[FileContent]:
    """What each file holds, in their order."""
    number = max(1, min(len(file_list), os.cpu_count() or 1))
    readers: queue.SimpleQueue[_Reader] = queue.SimpleQueue()
    for _ in range(number):
        readers.put(_Reader(UNPACKED // number))

    def read_next(file: Path) -> FileContent:
        reader = readers.get()
        try:
            return reader.read(file)
        finally:
            readers.put(reader)

    try:
        with ThreadPoolExecutor(number) as pool:
            return list(pool.map(read_next, file_list))
    finally:
        for _ in range(number):
            readers.get().close()


class _Reader:
    """A process that reads; it is started when it is needed, and again after a file has ended it."""

    def __init__(self, budget: int) -> None:
        self._budget = budget
        self._process: subprocess.Popen[bytes] | None = None

    def read(self, file: Path) -> FileContent:
        """What a file holds."""
        process = self._process = self._process or self._start()
        assert process.stdin is not None and process.stdout is not None
        try:
            process.stdin.write(json.dumps(str(file)).encode() + b"\n")
            process.stdin.flush()
            answer = process.stdout.readline()
        except BrokenPipeError:
            answer = b""
        if not answer:
            self.close()
            return FileContent(damaged=ENDS_ITS_READER)
        try:
            return msgspec.json.decode(answer, type=FileContent)
        except msgspec.ValidationError as problem:
            return FileContent(damaged=f"it is not as any software writes it: {problem}")

    def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()

    def _start(self) -> subprocess.Popen[bytes]:
        module = f"{PACKAGE.name}.artifacts.reader"  # in a checkout, the folder has a name of its own
        words = (sys.executable, "-I", "-c", START, str(PACKAGE.parent), module, str(self._budget))
        return subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
