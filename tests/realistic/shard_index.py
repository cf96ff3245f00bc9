"""Finds the latent shards of a data set and caches how many rows each of them has."""
import json
import logging
import os
import time

import torch.distributed as dist

log = logging.getLogger("shards")


def _scan(root, names):
    lengths = {}
    for name in names:
        with open(os.path.join(root, name)) as handle:
            lengths[name] = sum(1 for line in handle if line.strip())
        time.sleep(0.02)
    return lengths


def _write(path, payload):
    tmp = f"{path}.tmp"
    with open(tmp, "w") as handle:
        json.dump(payload, handle)
    os.replace(tmp, path)


def get_files_and_lengths(root):
    """Rank 0 makes the cache if there is none; everyone reads it."""
    cache = os.path.join(root, "lengths.json")
    if os.path.exists(cache):
        with open(cache) as handle:
            lengths = json.load(handle)
        log.info("using the cached index of %d files", len(lengths))
        return sorted(lengths.items())
    if dist.get_rank() == 0:
        names = sorted(n for n in os.listdir(root) if n.endswith(".latents"))
        _write(cache, _scan(root, names))
        log.info("indexed %d files", len(names))
    dist.barrier()
    return get_files_and_lengths(root)


def split_by_rank(files, rank, world):
    mine, rows = [], 0
    for i, (name, length) in enumerate(files):
        if i % world == rank:
            mine.append(name)
            rows += length
    return mine, rows
