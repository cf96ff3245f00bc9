import sys

import torch.distributed as dist
import torch.multiprocessing as mp


def fetch_weights(store: dist.Store) -> bytes:
    return store.get("weights_ready")


def train(rank: int, port: str) -> None:
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=2)
    store = dist.distributed_c10d._get_default_store()
    if rank == 0:
        store.set("weights_ready", "yes")
    else:
        fetch_weights(store)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(train, args=(sys.argv[1],), nprocs=2)
