"""Each example of CONTRIBUTING.md, applied to a copy as the page says, does what the page says."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from repository import ROOT, copy_of

PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
TEMPLATES = ROOT / "docs" / "templates"


def section(title: str) -> str:
    return PAGE.partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def apply(title: str, checkout: Path) -> None:
    """Make the changes of a section's blocks; each stands at one place of its file."""
    blocks = re.findall(r"^```diff\n--- ([^\n]+)\n(.*?)^```", section(title), re.M | re.S)
    assert blocks
    for name, block in blocks:
        lines = block.splitlines(keepends=True)
        before = "".join(line[1:] for line in lines if line[0] == " ")
        after = "".join(line[1:] for line in lines)
        text = (checkout / name).read_text(encoding="utf-8")
        assert text.count(before) == 1, f"{name}: {before!r}"
        (checkout / name).write_text(text.replace(before, after), encoding="utf-8")


def helpers(checkout: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """The command line of that copy."""
    env = os.environ | {"PYTHONPATH": str(checkout), "STUCK_RANKS_HARDWARE": "cpu"}
    return subprocess.run(
        [sys.executable, "-m", "helpers", *words],
        cwd=checkout,
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )


def judged(checkout: Path, said: str) -> dict[str, Any]:
    """The report of a log in which rank 1 ends with an exception."""
    log = checkout / "job.log"
    lines = ("Traceback (most recent call last):", '  File "/home/me/train.py", line 21, in main', said)
    log.write_text("".join(f"[rank1]: {line}\n" for line in lines))
    report: dict[str, Any] = json.loads(helpers(checkout, "read", "--json", "-", str(log)).stdout)
    return report


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    return copy_of(tmp_path)


def test_a_pattern_of_a_message_changes_the_verdict(checkout: Path) -> None:
    said = "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"
    assert judged(checkout, said)["cause"] == "error"
    apply("Add a pattern of a message", checkout)
    assert judged(checkout, said)["cause"] == "out-of-memory"


def add_cause(checkout: Path) -> None:
    for file in (TEMPLATES / "cause").iterdir():
        shutil.copy(file, checkout / "helpers" / "diagnose" / "causes")
    apply("Add a cause", checkout)
    env = os.environ | {"PYTHONPATH": str(checkout)}
    subprocess.run([sys.executable, "tools/make_schema.py"], cwd=checkout, env=env, check=True)


def test_a_cause_is_judged_and_has_its_page(checkout: Path) -> None:
    add_cause(checkout)
    report = judged(checkout, "OSError: [Errno 28] No space left on device: '/scratch/last.ckpt'")
    assert (report["cause"], report["culprits"]) == ("disk-full", [1])
    assert "ModelCheckpoint" in report["fix"]
    assert "no space is left" in helpers(checkout, "explain", "disk-full").stdout


@pytest.mark.nightly
def test_a_cause_is_held_by_the_tests_of_all(checkout: Path) -> None:
    add_cause(checkout)
    tests = ("tests/unit/diagnose/test_pages.py", "tests/unit/report/test_schema.py")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests],
        cwd=checkout,
        env=os.environ | {"PYTHONPATH": str(checkout)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.nightly
@pytest.mark.real
@pytest.mark.parametrize(("program", "code"), [("broken", 1), ("fixed", 0)])
def test_a_lab_runs_at_once(checkout: Path, program: str, code: int) -> None:
    shutil.copytree(TEMPLATES / "lab", checkout / "notebooks", dirs_exist_ok=True)
    done = helpers(checkout, "lab", "06", "--program", program)
    assert done.returncode == code, done.stderr
    assert ("rank-exited" in done.stdout) == bool(code)
