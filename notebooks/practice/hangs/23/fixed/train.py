import torch.distributed as dist


def announce(store: dist.Store, shards: list[str]) -> None:
    for shard in shards:
        store.set(f"shard/{shard}", "there")


def wait_for_shards(store: dist.Store) -> None:
    store.wait(["shard/train", "shard/valid"])


dist.init_process_group("gloo")
store = dist.distributed_c10d._get_default_store()
if dist.get_rank() == 0:
    announce(store, ["train", "valid"])
else:
    wait_for_shards(store)
dist.barrier()
dist.destroy_process_group()
