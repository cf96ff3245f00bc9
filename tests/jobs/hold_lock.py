"""Not a job: a program that holds a lock for a while."""

import fcntl
import time

with open("cache.lock", "w") as lock:
    fcntl.flock(lock, fcntl.LOCK_EX)
    print("held", flush=True)
    time.sleep(14)
