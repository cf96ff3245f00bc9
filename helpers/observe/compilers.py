"""What a process has compiled for it, as far as its children tell. No I/O."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

_COMPILER = re.compile(
    r"(ninja|(?:[\w.]+-)*(?:gcc|g\+\+|cc|c\+\+|clang|clang\+\+)(?:-[\d.]+)?|cc1plus|nvcc|cicc|ptxas|hipcc|icpx)$"
)
_EXTENSION = re.compile(r"-DTORCH_EXTENSION_NAME=(\w+)")
"""The name that `torch.utils.cpp_extension.load` gives its compiler (torch/utils/cpp_extension.py)."""


def compiling(commands: Iterable[Sequence[str]]) -> str | None:
    """`fused_adam with c++ and ninja`: what living children compile, and with what; None without one.

    Args:
        commands: of the children that are alive.
    """
    compilers = [command for command in commands if command and _COMPILER.match(Path(command[0]).name)]
    if not compilers:
        return None
    names = sorted({name for command in compilers for name in _EXTENSION.findall(" ".join(command))})
    tools = sorted({Path(command[0]).name for command in compilers} - {"cc1plus", "cicc"})
    using = " and ".join(tools) or "a compiler"
    return f"{', '.join(names)} with {using}" if names else f"with {using}"
