"""Knowledge distillation over two processes: rank 0 runs the teacher and sends its logits to the student."""
import logging
import os
import time
from types import SimpleNamespace

import torch
import torch.distributed as dist
from torch import nn

log = logging.getLogger("distill")

COMMON = {"vocab": 64, "docs": 60, "pack": 4, "epochs": 2, "seed": 77}
ROLES = {
    "teacher": {"rank": 0, "hidden": 64, "context": 40},
    "student": {"rank": 1, "hidden": 24, "context": 48},
}


def settings_for(rank):
    for role, values in ROLES.items():
        if values["rank"] == rank:
            return SimpleNamespace(role=role, **COMMON, **values)
    raise ValueError(f"no role for rank {rank}")


class LanguageModel(nn.Module):
    def __init__(self, vocab, hidden):
        super().__init__()
        self.embed = nn.Embedding(vocab, hidden)
        self.body = nn.Sequential(nn.Linear(hidden, hidden), nn.ReLU())
        self.out = nn.Linear(hidden, vocab)

    def forward(self, docs):
        pooled = torch.stack([self.embed(doc).mean(dim=0) for doc in docs])
        return self.out(self.body(pooled))


def corpus(cfg, epoch):
    """The same documents on each rank: the generator is seeded alike."""
    gen = torch.Generator().manual_seed(cfg.seed + epoch)
    for number in range(cfg.docs):
        length = 8 + int(torch.randint(0, 30, (1,), generator=gen))
        if number % 13 == 12:
            length = 44  # a few documents are long
        yield torch.randint(0, cfg.vocab, (length,), generator=gen)


def packed(cfg, epoch):
    pack, skipped = [], 0
    for doc in corpus(cfg, epoch):
        if len(doc) > cfg.context:
            skipped += 1
            continue
        pack.append(doc)
        if len(pack) == cfg.pack:
            yield pack
            pack = []
    log.info("epoch %d: %d documents were too long, %d left over", epoch, skipped, len(pack))


def run_teacher(model, cfg, epoch):
    sent = 0
    with torch.no_grad():
        for pack in packed(cfg, epoch):
            dist.send(model(pack).contiguous(), dst=ROLES["student"]["rank"])
            sent += 1
    return sent, 0.0


def run_student(model, optimizer, cfg, epoch):
    total, steps = 0.0, 0
    for pack in packed(cfg, epoch):
        logits = model(pack)
        target = torch.empty_like(logits)
        dist.recv(target, src=ROLES["teacher"]["rank"])
        loss = nn.functional.kl_div(logits.log_softmax(-1), target.softmax(-1), reduction="batchmean")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total, steps = total + loss.item(), steps + 1
        time.sleep(0.03)
    return steps, total


def share_epoch(values):
    """Everyone learns both ranks' counters, for the log and the learning rate."""
    table = torch.zeros(dist.get_world_size(), 2)
    table[dist.get_rank()] = torch.tensor(values, dtype=torch.float32)
    dist.all_reduce(table)
    return table


def main():
    rank = int(os.environ["RANK"])
    cfg = settings_for(rank)
    logging.basicConfig(level=logging.INFO, format=f"[{cfg.role}] %(message)s")
    torch.set_num_threads(1)
    torch.manual_seed(cfg.seed)
    dist.init_process_group("gloo")
    model = LanguageModel(cfg.vocab, cfg.hidden)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for epoch in range(cfg.epochs):
        if cfg.role == "teacher":
            done = run_teacher(model, cfg, epoch)
        else:
            done = run_student(model, optimizer, cfg, epoch)
        table = share_epoch(done)
        log.info("epoch %d: %s", epoch, table.tolist())
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
