"""Jobs on several machines, which are network namespaces: what each shows alone, and all together."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
from contract import violations
from machines import NETWORK, Machine, machines, why_not
from repository import ROOT
from waiting import until

from helpers.observe.recording import RecordingError, load

pytestmark = [pytest.mark.real, pytest.mark.nightly]

PORT = 29500
"""Each test has a network of its own."""

PATIENCE = 5.0
"""Seconds after which a rank that does not move is a suspicion."""

HEALTHY = 60.0
"""Seconds for which a healthy job gives no alarm."""

BEGIN = """
import pathlib, time
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
        pathlib.Path("apart").touch()
        dist.barrier()
"""

ENDLESS = f"""{BEGIN}
step = 0
enough = torch.zeros(1)
while not enough:
    enough = torch.tensor([float(pathlib.Path("enough").exists())])
    dist.all_reduce(enough)
    step += 1
    if step % 20 == 0:
        pathlib.Path(f"step.{{rank}}").write_text(str(step))
    time.sleep(0.01)
"""

STEPS = f"""{BEGIN}
def augment():
    time.sleep(0.15)

for step in range(120):
    time.sleep(0.1)
    if rank == SLOW:
        augment()
    dist.all_reduce(x)
"""
"""A job in which one rank has more to do, if there is a rank of that number."""

LOADER = f"""{BEGIN}
class Data(torch.utils.data.Dataset):
    def __len__(self):
        return 20

    def __getitem__(self, index):
        if rank == 1 and index == 7:
            time.sleep(600)
        return torch.ones(4)

