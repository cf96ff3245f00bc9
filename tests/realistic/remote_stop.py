"""Pose model training that a remote user interface can stop early."""
import logging
import os
import queue
import tempfile
import threading
import time

import lightning as L
import torch
from lightning.pytorch.callbacks import Callback
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

log = logging.getLogger("pose")


class Bridge(threading.Thread):
    """Stands for the ZMQ subscriber: commands from the user interface arrive here."""

    def __init__(self, script):
        super().__init__(daemon=True)
        self.script = script
        self.inbox = queue.Queue()

    def run(self):
        for delay, command in self.script:
            time.sleep(delay)
            self.inbox.put(command)


class TrainingController(Callback):
    def __init__(self, script):
        self.script = script
        self.bridge = None
        self.rates = {"slower": 0.5, "faster": 2.0}

    def on_train_start(self, trainer, pl_module):
        if trainer.is_global_zero:
            self.bridge = Bridge(self.script)
            self.bridge.start()

    def _handle(self, trainer, command):
        log.info("command from the user interface: %s", command)
        if command == "stop":
            trainer.should_stop = True
        elif command in self.rates:
            log.info("rate hint noted: %s", self.rates[command])
        else:
            log.warning("unknown command %r", command)

    def on_train_batch_end(self, trainer, pl_module, outputs, batch, batch_idx):
        if trainer.is_global_zero:
            try:
                command = self.bridge.inbox.get_nowait()
            except queue.Empty:
                command = None
            if command is not None:
                self._handle(trainer, command)
        trainer.strategy.barrier()


class Throughput(Callback):
    def __init__(self):
        self.started = None

    def on_train_epoch_start(self, trainer, pl_module):
        self.started = time.monotonic()

    def on_train_epoch_end(self, trainer, pl_module):
        rate = trainer.num_training_batches / (time.monotonic() - self.started)
        log.info("rank %d epoch %d: %.1f batches/s", trainer.global_rank, trainer.current_epoch, rate)


class PoseNet(L.LightningModule):
    def __init__(self, joints=6):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 2 * joints))

    def training_step(self, batch, batch_idx):
        frames, coords = batch
        time.sleep(0.03)
        return nn.functional.smooth_l1_loss(self.body(frames), coords)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=1e-2)


def make_frames(count=1600, joints=6):
    gen = torch.Generator().manual_seed(4)
    frames = torch.randn(count, 32, generator=gen)
    weight = torch.randn(32, 2 * joints, generator=gen)
    return TensorDataset(frames, frames @ weight)


def main():
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    torch.set_num_threads(1)
    loader = DataLoader(make_frames(), batch_size=8, shuffle=True)
    controller = TrainingController(script=[(0.8, "slower"), (1.0, "stop")])
    trainer = L.Trainer(
        accelerator="cpu", devices=2, strategy="ddp", max_epochs=6, logger=False, enable_progress_bar=False,
        enable_checkpointing=False, enable_model_summary=False, callbacks=[controller, Throughput()],
    )
    model = PoseNet()
    trainer.fit(model, loader)
    log.info("rank %d: fit is over at step %d", trainer.global_rank, trainer.global_step)
    trainer.save_checkpoint(os.path.join(tempfile.gettempdir(), "pose-final.ckpt"))


if __name__ == "__main__":
    main()
