"""One line of a stack, and what a stack tells."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import msgspec

Scalar = int | float | bool | str | None


_CELL = re.compile(r"cell \[[\d? or]+\]")


def cell_name(numbers: Sequence[int]) -> str:
    """`cell [2]`, the name of a cell of a notebook as that of a file; `cell [2 or 5]`, `cell [?]`."""
    return f"cell [{' or '.join(map(str, numbers)) or '?'}]"


class Frame(msgspec.Struct, frozen=True, eq=False):
    """One Python frame.

    Attributes:
        file: relative to the job's working directory where it lies inside it, else absolute; of code of
            a notebook, `cell [2]`.
        line: line number, from 1.
        function: name of the function, `<module>` at top level.
        user: True when it is the user's own code, not a library's and not the instrument's.
        text: the source of the file; empty where it is not known.
        values: name (`step`, `self.resume`) -> value, of what could be read while it stayed at its line.
            Frames are compared without these two.
    """

    file: str
    line: int
    function: str
    user: bool = True
    text: str = ""
    values: Mapping[str, Scalar] = msgspec.field(default_factory=dict)

    def __eq__(self, frame: object) -> bool:
        return isinstance(frame, Frame) and self._place == frame._place

    def __ne__(self, frame: object) -> bool:  # else msgspec's own, which compares by identity
        return not self == frame

    def __hash__(self) -> int:
        return hash(self._place)

    @property
    def _place(self) -> tuple[str, int, str, bool]:
        return self.file, self.line, self.function, self.user

    @property
    def in_cell(self) -> bool:
        """True for code of a notebook's cell."""
        return _CELL.fullmatch(self.file) is not None

    @property
    def place(self) -> str:
        """`train.py:41`, `torch/nn/modules/module.py:1775`, or `cell [2], line 41`."""
        if self.in_cell:
            return f"{self.file}, line {self.line}"
        return f"{self.file if self.user else self.file.rpartition('site-packages/')[2]}:{self.line}"


def innermost_user(stack: Sequence[Frame]) -> Frame | None:
    """The innermost frame of the user's own code, of a stack with its innermost frame first."""
    return next((frame for frame in stack if frame.user), None)


def is_in(stack: Sequence[Frame], function: str) -> bool:
    """True when one of the frames is of a function with this name."""
    return any(frame.function == function for frame in stack)
