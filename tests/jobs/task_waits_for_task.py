"""A task waits for another one that it has given to the same executor, which has one thread."""

from concurrent.futures import ThreadPoolExecutor

executor = ThreadPoolExecutor(max_workers=1)


def outer() -> int:
    return executor.submit(int, "7").result()


print(executor.submit(outer).result())  # <- culprit, rank 0
