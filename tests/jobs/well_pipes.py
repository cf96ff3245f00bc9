"""A healthy program of one process: a slow child fills a pipe from which it reads line by line."""

import subprocess
import sys

CHILD = "import time\nfor number in range(6): print(number, flush=True); time.sleep(1.5)"

with subprocess.Popen([sys.executable, "-c", CHILD], stdout=subprocess.PIPE, text=True) as child:
    assert child.stdout is not None
    print(sum(int(line) for line in child.stdout))
