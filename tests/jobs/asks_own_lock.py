"""A signal handler asks for the lock that the code it interrupts has taken."""

import os
import signal
import threading

from marks import about_to_block

lock = threading.Lock()


def report(number: int, frame: object) -> None:
    about_to_block()
    with lock:  # <- culprit, rank 0
        print("still at work")


signal.signal(signal.SIGUSR2, report)
with lock:
    os.kill(os.getpid(), signal.SIGUSR2)
    print("half way")
