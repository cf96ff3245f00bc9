"""The notebook of a process, found by its environment or in its folder."""

from __future__ import annotations

import functools
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from helpers import job_files
from helpers.observe import notebooks
from helpers.observe.cells import murmur2
from helpers.observe.notebooks import MOST_NOTEBOOKS, Notebooks

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

STEP = f"/tmp/ipykernel_7/{murmur2('step()')}.py"
NAMED = "JPY_SESSION_NAME"


@pytest.fixture(autouse=True)
def answers_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk of the tests answers, however busy the machine is."""
    patient = functools.partial(job_files.ask, patience=60.0)
    monkeypatch.setattr(job_files, "ask", patient)
    monkeypatch.setattr(notebooks, "ask", patient)


class Kernel:
    """A process that stands in a folder, and what is known of its cell."""

    def __init__(self, folder: Path, **environment: str) -> None:
        folder.mkdir(exist_ok=True)
        env = {name: value for name, value in os.environ.items() if name != NAMED} | environment
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self._process = subprocess.Popen(["cat"], cwd=folder, env=env, **pipes)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(b"\n")
        self._process.stdin.flush()
        self._process.stdout.readline()  # while a program is replaced, the kernel shows no environment
        self.notebooks = Notebooks()

    def cell(self) -> object:
        return self.notebooks.cell(self._process.pid, STEP)

    def end(self) -> None:
        self._process.communicate()


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Kernel]]:
    started: list[Kernel] = []

    def start(folder: str, **environment: str) -> Kernel:
        started.append(Kernel(tmp_path / folder, **environment))
        return started[-1]

    yield start
    for kernel in started:
        kernel.end()


def save(path: Path, *sources: str, first: int = 1, changed: float = 0.0) -> Path:
    cells = [
        {"cell_type": "code", "source": source, "execution_count": first + place, "outputs": []}
        for place, source in enumerate(sources)
    ]
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"cells": cells, "nbformat": 4}))
    if changed:
        os.utime(path, (changed, changed))
    return path


def test_the_notebook_that_the_environment_names_comes_first(
    tmp_path: Path, start: Callable[..., Kernel]
) -> None:
    save(tmp_path / "work" / "other.ipynb", "step()", first=9)
    named = save(tmp_path / "a" / "train.ipynb", "x = 1", "step()")
    assert start("work", **{NAMED: str(named)}).cell() == ([2], "step()\n")


def test_a_notebook_that_has_not_answered_yet_is_waited_for(
    tmp_path: Path, start: Callable[..., Kernel], monkeypatch: pytest.MonkeyPatch
) -> None:
    def late(path: str) -> None:
        raise TimeoutError(path)

    save(tmp_path / "work" / "other.ipynb", "step()", first=9)
    named = save(tmp_path / "a" / "train.ipynb", "x = 1", "step()")
    kernel = start("work", **{NAMED: str(named)})
    with monkeypatch.context() as busy:
        busy.setattr(notebooks, "notebook", late)
        assert kernel.cell() is None
    assert kernel.cell() == ([2], "step()\n")


def test_an_older_server_names_it_from_its_own_root(
    tmp_path: Path, start: Callable[..., Kernel]
) -> None:
    save(tmp_path / "work" / "other.ipynb", "step()", first=9)
    save(tmp_path / "work" / "train.ipynb", "step()", first=4)
    assert start("work", **{NAMED: "deep/work/train.ipynb"}).cell() == ([4], "step()\n")


def test_else_those_in_its_folder_are_searched(tmp_path: Path, start: Callable[..., Kernel]) -> None:
    save(tmp_path / "work" / "train.ipynb", "step()", first=4)
    save(tmp_path / "work" / "copy.ipynb", "x = 1", "step()", first=6)
    save(tmp_path / "work" / "notes.ipynb", "x = 1")
    (tmp_path / "work" / "broken.ipynb").write_text("{")
    (tmp_path / "work" / "nowhere.ipynb").symlink_to("gone.ipynb")
    assert start("work").cell() == ([4, 7], "step()\n"), "two have it, with numbers of their own"


def test_a_cell_that_no_notebook_has_stays_unknown_until_one_is_saved(
    tmp_path: Path, start: Callable[..., Kernel], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("helpers.observe.notebooks.EVERY", 0.0)
    saved = save(tmp_path / "work" / "train.ipynb", "x = 1", changed=1.0)
    kernel = start("work")
    assert kernel.cell() is None
    save(saved, "x = 1", "step()")
    assert kernel.cell() == ([2], "step()\n")
    save(saved, "x = 1", "step()", first=8)
    assert kernel.cell() == ([2], "step()\n"), "what was found stays"


def test_of_many_notebooks_the_newest_are_read(tmp_path: Path, start: Callable[..., Kernel]) -> None:
    for number in range(MOST_NOTEBOOKS):
        save(tmp_path / "work" / f"{number}.ipynb", "x = 1", changed=100.0 + number)
    old = save(tmp_path / "work" / "old.ipynb", "step()", changed=99.0)
    assert start("work").cell() is None
    os.utime(old, (1000.0, 1000.0))
    assert start("work").cell() == ([1], "step()\n")


def test_a_process_that_is_gone_has_no_notebook() -> None:
    gone = subprocess.Popen(["true"])
    gone.wait()
    assert Notebooks().cell(gone.pid, STEP) is None
