"""How far a rank has come, on its own disk."""

import json
import logging
from dataclasses import dataclass
from pathlib import Path

log = logging.getLogger("progress")


@dataclass
class Progress:
    path: Path
    epoch: int = 0
    best: float = float("inf")

    @classmethod
    def load(cls, folder: Path, rank: int) -> "Progress":
        """Continue where this rank has stopped; begin anew where it has left nothing."""
        path = folder / f"rank{rank}.json"
        try:
            state = json.loads(path.read_text())
        except FileNotFoundError:
            log.info("%s is not there, beginning anew", path)
            return cls(path)
        log.info("continuing with epoch %d", state["epoch"])
        return cls(path, state["epoch"], state["best"])

    def advance(self, loss: float) -> None:
        self.epoch += 1
        self.best = min(self.best, loss)
        self.path.parent.mkdir(exist_ok=True)
        self.path.write_text(json.dumps({"epoch": self.epoch, "best": self.best}))
