"""Where checkpoints go, whether one holds what was saved, and what a rank ended with."""

import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import torch
from cost import Cost
from lightning import Fabric
from torch import Tensor, nn
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict


@contextmanager
def checkpoints() -> Iterator[Path]:
    """The folder of the checkpoints: RESULTS_DIR, else a new one that is removed at the end.

    Enter it before `launch()`: the other ranks are started with its name in their environment.
    """
    given = os.environ.get("RESULTS_DIR") or os.environ.get("CHECKPOINTS")
    if given:
        yield Path(given)
        return
    with tempfile.TemporaryDirectory(prefix="gpt-") as folder:
        os.environ["CHECKPOINTS"] = folder
        yield Path(folder)


def whole(model: nn.Module) -> dict[str, Tensor]:
    """A copy of all parameters, gathered from the shards of all ranks."""
    inner = model._forward_module  # FSDPStrategy's own module, which Fabric has wrapped once more
    state = get_model_state_dict(inner, options=StateDictOptions(full_state_dict=True))
    return {name: part.clone() for name, part in state.items()}


def compare(saved: Mapping[str, Tensor], loaded: nn.Module) -> int:
    """Compare each parameter of a model with what was saved; returns how many there are.

    Raises:
        RuntimeError: one of them differs.
    """
    found = whole(loaded)
    wrong = [name for name in saved | found if not torch.equal(saved[name], found[name])]
    if wrong:
        raise RuntimeError(f"the checkpoint differs in {', '.join(wrong)}")
    return len(saved)


def write_result(
    fabric: Fabric, steps: int, loss: Tensor, model: nn.Module, compared: int, cost: Cost
) -> None:
    """Writes what this rank ended with, where RESULTS_DIR says."""
    result = {
        "rank": fabric.global_rank,
        "world_size": fabric.world_size,
        "steps": steps,
        "loss": fabric.all_reduce(loss.detach()).item(),
        "parameters": sum(p.double().sum().item() for p in whole(model).values()),
        "compared": compared,
        "memory_of_save": cost.memory,
        "received_by_save": cost.received,
    }
    if "RESULTS_DIR" in os.environ:
        path = Path(os.environ["RESULTS_DIR"]) / f"result-rank{fabric.global_rank}.json"
        path.write_text(json.dumps(result))
    print(
        f"rank {fabric.global_rank} of {fabric.world_size} is done, {compared} parameters compared",
        flush=True,
    )
