"""One rank runs in a control group that grants it a tenth of a core."""

import os
from pathlib import Path

import ledger
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

STEPS = 50
ROOT = Path("/sys/fs/cgroup/cpu")


class Quota:
    """A control group of its own for this process."""

    def __init__(self, share):
        self.group = ROOT / f"batch-{os.getpid()}"
        self.group.mkdir()
        (self.group / "cpu.cfs_period_us").write_text("100000")
        (self.group / "cpu.cfs_quota_us").write_text(str(int(100_000 * share)))
        (self.group / "cgroup.procs").write_text(str(os.getpid()))

    def leave(self):
        (ROOT / "cgroup.procs").write_text(str(os.getpid()))
        self.group.rmdir()


def main():
    dist.init_process_group("gloo")
    ledger.joined()
    quota = Quota(0.1) if dist.get_rank() == 1 else None
    with ledger.around():
        model = DistributedDataParallel(nn.Sequential(nn.Linear(512, 512), nn.Linear(512, 512)))
    backward = ledger.Backward(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(STEPS):
        loss = model(torch.randn(512, 512)).pow(2).mean()  # <- slow
        with backward:
            loss.backward()  # <- slow
        optimizer.step()
        optimizer.zero_grad()
    if quota:
        quota.leave()
    dist.destroy_process_group()


main()
