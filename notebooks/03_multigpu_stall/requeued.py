"""Starts a job again whose first attempt was killed while it compiled, as a scheduler does."""

import sys

from attempts import cache, killed_attempt, run_job


def main() -> int:
    with cache() as folder:
        killed_attempt(folder)
        return run_job()


if __name__ == "__main__":
    sys.exit(main())
