"""A worker of a pool ends itself in the middle of a task, for which `map` waits for ever."""

import multiprocessing
import os


def prepared(sample: int) -> int:
    if sample == 3:
        os._exit(1)
    return sample


if __name__ == "__main__":
    with multiprocessing.Pool(2) as pool:
        print(pool.map(prepared, range(8), chunksize=1))  # <- culprit, rank 0
