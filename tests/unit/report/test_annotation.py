"""The line by which GitHub shows a report beside the code."""

from __future__ import annotations

from pathlib import Path

import pytest
from histories import snapshot, working
from msgspec.structs import replace

from helpers.model.facts import Verdict
from helpers.model.frames import Frame
from helpers.report import report as reports
from helpers.report.annotation import annotation

CHECKOUT = Path("/checkout")
HANG = Verdict("hang", "unknown", proved=True, summary="Rank 1, 50 % done: it waits.")
LINE = Frame("train.py", 31, "fit")


@pytest.mark.parametrize(
    ("verdict", "test", "line"),
    [
        (Verdict("ok", "none"), None, ""),
        (Verdict("running", "none"), None, ""),
        (
            replace(HANG, where=LINE),
            None,
            "::error file=src/train.py,line=31,title=HANG (proved)%3A unknown"
            "::Rank 1, 50 %25 done: it waits.",
        ),
        (
            replace(HANG, where=replace(LINE, file="a,b.py")),
            "test_a.py::test_b",
            "::error file=src/a%2Cb.py,line=31,title=HANG (proved)%3A unknown"
            "::Rank 1, 50 %25 done: it waits.%0AIn test_a.py::test_b.",
        ),
        (
            replace(HANG, where=replace(LINE, file="/elsewhere/lib.py")),
            None,
            "::error title=HANG (proved)%3A unknown::Rank 1, 50 %25 done: it waits.",
        ),
        (HANG, None, "::error title=HANG (proved)%3A unknown::Rank 1, 50 %25 done: it waits."),
    ],
)
def test_a_report_at_its_line(verdict: Verdict, test: str | None, line: str) -> None:
    seen = snapshot(working(0))
    seen = replace(seen, job=replace(seen.job, test=test))
    assert annotation(reports.build(verdict, seen), CHECKOUT / "src", CHECKOUT) == line
