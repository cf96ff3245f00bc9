"""A program writes all of its data to a filter before it reads what the filter has to say."""

import subprocess
import sys

from marks import about_to_block

FILTER = "import sys; [sys.stdout.write(line) for line in sys.stdin]"

with subprocess.Popen(
    [sys.executable, "-c", FILTER], stdin=subprocess.PIPE, stdout=subprocess.PIPE
) as child:
    assert child.stdin is not None and child.stdout is not None
    about_to_block()
    child.stdin.write(b"a line of text\n" * 1_000_000)  # <- culprit, rank 0
    child.stdin.close()
    print(len(child.stdout.read()))
