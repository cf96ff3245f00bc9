"""Every command in README, its pages, the workshop and two notebooks does what the text says."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from repository import JOBS, NOTEBOOKS, RECORDINGS, ROOT

from helpers.launch.processes import free_port

README = ROOT / "README.md"
CONTRIBUTING = ROOT / "CONTRIBUTING.md"
PAGES = ("agents", "ci", "diagnose", "guide", "install", "why", "workshop")
DOCUMENTS = (
    README,
    *(ROOT / "docs" / f"{name}.md" for name in PAGES),
    NOTEBOOKS / "index.ipynb",
    NOTEBOOKS / "your_job" / "your_job.ipynb",
)
HANG = "stuck-ranks diagnose -- torchrun --nproc-per-node 3 train.py"
RUN = {
    HANG: 2,
    "stuck-ranks diagnose -- torchrun --nproc-per-node 2 train.py": 0,
    "stuck-ranks diagnose -- torchrun --nproc-per-node 8 train.py": 2,
    "stuck-ranks diagnose --json report.json --html report.html -- python train.py": 0,
    "stuck-ranks diagnose --max-seconds 600 -- python train.py": 0,
    "stuck-ranks diagnose --keep-running -- python train.py": 0,
    "stuck-ranks diagnose --record run.jsonl.gz --html report.html --": 0,
    "stuck-ranks read FILE": 2,
    "stuck-ranks --help": 0,
    "stuck-ranks diagnose --quiet --json report.json -- torchrun --nproc-per-node 2 train.py": 0,
    "stuck-ranks explain collective-mismatch": 0,
    "python -m helpers diagnose -- torchrun --nproc-per-node 2 train.py": 0,
    "python -m helpers check": 0,
    "python -m helpers lab 05": 1,
    "python -m helpers lab 05 --program fixed --knob start_method=fork": 0,
}
"""The exit code of each, in a folder whose `train.py` is the example of the method."""

BY_OTHERS = {
    "stuck-ranks attach": "tests/real/test_attach.py",
    "stuck-ranks attach PID": "tests/real/test_attach.py",
    "stuck-ranks diagnose --record hang.rec -- python -m pytest tests": (
        "tests/real/test_under_pytest.py"
    ),
    "stuck-ranks diagnose -- jupyter nbconvert --to notebook --execute train.ipynb": (
        "tests/real/test_notebook_cells.py"
    ),
    "stuck-ranks read PATH ...": "tests/real/test_read.py",
    "stuck-ranks read --json report.json PATH": "tests/real/test_read.py",
    "stuck-ranks read FOLDER": "tests/real/test_several_nodes.py",
    "stuck-ranks diagnose --record /shared/run/ -- ...": "tests/real/test_several_nodes.py",
    "stuck-ranks read /shared/run": "tests/real/test_several_nodes.py",
    "stuck-ranks check --seats N": "tests/real/test_seats_run.py",
    "stuck-ranks lab --reset": "tests/unit/labs/test_reset.py",
    "stuck-ranks guide": "tests/unit/labs/test_guide_copy.py",
    "stuck-ranks guide FOLDER": "tests/unit/labs/test_guide_copy.py",
    "make test": ".ci/run",
    "make nightly": ".ci/run",
    "pip install .": "tools/setup_env.py",
    "python -m venv .venv": "tools/setup_env.py",
    ".venv/bin/pip install --no-deps -r requirements.lock": "tools/setup_env.py",
    ".venv/bin/pip install -r requirements-torch.lock": "tools/setup_env.py",
    ".venv/bin/pip install --no-deps -e .": "tools/setup_env.py",
}
"""Commands that a test would only repeat, and what runs them."""

PARTS = {"stuck-ranks", "stuck-ranks diagnose", "stuck-ranks attach", "python train.py", "make"}
"""Words of a sentence that are no whole commands."""

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(sys.platform != "linux", reason="the guardian and signals of Linux"),
]


def text_of(document: Path) -> str:
    if document.suffix == ".md":
        return document.read_text(encoding="utf-8")
    return "\n".join(cell.source for cell in nbformat.read(document, as_version=4).cells)


def typed(text: str) -> set[str]:
    """The commands of a text, in blocks and in sentences, without their comments."""
    found = set()
    for block in re.findall(r"^```(?:bash)?\n(.*?)^```", text, re.M | re.S):
        lines = block.splitlines()
        after_prompt = [line[2:] for line in lines if line.startswith("$ ")]
        found |= {re.sub(r"\s{2,}# .*", "", line).strip() for line in after_prompt or lines}
    prose = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    programs = r"(?:stuck-ranks|make|python|conda|pipx?|uv)(?: [^`]+)?"
    found |= {" ".join(code.split()) for code in re.findall(rf"(?<!`)`({programs})`(?!`)", prose)}
    return found - {""}


def not_run() -> set[str]:
    """What CONTRIBUTING says that no test runs, and why."""
    return typed(text_of(CONTRIBUTING).partition("No test runs")[2].partition("\n\n")[0])


def test_every_command_is_run_or_said_not_to_be() -> None:
    known = RUN.keys() | BY_OTHERS.keys() | not_run() | PARTS
    for document in DOCUMENTS:
        assert typed(text_of(document)) <= known, document.name
    assert RUN.keys() <= set().union(*(typed(text_of(document)) for document in DOCUMENTS))


@pytest.mark.parametrize("command", BY_OTHERS)
def test_what_is_run_elsewhere_is(command: str) -> None:
    word = next(word for word in command.split()[1:] if not word.startswith("-"))
    assert re.search(rf"\b{word}\b", (ROOT / BY_OTHERS[command]).read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    "command", [one for one in sorted(not_run()) if one.startswith("make ")], ids=lambda one: one[5:]
)
def test_what_is_not_run_is_there(command: str) -> None:
    assert not subprocess.run([*command.split(), "-n"], cwd=ROOT, capture_output=True).returncode


def test_the_readme_shows_what_is_said_of_its_job_today() -> None:
    """By the job's recording; the nightly run below compares a run of its own."""
    words = [sys.executable, "-m", "helpers", "read", str(RECORDINGS / "own_early_stop.jsonl.gz")]
    said = subprocess.run(words, cwd=ROOT, capture_output=True, text=True).stdout
    said = " ".join(said.replace("own_early_stop.py", "train.py").split())
    shown = [" ".join(part.split()) for part in example().split("...\n")]
    assert len(shown) > 1
    assert not [part for part in shown if part not in said]


