"""What torch's own analyser of Flight Recorder dumps prints -> where it has found ranks to part.

`torchfrtrace`, `python -m torch.distributed.flight_recorder.fr_trace`; torch 2.5 to 2.15,
torch/distributed/flight_recorder/components/types.py and utils.py, before 2.9 in tools/flight_recorder.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from ..observe import pyspy_record
from ..observe.account import Account
from .log_rank import LogRank, Operation, account
from .patterns import watchdog_lines
from .writers import Line

DONE = "completed"
"""The state of a collective that nobody waits for any more."""

_FRAME = re.compile(r"^ ?(?P<function>\S+) at (?P<file>.+):(?P<line>\d+)$")
_OTHER = re.compile(
    r"Culprit rank (?P<rank>\d+); Error type: (?P<kind>\w+)"
    r"(?:, Expected (?:collective type|input sizes): '(?P<expected>[^']*)' does not match found "
    r"(?:collective type|input sizes): '(?P<found>[^']*)')?"
)


class Analysis:
    """The first thing that the analyser has found: what stands behind it follows from it."""

    def __init__(self) -> None:
        self._begun: Line | None = None
        self._number = 0
        self._fields: dict[str, str] = {}
        self._frames: list[tuple[str, int, str, bool]] = []
        self._over = False

    @property
    def listens(self) -> bool:
        """True within the first thing that it has found: lines of its stack have no mark."""
        return self._begun is not None and not self._over

    def take(self, line: Line) -> None:
        """The next line."""
        begins = watchdog_lines.UNJOINED.search(line.text)
        if begins is not None:
            self._over = self._begun is not None
            if self._begun is None:
                self._begun, self._number = line, int(begins["seq"] or begins["number"])
        elif self._begun is not None and not self._over:
            self._field(line.text)

    def _field(self, text: str) -> None:
        if field := watchdog_lines.ANALYSED.search(text):
            self._fields.setdefault(field["name"], field["said"])
        elif frame := _FRAME.match(text):
            file = frame["file"]
            user = pyspy_record.is_user(file, ())
            self._frames.append((file, int(frame["line"]), frame["function"], user))

    def accounts(self, path: str) -> Iterator[Account]:
        """What it tells of each rank of the group."""
        if self._begun is None or self._fields.get("collective state") == DONE:
            return
        label, _, description = self._fields.get("group info", "").partition(":")
        missing = _numbers(self._fields.get("missing ranks", ""))
        mismatches = {
            int(match["rank"]): match for match in _OTHER.finditer(self._fields.get("error msg", ""))
        }
        frames = self._frames
        for rank in sorted(_numbers(self._fields.get("expected ranks", "")) | missing):
            log_rank = LogRank(world_size=self._world(label, description))
            log_rank.quote(self._begun)
            if rank in missing:
                log_rank.at(label).completed = self._number - 1
            else:
                log_rank.late_at = self._begun.number
                log_rank.at(label).overdue = self._operation(mismatches, rank)
                log_rank.frames, frames = frames, []
            yield account(rank, log_rank, {label: description}, path)

    def _world(self, label: str, description: str) -> int | None:
        """The size of the job, where the group is that of all ranks."""
        size = self._fields.get("world size", "")
        return int(size) if size.isdigit() and (label == "0" or description == "default_pg") else None

    def _operation(self, mismatches: dict[int, re.Match[str]], rank: int) -> Operation:
        """What a rank has issued: another operation than the first one, or one of another size."""
        name = self._fields.get("collective", "").rpartition(":")[2]
        sizes = self._fields.get("input sizes", "")
        if rank in mismatches and mismatches[rank]["found"] is not None:
            issued = mismatches[rank]["found"]
            name, sizes = (name, issued) if issued.startswith("[") else (issued, "")
        return Operation(self._number, name, _elements(sizes))


def _numbers(text: str) -> set[int]:
    return {int(number) for number in re.findall(r"\d+", text)}


def _elements(sizes: str) -> int | None:
    """`[[2, 3]]` -> 6; of several tensors, or none, None."""
    inner = re.fullmatch(r"\[\[([\d, ]*)\]\]", sizes)
    return math.prod(int(size) for size in re.findall(r"\d+", inner[1])) if inner is not None else None
