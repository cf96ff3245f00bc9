"""A healthy program of one process that starts a job, reads what it prints, and starts another one."""

import subprocess
import sys

for _ in range(2):
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=3"]
    with subprocess.Popen([*command, "well_two_jobs.py"], stdout=subprocess.PIPE, text=True) as job:
        assert job.stdout is not None
        for line in job.stdout:
            print("job:", line, end="")
    assert job.returncode == 0