for batch in torch.utils.data.DataLoader(Data(), num_workers=1):
    dist.all_reduce(batch)
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
        self.records.mkdir()
        self.tools: dict[int, subprocess.Popen[bytes]] = {}

    def start(
        self,
        number: int,
        ranks: int = 1,
        *,
        master: str = f"{NETWORK}.1",
        port: int = PORT,
        env: Mapping[str, str] | None = None,
        backend: str = "static",
    ) -> None:
        """Start a machine's part of the job under `diagnose --record`."""
        self.tools[number] = self.machines[number].start(
            *(sys.executable, "-m", "helpers", "diagnose", "--patience", str(PATIENCE)),
            *("--json", str(self.folder / f"{number}.json"), "--record", str(self.records), "--"),
            *self.part(number, ranks, master, port, backend),
            cwd=self.folder,
            env={"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", **(env or {})},
        )

    def part(
        self,
        number: int,
        ranks: int,
        master: str = f"{NETWORK}.1",
        port: int = PORT,
        backend: str = "static",
    ) -> list[str]:
        """The command of a machine's part of the job."""
        meets = {
            "static": (f"--node-rank={number}", f"--master-addr={master}", f"--master-port={port}"),
            "c10d": ("--rdzv-backend=c10d", f"--rdzv-endpoint={master}:{port}", "--rdzv-id=job"),
        }
        return [
            *(str(Path(sys.executable).with_name("torchrun")), f"--nnodes={len(self.machines)}"),
            *(f"--nproc-per-node={ranks}", *meets[backend], "train.py"),
        ]

    def has_looked_into_store(self, number: int) -> bool:
        """Whether the recording of a machine tells what is in a store by now."""
        with suppress(RecordingError):
            for file in self.records.glob(f"{self.machines[number].host}-*.rec"):
                *_, newest = load(file).snapshots()
                return any(not store.problem for store in newest.stores)
        return False

    def steps(self, rank: int) -> int:
        """How far a rank has come."""
        with suppress(OSError, ValueError):
            return int((self.folder / f"step.{rank}").read_text())
        return 0

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

    def ended(self, number: int) -> dict[str, Any]:
        """The report of one machine, when it is there."""
        self.tools[number].wait(120)
        found: dict[str, Any] = json.loads((self.folder / f"{number}.json").read_text())
        assert violations(found) == []
        return found

    def alone(self, number: int) -> dict[str, Any]:
        """What the recording of one machine shows by now."""
        return self.read(*self.records.glob(f"{self.machines[number].host}-*.rec"))[0]

    def together(self) -> tuple[dict[str, Any], str]:
        """What all recordings show by now, as JSON and as text."""
        return self.read(self.records)

    def decided(self) -> tuple[dict[str, Any], str]:
        """The same, once there is a verdict."""
        found: list[tuple[dict[str, Any], str]] = []

        def looked() -> bool:
            found[:] = [self.together()] if any(self.records.iterdir()) else []
            return bool(found) and found[0][0].get("outcome", "running") != "running"

        until(looked, 90)
        return found[0]

    def read(self, *paths: Path) -> tuple[dict[str, Any], str]:
        """What some recordings show, as JSON and as text; nothing while they show nothing yet."""
        report = self.folder / "read.json"
        done = subprocess.run(
            (sys.executable, "-m", "helpers", "read", "--json", str(report), *map(str, paths)),
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode in (0, 1, 2, 3, 64), done.stderr
        found = json.loads(report.read_text()) if report.exists() else {}
        assert not found or violations(found) == []
        return found, done.stdout


@contextmanager
def cluster(folder: Path, program: str, hosts: Sequence[str]) -> Iterator[Cluster]:
    """Machines that have a program; everything on them has ended afterwards."""
    with ExitStack() as at_end:
        made = Cluster(folder, at_end.enter_context(machines(len(hosts), folder, hosts)))
        (folder / "train.py").write_text(program)
        try:
            yield made
        finally:
            for number in made.tools:
                made.switch_off(number)


def found(report: Mapping[str, Any]) -> tuple[str, str, list[int]]:
    """Outcome, cause and culprits."""
    return report["outcome"], report["cause"], report["culprits"]


def places(report: Mapping[str, Any]) -> list[tuple[int, int, str | None]]:
    return [(view["rank"], view["node"], view["host"]) for view in report["ranks"]]


@pytest.mark.parametrize("hosts", [("n0", "n1"), ("same", "same")], ids=["two hosts", "of one name"])
def test_a_mismatch_is_found_though_each_node_sees_a_part(tmp_path: Path, hosts: Sequence[str]) -> None:
    with cluster(tmp_path, MISMATCH, hosts) as job:
        job.start(0, 2)
        job.start(1, 1)
        assert job.ended(0)["cause"] == "collective-mismatch"
        other = job.ended(1)
        whole, text = job.together()
    assert (other["cause"], other["culprits"]) in (("unknown", []), ("none", []))
    assert found(whole) == ("hang", "collective-mismatch", [1])
    assert whole["proved"]
    assert whole["parting"]["source"] == "if step == 20 and rank == 1:"
    assert places(whole) == [(0, 0, hosts[0]), (1, 0, hosts[0]), (2, 1, hosts[1])]
    assert [view["state"] for view in whole["ranks"]] == ["waiting"] * 3
    assert whole["job"]["nodes_seen"] == 2
    assert f"Odd one out:     rank 1 on node 0 (host {hosts[0]})" in text


@pytest.mark.parametrize("slow", [2, -1], ids=["a slow rank", "none"])
def test_who_is_waited_for_is_told_by_all_recordings(tmp_path: Path, slow: int) -> None:
    with cluster(tmp_path, STEPS.replace("SLOW", str(slow)), ("n0", "n1")) as job:
        job.start(0, 2)
        job.start(1, 1)
        each = [job.ended(number) for number in (0, 1)]
        whole, _ = job.together()
    assert [one["slow"] for one in each] == [None, None]
    assert found(whole) == ("ok", "none", [])
    if slow < 0:
        assert whole["slow"] is None
        return
    told = whole["slow"]
    assert (told["rank"], told["where"]["function"]) == (2, "augment")
    assert 0.4 < told["share"] < 0.7


def test_a_mismatch_of_four_nodes_is_found_by_attaching_to_each(tmp_path: Path) -> None:
    """One rank on each, so that no node can see a mismatch; the job runs when it is looked at."""
    hosts = ("n0", "n1", "n2", "n3")
    with cluster(tmp_path, MISMATCH, hosts) as job:
        for number, machine in enumerate(job.machines):
            job.tools[number] = machine.start(
                *job.part(number, 1), cwd=tmp_path, env={"OMP_NUM_THREADS": "1"}
            )
        until((tmp_path / "apart").exists, 90)
        tools = [
            machine.start(
                *(sys.executable, "-m", "helpers", "attach", "--record", str(job.records)),
                str(job.tools[number].pid),
                cwd=ROOT,
            )
            for number, machine in enumerate(job.machines)
        ]
        for tool in tools:
            tool.wait(120)
        for number in range(4):
            alone = job.alone(number)
            assert (alone["outcome"], alone["culprits"]) == ("running", []), alone["summary"]
            assert any("stuck-ranks read FOLDER" in said for said in alone["not_seen"])
        whole, _ = job.together()
    assert found(whole) == ("hang", "collective-mismatch", [1])
    assert places(whole) == [(number, number, host) for number, host in enumerate(hosts)]


def test_a_node_that_is_switched_off_is_named(tmp_path: Path) -> None:
    with cluster(tmp_path, ENDLESS, ("n0", "n1")) as job:
        job.start(0, 1)
        job.start(1, 2)
        until(lambda: job.steps(2) >= 20, 60)
        job.switch_off(1)
        alone = job.ended(0)
        whole, text = job.together()
        address = job.machines[1].address
    assert found(alone) == ("error", "unknown", [])
    assert address in alone["detail"]
    assert "stuck-ranks read FOLDER" in alone["summary"]
    assert [view["state"] for view in alone["ranks"]] == ["exited", "unseen", "unseen"]
    assert found(whole) == ("error", "rank-exited", [1, 2])
    assert "Odd one out:     rank 1, 2 on node 1 (host n1)" in text


def test_a_node_that_never_comes_is_named(tmp_path: Path) -> None:
    hosts = ("n0", "n1", "n2", "n3")
    with cluster(tmp_path, ENDLESS, hosts) as job:
        for number in (0, 1, 3):
            job.start(number)
        until(lambda: "node 2" in job.decided()[0]["detail"], 60)
        whole, _ = job.together()
    assert found(whole) == ("hang", "rendezvous-incomplete", [])
    assert whole["detail"] == "node 2 has not joined the rendezvous"
    assert f"node 0 (host n0) serves the rendezvous at {NETWORK}.1:{PORT}" in whole["summary"]


@pytest.mark.parametrize("backend", ["static", "c10d"])
def test_a_node_that_comes_late_finds_the_rendezvous_as_it_was(tmp_path: Path, backend: str) -> None:
    """Meanwhile the instrument has looked into the store, which counts those who come."""
    with cluster(tmp_path, ENDLESS, ("n0", "n1")) as job:
        job.start(0, backend=backend)
        until(lambda: job.has_looked_into_store(0), 60)
        job.start(1, backend=backend)
        until(lambda: job.steps(1) >= 20, 60)
        (tmp_path / "enough").touch()
        assert [found(job.ended(number)) for number in (0, 1)] == [("ok", "none", [])] * 2


LOST = [
    (
        "an address that no machine has",
        {"master": f"{NETWORK}.99"},
        "cannot be reached: no route to host",
    ),
    ("its own address", {"master": f"{NETWORK}.2"}, "refuses the connection"),
    ("another port", {"port": 29511}, "refuses the connection"),
    ("a port that is dropped", {}, "does not answer"),
]


@pytest.mark.parametrize(("given", "problem"), [row[1:] for row in LOST], ids=[row[0] for row in LOST])
def test_a_node_that_does_not_find_the_rendezvous_is_named(
    tmp_path: Path, given: dict[str, Any], problem: str
) -> None:
    with cluster(tmp_path, ENDLESS, ("n0", "n1")) as job:
        if not given:
            job.machines[0].drop(PORT)
        job.start(0)
        job.start(1, **given)
        until(lambda: problem in job.decided()[0]["detail"], 60)
        whole, _ = job.together()
        alone = job.alone(1)
    address = f"{given.get('master', f'{NETWORK}.1')}:{given.get('port', PORT)}"
    for report in (whole, alone):
        assert found(report) == ("hang", "rendezvous-incomplete", [])
        looks = (
            f"the launcher of node 1 (host n1) looks for the rendezvous at {address}, which {problem}"
        )
        assert report["detail"].startswith(looks)
    assert f"node 0 (host n0) serves the rendezvous at {NETWORK}.1:{PORT}" in whole["summary"]


WRONG = [
    ("loopback", {"GLOO_SOCKET_IFNAME": "lo"}, "127.0.0.1 to connect to (GLOO_SOCKET_IFNAME=lo)"),
    ("a name for loopback", {}, "127.0.1.1 to connect to"),
    ("not there", {"GLOO_SOCKET_IFNAME": "eth9"}, "(GLOO_SOCKET_IFNAME=eth9) names a network interface"),
]


@pytest.mark.parametrize(("env", "says"), [row[1:] for row in WRONG], ids=[row[0] for row in WRONG])
def test_the_wrong_interface_of_a_node_is_named(
    tmp_path: Path, env: Mapping[str, str], says: str
) -> None:
    with cluster(tmp_path, ENDLESS, ("n0", "n1")) as job:
        if not env:
            job.machines[1].rename("127.0.1.1")
        job.start(0, 2)
        job.start(1, 2, env=env)
        alone = job.ended(1 if "eth9" in says else 0)
        whole, text = job.together()
    assert found(whole) == ("error", "rendezvous-incomplete", [2, 3])
    assert whole["detail"].startswith("wrong network interface: ")
    assert says in whole["summary"]
    assert "Odd one out:     rank 2, 3 on node 1 (host n1)" in text
    assert found(alone)[:2] == ("error", "rendezvous-incomplete")
    assert alone["culprits"] == ([2, 3] if "eth9" in says else [])


def test_an_interface_that_nobody_else_reaches_is_named(tmp_path: Path) -> None:
    """What is sent there is lost, as behind a firewall: the ranks hang in `init_process_group`."""
    with cluster(tmp_path, ENDLESS, ("n0", "n1")) as job:
        job.machines[0].add_interface("ib0", "192.168.50.1")
        job.machines[1].lose("192.168.50.0/24")
        job.start(0, 2, env={"GLOO_SOCKET_IFNAME": "ib0"})
        job.start(1, 2)
        until(lambda: "no answer" in job.decided()[0]["detail"], 60)
        whole, alone = job.decided()[0], job.alone(1)
    for report in (whole, alone):
        assert found(report)[:2] == ("hang", "rendezvous-incomplete")
        assert "(host n1) get no answer from 192.168.50.1" in report["detail"], report["summary"]
        assert "GLOO_SOCKET_IFNAME" in report["fix"]
    assert (whole["culprits"], alone["culprits"]) == ([0, 1], [])
    assert "where ranks 0 and 1 (host n0) listen (GLOO_SOCKET_IFNAME=ib0)" in whole["detail"]


def test_a_link_that_is_cut_in_mid_step_is_named_and_forgotten_when_it_heals(tmp_path: Path) -> None:
    with cluster(tmp_path, ENDLESS, ("n0", "n1")) as job:
        job.start(0, 2)
        job.start(1, 2)
        until(lambda: job.steps(3) >= 20, 60)
        job.machines[1].cut()
        whole, _ = job.decided()
        alone = [job.alone(0), job.alone(1)]
        job.machines[1].mend()
        reached = job.steps(3)
        until(lambda: job.steps(3) >= reached + 40, 90)
        until(lambda: job.together()[0]["outcome"] == "running", 30)
        (tmp_path / "enough").touch()
        assert [job.ended(number)["outcome"] for number in (0, 1)] == ["ok", "ok"]
    assert found(whole) == ("hang", "unknown", [])
    assert [report["culprits"] for report in alone] == [[], []]
    # Which ends had something on its way when the link was cut is chance.
    ends = [
        rf"host n0\) gets? no answer from {NETWORK}.2",
        rf"host n1\) gets? no answer from {NETWORK}.1",
    ]
    named = [bool(re.search(end, whole["detail"])) for end in ends]
    assert any(named), whole["summary"]
    for end, known, report in zip(ends, named, alone, strict=True):
        assert (found(report)[:2] == ("hang", "unknown")) is known
        assert bool(re.search(end, report["detail"])) is known


def test_a_stuck_worker_of_a_loader_is_found_on_its_node(tmp_path: Path) -> None:
    with cluster(tmp_path, LOADER, ("n0", "n1")) as job:
        job.start(0)
        job.start(1)
        whole, text = job.decided()
        first, second = job.alone(0), job.alone(1)
    assert found(whole) == ("hang", "worker-stall", [1])
    assert "Odd one out:     rank 1 on node 1 (host n1)" in text
    assert found(second) == ("hang", "worker-stall", [1])
    assert first["culprits"] == []
    assert first["cause"] in ("none", "unknown")


@pytest.mark.weekly
def test_a_healthy_job_of_four_nodes_gives_no_alarm_for_a_minute(tmp_path: Path) -> None:
    with cluster(tmp_path, ENDLESS, ("n0", "n1", "n2", "n3")) as job:
        for number, ranks in enumerate((1, 2, 1, 1)):
            job.start(number, ranks)
        until(lambda: job.steps(4) >= 20, 90)
        end = time.monotonic() + HEALTHY
        while time.monotonic() < end:
            whole, _ = job.together()
            assert (whole["outcome"], whole["culprits"]) == ("running", []), whole["summary"]
        (tmp_path / "enough").touch()
        assert [job.ended(number)["outcome"] for number in range(4)] == ["ok"] * 4
        whole, _ = job.together()
    assert found(whole) == ("ok", "none", [])
    assert [node for _, node, _ in places(whole)] == [0, 1, 1, 2, 3]
