"""How often the kernel has let a thread run (Linux)."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path


def movement(pid: int, thread: int) -> tuple[int, bool, int] | None:
    """Whether a thread runs or could run, and how often it has been scheduled (Linux).

    A thread that has not been scheduled has done nothing. `status` needs no right of a debugger.
    """
    with suppress(OSError):
        lines = Path(f"/proc/{pid}/task/{thread}/status").read_text().splitlines()
        fields = dict(line.partition(":\t")[::2] for line in lines)
        switches = sum(int(count) for name, count in fields.items() if name.endswith("ctxt_switches"))
        return thread, fields["State"].startswith("R"), switches
    return None
