"""What a lab's panel does when the machine lacks something: it says so, and starts nothing."""

from __future__ import annotations

import asyncio
import re
import shutil
from pathlib import Path

import pytest
from example_lab import changed, example, write_programs
from panel_fakes import click, every_widget, html_of, wait_for_threads, wait_until
from repository import ROOT

from helpers.labs import machine
from helpers.labs.lab import Lab, LabError
from helpers.panel import open_recording
from helpers.panel.lab_panel import LabPanel
from helpers.session import Session


@pytest.fixture(autouse=True)
def nothing_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(_: Session) -> Session:
        raise AssertionError("a run was started")

    monkeypatch.setattr(Session, "start", start)


def test_a_program_that_cannot_run_here_has_a_button_that_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "compiler", lambda: None)
    raw = changed("programs/broken/needs", ["compiler"])
    panel = LabPanel(example(write_programs(tmp_path), raw))
    buttons = {w.description: w.disabled for w in every_widget(panel) if hasattr(w, "on_click")}
    assert buttons["broken needs a C++ compiler"]
    assert not buttons["Run fixed"]
    with pytest.raises(LabError, match="cannot run this here: broken needs a C"):
        asyncio.run(panel.run("broken"))


def test_a_value_that_cannot_run_here_says_why(tmp_path: Path) -> None:
    panel = LabPanel(example(write_programs(tmp_path)))
    [control] = [w for w in every_widget(panel) if getattr(w, "label", "") == "Hardware"]
    assert control.value == "cpu"
    refused = "one-gpu (not here: it needs a GPU, and STUCK_RANKS_HARDWARE=cpu leaves them out)"
    assert refused in control.texts
    control.value = "one-gpu"
    panel._lesson.gate.reveal_fix("mine")
    click(panel, "Run fixed")
    wait_until(panel, lambda: panel.status != "Starting fixed.")
    assert "cannot run this here: hardware one-gpu needs a GPU" in panel.status


def test_controls_that_do_not_apply_are_left_alone(tmp_path: Path) -> None:
    made: list[tuple[str, dict[str, str]]] = []

    def make(lab: Lab, name: str, folder: Path, knobs: dict[str, str]) -> Session:
        made.append((name, dict(knobs)))
        raise LabError("enough")

    lab = example(write_programs(tmp_path))
    panel = LabPanel(lab, make)
    panel._lesson.gate.reveal_fix("mine")
    click(panel, "Run alone")
    wait_for_threads("panel run")
    assert made == [("alone", {})]
    with pytest.raises(LabError, match="does not apply to alone"):
        asyncio.run(panel.run("alone", method="fork"))


def test_too_little_memory_is_said_in_the_panel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "free_memory", lambda: 7 * machine.MB)
    raw = changed("memory_mb", 100)
    panel = LabPanel(example(write_programs(tmp_path), raw))
    with pytest.raises(LabError, match="it needs 100 MB of free memory, and 7 MB are free"):
        asyncio.run(panel.run("broken"))
    assert "it needs 100 MB of free memory" in html_of(panel)


def test_what_cannot_run_here_has_a_recording_or_says_that_there_is_none(tmp_path: Path) -> None:
    lab = example(write_programs(tmp_path))
    knobs = {"hardware": "one-gpu"}
    with pytest.raises(LabError, match=r"It has not been recorded on such a machine yet\.$"):
        lab.session("fixed", **knobs)
    file = lab.recording("fixed", knobs)
    file.parent.mkdir()
    shutil.copy(ROOT / "tests" / "recordings" / "killed.jsonl.gz", file)
    with pytest.raises(LabError) as refused:
        lab.session("fixed", **knobs)
    found = re.search(r'open_recording\("(.+)"\)\.$', str(refused.value))
    assert found is not None
    assert "Recording of 2026-11-23" in html_of(open_recording(lab.folder / found[1]))
