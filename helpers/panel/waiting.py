"""Says in a cell what it waits for. Imports nothing of the panel, since that is one of the waits."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from IPython.display import clear_output, display


def in_jupyter() -> bool:
    """True in the kernel of a notebook opened in JupyterLab; not under nbval or nbclient.

    Jupyter Server gives the kernels of its sessions this variable.
    """
    return "JPY_SESSION_NAME" in os.environ


@contextmanager
def waiting(text: str) -> Iterator[None]:
    """Show a sentence below the cell as long as the block lasts; only to a learner."""
    if not in_jupyter():
        yield
        return
    display({"text/plain": text}, raw=True)
    try:
        yield
    finally:
        clear_output()
