"""A healthy job of five ranks: accelerate gathers uneven batches; the main process takes its time."""

import time

import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def main() -> None:
    accelerator = Accelerator(cpu=True)
    data = TensorDataset(torch.randn(33, 4), torch.randn(33, 1))
    model, loader = accelerator.prepare(nn.Linear(4, 1), DataLoader(data, batch_size=2))
    seen = 0
    with torch.no_grad():
        for inputs, targets in loader:
            predicted, _ = accelerator.gather_for_metrics((model(inputs), targets))
            seen += len(predicted)
            if accelerator.is_main_process:
                time.sleep(1.2)
    assert seen == 33
    accelerator.wait_for_everyone()
    accelerator.end_training()


if __name__ == "__main__":
    main()
