"""The main process waits for everyone inside the block that only it enters."""

import torch
from accelerate import Accelerator
from marks import about_to_block
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def save(accelerator: Accelerator, model: nn.Module) -> None:
    if accelerator.is_main_process:  # <- parted
        about_to_block()
        accelerator.wait_for_everyone()  # <- culprit, rank 0
        torch.save(accelerator.unwrap_model(model).state_dict(), "model.pt")


def main() -> None:
    accelerator = Accelerator(cpu=True)
    data = TensorDataset(torch.randn(48, 4), torch.randn(48, 1))
    model = nn.Linear(4, 1)
    model, optimizer, loader = accelerator.prepare(
        model, torch.optim.SGD(model.parameters(), lr=0.1), DataLoader(data, batch_size=4)
    )
    for step, (inputs, targets) in enumerate(loader):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(inputs), targets)
        about_to_block()
        accelerator.backward(loss)  # <- rank 1
        optimizer.step()
        if step == 2:
            save(accelerator, model)


if __name__ == "__main__":
    main()
