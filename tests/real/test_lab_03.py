"""Lab 03: its programs measure what they say, and its limits lie where the lab needs them."""

from __future__ import annotations

import subprocess
import sys

import psutil
import pytest

from helpers.labs.lab import find_lab, labs_folder

FOLDER = labs_folder() / "03_multigpu_stall"

linux = pytest.mark.skipif(not psutil.LINUX, reason="the kernel's counts are read on Linux only")

COSTS = """
import torch
from gpt import CONFIG, GPT
from results import Cost, in_copies

def cost(make):
    with Cost() as measured:
        model = make()
    size = sum(p.numel() * p.element_size() for p in model.parameters())
    return in_copies(measured.peak, size, "model")

def on_meta():
    with torch.device("meta"):
        return GPT(**CONFIG)

print(cost(on_meta), cost(lambda: GPT(**CONFIG)), cost(lambda: GPT(**CONFIG).to("meta")), sep=";")
"""


@pytest.mark.nightly
@pytest.mark.real
@linux
def test_a_model_takes_its_memory_before_it_is_moved() -> None:
    run = subprocess.run(
        [sys.executable, "-B", "-c", COSTS],
        cwd=FOLDER,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    once = "about 1 x the model"
    assert run.stdout.strip().split(";") == ["less than half the model", once, once]


@pytest.mark.parametrize(
    ("program", "knobs", "megabytes", "stall"),
    [
        ("broken", {}, 1850, False),
        ("broken", {"ranks": "2"}, 1850, False),
        ("broken", {"ranks": "4"}, 3300, False),
        ("broken", {"limit": "freeze"}, 1850, True),
        ("broken", {"limit": "none"}, None, False),
        ("requeued", {}, None, False),
    ],
)
def test_which_runs_are_limited(
    program: str, knobs: dict[str, str], megabytes: int | None, stall: bool
) -> None:
    limit = find_lab("03").memory_limit(program, knobs)
    assert (limit.megabytes if limit else None) == megabytes
    assert bool(limit and limit.stall) == stall


@pytest.mark.nightly
@pytest.mark.real
@pytest.mark.parametrize(("who", "awaited"), [("zero", ((0,), "compute")), ("all", None)])
def test_the_job_that_stutters_waits_for_the_rank_that_measures(
    who: str, awaited: tuple[tuple[int, ...], str] | None
) -> None:
    session = find_lab("03").session("stutter", measures=who)
    verdict = session.start().wait(300).verdict
    assert verdict.outcome == "ok"
    slow = verdict.slow
    assert (None if slow is None else (slow.ranks, slow.kind)) == awaited
    if slow is not None:
        assert slow.where is not None
        assert (slow.where.file, slow.where.function) == ("stutter.py", "accuracy")


def test_a_machine_without_two_gpus_says_so() -> None:
    assert "needs 2 GPUs" in find_lab("03").lacking("p2p", {})
