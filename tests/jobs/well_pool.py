"""A healthy program of one process: a pool of processes, one of which has more to do than the others."""

import multiprocessing
import time


def work(seconds: float) -> float:
    time.sleep(seconds)
    return seconds


if __name__ == "__main__":
    with multiprocessing.Pool(3) as pool:
        print(sum(pool.map(work, [0.1, 8.0, 0.2], chunksize=1)))
