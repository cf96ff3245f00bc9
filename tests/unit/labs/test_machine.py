"""What a machine lacks is said before a run; here the machine is made up."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path

import psutil
import pytest
from example_lab import changed, example, write_programs

from helpers.labs import machine
from helpers.labs.lab import LabError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_programs(tmp_path)


@pytest.fixture
def gpus(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.delenv(machine.PIN, raising=False)
    return monkeypatch


def with_gpus(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    monkeypatch.setattr(machine, "_gpus", lambda: count)


@pytest.mark.parametrize(
    ("count", "need", "ranks", "said"),
    [
        (0, "one-gpu", 2, "needs a GPU, and this machine has none"),
        (1, "one-gpu", 2, ""),
        (1, "two-gpus", 2, "needs 2 GPUs, and this machine has 1"),
        (2, "two-gpus", 3, ""),
        (2, "gpu-per-rank", 3, "needs 3 GPUs, and this machine has 2"),
        (2, "gpu-per-rank", 2, ""),
    ],
)
def test_gpus(gpus: pytest.MonkeyPatch, count: int, need: str, ranks: int, said: str) -> None:
    with_gpus(gpus, count)
    assert machine.lacking(need, ranks) == said


def test_gpus_can_be_left_out(gpus: pytest.MonkeyPatch) -> None:
    with_gpus(gpus, 8)
    gpus.setenv(machine.PIN, "cpu")
    assert machine.lacking("one-gpu", 1) == "needs a GPU, and STUCK_RANKS_HARDWARE=cpu leaves them out"


def test_without_a_driver_nobody_asks_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def probe() -> dict[str, object]:
        asked.append("torch")
        return {"gpus": ["a", "b"]}

    monkeypatch.setattr(machine, "_probed", probe)
    monkeypatch.setattr(machine, "GPU_DEVICES", ("/dev/no-such-device",))
    assert machine.gpu_count() == 0
    assert asked == []
    monkeypatch.setattr(machine, "GPU_DEVICES", ("/dev/null",))
    assert machine.gpu_count() == 2


def test_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "compiler", lambda: None)
    monkeypatch.setattr(machine, "ninja", lambda: "/bin/ninja")
    assert machine.lacking("compiler", 2) == "needs a C++ compiler"
    monkeypatch.setattr(machine, "compiler", lambda: "/bin/g++")
    monkeypatch.setattr(sys, "prefix", "/my env")
    assert machine.lacking("compiler", 2).startswith("needs an environment in a path without spaces")
    monkeypatch.setattr(sys, "prefix", "/env")
    assert machine.lacking("compiler", 2) == ""
    monkeypatch.setattr(machine, "installed", lambda name: None)
    assert machine.lacking("deepspeed", 2) == "needs the package deepspeed"


@pytest.mark.parametrize(("count", "best"), [(0, "cpu"), (1, "one-gpu"), (2, "multi-gpu")])
def test_hardware_is_the_best_found(
    gpus: pytest.MonkeyPatch, folder: Path, count: int, best: str
) -> None:
    with_gpus(gpus, count)
    gpus.setattr(machine, "compiler", lambda: "/bin/g++")
    gpus.setattr(machine, "ninja", lambda: "/bin/ninja")
    gpus.setattr(sys, "prefix", "/env")
    lab = example(folder)
    assert lab.knobs["hardware"].default == best
    assert lab.ranks("fixed", {}) == (1 if best == "one-gpu" else 2)
    assert ("not here" in lab.knobs["hardware"].values["multi-gpu"].text) == (count < 2)


def test_what_cannot_run_here_is_refused_and_says_why(gpus: pytest.MonkeyPatch, folder: Path) -> None:
    with_gpus(gpus, 0)
    gpus.setattr(machine, "compiler", lambda: None)
    lab = example(folder, changed("programs/broken/needs", ["compiler"]))
    assert lab.knobs["hardware"].values["one-gpu"].text == (
        "one-gpu (not here: it needs a GPU, and this machine has none)"
    )
    with pytest.raises(LabError, match="07_example cannot run this here: broken needs a C"):
        lab.session("broken")
    with pytest.raises(LabError, match=r"hardware one-gpu needs a GPU, and this machine has none"):
        lab.session("fixed", hardware="one-gpu")
    assert lab.lacking("fixed") == lab.lacking("fixed", {}) == ""


def refusal(folder: Path, memory: int = 0, disk: int = 0, port: str = "", word: str = "python") -> str:
    environment = {"MASTER_PORT": port} if port else {}
    return machine.refusal(memory, disk, [folder], [word, "broken.py"], environment)


def test_too_little_memory_or_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "free_memory", lambda: 900 * machine.MB)
    assert refusal(tmp_path, memory=900) == ""
    assert refusal(tmp_path, memory=1000).startswith(
        "it needs 1000 MB of free memory, and 900 MB are free"
    )
    assert refusal(tmp_path, disk=1) == ""
    assert f"MB of disk in {tmp_path}, and " in refusal(tmp_path, disk=10**9)


def test_the_port_of_a_stranger(tmp_path: Path) -> None:
    with socket.socket() as stranger:
        stranger.bind(("127.0.0.1", 0))
        stranger.listen()
        port = str(stranger.getsockname()[1])
        said = refusal(tmp_path, port=port)
        assert said.startswith(f"its port {port} is in use by process {os.getpid()} (")
        assert psutil.Process().cmdline()[0] in said
        assert refusal(tmp_path, port=port, word="torchrun") == ""
    assert refusal(tmp_path, port=port) == ""
    assert refusal(tmp_path) == refusal(tmp_path, port="many") == ""
    assert refusal(tmp_path, port="99999") == "MASTER_PORT=99999 is not a port: unset it"


def test_a_session_is_refused_for_want_of_memory(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "free_memory", lambda: 10)
    lab = example(folder, changed("memory_mb", 100))
    with pytest.raises(LabError, match="07_example is not started: it needs 100 MB of free memory"):
        lab.session("broken")
