"""Rank 0 keeps a transaction open while it waits for rank 1, which waits to write."""

import sqlite3

import torch.distributed as dist

dist.init_process_group("gloo")
results = sqlite3.connect("results.db", timeout=600)
if dist.get_rank() == 0:
    results.execute("CREATE TABLE IF NOT EXISTS scores (rank INTEGER, score REAL)")
    results.execute("BEGIN IMMEDIATE")
    results.execute("INSERT INTO scores VALUES (0, 0.5)")
    dist.barrier()
    dist.barrier()  # <- culprit, rank 0
else:
    dist.barrier()
    results.execute("INSERT INTO scores VALUES (1, 0.7)")  # <- rank 1
    results.commit()
    dist.barrier()
results.commit()
dist.destroy_process_group()
