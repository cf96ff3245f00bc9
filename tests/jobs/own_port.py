"""Not a job of this folder: another job, of one rank, that is at work; it prints the port of its store.

With an argument the launcher's own rendezvous has that port, as with `--rdzv-backend=c10d`.
"""

import os
import socket
import sys

if "RANK" not in os.environ:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    kind = ["--rdzv-backend=c10d", f"--rdzv-endpoint=127.0.0.1:{port}"]
    options = kind if sys.argv[1:] else [f"--master-port={port}"]
    words = ["torchrun", *options, "--nproc-per-node=1", sys.argv[0], port]
    os.execvp(words[0], words)

import torch.distributed as dist

dist.init_process_group("gloo")
dist.barrier()
print(sys.argv[1], flush=True)
sys.stdin.read()
