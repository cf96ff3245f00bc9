"""Rank 1 waits until two keys are set; rank 0 has failed to write one of them and goes on."""

import torch.distributed as dist
from marks import about_to_block


def announce(store: dist.Store, shards: list[str]) -> None:
    for shard in shards:
        store.set(f"shard/{shard}", "there")


def wait_for_shards(store: dist.Store) -> None:
    about_to_block()
    store.wait(["shard/train", "shard/valid"])  # <- culprit, rank 1


dist.init_process_group("gloo")
store = dist.distributed_c10d._get_default_store()
if dist.get_rank() == 0:
    announce(store, ["train"])
else:
    wait_for_shards(store)
dist.barrier()  # <- rank 0
dist.destroy_process_group()
