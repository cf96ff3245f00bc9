"""`read`: what real jobs have left, by hand as the method page does it, and with the tool."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import nbformat
import psutil
import pytest
from repository import JOBS, NOTEBOOKS, ROOT
from score.attached import wait_for_rest

pytestmark = [
    pytest.mark.real,
    pytest.mark.nightly,
    pytest.mark.skipif(sys.platform != "linux", reason="a job in a session of its own"),
]

PAGE = NOTEBOOKS / "method" / "method.ipynb"
RANKS = 4
SMALLER = {
    r"range\(40, 43\)": "range(1, 4)",
    r"range\(64\)": "range(4)",
    r"\b(40|41|42)\b(?=  )": lambda rank: str(int(rank[1]) - 39).ljust(2),
    r"0-40 and 42-63": "0, 1 and 3",
    r"(Rank|rank|==) 41\b": r"\1 2",
    r"Timer\(120,": "Timer(15,",
    r"1_000_000": "8",
}
"""What makes four ranks of the page's 64: rank 2 takes the part of rank 41."""


def smaller(text: str) -> str:
    """A text of the page or its program, for a job of four ranks."""
    for large, small in SMALLER.items():
        text = re.sub(large, small, text)
    return text


def page() -> str:
    return smaller("\n".join(cell.source for cell in nbformat.read(PAGE, as_version=4).cells))


def program_after(words: str) -> str:
    """The first listing in Python of the page behind some words of it."""
    found = re.search(r"```python\n(.*?)```", page().partition(words)[2], re.S)
    assert found is not None, words
    return found[1]


@contextmanager
def started(
    place: Path, *program: str, log: int = subprocess.DEVNULL
) -> Iterator[subprocess.Popen[bytes]]:
    """A job of four ranks; all of it has ended afterwards."""
    job = subprocess.Popen(
        [
            str(Path(sys.executable).with_name("torchrun")),
            *("--standalone", f"--nproc-per-node={RANKS}", *program),
        ],
        cwd=place,
        env={**os.environ, "FR": str(place / "fr"), "OMP_NUM_THREADS": "1"},
        stdout=log,
        stderr=log,
    )
    try:
        yield job
    finally:
        for process in [job, *psutil.Process(job.pid).children(recursive=True)]:
            process.kill()
        job.wait()


@pytest.fixture(scope="module")
def dumps(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder in which the ranks of the page's example have written their records."""
    place = tmp_path_factory.mktemp("job")
    (place / "train.py").write_text(smaller(PAGE.with_name("train.py").read_text()))
    (place / "dump_later.py").write_text(program_after("Save this as `dump_later.py`"))
    (place / "fr").mkdir()
    with started(place, "dump_later.py", "train.py") as job:
        written_by(job, place / "fr")
        yield place / "fr"


def written_by(job: subprocess.Popen[bytes], folder: Path) -> None:
    """Wait until each rank has written its record as a whole."""
    while job.poll() is None:
        with_end = [file for file in folder.iterdir() if file.read_bytes().endswith(b".")]
        if len(with_end) == RANKS:
            return
        time.sleep(0.1)
    raise AssertionError(f"the job has ended with {job.returncode}")


def test_the_records_of_the_page_are_read_by_hand(dumps: Path) -> None:
    by_hand = program_after("The table above is made from these files")
    done = subprocess.run(
        [sys.executable, "-c", by_hand],
        env={**os.environ, "FR": str(dumps)},
        capture_output=True,
        text=True,
        check=True,
    )
    table = page().partition("rank  seq  operation        sizes  done   line\n")[2].partition("```")[0]
    assert [line.split() for line in done.stdout.splitlines()] == [
        line.split() for line in table.splitlines()
    ]


def test_the_same_records_are_read_by_the_tool(dumps: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "helpers", "read", str(dumps)],
        cwd=dumps,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    shown = page().partition("$ stuck-ranks read $FR\n")[2].partition("```")[0]
    assert done.returncode == 2
    assert shown.strip() and " ".join(done.stdout.split()).startswith(" ".join(shown.split()))


def blocks() -> list[str]:
    """The commands of the page on clusters that can be run on any machine."""
    text = (ROOT / "docs" / "clusters.md").read_text()
    found: list[str] = re.findall(r"^```bash\n(.*?)^```", text, re.S | re.M)
    return [block for block in found if not block.startswith("# not run here: needs ")]


def test_what_is_collected_while_a_job_hangs_is_read(tmp_path: Path) -> None:
    attach, stacks, read = blocks()
    name = f"train_{uuid.uuid4().hex}.py"
    shutil.copyfile(JOBS / "skips_bad_loss.py", tmp_path / name)
    (tmp_path / "marks.py").write_text("def about_to_block():\n    pass\n")
    (tmp_path / "run").mkdir()

    def carried_out(command: str, pid: int) -> subprocess.CompletedProcess[str]:
        words = command.replace("rain.py", name[1:]).replace("/shared/run", str(tmp_path / "run"))
        words = words.replace("train.log", str(tmp_path / "train.log")).replace("PID", str(pid))
        words = words.replace("stuck-ranks", "python -m helpers")
        path = os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"]))
        environment = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT)}
        return subprocess.run(
            ["bash", "-c", words], env=environment, capture_output=True, text=True, check=False
        )

    with (
        (tmp_path / "train.log").open("w") as log,
        started(tmp_path, "--tee=3", name, log=log.fileno()) as job,
    ):
        wait_for_rest(job.pid)
        assert carried_out(stacks, job.pid).returncode == 0
        from_stacks = carried_out(read, job.pid)
        assert carried_out(attach, job.pid).returncode == 2
    for file in (tmp_path / "run").glob("rank*"):
        file.unlink()
    for done in (from_stacks, carried_out(read, job.pid)):
        assert done.returncode == 2, done.stderr
        assert "collective-mismatch\nRank 2 is blocked in barrier" in done.stdout
