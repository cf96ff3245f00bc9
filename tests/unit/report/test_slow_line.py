"""Who was waited for, in words and in JSON."""

from __future__ import annotations

from typing import get_args

import pytest
from histories import snapshot, working
from msgspec.structs import replace

from helpers.model.facts import Report, Verdict
from helpers.model.frames import Frame
from helpers.model.slow import Alike, Slow, SlowKind
from helpers.panel.show.view import final_verdict, live_verdict
from helpers.report import report as reports
from helpers.report.slow import DOES, HELPS, help_line, slow_line

LINE = Frame("train.py", 31, "batches")
SLOW = Slow((1,), 0.637, "input", 12.74, LINE)
OK = Verdict("ok", "none", summary="The job ended well.")


def report(verdict: Verdict) -> Report:
    return reports.build(verdict, snapshot(working(0), working(1)))


@pytest.mark.parametrize(
    ("verdict", "line"),
    [
        (OK, ""),
        (
            replace(OK, slow=SLOW),
            "rank 1, waited for 64 % of the time, mostly at train.py:31 (it loads data)",
        ),
        (
            replace(OK, slow=Slow((2, 3), 0.5, "unknown", 9.0, LINE, asleep=True)),
            "ranks 2 and 3, waited for 50 % of the time, mostly at train.py:31 (asleep)",
        ),
        (replace(OK, slow=Slow((0,), 0.2, "unknown", 9.0)), "rank 0, waited for 20 % of the time"),
        (
            replace(OK, alike=Alike(LINE, 0.61, "input")),
            "all ranks spend 61 % of the time at train.py:31 (it loads data)",
        ),
    ],
)
def test_who_was_waited_for_in_words(verdict: Verdict, line: str) -> None:
    assert slow_line(verdict) == line
    text = reports.to_text(report(verdict))
    assert (f"Slow: {line}" in text.replace("\n", " ")) == bool(line)


def test_each_kind_has_words_and_a_remedy() -> None:
    assert DOES.keys() == HELPS.keys() == set(get_args(SlowKind))
    assert help_line(replace(OK, slow=SLOW)) == HELPS["input"]
    assert help_line(replace(OK, alike=Alike(LINE, 0.61, "input"))) == ""


def test_who_was_waited_for_in_json() -> None:
    assert reports.to_json(report(OK))["slow"] is None
    assert reports.to_json(report(replace(OK, slow=SLOW)))["slow"] == {
        "rank": 1,
        "ranks": [1],
        "where": {"file": "train.py", "line": 31, "function": "batches"},
        "share": 0.64,
        "kind": "input",
        "seconds": 12.74,
    }
    several = replace(OK, slow=replace(SLOW, ranks=(1, 2)))
    assert reports.to_json(report(several))["slow"]["rank"] is None  # type: ignore[index]


def test_the_panel_says_it_of_a_job_that_goes_on_or_has_ended() -> None:
    running = Verdict("running", "none", slow=SLOW)
    assert "waited for 64 %" in live_verdict(running)
    assert "waited for 64 %" in final_verdict(report(replace(OK, slow=SLOW)))
    assert "waited for" not in final_verdict(report(Verdict("error", "error", slow=SLOW)))
