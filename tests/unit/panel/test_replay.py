"""A run is saved, and shown again by someone who has nothing but the file."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import msgspec
import pytest
from histories import sleeping, snapshot
from lab_bench import LabBench
from looks import COMMAND, MADE, FakeEyes, FakeJob, diverging
from msgspec.structs import replace
from panel_fakes import (
    FakeLogs,
    buttons,
    click,
    control,
    count_updates,
    html_of,
    wait_for_threads,
)

from helpers.model.facts import RankView, Verdict
from helpers.observe.recording import Recorder, load
from helpers.panel import open_recording
from helpers.panel.learn.diff import DiffView
from helpers.panel.learn.gate import Gate
from helpers.panel.run.export import FOLDER, KINDS, ExportBar, Finished, recording
from helpers.panel.run.job_panel import JobPanel
from helpers.panel.run.replay import RecordedLogs, ReplayPanel, label
from helpers.report.report import build
from helpers.report.source_lines import Sources
from helpers.session import Session

STALLED = diverging(3, 1)
"""Rank 1 calls a barrier that nobody else calls."""

LAST = STALLED.looks[-1].time


def finished(name: str = "Lab 05 A worker: broken") -> Finished:
    snapshots = tuple(STALLED.snapshots())
    verdict = Verdict("hang", "collective-mismatch", summary="Rank 1 </script> differs.", culprits=(1,))
    report = build(verdict, snapshots[-1], verdict_at=12.5)
    known = {"train.py:41": "dist.barrier()"}
    sources = Sources(None, known)
    return Finished(name, report, snapshots, FakeLogs(), sources, lambda: STALLED, dict(MADE))


def replayed(ticks: int = 0) -> ReplayPanel:
    """A replay that may play for some ticks and then pauses by itself."""
    left = iter(range(ticks))
    return ReplayPanel(STALLED, lambda pause, seconds: next(left, None) is None)


def test_what_a_run_has_written_is_opened(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "run.gz")
    recorder.begin(STALLED.watched)
    for look in STALLED.looks:
        recorder.add(look)
    recorder.close()
    panel = open_recording(tmp_path / "run.gz")
    assert "collective-mismatch" in html_of(panel)
    assert panel.second == LAST


@pytest.mark.parametrize(("attached", "outcome"), [(False, "running"), (True, "hang")])
def test_a_recording_is_judged_as_read_judges_it(attached: bool, outcome: str) -> None:
    """What `attach` has watched for a few seconds is a suspicion sooner than a run from its start."""
    together = diverging(3, odd=99)
    watched = msgspec.structs.replace(together.watched, attached=attached)
    panel = ReplayPanel(replace(together, watched=watched))
    assert f"</span> {outcome}" in html_of(panel)


def test_the_label_says_where_when_and_with_what() -> None:
    assert label(STALLED) == ("Recording of 2026-11-21 08:04 UTC: x86_64, 2 CPU cores; torch 2.13.0")
    assert "nothing is known" in label(replace(STALLED, made={"date": "<b>"}))


def test_seeking_shows_the_run_as_it_was_then() -> None:
    panel = replayed()
    assert "collective-mismatch" in html_of(panel)
    panel.seek(3.0)
    shown = html_of(panel)
    assert "collective-mismatch" not in shown
    assert "second 3.0 of 12.8." in shown
    panel.seek(99.0)
    assert "collective-mismatch" in html_of(panel)


def test_the_axis_does_not_change_while_it_plays() -> None:
    panel = replayed()
    panel.seek(3.0)
    assert ">10 s</text>" in html_of(panel)


def test_playing_goes_on_by_the_speed_and_pauses_at_the_end() -> None:
    panel = replayed(ticks=1000)
    panel.seek(1.0)
    control(panel, "Speed").value = 10.0
    click(panel, "Play")
    wait_for_threads("replay")
    assert panel.second == LAST
    assert "Play" in buttons(panel)


def test_play_at_the_end_begins_again_and_pause_stays() -> None:
    panel = replayed(ticks=4)
    click(panel, "Play")
    wait_for_threads("replay")
    assert panel.second == 2.0, "four ticks of a quarter of a second from the first"
    click(panel, "Pause")
    assert "Play" in buttons(panel)


def test_nothing_else_is_sent_between_two_snapshots() -> None:
    panel = replayed()
    panel.seek(3.0)
    seen = count_updates(panel)
    panel.seek(3.05)
    assert seen == ["value"], "the slider's own"


def test_output_of_a_recording_is_what_it_holds() -> None:
    logs = RecordedLogs(replace(STALLED, logs={"rank 0": ["a", "b"]}))
    assert (logs.labels(), logs.tail("rank 0", 1), logs.tail("rank 9")) == (["rank 0"], ["b"], [])


def test_every_kind_of_file_is_written_and_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    bar = ExportBar()
    assert not buttons(bar), "nothing is offered without a run"
    bar.offer(finished())
    assert buttons(bar) == {kind.title for kind in KINDS}
    for kind in KINDS:
        click(bar, kind.title)
        [path] = (tmp_path / FOLDER).glob(f"*{kind.suffix}")
        assert path.stem.startswith("lab-05-a-worker-broken-20261121T080405")
        assert f"{FOLDER}/{path.name}" in html_of(bar)
        assert f'download="{path.name}"' in html_of(bar)
    html = next((tmp_path / FOLDER).glob("*.html")).read_text()
    assert "<svg" in html and "first difference" in html and "</script>" not in html
    saved = load(next((tmp_path / FOLDER).glob("*.gz")))
    assert saved.logs == {"rank 0": ["hello"], "rank 1": ["world"]}
    assert saved.sources == {"train.py:41": "dist.barrier()"}
    assert saved.looks == STALLED.looks
    bar.offer(None)
    assert not buttons(bar)


def test_a_live_run_is_saved_as_it_was_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run = Session(
        COMMAND,
        start_job=FakeJob,
        look_at=lambda _: FakeEyes(STALLED.watched, STALLED.looks),
        pause=lambda _: False,
    )
    panel = JobPanel("torchrun train.py", lambda *_: run)
    asyncio.run(panel.run())
    click(panel, "Recording")
    [path] = (tmp_path / FOLDER).glob("*.gz")
    assert load(path).looks == STALLED.looks[: len(load(path).looks)]
    assert "collective-mismatch" in html_of(open_recording(path))


def test_a_folder_that_cannot_be_written_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / FOLDER).write_text("a file stands in the way")
    bar = ExportBar()
    bar.offer(finished())
    click(bar, "Recording")
    assert "It cannot be saved: " in html_of(bar)


def test_a_name_of_any_kind_makes_a_safe_file() -> None:
    assert finished("../../etc/<passwd>\n").stem == "etc-passwd-20261121T080405"
    assert replace(finished("***"), provenance={}).stem == "run"


def test_a_recording_holds_the_lines_of_the_last_stacks(tmp_path: Path) -> None:
    (tmp_path / "prep.py").write_text("\n" * 11 + "time.sleep(9)\n")
    last = snapshot(sleeping(0), RankView(1))
    run = replace(finished(), snapshots=(last,), sources=Sources(tmp_path))
    (tmp_path / "run.gz").write_bytes(recording(run))
    assert load(tmp_path / "run.gz").sources == {"prep.py:12": "time.sleep(9)"}


def test_a_difference_shows_the_change_and_both_runs(tmp_path: Path) -> None:
    gate = Gate(("mine",))
    view = DiffView(LabBench(tmp_path).lab, gate, threading.RLock())
    assert html_of(view) == ""
    view.show_run("broken", finished())
    assert html_of(view) == "", "the fix is no hint"
    view.show_run("other", finished())
    view.show_run("fixed", finished())
    assert "What changes" not in html_of(view), "the learner's own copy has not passed"
    gate.passed("mine")
    view.show()
    shown = html_of(view)
    assert shown.count("<svg") == 2
    assert "-print(&#x27;a&#x27;)" in shown and "+print(&#x27;b&#x27;)" in shown
    view.clear()
    assert html_of(view) == ""
