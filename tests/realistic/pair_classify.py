"""Fine-tunes a sentence-pair classifier with accelerate and evaluates now and then within an epoch."""
import argparse

import torch
from accelerate import Accelerator
from accelerate.logging import get_logger
from accelerate.utils import set_seed
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from tqdm.auto import tqdm

logger = get_logger(__name__)


def parse_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--num-epochs", type=int, default=4)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--eval-steps", type=int, default=10)
    parser.add_argument("--vocab", type=int, default=200)
    parser.add_argument("--length", type=int, default=12)
    parser.add_argument("--learning-rate", type=float, default=2e-3)
    parser.add_argument("--seed", type=int, default=13)
    return parser.parse_args()


class PairModel(nn.Module):
    def __init__(self, vocab, dim=32):
        super().__init__()
        self.embed = nn.Embedding(vocab, dim)
        self.mix = nn.Linear(2 * dim, dim)
        self.out = nn.Linear(dim, 2)

    def forward(self, left, right):
        a, b = self.embed(left).mean(1), self.embed(right).mean(1)
        return self.out(torch.tanh(self.mix(torch.cat([a, b], dim=-1))))


def make_split(size, args, seed):
    gen = torch.Generator().manual_seed(seed)
    left = torch.randint(0, args.vocab, (size, args.length), generator=gen)
    right = torch.randint(0, args.vocab, (size, args.length), generator=gen)
    same = torch.rand(size, generator=gen) < 0.5
    right[same] = left[same]
    return TensorDataset(left, right, same.long())


def make_loaders(args):
    train = DataLoader(make_split(960, args, 1), batch_size=args.batch_size, shuffle=True)
    valid = DataLoader(make_split(200, args, 2), batch_size=args.batch_size)
    return train, valid


def evaluate(accelerator, model, loader):
    model.eval()
    hits, seen = 0, 0
    for left, right, labels in loader:
        with torch.no_grad():
            preds = model(left, right).argmax(dim=-1)
        preds, labels = accelerator.gather_for_metrics((preds, labels))
        hits += int((preds == labels).sum())
        seen += len(labels)
    model.train()
    return hits / max(seen, 1)


def report(accelerator, step, accuracy, best):
    if accelerator.is_main_process:
        tqdm.write(f"step {step}: accuracy {accuracy:.3f} (best so far {best:.3f})")
    return max(best, accuracy)


def main():
    args = parse_args()
    accelerator = Accelerator(cpu=True)
    set_seed(args.seed)
    model = PairModel(args.vocab)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.learning_rate)
    train_loader, eval_loader = make_loaders(args)
    model, optimizer, train_loader, eval_loader = accelerator.prepare(model, optimizer, train_loader, eval_loader)

    total_steps = args.num_epochs * len(train_loader)
    progress_bar = tqdm(total=total_steps, mininterval=1.0, disable=not accelerator.is_local_main_process)
    logger.info("training for %d steps on %d processes", total_steps, accelerator.num_processes)

    criterion = nn.CrossEntropyLoss()
    best = 0.0
    for epoch in range(args.num_epochs):
        for left, right, labels in train_loader:
            loss = criterion(model(left, right), labels)
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
            progress_bar.update(1)
            done = progress_bar.n
            if done and done % args.eval_steps == 0:
                accuracy = evaluate(accelerator, model, eval_loader)
                best = report(accelerator, done, accuracy, best)
        progress_bar.set_postfix(epoch=epoch, loss=f"{loss.item():.3f}")

    accelerator.wait_for_everyone()
    final = evaluate(accelerator, model, eval_loader)
    report(accelerator, total_steps, final, best)
    progress_bar.close()
    accelerator.end_training()


if __name__ == "__main__":
    main()
