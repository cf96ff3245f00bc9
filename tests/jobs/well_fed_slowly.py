"""A healthy program of one process: a thread fetches what the main one works on, seldom but surely."""

import queue
import threading
import time

fetched: "queue.Queue[int | None]" = queue.Queue()


def fetch() -> None:
    for number in range(3):
        time.sleep(3)
        fetched.put(number)
    fetched.put(None)


threading.Thread(target=fetch).start()
while (number := fetched.get()) is not None:
    print(number)
