"""Collections of jobs, what a trial of one is judged by, and what trials amount to."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from repository import ROOT
from score import jobs as collection
from score import outside, score, trial
from score.attached import Attached
from score.jobs import CollectionError
from score.score import Score
from score.trial import Trial

from helpers.model.facts import EXIT_CODES

PROGRAM = "first()\nsecond()  # <- culprit, rank 1\nthird()  # <- rank 0\n"
TOML = """
[late]
suite = "test"
command = "torchrun --nproc-per-node=2 late.py"
outcome = "hang"
cause = "missing-rank"
culprits = [1]
prompt = true
[fine]
command = "python fine.py {port}"
outcome = "ok"
cause = "none"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "jobs.toml").write_text(TOML)
    (tmp_path / "late.py").write_text(PROGRAM)
    (tmp_path / "fine.py").write_text("first()\n")
    return tmp_path


def hang(folder: Path, **changes: Any) -> Trial:
    """A trial of the job `late` that came out right, but for the changes to its report."""
    report = {
        "outcome": "hang",
        "proved": True,
        "interrupted": False,
        "cause": "missing-rank",
        "culprits": [1],
        "blockers": [],
        "where": {"file": "late.py", "line": 2, "function": "f"},
        "ranks": [
            {"rank": 0, "state": "waiting", "where": {"file": "late.py", "line": 3}},
            {"rank": 1, "state": "running", "where": {"file": "late.py", "line": 2}},
        ],
    }
    facts: dict[str, Any] = {"verdict": 1.0, "ended": 2.0, "left": (), "exit_code": 2}
    facts.update({key: changes.pop(key) for key in facts if key in changes})
    job = collection.read(folder)["late"]
    return Trial(job, {**report, **changes}, errors="", foreign=None, took=4.0, **facts)


def control(folder: Path, outcome: str) -> Trial:
    report = {"outcome": outcome, "proved": True, "interrupted": False, "cause": "none"}
    code = EXIT_CODES[outcome]
    return Trial(collection.read(folder)["fine"], report, code, "", None, None, None, 1.0, ())


def test_a_collection(folder: Path) -> None:
    jobs = collection.read(folder)
    late, fine = jobs["late"], jobs["fine"]
    assert (late.control, late.exit_code, late.program) == (False, 2, folder / "late.py")
    assert (fine.control, fine.exit_code, fine.culprits) == (True, 0, None)
    line = {"culprit": ("late.py", 2), "rank 1": ("late.py", 2), "rank 0": ("late.py", 3)}
    assert late.lines() == line
    assert list(collection.select(jobs, "fine")) == ["fine"]
    assert list(collection.select(jobs, None)) == ["late", "fine"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "jobs.toml: Expected `object` of length >= 1"),
        ("a = 1", "jobs.toml: a: Expected `object`, got `int`"),
        ("[a", "jobs.toml is not valid TOML"),
        ("[a]\ncommand = 'python late.py'", "jobs.toml: a: Object missing required field `outcome`"),
        (TOML + "colour = 1", "jobs.toml: fine: Object contains unknown field `colour`"),
        (TOML + "folder = 'x'", "jobs.toml: fine: Object contains unknown field `folder`"),
        (TOML + "proved = 1", "jobs.toml: fine.proved: Expected `bool`, got `int`"),
        (TOML + "culprits = ['1']", r"jobs.toml: fine.culprits\[0\]: Expected `int`, got `str`"),
        (TOML + "suite = 'soon'", 'fine.suite: "soon" is not one of: test, nightly, score'),
        (TOML.replace('"ok"', '"good"'), 'fine.outcome: "good" is not one of: hang, error, ok'),
        (TOML.replace("fine.py", "none.py"), "jobs.toml: fine needs none.py, which is not there"),
        (TOML.replace("fine.py", "fine"), "jobs.toml: fine: the command names no program"),
        (TOML.replace("fine.py", "'fine.py"), "jobs.toml: fine: the command .* cannot be read"),
    ],
)
def test_what_is_no_collection_gets_one_sentence(text: str, says: str, folder: Path) -> None:
    (folder / "jobs.toml").write_text(text)
    with pytest.raises(CollectionError, match=says):
        collection.read(folder)


@pytest.mark.parametrize("marks", ["f()  # <- rank one", "f()  # <- rank 0\nf()  # <- rank 0"])
def test_marks_that_say_nothing_or_too_much(marks: str, folder: Path) -> None:
    (folder / "late.py").write_text(marks)
    with pytest.raises(CollectionError, match=r"late\.py"):
        collection.read(folder)["late"].lines()


@pytest.mark.parametrize(
    ("changes", "kind", "what"),
    [
        ({}, None, None),
        ({"outcome": "ok"}, "outcome", "outcome"),
        ({"proved": False}, "outcome", "proved"),
        ({"exit_code": None}, "outcome", "exit code"),
        ({"cause": "error"}, "cause", "cause"),
        ({"culprits": [0]}, "culprits", "culprits"),
        ({"blockers": [{"pid": 5}]}, "culprits", "blockers"),
        ({"where": None}, "line", "first cause"),
        ({"verdict": 3.1}, "time", "prompt"),
        ({"verdict": -0.1}, "time", "prompt"),
        ({"verdict": None, "ended": None}, "time", "prompt"),
        ({"ended": 5.1}, "time", "prompt"),
        ({"left": ("port 4000",)}, "left", "left"),
    ],
)
def test_what_is_wrong_with_a_trial(
    changes: dict[str, Any], kind: str | None, what: str | None, folder: Path
) -> None:
    wrong = [(check.kind, check.what) for check in hang(folder, **changes).wrong()]
    assert wrong == ([] if kind is None else [(kind, what)])


