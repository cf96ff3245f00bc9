"""A notebook that hangs in a cell: seen from outside in its kernel, and run under `diagnose`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import psutil
import pytest
from contract import violations
from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager

pytestmark = [
    pytest.mark.real,
    pytest.mark.nightly,
    pytest.mark.skipif(sys.platform != "linux", reason="reads /proc"),
]

SCRIPT = str(Path(sys.executable).with_name("stuck-ranks"))
READY = "about to wait"
CELLS = (
    "",  # is not run, and so not counted
    "import threading\n\nlock = threading.Lock()\n\n\ndef enter(step):\n    lock.acquire()\n",
    "%precision 3\n"
    "for step in range(3):\n"
    f"    print('{READY}' if step else step, flush=True)\n"
    "    enter(step)\n",
)
FAILS = ("def ratio(x):\n    return 1 / x\n", "ratio(0)\n")
GOES_ON = ("1 / 0\n", "x = 1\n")
RANKS = (
    "import os\nimport torch\nimport torch.distributed as dist\nimport torch.multiprocessing as mp\n",
    "def work(rank, port):\n"
    "    os.environ.update(RANK=str(rank), WORLD_SIZE='2')\n"
    "    os.environ.update(MASTER_ADDR='127.0.0.1', MASTER_PORT=str(port))\n"
    "    dist.init_process_group('gloo')\n"
    "    if rank == 1:\n"
    "        dist.barrier()\n"
    "    dist.all_reduce(torch.ones(1))\n",
    "from helpers.launch.processes import free_port\n"
    "mp.start_processes(work, args=(free_port(),), nprocs=2, start_method='fork')\n",
)


def save(path: Path, sources: Sequence[str], counts: Sequence[int | None] = ()) -> None:
    """Write a notebook with these cells, and the counts of those that have been run."""
    cells = [
        {
            "cell_type": "code",
            "metadata": {},
            "outputs": [],
            "source": source.splitlines(keepends=True),
            "execution_count": counts[place] if place < len(counts) else None,
        }
        for place, source in enumerate(sources)
    ]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python", "language": "python"}}
    path.write_text(json.dumps({"cells": cells, "metadata": kernel, "nbformat": 4, "nbformat_minor": 4}))


def stuck_ranks(folder: Path, *words: str) -> tuple[int, dict[str, Any], str]:
    """(exit code, report, the report as text)."""
    file = folder / "report.json"
    verb, *rest = words
    done = subprocess.run(
        [SCRIPT, verb, "--json", str(file), *rest],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    report = json.loads(file.read_text())
    assert violations(report) == []
    assert "ipykernel_" not in file.read_text().replace("ipykernel_launcher", "")
    return done.returncode, report, done.stdout


def run(folder: Path, *words: str) -> tuple[int, dict[str, Any], str]:
    """The same of `diagnose` of a notebook that nbconvert executes."""
    nbconvert = (sys.executable, "-m", "nbconvert", "--to", "notebook", "--execute", "train.ipynb")
    return stuck_ranks(
        folder, "diagnose", "--patience", "5", "--stop-on-suspicion", "--", *nbconvert, *words
    )


def in_cells(rank: dict[str, Any]) -> list[tuple[str, int, str]]:
    """The frames of a rank that are in cells, innermost first."""
    frames = [(frame["file"], frame["line"], frame["function"]) for frame in rank["stack"]]
    return [frame for frame in frames if frame[0].startswith("cell ")]


class Kernel:
    """A kernel of a notebook, as Jupyter Server starts it."""

    def __init__(self, notebook: Path, folder: Path) -> None:
        self._manager = KernelManager(kernel_name="python3")
        self._manager.start_kernel(
            cwd=str(folder), env={**os.environ, "JPY_SESSION_NAME": str(notebook)}
        )
        self.client: BlockingKernelClient = self._manager.client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=60)

    @property
    def pid(self) -> int:
        return int(self._manager.provisioner.pid)

    def run(self, *sources: str) -> None:
        """Have cells run, until one is about to wait."""
        for source in sources:
            self.client.execute(source)
        while READY not in self.client.get_iopub_msg(timeout=60)["content"].get("text", ""):
            pass

    def end(self) -> None:
        self.client.stop_channels()
        self._manager.shutdown_kernel(now=True)


@pytest.fixture
def kernel(tmp_path: Path) -> Iterator[Kernel]:
    save(tmp_path / "train.ipynb", CELLS, (None, 7))
    (tmp_path / "elsewhere").mkdir()
    started = Kernel(tmp_path / "train.ipynb", tmp_path / "elsewhere")
    yield started
    started.end()


def test_a_kernel_that_is_attached_to_tells_its_cells_by_the_notebook(
    kernel: Kernel, tmp_path: Path
) -> None:
    kernel.run(*CELLS[1:])
    code, report, text = stuck_ranks(tmp_path, "attach", "--patience", "5", str(kernel.pid))
    assert (code, report["outcome"], report["cause"]) == (2, "hang", "missing-rank")
    assert report["where"] == {"file": "cell [7]", "line": 7, "function": "enter"}
    assert in_cells(report["ranks"][0]) == [("cell [7]", 7, "enter"), ("cell [3]", 4, "<module>")]
    assert report["ranks"][0]["waits"][0]["kind"] == "lock", "as the source of the cell says"
    assert "waiting for a lock at cell [7], line 7" in text
    assert psutil.Process(kernel.pid).is_running()


def test_the_same_notebook_under_diagnose_tells_them_by_their_execution_counts(tmp_path: Path) -> None:
    save(tmp_path / "train.ipynb", CELLS, (None, 7))
    code, report, text = run(tmp_path)
    assert (code, report["outcome"], report["cause"]) == (2, "hang", "missing-rank")
    assert report["where"] == {"file": "cell [1]", "line": 7, "function": "enter"}
    assert in_cells(report["ranks"][0]) == [("cell [1]", 7, "enter"), ("cell [2]", 4, "<module>")]
    assert report["ranks"][0]["waits"][0]["kind"] == "lock"
    assert "waiting for a lock at cell [1], line 7" in text


def test_ranks_that_a_cell_has_forked(tmp_path: Path) -> None:
    save(tmp_path / "train.ipynb", RANKS)
    code, report, _ = run(tmp_path)
    assert (code, report["proved"], report["cause"]) == (2, True, "collective-mismatch")
    assert [rank["where"]["line"] for rank in report["ranks"]] == [7, 6]
    assert {rank["where"]["file"] for rank in report["ranks"]} == {"cell [2]"}
    (met,) = report["parting"]["history"]
    assert {call["where"]["file"] for call in met["calls"]} == {"cell [2]"}


def test_a_cell_that_fails_is_named_with_its_line(tmp_path: Path) -> None:
    save(tmp_path / "train.ipynb", FAILS)
    code, report, _ = run(tmp_path)
    assert (code, report["outcome"], report["cause"]) == (1, "error", "error")
    # A kernel whose control thread still sends when it closes never ends (ipykernel 7): nbconvert kills
    # it, and nobody knows then that it was this cell by which the kernel ended.
    assert report["where"] in ({"file": "cell [1]", "line": 2, "function": "ratio"}, None)


def test_a_cell_that_may_fail_is_no_error(tmp_path: Path) -> None:
    save(tmp_path / "train.ipynb", GOES_ON)
    code, report, _ = run(tmp_path, "--allow-errors")
    assert (code, report["outcome"], report["where"]) == (0, "ok", None)
