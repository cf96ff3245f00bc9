"""Keeps the checkpoints of the best epochs."""

import heapq
import logging
from pathlib import Path

import lightning.pytorch as pl

log = logging.getLogger("prices.retention")


class KeepBest(pl.Callback):
    """Saves an epoch that is among the best so far, and removes what has fallen behind."""

    def __init__(self, folder: Path, keep: int, metric: str = "val_error") -> None:
        self.folder, self.keep, self.metric = folder, keep, metric
        self._kept: list[tuple[float, str]] = []  # the worst first

    def is_due(self, error: float) -> bool:
        return len(self._kept) < self.keep or -self._kept[0][0] > error

    def on_validation_end(self, trainer: pl.Trainer, module: pl.LightningModule) -> None:
        error = float(trainer.strategy.reduce(trainer.callback_metrics[self.metric]))
        if self.is_due(error):
            path = self.folder / f"epoch-{trainer.current_epoch:02d}.ckpt"
            trainer.save_checkpoint(path)
            log.info("epoch %d: error %.3f, saved %s", trainer.current_epoch, error, path.name)
            self._remember(error, path, trainer)
        else:
            log.info("epoch %d: error %.3f", trainer.current_epoch, error)

    def _remember(self, error: float, path: Path, trainer: pl.Trainer) -> None:
        heapq.heappush(self._kept, (-error, str(path)))
        if len(self._kept) > self.keep:
            _, worst = heapq.heappop(self._kept)
            if trainer.is_global_zero:
                Path(worst).unlink(missing_ok=True)
