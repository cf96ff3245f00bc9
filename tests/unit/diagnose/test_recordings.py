"""Every job was recorded once; its verdict is derived again from that alone.

tests/recordings/NAME.jsonl.gz is a run of the job NAME of tests/jobs, as it was looked at. They are made
by `make recordings`; no process is started here.
"""

from __future__ import annotations

import argparse

import pytest
from contract import violations
from repository import JOBS, RECORDINGS
from score import jobs as collection
from score.jobs import Job
from score.trial import Trial

from helpers.diagnose.diagnose import diagnose
from helpers.diagnose.settling import HISTORY
from helpers.model.facts import Snapshot
from helpers.observe.recording import load
from helpers.report import report

DECLARED = collection.read(JOBS)

OF_THE_RUN = ("time", "left")
"""What a replay cannot show."""


def patience(job: Job) -> float:
    """The patience that the job's run was given."""
    options = argparse.ArgumentParser()
    options.add_argument("--patience", type=float, default=30.0)
    return float(options.parse_known_args(job.options)[0].patience)


def snapshots(name: str) -> tuple[Snapshot, ...]:
    return tuple(load(RECORDINGS / f"{name}.jsonl.gz").snapshots())


def replayed(job: Job) -> Trial:
    """What the instrument says of a recorded run, as if it had just ended."""
    history = snapshots(job.name)
    final = not job.proved or job.outcome == "running"
    verdict = diagnose(history[-HISTORY:], patience=patience(job), final=final)
    shown = report.to_json(report.build(verdict, history[-1]))
    stranger = verdict.blockers[0].pid if job.blockers and verdict.blockers else None
    return Trial(job, shown, job.exit_code, "", stranger, None, None, 0.0, ())


@pytest.mark.parametrize("name", DECLARED)
def test_a_recorded_job_gets_its_verdict_again(name: str) -> None:
    trial = replayed(DECLARED[name])
    assert not violations(trial.report)
    assert not [check for check in trial.wrong() if check.kind not in OF_THE_RUN], trial.story()


@pytest.mark.parametrize("name", [name for name, job in DECLARED.items() if not job.control])
def test_whenever_a_job_is_judged_it_can_be_told(name: str) -> None:
    """At a few moments of the run, and with what is a suspicion only: the ranks are anywhere then."""
    history = snapshots(name)
    for seen in range(1, len(history), max(1, len(history) // 6)):
        verdict = diagnose(history[max(0, seen - HISTORY) : seen], patience=1.0, final=True)
        report.to_json(report.build(verdict, history[seen - 1]))


@pytest.mark.parametrize("name", [name for name, job in DECLARED.items() if job.control])
def test_a_job_with_nothing_wrong_alarms_nobody_at_any_time(name: str) -> None:
    """Asked about once a second; a rank that fails is no alarm while its launcher may start it anew."""
    history = snapshots(name)
    for seen in range(1, len(history), 5):
        verdict = diagnose(history[max(0, seen - HISTORY) : seen], patience=patience(DECLARED[name]))
        alarms = ("hang",) if history[seen - 1].job.restarts else ("hang", "error")
        assert verdict.outcome not in alarms, f"{history[seen - 1].time:.1f} s: {verdict.summary}"


@pytest.mark.parametrize("name", [name for name, job in DECLARED.items() if not job.control])
def test_a_report_is_read_at_a_glance(name: str) -> None:
    """25 lines where the fix is known, 8 to paste; the line to look at stands in it with its source."""
    history = snapshots(name)
    verdict = diagnose(history[-HISTORY:], patience=patience(DECLARED[name]), final=True)
    shown = report.build(verdict, history[-1])
    text, brief = report.to_text(shown), report.brief(shown)
    assert not shown.fitting or len(text.splitlines()) <= 25, text
    assert len(brief.splitlines()) <= 8, brief
    where = verdict.where
    if where is not None and where.text and (source := where.text.splitlines()[where.line - 1]):
        assert f"{where.place}  {source.split()[0]}" in " ".join(brief.split(" ")), brief


def test_recordings_are_small_and_belong_to_a_job() -> None:
    files = {path.name.removesuffix(".jsonl.gz"): path.stat().st_size for path in RECORDINGS.iterdir()}
    assert files.keys() == DECLARED.keys()
    assert sum(files.values()) < 3_000_000
