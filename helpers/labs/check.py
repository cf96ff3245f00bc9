"""How the guide runs on this machine: its facts judged, lab by lab. Needs psutil and rich only."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from rich.console import Console, Group, RenderableType
from rich.markup import escape
from rich.table import Column, Table

from .machine import Fact, collect

__all__ = ["Fact", "LabLine", "collect", "exit_code", "labs_on_this_machine", "main", "render"]

Hardware = Literal["cpu gloo", "one-gpu", "multi-gpu", "skipped"]

LABS = (
    "01_launch_placement",
    "02_fsdp_saving",
    "03_multigpu_stall",
    "04_ddp_dataloader",
    "05_spawn_ports",
)


@dataclass(frozen=True)
class LabLine:
    """How one lab runs here.

    Attributes:
        name: the lab's folder.
        runs: the best hardware it finds, or "skipped".
        note: what differs here from a machine that has everything, and why; or "".
    """

    name: str
    runs: Hardware
    note: str = ""


def labs_on_this_machine(facts: Sequence[Fact]) -> list[LabLine]:
    """Say how each lab runs on a machine.

    Args:
        facts: what `collect` returned.

    Returns:
        One line for each lab, in the order of the guide.
    """
    by_name = {fact.name: fact for fact in facts}

    def has(name: str) -> bool:
        fact = by_name.get(name)
        return fact is not None and fact.status == "ok"

    missing = [fact.name for fact in facts if fact.status == "missing"]
    if missing:
        return [LabLine(name, "skipped", f"missing: {', '.join(missing)}") for name in LABS]

    gpus = (by_name["GPUs"].number or 0) if "GPUs" in by_name else 0
    runs: dict[str, Hardware] = dict.fromkeys(LABS, "multi-gpu" if gpus > 1 else "cpu gloo")
    notes = dict.fromkeys(LABS, "Its ranks need a GPU each." if gpus == 1 else "")
    if gpus == 1:
        runs["04_ddp_dataloader"], notes["04_ddp_dataloader"] = "one-gpu", "One rank has the GPU."
    if gpus < 3:
        runs["02_fsdp_saving"] = "cpu gloo"
        notes["02_fsdp_saving"] = "FSDP2 on the CPU stands in for FSDPStrategy, which wants 3 GPUs."
    if gpus == 0:
        notes["04_ddp_dataloader"] = "Same chain of errors; the text that names cuda needs a GPU."
    left_out = []
    if lacking := [name for name in ("transformers", "safetensors") if not has(name)]:
        left_out.append(f"host memory (no {', '.join(lacking)})")
    elif "memory" in by_name and not has("memory"):
        left_out.append("host memory (less than 2 GiB free)")
    if lacking := [n for n in ("deepspeed", "C++ compiler", "ninja") if not has(n)]:
        left_out.append(f"DeepSpeed (no {', '.join(lacking)})")
    if left_out:
        notes["03_multigpu_stall"] = f"Left out: {'; '.join(left_out)}."
    both = len(left_out) == 2
    return [
        LabLine(name, "skipped" if both and name.startswith("03") else runs[name], notes[name])
        for name in LABS
    ]


def exit_code(facts: Sequence[Fact]) -> int:
    """Return 0 when everything required is there, else 1."""
    return int(any(fact.status == "missing" for fact in facts))


def render(facts: Sequence[Fact], labs: Sequence[LabLine]) -> RenderableType:
    """Return two tables and a closing sentence, for rich."""
    colours = {"ok": "green", "warn": "yellow", "missing": "red"}
    found = Column("found here", overflow="fold")
    machine = Table("", found, "status", "what follows", title="This machine")
    for fact in facts:
        status = f"[{colours[fact.status]}]{fact.status}[/]"
        machine.add_row(fact.name, escape(fact.value), status, escape(fact.advice))
    here = Table("lab", "runs on", "note", title="The labs on this machine")
    for lab in labs:
        here.add_row(lab.name, lab.runs, escape(lab.note))
    missing = [fact.name for fact in facts if fact.status == "missing"]
    if missing:
        closing = f"The guide cannot run here: {', '.join(missing)} missing."
    else:
        closing = "Everything required is there."
    return Group(machine, here, closing)


def main() -> int:
    """Print what is here; return 0 when everything required is there, else 1."""
    facts = collect()
    Console().print(render(facts, labs_on_this_machine(facts)))
    return exit_code(facts)


if __name__ == "__main__":
    raise SystemExit(main())
