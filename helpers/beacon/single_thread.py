"""Step aside for the calls for which this process may have one thread only.

- `os.unshare` and `os.setns` (new in 3.12): the kernel lets no process with a second thread into a user
  namespace, https://man7.org/linux/man-pages/man2/unshare.2.html.
- `os.fork` in 3.13: it warns of threads that it counts after the hooks for the parent, in which the
  thread of the beacon starts again (`os_fork_impl` in Modules/posixmodule.c).
"""

from __future__ import annotations

import os
import sys
from typing import Any, Callable

from . import noting

CALLS = ("unshare", "setns", *(("fork", "forkpty") if sys.version_info[:2] == (3, 13) else ()))


def watch(rest: Callable[[], None], resume: Callable[[], None]) -> None:
    """Have `rest` and `resume` called around these calls; `resume` not in a child that one has made."""

    def alone(builtin: Any) -> noting.Note:
        def call(*arguments: Any, **keywords: Any) -> Any:
            process = os.getpid()
            rest()
            try:
                return builtin(*arguments, **keywords)
            except BaseException as error:  # since 3.11 the traceback goes on without our frame
                error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next
                raise
            finally:
                if os.getpid() == process:
                    resume()

        return lambda _: call

    for name in CALLS:
        if hasattr(os, name):
            noting.replace(name, alone(getattr(os, name)), os, sys.modules[os.name])
