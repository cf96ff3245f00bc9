"""Start the beacon, leave `sys.path` as it was, then run the `sitecustomize` that this one hides.

Every Python of a job runs this file: one that is too old for the beacon, even Python 2, passes over it.
"""

import os
import sys


def _start_beacon():  # type: () -> None
    if sys.version_info < (3, 8):
        return _say_why("Python %d.%d is older than 3.8" % sys.version_info[:2])
    try:
        if _in_main_interpreter():
            from stuck_ranks_beacon import beacon

            beacon.start()
    except Exception as problem:
        _say_why("%s: %s" % (type(problem).__name__, problem))


def _in_main_interpreter():  # type: () -> bool
    """Whether this is no sub-interpreter, which cannot end while a thread of the beacon runs in it.

    Only the main interpreter comes so far as to look at the descriptor, which is none (3.8 to 3.14).
    """
    import _signal  # type: ignore[import-not-found]

    try:
        _signal.set_wakeup_fd(-2)
    except OSError:
        return True
    except ValueError:
        return False
    return False


def _say_why(problem):  # type: (str) -> None
    """Leave a note for the observer; the job itself must not notice that the beacon failed."""
    run = os.environ.get("STUCK_RANKS_RUN", "")
    try:
        path = os.path.join(run, "records", "%d.failed" % os.getpid())
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as note:
            note.write(problem.encode("utf-8", "replace"))
    except EnvironmentError:
        pass


_start_beacon()
_folder = os.path.dirname(__file__)
sys.path[:] = [entry for entry in sys.path if entry != _folder]
sys.path_importer_cache.pop(_folder, None)

# The next one on the path, if the job has one. Where there is none, this import fails as it would
# without us: `site` passes over a missing `sitecustomize`, and the job does not find one either.
_self = sys.modules.pop(__name__)  # kept: Python 2 clears the names of a module that is gone
try:
    import sitecustomize  # noqa: F401
finally:
    del _self
