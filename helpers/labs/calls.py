"""The calls of libraries' functions that the processes of a run have made, noted by `watch/`."""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path

import msgspec

WATCH = Path(__file__).parent / "watch"
"""The folder of the `sitecustomize` that notes calls."""

FILE = "calls.jsonl"
"""Where the calls are noted, in the folder of a run."""

FETCHES = (
    "torch.utils.data._utils.fetch:_MapDatasetFetcher.fetch",
    "torch.utils.data._utils.fetch:_IterableDatasetFetcher.fetch",
)
"""With which a DataLoader makes a batch, in its worker or in the rank itself (torch 2.0 to 2.15)."""


class Call(msgspec.Struct, frozen=True):
    """One call.

    Attributes:
        function: `module:qualified.name`.
        pid: of the process that made it; parent: of that process's parent.
        inside: the watched contexts that were open then.
    """

    function: str
    pid: int
    parent: int
    inside: tuple[str, ...] = ()


def environment(functions: Collection[str], folder: Path) -> dict[str, str]:
    """The variables with which a run notes its calls of some functions in a folder."""
    paths = [str(WATCH), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {
        "LAB_WATCHED": " ".join(sorted(functions)),
        "LAB_CALLS": str(folder / FILE),
        "PYTHONPATH": os.pathsep.join(paths),
    }


def calls(folder: Path) -> tuple[Call, ...]:
    """What was noted in the folder of a run, which is over. A line that was cut off is left out."""
    try:
        lines = (folder / FILE).read_bytes().splitlines()
    except OSError:
        return ()
    noted = []
    for line in lines:
        try:
            noted.append(msgspec.json.decode(line, type=Call))
        except msgspec.DecodeError:  # its process was ended while it wrote
            continue
    return tuple(noted)
