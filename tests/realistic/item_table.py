"""Retrieval evaluation with an item table that is sharded over the ranks as a DTensor."""
import functools
import json
import logging
import os
import tempfile
import time

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard, distribute_tensor

log = logging.getLogger("items")

SETTINGS = {"items": 384, "dim": 24, "queries": 96, "chunk": 16, "k": 5, "noise": 0.25, "dump_every": 3}


def on_main_rank(fn):
    """Run `fn` on rank 0 only: files must not be written twice."""

    @functools.wraps(fn)
    def wrapper(*args, **kwargs):
        if dist.get_rank() != 0:
            return None
        started = time.monotonic()
        result = fn(*args, **kwargs)
        log.info("%s took %.2f s", fn.__name__, time.monotonic() - started)
        return result

    return wrapper


def build_table(mesh, cfg):
    gen = torch.Generator().manual_seed(21)
    weights = torch.nn.functional.normalize(torch.randn(cfg["items"], cfg["dim"], generator=gen), dim=-1)
    names = {"embedding": distribute_tensor(weights, mesh, [Shard(0)])}
    names["bias"] = distribute_tensor(torch.zeros(cfg["items"]), mesh, [Shard(0)])
    return weights, names


def query_chunks(weights, cfg):
    gen = torch.Generator().manual_seed(22)
    targets = torch.randint(0, cfg["items"], (cfg["queries"],), generator=gen)
    queries = weights[targets] + cfg["noise"] * torch.randn(cfg["queries"], cfg["dim"], generator=gen)
    for start in range(0, cfg["queries"], cfg["chunk"]):
        yield queries[start:start + cfg["chunk"]], targets[start:start + cfg["chunk"]]


class Recall:
    def __init__(self, k):
        self.k, self.hits, self.seen = k, 0, 0

    def update(self, scores, targets):
        top = scores.topk(self.k, dim=-1).indices
        self.hits += int((top == targets[:, None]).any(dim=-1).sum())
        self.seen += len(targets)

    def value(self):
        return self.hits / max(self.seen, 1)


def score(table, queries, mesh):
    spread = distribute_tensor(queries, mesh, [Replicate()])
    logits = spread @ table["embedding"].t() + table["bias"]
    return logits.full_tensor()


@on_main_rank
def write_summary(recall, folder):
    with open(os.path.join(folder, "summary.json"), "w") as handle:
        json.dump({f"recall@{recall.k}": recall.value(), "queries": recall.seen}, handle)


@on_main_rank
def dump_table(table, folder, tag):
    state = {name: tensor.full_tensor() for name, tensor in table.items()}
    path = os.path.join(folder, f"table-{tag}.pt")
    torch.save(state, path)
    return path


def evaluate(table, weights, mesh, cfg, folder):
    recall = Recall(cfg["k"])
    for number, (queries, targets) in enumerate(query_chunks(weights, cfg), start=1):
        recall.update(score(table, queries, mesh), targets)
        write_summary(recall, folder)
        if number % cfg["dump_every"] == 0:
            dump_table(table, folder, tag=number)
            dist.barrier()
        log.info("chunk %d recall %.3f", number, recall.value())
    return recall


def main():
    logging.basicConfig(level=logging.INFO, format=f"[{os.environ['RANK']}] %(message)s")
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    weights, table = build_table(mesh, SETTINGS)
    with tempfile.TemporaryDirectory(prefix="items-") as folder:
        recall = evaluate(table, weights, mesh, SETTINGS, folder)
    log.info("final recall@%d %.3f", recall.k, recall.value())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
