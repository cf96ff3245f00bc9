"""Fine-tunes the last block of a GPT, from the checkpoint of an earlier run."""

import torch
from gpt import GPT, batches, last_checkpoint, make_fabric
from results import Cost, write_result


def main() -> None:
    path = last_checkpoint()
    with Cost() as cost:
        checkpoint = torch.load(path, map_location="cpu")
        model = GPT(**checkpoint["config"])
        model.load_state_dict(checkpoint["model"])
    model.requires_grad_(False)
    model.blocks[-1].requires_grad_(True)

    fabric = make_fabric()
    fabric.launch()
    model = fabric.setup_module(model)
    optimizer = fabric.setup_optimizers(torch.optim.Adam(model.blocks[-1].parameters(), lr=0.0001))
    for steps, tokens in enumerate(batches(fabric), start=1):
        loss = model(tokens)
        fabric.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
        fabric.print(f"step {steps}: loss {loss.item():.3f}")
    write_result(fabric, steps, loss, model, cost)


if __name__ == "__main__":
    main()
    torch.distributed.destroy_process_group()
