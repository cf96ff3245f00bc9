import os
import time
from pathlib import Path

import torch
import torch.distributed as dist


def wait_for(file: Path) -> None:
    while not file.exists():
        time.sleep(0.5)


if os.environ["RANK"] == "1":
    wait_for(Path("vocabulary.txt"))
dist.init_process_group("gloo")
Path("vocabulary.txt").write_text("a b c")
dist.all_reduce(torch.ones(1))
dist.destroy_process_group()
