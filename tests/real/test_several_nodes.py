"""Jobs on several machines, which are network namespaces: what each shows alone, and all together."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
from machines import Machine, machines, why_not
from repository import ROOT
from waiting import until

pytestmark = [pytest.mark.real, pytest.mark.nightly]

PORT = 29500
"""Each test has a network of its own."""

BEGIN = """
import os, pathlib, time
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank = dist.get_rank()
x = torch.ones(4)
"""

MISMATCH = f"""{BEGIN}
for step in range(50):
    dist.all_reduce(x)
    if step == 20 and rank == 1:
        dist.barrier()
"""

ENDLESS = f"""{BEGIN}
step = 0
while True:
    dist.all_reduce(x)
    step += 1
    if step == 20:
        pathlib.Path(f"reached.{{rank}}").touch()
    time.sleep(0.01)
"""


@pytest.fixture(autouse=True, scope="module")
def _namespaces() -> None:
    if reason := why_not():
        pytest.skip(reason)


class Cluster:
    """Machines, and the instrument on each of them."""

    def __init__(self, folder: Path, made: tuple[Machine, ...]) -> None:
        self.folder = folder
        self.machines = made
        self.records = folder / "records"
        self.tools: list[subprocess.Popen[bytes]] = []

    def start(self, machine: Machine, number: int, ranks: int) -> subprocess.Popen[bytes]:
        """Start the job's part on a machine."""
        return machine.start(
            *(sys.executable, "-m", "helpers", "diagnose"),
            *("--json", str(self.folder / f"{number}.json"), "--record", str(self.records), "--"),
            *(str(Path(sys.executable).with_name("torchrun")), f"--nnodes={len(self.machines)}"),
            *(f"--nproc-per-node={ranks}", f"--node-rank={number}"),
            *(f"--master-addr={self.machines[0].address}", f"--master-port={PORT}", "train.py"),
            cwd=self.folder,
            env={"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        )

    def switch_off(self, number: int) -> None:
        """End everything on a machine at once, the instrument included."""
        tool = self.tools[number]
        with suppress(psutil.NoSuchProcess):
            top = psutil.Process(tool.pid)
            all_of_it = [top, *top.children(recursive=True)]
            for number_of_signal in (signal.SIGSTOP, signal.SIGKILL):
                for process in all_of_it:
                    with suppress(psutil.NoSuchProcess):
                        process.send_signal(number_of_signal)
        tool.wait(60)

    def alone(self, number: int) -> dict[str, Any]:
        """The report of one machine, when it is there."""
        self.tools[number].wait(120)
        found: dict[str, Any] = json.loads((self.folder / f"{number}.json").read_text())
        return found

    def together(self) -> tuple[dict[str, Any], str]:
        """What `read` makes of all recordings, as JSON and as text."""
        report = self.folder / "read.json"
        done = subprocess.run(
            (sys.executable, "-m", "helpers", "read", "--json", str(report), str(self.records)),
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        return json.loads(report.read_text()), done.stdout


@contextmanager
def cluster(folder: Path, program: str, hosts: Sequence[str], ranks: Sequence[int]) -> Iterator[Cluster]:
    """A job under `diagnose --record` on each of some machines; all of it has ended afterwards.

    Args:
        ranks: how many on each machine.
    """
    with ExitStack() as at_end:
        made = Cluster(folder, at_end.enter_context(machines(len(hosts), folder, hosts)))
        (folder / "train.py").write_text(program)
        made.records.mkdir()
        for number, (machine, here) in enumerate(zip(made.machines, ranks, strict=True)):
            made.tools.append(made.start(machine, number, here))
            at_end.callback(made.switch_off, number)
        yield made


def places(report: dict[str, Any]) -> list[tuple[int, int, str | None]]:
    return [(view["rank"], view["node"], view["host"]) for view in report["ranks"]]


@pytest.mark.parametrize("hosts", [("n0", "n1"), ("same", "same")], ids=["two hosts", "of one name"])
def test_a_mismatch_is_found_though_each_node_sees_a_part(tmp_path: Path, hosts: Sequence[str]) -> None:
    with cluster(tmp_path, MISMATCH, hosts, (2, 1)) as job:
        assert job.alone(0)["cause"] == "collective-mismatch"
        other = job.alone(1)
        whole, text = job.together()
    assert (other["cause"], other["culprits"]) in (("unknown", []), ("none", []))
    assert (whole["outcome"], whole["cause"], whole["culprits"]) == ("hang", "collective-mismatch", [1])
    assert whole["proved"]
    assert whole["parting"]["source"] == "if step == 20 and rank == 1:"
    assert places(whole) == [(0, 0, hosts[0]), (1, 0, hosts[0]), (2, 1, hosts[1])]
    assert [view["state"] for view in whole["ranks"]] == ["waiting"] * 3
    assert whole["job"]["nodes_seen"] == 2
    assert f"Look first at: rank 1 on node 0 (host {hosts[0]})" in text


def test_a_node_that_is_switched_off_is_named(tmp_path: Path) -> None:
    with cluster(tmp_path, ENDLESS, ("n0", "n1"), (1, 2)) as job:
        until(lambda: (tmp_path / "reached.2").exists(), 60)
        job.switch_off(1)
        alone = job.alone(0)
        whole, text = job.together()
        address = job.machines[1].address
    assert (alone["outcome"], alone["cause"], alone["culprits"]) == ("error", "unknown", [])
    assert address in alone["detail"]
    assert "stuck-ranks read FOLDER" in alone["summary"]
    assert [view["state"] for view in alone["ranks"]] == ["exited", "unseen", "unseen"]
    assert (whole["outcome"], whole["cause"], whole["culprits"]) == ("error", "rank-exited", [1, 2])
    assert "Look first at: rank 1, 2 on node 1 (host n1)" in text
