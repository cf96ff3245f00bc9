"""Every program runs with every combination of knobs once; differences are seen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from example_lab import example, write_programs

from helpers.labs import all_cases
from helpers.labs.all_cases import Case, Result
from helpers.labs.lab import Lab, all_labs


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_programs(tmp_path)


@pytest.fixture
def lab(folder: Path) -> Lab:
    return example(folder)


def test_every_case_of_the_guide_has_one_expected_report() -> None:
    listed = list(all_cases.cases(all_labs()))
    assert len({case.shown for case in listed}) == len(listed) > 100
    for case in listed:
        assert sum(one.covers(case.program, case.knobs) for one in case.lab.file.expected) == 1
    alone = {(case.lab.name, case.program) for case in listed if case.alone}
    assert {(lab.name, "fixed") for lab in all_labs()} <= alone


ANSWERS: list[tuple[dict[str, Any], int, str]] = [
    ({}, 0, "19 as expected, 0 not"),
    ({"alone": Result("hang unknown []", 1.0)}, 1, "17 as expected, 2 not"),
    ({"alone": Result("ok", 1.0, ("loss is equal on all ranks: the ranks differ",))}, 1, "ranks differ"),
    ({"alone": Result("07_example is not started: no room", 0.0)}, 1, "DIFF  07_example alone"),
]


@pytest.mark.parametrize(("changed", "code", "said"), ANSWERS)
def test_a_difference_is_an_error(
    lab: Lab,
    changed: dict[str, Result],
    code: int,
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def run(case: Case) -> Result:
        return changed.get(case.program) or Result(case.wanted, 1.0)

    monkeypatch.setattr(all_cases, "run", run)
    assert all_cases.main([lab]) == code
    shown = capsys.readouterr().out
    assert said in shown
    assert "16 skipped: hardware one-gpu needs a GPU, and STUCK_RANKS_HARDWARE=cpu" in shown
