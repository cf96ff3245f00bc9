"""A healthy job of three: every rank writes into one database, and keeps it for two seconds."""

import sqlite3
import time

import torch.distributed as dist

dist.init_process_group("gloo")
results = sqlite3.connect("results.db", timeout=60)
if dist.get_rank() == 0:
    results.execute("CREATE TABLE scores (rank INTEGER)")
    results.commit()
dist.barrier()
results.execute("BEGIN IMMEDIATE")
results.execute("INSERT INTO scores VALUES (?)", (dist.get_rank(),))
time.sleep(2)
results.commit()
dist.barrier()
dist.destroy_process_group()