def example() -> str:
    """What the README shows of the command in its first lines; `...` is what it leaves out."""
    return text_of(README).partition(f"$ {HANG}\n...\n")[2].partition("```")[0]


@pytest.mark.nightly
@pytest.mark.parametrize("command", RUN)
def test_a_command_ends_as_its_text_says(command: str, tmp_path: Path) -> None:
    shutil.copyfile(JOBS / "own_early_stop.py", tmp_path / "train.py")
    shutil.copyfile(JOBS / "marks.py", tmp_path / "marks.py")
    words = words_of(command)
    alone = only_rank() if words[-2:] == ["python", "train.py"] else {}
    done = subprocess.run(
        [beside_python(word) for word in words],
        cwd=tmp_path,
        env=os.environ | alone | {"PYTHONPATH": str(ROOT), "STUCK_RANKS_HARDWARE": "cpu"},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == RUN[command], done.stdout + done.stderr
    for file in re.findall(r"--(?:json|html|record) (\S+)", command):
        assert (tmp_path / file).stat().st_size > 0
    if command == HANG:
        assert example() and all(part in done.stdout for part in example().split("...\n"))


def words_of(command: str) -> list[str]:
    """The words of a command, with what its text leaves open."""
    words = shlex.split(command.replace("FILE", str(RECORDINGS / "skips_bad_loss.jsonl.gz")))
    if words[-1] == "--":
        words += ["python", "train.py"]
    return words


def beside_python(word: str) -> str:
    programs = ("stuck-ranks", "python", "torchrun")
    return str(Path(sys.executable).with_name(word)) if word in programs else word


def only_rank() -> dict[str, str]:
    """The variables of a job of one rank, which its program reads when no launcher sets them."""
    return {
        "RANK": "0",
        "LOCAL_RANK": "0",
        "WORLD_SIZE": "1",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(free_port()),
    }
