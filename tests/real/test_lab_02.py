"""Lab 02: its programs measure what they say, and their comparison of a checkpoint can fail."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import psutil
import pytest

from helpers.labs.lab import RunFolder, find_lab, labs_folder
from helpers.labs.results import judge

FOLDER = labs_folder() / "02_fsdp_saving"
CHANGED = """
import gpt, proof, torch
from lightning import Fabric

fabric = Fabric(accelerator="cpu", devices=1)
saved, loaded = (fabric.setup_module(gpt.GPT()) for _ in range(2))
loaded.load_state_dict(saved.state_dict())
print(proof.compare(proof.whole(saved), loaded))
with torch.no_grad():
    loaded.head.bias[0] += 1
proof.compare(proof.whole(saved), loaded)
"""


@pytest.fixture(scope="module")
def cost() -> ModuleType:
    spec = importlib.util.spec_from_file_location("cost_of_lab_02", FOLDER / "cost.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_full_disk_fails_a_write_and_then_has_room_again(cost: ModuleType, tmp_path: Path) -> None:
    file = tmp_path / "checkpoint"
    with pytest.raises(OSError, match="File too large"), cost.full_disk(True):
        file.write_bytes(bytes(200_000))
    assert file.stat().st_size == 100_000
    with cost.full_disk(False):
        file.write_bytes(bytes(200_000))
    assert file.stat().st_size == 200_000


@pytest.mark.skipif(not psutil.LINUX, reason="the kernel's counts are read on Linux only")
def test_memory_is_the_peak_and_not_what_is_left(cost: ModuleType) -> None:
    with cost.Cost() as measured:
        block = bytearray(b"x" * 20_000_000)
        del block
    assert 20e6 <= measured.memory < 60e6


@pytest.mark.nightly
@pytest.mark.real
def test_one_changed_parameter_is_named() -> None:
    command = [sys.executable, "-B", "-c", CHANGED]
    run = subprocess.run(command, cwd=FOLDER, capture_output=True, text=True, timeout=120)
    assert run.stdout.split()[-1] == "52"
    assert "RuntimeError: the checkpoint differs in head.bias" in run.stderr


@pytest.mark.nightly
@pytest.mark.real
@pytest.mark.skipif(not psutil.LINUX, reason="the kernel's counts are read on Linux only")
def test_a_full_save_moves_the_parameters_and_a_sharded_one_does_not() -> None:
    size = 13.7e6
    full, sharded = (results(form) for form in ("full", "sharded"))
    assert len(full) == len(sharded) == 2
    assert all(size / 2 <= result["received_by_save"] < size for result in full)
    assert all(result["received_by_save"] < size / 100 for result in sharded)
    assert full[0]["memory_of_save"] > size / 2, "what it receives lies in its memory"
    assert all(result["memory_of_save"] < size / 2 for result in sharded)


def results(form: str) -> list[dict[str, Any]]:
    lab, knobs = find_lab("02"), {"ranks": "2", "format": form}
    with RunFolder() as folder:
        report = lab.session("fixed", folder=folder, **knobs).start().wait()
        judgement = judge(lab, "fixed", report, folder, knobs)
        assert judgement.passed, judgement
        return lab.results(folder)
