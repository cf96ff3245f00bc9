"""What a job has left is shown in a notebook: the verdict, the picture, the ranks."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
from dumps import dump, entry
from looks import diverging
from panel_fakes import html_of

from helpers.artifacts.artifacts import NothingError
from helpers.observe.recording import pack
from helpers.panel import open_artifacts
from helpers.panel.run.aftermath import AftermathPanel
from helpers.panel.run.replay import ReplayPanel


def test_dumps_are_shown_with_a_picture_that_tells_no_seconds(tmp_path: Path) -> None:
    for rank, op in enumerate(("all_reduce", "barrier")):
        (tmp_path / f"rank_{rank}").write_bytes(pickle.dumps(dump(entry(op, line=12 + rank))))
    panel = open_artifacts(tmp_path)
    assert isinstance(panel, AftermathPanel)
    html = html_of(panel)
    assert panel.report.verdict.cause == "collective-mismatch" and "collective-mismatch" in html
    assert "Read: Flight Recorder dump (2)." in html
    assert ">Timeline of 2 ranks</title>" in html and " s to " not in html and "&lt;svg" not in html
    assert "Ranks, as they were left" in html and "Stack of rank 0" in html
    assert "collective-mismatch" in repr(panel)


def test_a_single_recording_is_replayed(tmp_path: Path) -> None:
    (tmp_path / "run.jsonl.gz").write_bytes(pack(diverging(3, 1)))
    assert isinstance(open_artifacts(tmp_path), ReplayPanel)


def test_text_of_a_job_is_escaped(tmp_path: Path) -> None:
    said = 'Traceback (most recent call last):\n  File "<b>.py", line 3, in f\nValueError: <script>x\n'
    (tmp_path / "job.log").write_text("".join(f"[rank0]: {line}\n" for line in said.splitlines()))
    html = html_of(open_artifacts(tmp_path / "job.log"))
    assert "&lt;script&gt;" in html and "<script>" not in html and "<b>" not in html


def test_nothing_to_show_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "notes.bin").write_bytes(bytes(5))
    with pytest.raises(NothingError, match="not recognised"):
        open_artifacts(tmp_path)
