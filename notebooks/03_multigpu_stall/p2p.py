"""Sums a tensor over two GPUs with NCCL, then trains a little: a test of the path between them."""

import torch
from gpt import CONFIG, GPT, batches
from lightning.fabric import Fabric
from results import Cost, write_result


def main() -> None:
    fabric = Fabric(accelerator="cuda", devices=2, strategy="ddp")
    fabric.launch()
    with Cost() as cost:
        total = fabric.all_reduce(torch.ones(1_000_000, device=fabric.device), reduce_op="sum")
    fabric.print(f"the first all_reduce gave {total[0].item():.0f} after {cost.seconds:.1f} s")
    with fabric.init_module():
        model = GPT(**CONFIG)
    model = fabric.setup_module(model)
    optimizer = fabric.setup_optimizers(torch.optim.SGD(model.parameters(), lr=0.01))
    for steps, tokens in enumerate(batches(fabric), start=1):
        loss = model(tokens.to(fabric.device))
        fabric.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
        fabric.print(f"step {steps}: loss {loss.item():.3f}")
    write_result(fabric, steps, loss, model, cost)


if __name__ == "__main__":
    main()
    torch.distributed.destroy_process_group()