def test_a_run_without_a_report_is_wrong_in_everything(folder: Path) -> None:
    job = collection.read(folder)["late"]
    done = Trial(job, {}, None, "", None, None, None, 200.0, ())
    assert {check.kind for check in done.wrong()} >= {"outcome", "cause", "culprits", "line"}
    assert not done.false_alarm


def test_the_bar(folder: Path) -> None:
    right = [hang(folder)] * 19 + [control(folder, "ok")]
    assert all(Score(tuple(right)).bar().values())
    one_cause = Score((*right, hang(folder, cause="error")))
    assert one_cause.right("cause") == (19, 20) and all(one_cause.bar().values())
    two = Score((*right[1:], *[hang(folder, cause="error", where=None)] * 2))
    assert [demand for demand, met in two.bar().items() if not met] == ["cause right: 95 % at least"]
    assert two.right("line") == (58, 60)


@pytest.mark.parametrize(
    ("changes", "demand"),
    [
        ({"outcome": "running"}, "outcome"),
        ({"left": ("run folder: a",)}, "leftovers"),
        ({"verdict": 3.5}, "median"),
    ],
)
def test_one_miss_is_enough(changes: dict[str, Any], demand: str, folder: Path) -> None:
    bar = Score((hang(folder, **changes),)).bar()
    assert [text.split()[0].rstrip(":") for text, met in bar.items() if not met] == [demand]


def test_a_false_alarm(folder: Path) -> None:
    found = Score((control(folder, "ok"), control(folder, "hang")))
    assert found.false_alarms == 1
    page = score.to_markdown(found)
    assert "| false alarms | 1 in 2 runs of controls |" in page
    assert "- false alarms: none: MISSED" in page and "| fine | 2 | 1 |" in page


def test_a_folder_of_anyone_is_run(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("print('well')\n")
    (tmp_path / "b.py").write_text("raise KeyError('x')  # <- culprit\n")
    (tmp_path / "jobs.toml").write_text(
        '[a]\ncommand = "python a.py"\noutcome = "ok"\ncause = "none"\nsuite = "test"\n'
        '[b]\ncommand = "python b.py"\noutcome = "error"\ncause = "none"\n'
    )
    words = [sys.executable, "tools/make_score.py", str(tmp_path), "--controls", "2"]
    words += ["--record", str(tmp_path)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1, done.stderr
    assert "| cause right | 0 of 1 (0.0%) |" in done.stdout
    assert "| b | error | **cause error, not none** |" in done.stdout
    told = [line.split(" (")[0] for line in done.stderr.splitlines() if re.match(r"\d/3 ", line)]
    assert told == ["1/3 a: right", "2/3 b: cause error, not none", "3/3 a: right"]
    assert {path.name for path in tmp_path.glob("*.gz")} == {"a.jsonl.gz", "b.jsonl.gz"}


def test_a_port_that_another_process_has_meanwhile_taken_is_not_left_behind() -> None:
    words = [sys.executable, "-c", trial.LISTENER]
    environment = os.environ | {trial.MARKER: "ours"}
    pipe = subprocess.PIPE
    with subprocess.Popen(words, env=environment, stdin=pipe, stdout=pipe, text=True) as listener:
        assert listener.stdout is not None
        port = int(listener.stdout.readline())
        assert trial.listened_on(port, "ours")
        assert not trial.listened_on(port, "another's")
        listener.kill()
    assert not trial.listened_on(port, "ours")


@pytest.mark.parametrize(("named", "right"), [(None, None), (1, True), (3, False)])
def test_from_outside_a_statement_counts_where_one_is_named(
    folder: Path, named: int | None, right: bool | None
) -> None:
    """It often cannot be told from there; a wrong one is wrong."""
    (folder / "late.py").write_text(PROGRAM.replace("first()", "first()  # <- parted"))
    job = collection.read(folder)["late"]
    where = None if named is None else {"file": "late.py", "line": named, "function": "f"}
    report = {**hang(folder).report, "parting": {"where": where}}
    checks = Attached(job, report, 2, 5.0).checks()
    found = [check.right for check in checks if check.kind == "parting"]
    assert found == ([] if right is None else [right])
    assert [check.what for check in checks if check.kind == "line"] == ["rank 1", "rank 0"]


@pytest.mark.parametrize(
    ("cause", "misled", "enough"),
    [("missing-rank", 0, True), ("unknown", 0, False), ("rank-crashed", 1, False)],
)
def test_from_outside_unknown_is_an_answer_and_a_wrong_cause_is_not(
    folder: Path, cause: str, misled: int, enough: bool
) -> None:
    job = collection.read(folder)["late"]
    told = Attached(job, {**hang(folder).report, "cause": cause}, 2, 5.0)
    found = outside.OutsideScore(outside.READS[0], (told,), {"other": "the job does not come to rest"})
    assert found.misled == misled
    assert found.bar() == {"wrong causes: none": not misled, "cause right: 90% at least": enough}
    page = outside.to_markdown(found)
    assert "| cause right | 1 of 1 (100.0%) |" in page or not enough
    assert "- other: the job does not come to rest" in page
