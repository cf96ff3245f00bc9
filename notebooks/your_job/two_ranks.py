"""Every rank adds up the numbers of all ranks, ten times. Start it with torchrun."""

import argparse

import torch
import torch.distributed as dist

ROUNDS = 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--skip-last", action="store_true", help="rank 1 leaves the last round out")
    options = parser.parse_args()

    dist.init_process_group("gloo")
    rank = dist.get_rank()
    rounds = ROUNDS - 1 if options.skip_last and rank == 1 else ROUNDS
    for _ in range(rounds):
        total = torch.tensor(float(rank + 1))
        dist.all_reduce(total)
    print(f"rank {rank}: {total.item():.0f} in the last of {rounds} rounds", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
