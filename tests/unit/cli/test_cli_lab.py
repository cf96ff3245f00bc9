"""`python -m helpers lab`: what cannot be run is said in one sentence, and nothing starts."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest
from example_lab import write_programs

from helpers.cli.main import main
from helpers.labs import all_cases, machine
from helpers.labs import lab as labs
from helpers.labs.all_cases import Case, Result
from helpers.session import Session

USAGE = 64


@pytest.fixture(autouse=True)
def nothing_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(_: Session) -> Session:
        raise AssertionError("a run was started")

    monkeypatch.setattr(Session, "start", start)


def said(capsys: pytest.CaptureFixture[str]) -> str:
    """What was written, which must be one line on standard error."""
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert err.startswith("stuck-ranks: ")
    return err


WRONG = [
    ("lab", "which lab? name one, such as 05, or say --all"),
    ("lab 99", 'there is no lab "99", only 01_launch_placement'),
    ("lab 05 --program best", 'has no program "best", only broken, fixed, plain, plain_guarded, mine'),
    ("lab 05 --knob speed=9", 'has no setting "speed", only launcher'),
    ("lab 05 --knob launcher", "--knob takes NAME=VALUE, not 'launcher'"),
    ("lab 05 --knob launcher=mpirun", '"mpirun" is no value of launcher, only python, torchrun'),
    ("lab 04 --program unguarded --knob loader=in_order", '"loader" does not apply to unguarded'),
    ("lab 05 --knob hardware=multi-gpu", "cannot run this here: hardware multi-gpu needs 2 GPUs"),
    (
        "lab 04 --program fixed --knob hardware=one-gpu --knob strategy=ddp_fork",
        "strategy ddp_fork, hardware one-gpu do not go together",
    ),
    ("lab 05 --all --knob launcher=python", "--all takes every program and setting"),
]


@pytest.mark.parametrize(("line", "sentence"), WRONG)
def test_what_a_lab_does_not_have(line: str, sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(line.split()) == USAGE
    assert sentence in said(capsys)


def test_a_machine_that_is_too_small(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(machine, "free_memory", lambda: 5 * machine.MB)
    assert main(["lab", "05"]) == USAGE
    assert "MB of free memory, and 5 MB are free" in said(capsys)


def test_a_port_that_a_stranger_has(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.socket() as stranger:
        stranger.bind(("127.0.0.1", 0))
        stranger.listen()
        monkeypatch.setenv("MASTER_PORT", str(stranger.getsockname()[1]))
        assert main(["lab", "01"]) == USAGE
    assert f"is in use by process {os.getpid()} (" in said(capsys)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [("title = ", "07_example/lab.toml is not valid TOML"), ("minutes = 1", "07_example/lab.toml: ")],
)
@pytest.mark.parametrize("line", ["lab 07", "lab --all"])
def test_a_lab_file_that_is_wrong(
    line: str,
    content: str,
    sentence: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (write_programs(tmp_path) / "lab.toml").write_text(content)
    monkeypatch.setenv(labs.NOTEBOOKS, str(tmp_path))
    assert main(line.split()) == USAGE
    assert sentence in said(capsys)


def test_all_runs_all(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def run(case: Case) -> Result:
        return Result(case.wanted, 1.0)

    monkeypatch.setattr(all_cases, "run", run)
    assert main(["lab", "05", "--all"]) == 0
    out = capsys.readouterr().out
    assert out.count("05_spawn_ports broken ") == 12
    assert "30 as expected, 0 not" in out
