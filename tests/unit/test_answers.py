"""The order of answers by which those of different commands on one job are compared."""

from __future__ import annotations

import pytest
from answers import Answer, claims_no_more

PROVED = Answer("hang", True, "missing-rank", (1,))
SUSPECTED = Answer("hang", False, "missing-rank", (1,))
FAILED = Answer("error", True, "rank-exited", (1,))
WELL = Answer("ok", True, "none")
RUNS = Answer("running", False, "none")


@pytest.mark.parametrize(
    ("answer", "than"),
    [
        (PROVED, PROVED),
        (SUSPECTED, PROVED),
        (Answer("hang", False, "unknown"), PROVED),
        (Answer("hang", True, "missing-rank"), PROVED),
        (Answer("running", False, "missing-rank", (1,)), PROVED),
        *[(RUNS, than) for than in (PROVED, SUSPECTED, FAILED, WELL, RUNS)],
    ],
)
def test_the_same_or_less_is_no_contradiction(answer: Answer, than: Answer) -> None:
    assert claims_no_more(answer, than)


@pytest.mark.parametrize(
    ("answer", "than"),
    [
        (PROVED, SUSPECTED),
        (SUSPECTED, RUNS),
        (SUSPECTED, WELL),
        (FAILED, PROVED),
        (WELL, RUNS),
        (Answer("hang", True, "missing-rank", (0,)), PROVED),
        (Answer("hang", True, "missing-rank", (0, 1)), PROVED),
        (Answer("hang", True, "collective-mismatch", (1,)), PROVED),
        (Answer("running", False, "missing-rank", (1,)), WELL),
    ],
)
def test_more_or_another_claim_is_one(answer: Answer, than: Answer) -> None:
    assert not claims_no_more(answer, than)


def test_no_report_claims_nothing() -> None:
    assert Answer.of({}) == RUNS
