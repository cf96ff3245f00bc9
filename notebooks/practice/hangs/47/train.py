import sqlite3

import torch.distributed as dist

dist.init_process_group("gloo")
results = sqlite3.connect("results.db", timeout=600)
if dist.get_rank() == 0:
    results.execute("CREATE TABLE IF NOT EXISTS scores (rank INTEGER, score REAL)")
    results.execute("BEGIN IMMEDIATE")
    results.execute("INSERT INTO scores VALUES (0, 0.5)")
    dist.barrier()
    dist.barrier()
else:
    dist.barrier()
    results.execute("INSERT INTO scores VALUES (1, 0.7)")
    results.commit()
    dist.barrier()
results.commit()
dist.destroy_process_group()
