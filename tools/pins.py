"""What requirements.lock says: one line a package. Standard library only.

numpy==2.4.6  # 16.92 MB, Python >=3.11
appnope==1.0.0 ; sys_platform == 'darwin'  # 0.01 MB, Python >=3.9
torch==2.13.0  # 191.77 MB, 2730.31 MB with CUDA, Python >=3.10
mypy==2.4.1  # 15.43 MB, Python >=3.10, for the tests
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

LINE = re.compile(
    r"(?P<name>[\w.-]+)==(?P<version>[^\s;+]+)(?: ; (?P<marker>[^#]+?))?"
    r"  # (?P<megabytes>[\d.]+) MB(?:, (?P<cuda>[\d.]+) MB with CUDA)?"
    r", Python (?P<python>[^\s]+?)(?P<tests>, for the tests)?"
)


class PinsError(Exception):
    """The lock cannot be read; the text is one sentence."""


@dataclass(frozen=True)
class Pin:
    """One package of the lock.

    Attributes:
        marker: for which Pythons and systems it is, as in PEP 508; empty for all.
        python: its Requires-Python, `any` where it has none.
        megabytes: its download, on Linux x86-64 with the oldest Python that is supported.
        cuda: of torch, the same for its CUDA build and all that this build brings.
        for_tests: True for what only the tests need.
    """

    name: str
    version: str
    marker: str = ""
    python: str = "any"
    megabytes: float = 0.0
    cuda: float | None = None
    for_tests: bool = False

    @property
    def requirement(self) -> str:
        """The pin as pip reads it."""
        return f"{self.name}=={self.version}" + (f" ; {self.marker}" if self.marker else "")

    @property
    def line(self) -> str:
        """The pin as the lock writes it."""
        cuda = "" if self.cuda is None else f", {self.cuda:.2f} MB with CUDA"
        tests = ", for the tests" if self.for_tests else ""
        return f"{self.requirement}  # {self.megabytes:.2f} MB{cuda}, Python {self.python}{tests}"


def read(text: str) -> list[Pin]:
    """Return the pins of a lock file's text, in its order.

    Raises:
        PinsError: a line is not a pin, or torch has none.
    """
    pins = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line or line.startswith("#"):
            continue
        found = LINE.fullmatch(line)
        if found is None:
            raise PinsError(
                f"requirements.lock, line {number}, is not a pin: make a new lock with `make lock`."
            )
        pins.append(
            Pin(
                name=found["name"],
                version=found["version"],
                marker=found["marker"] or "",
                python=found["python"],
                megabytes=float(found["megabytes"]),
                cuda=float(found["cuda"]) if found["cuda"] else None,
                for_tests=bool(found["tests"]),
            )
        )
    torch_pin(pins)
    return pins


def torch_pin(pins: Iterable[Pin]) -> Pin:
    """Return the pin of torch; raise PinsError without one."""
    for pin in pins:
        if pin.name == "torch":
            return pin
    raise PinsError("requirements.lock has no pin of torch: make a new lock with `make lock`.")
