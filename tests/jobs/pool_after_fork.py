"""Workers are forked while a thread holds a lock, so that nobody can give back their copy of it."""

import multiprocessing
import threading
import time

lock = threading.Lock()


def log(forever: bool = False) -> None:
    with lock:
        time.sleep(10_000 if forever else 0)


if __name__ == "__main__":
    threading.Thread(target=log, args=(True,), daemon=True).start()
    while not lock.locked():
        time.sleep(0.01)
    child = multiprocessing.get_context("fork").Process(target=log)
    child.start()
    child.join()  # <- culprit, rank 0
