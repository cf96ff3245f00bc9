"""The main process alone gathers the predictions of all for its metric."""

import torch
from accelerate import Accelerator
from marks import about_to_block
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def evaluate(accelerator: Accelerator, model: nn.Module, loader: DataLoader) -> None:
    for inputs, targets in loader:
        predicted = model(inputs)
        if accelerator.is_main_process:  # <- parted
            about_to_block()
            both = accelerator.gather_for_metrics((predicted, targets))  # <- culprit, rank 0
            print("error", nn.functional.mse_loss(*both).item())


def main() -> None:
    accelerator = Accelerator(cpu=True)
    data = TensorDataset(torch.randn(30, 4), torch.randn(30, 1))
    model, loader = accelerator.prepare(nn.Linear(4, 1), DataLoader(data, batch_size=4))
    with torch.no_grad():
        evaluate(accelerator, model, loader)
    about_to_block()
    accelerator.wait_for_everyone()  # <- rank 1, rank 2, rank 3


if __name__ == "__main__":
    main()
