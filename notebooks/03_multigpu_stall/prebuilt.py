"""Starts a job again whose first attempt was killed while it compiled; clears and builds first."""

import sys

from attempts import cache, killed_attempt, run_job
from build import build_once


def main() -> int:
    with cache() as folder:
        killed_attempt(folder)
        (folder / "lock").unlink(missing_ok=True)
        build_once(folder)
        return run_job()


if __name__ == "__main__":
    sys.exit(main())
