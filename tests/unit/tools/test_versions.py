"""What is shown with other versions of torch: the cells of the page come from runs alone."""

from __future__ import annotations

import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import make_versions as versions
import pytest
import upgrade_check
from make_versions import SHOWN, Environment
from msgspec import structs
from repository import JOBS
from score import jobs as collection
from score.trial import Trial

OLD = Environment("/old/bin/python", "2.0.1", "3.8.18")
NEW = Environment("/new/bin/python", "2.13.0", "3.11.7")
JOB = collection.read(JOBS)["skips_init"]


def of(changes: dict[str, Any], code: int = JOB.exit_code) -> Trial:
    """A trial in which all is as declared, but for the changes to its report."""
    lines = {mark: {"file": file, "line": number} for mark, (file, number) in JOB.lines().items()}
    report = {
        **{key: getattr(JOB, key) for key in ("outcome", "proved", "cause", "culprits", "applies")},
        "interrupted": False,
        "where": lines.get("culprit"),
        "parting": {"where": lines.get("parted")},
        "ranks": [
            {"rank": rank, "state": state, "error": None, "where": lines.get(f"rank {rank}")}
            for rank, state in enumerate(JOB.states or ())
        ],
        "not_seen": [],
    }
    return Trial(JOB, {**report, **changes}, code, "", None, 1.0, 1.0, 4.0, ())


def rows(page: str) -> dict[str, list[str]]:
    """The cells of the table by the job's name."""
    table = page.partition("## ")[0]
    found = (line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("| "))
    return {cells[1].strip("`"): cells[2:] for cells in found}


def test_a_cell_says_what_came_out() -> None:
    assert versions.cell(of({})) == "all right"
    assert versions.cell(of({"culprits": [0]})) == "culprits 0, not 1"
    assert versions.cell(replace(of({}), report={}, exit_code=None)) == "no report, exit code None"
    assert versions.cell(None) == "not tried"


def test_a_job_that_ends_by_itself_where_it_should_hang_says_why() -> None:
    ranks = [{"rank": 0, "state": "exited", "error": "TypeError: not subscriptable\nmore"}]
    said = versions.cell(of({"outcome": "error", "ranks": ranks}, code=1))
    assert said.startswith("outcome error, not hang")
    assert said.endswith("; the job itself ends with `TypeError: not subscriptable`")


def test_what_was_not_run_is_not_claimed() -> None:
    first, second, *rest = SHOWN
    old = versions.column(OLD, {first: of({"not_seen": ["no recorder"]})})
    new = versions.column(NEW, {second: of({"cause": "none"})})
    page = versions.page([new, old], "The newest at commit abc1234.")
    table = rows(page)
    assert table["job"] == ["torch 2.0.1, Python 3.8.18", "torch 2.13.0, Python 3.11.7"]
    assert table[first] == ["all right", "not tried"]
    assert table[second] == ["not tried", f"cause none, not {JOB.cause}"]
    assert {cell for name in rest for cell in table[name]} == {"not tried"}
    assert "With torch 2.0.1 all was right in 1 of 1 runs." in page
    assert "With torch 2.13.0 all was right in 0 of 1 runs." in page
    assert "at commit abc1234" in page
    assert page.count("could not see:") == 1 and "\n\n- no recorder\n" in page


def test_what_is_right_but_late_is_counted_apart() -> None:
    job = structs.replace(JOB, prompt=True)
    trials = {name: replace(of({}), job=job, verdict=end, ended=end) for name, end in ENDS.items()}
    closing = versions.column(NEW, trials).closing
    assert closing.startswith(
        "With torch 2.13.0 all was right in 1 of 2 runs. 1 more were right but late;"
    )


ENDS = dict(zip(SHOWN, (1.0, 90.0), strict=False))
"""Seconds to the verdict and to the end."""


def test_the_columns_of_versions_that_are_not_run_again_stay_as_they_are() -> None:
    page = versions.PAGE.read_text()
    kept = versions.columns(page)
    assert len(kept) >= 4 and all(column.cells.keys() > set(SHOWN) for column in kept)
    new = versions.column(NEW, {next(iter(SHOWN)): of({"not_seen": ["no recorder"]})})
    again = versions.columns(versions.page([*kept, new], "now"))
    assert [column for column in again if column.title != new.title][:3] == kept[:3]
    assert "- no recorder" in next(column.closing for column in again if column.title == new.title)


# What is newer than all that has run.


def test_a_release_that_has_not_run_is_found_and_no_older_nor_unfinished_one() -> None:
    assert upgrade_check.newer(["2.15.0", "2.14.1", "2.13.0+cpu", "2.13.0"], ["2.4.1", "2.13.0"]) == [
        "2.15.0",
        "2.14.1",
    ]
    assert upgrade_check.newer(["2.16.0rc1", "2.16.0.dev3", "2.12.0", "2.13.0"], ["2.13.0"]) == []
    assert upgrade_check.newer(["2.13.0.1", "2.13.0+cpu"], ["2.13.0"]) == ["2.13.0.1"]


def test_the_page_says_what_has_run_of_each_package_that_is_watched(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = versions.PAGE.read_text()
    for package in upgrade_check.WATCHED:
        assert upgrade_check.ran(page, package)
    run = {package: upgrade_check.ran(page, package) for package in upgrade_check.WATCHED}
    monkeypatch.setattr(upgrade_check, "offered", lambda _, package: (run[package], ""))
    assert upgrade_check.main() == 0
    run = {**run, "jupyterlab": ["99.0"]}
    assert upgrade_check.main() == 1
    assert "jupyterlab: 99.0 newer than" in capsys.readouterr().out
    monkeypatch.setattr(upgrade_check, "offered", lambda _, __: ([], "NewConnectionError"))
    assert upgrade_check.main() == 64
    assert "torch cannot be listed because the package index" in capsys.readouterr().err


def test_every_job_that_is_run_is_declared_and_comes_to_an_end() -> None:
    declared = collection.read(JOBS)
    for name in SHOWN:
        job = versions.limited(declared[name])
        assert job.control or "--max-seconds" in job.options, name


def test_a_python_without_torch_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(versions, "PAGE", tmp_path / "torch.md")
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -I -S "$@"\n')
    bare.chmod(0o700)
    for python, why in (
        (str(tmp_path / "none"), "cannot be run"),
        (str(bare), "No module named 'torch'"),
    ):
        assert versions.main([python]) == 64
        said = capsys.readouterr().err
        assert said.count("\n") == 1 and why in said
    assert not versions.PAGE.exists()
