"""The output of torch's analyser of Flight Recorder dumps."""

from __future__ import annotations

from pathlib import Path

import pytest
from judged_text import report

BLOCK = """\
{head}
internal record id: 56
group info: 0:default_pg
collective: nccl:all_reduce
{missing}input sizes: [[10, 2]]
output sizes: [[10, 2]]
world size: 4
expected ranks: {{0, 1, 2, 3}}
collective state: {state}
{errors}collective stack trace:
 all_reduce at /opt/venv/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py:2707
sync at /app/train.py:65
"""
ABSENT = BLOCK.format(
    head="Not all ranks joining collective, sequence number: 57",
    missing="missing ranks: {1, 3}\n",
    state="scheduled",
    errors="",
)
ERRORS = "error msg: Culprit rank 1; Error type: {}\n"
OTHER_TYPE = (
    "COLLECTIVE_TYPE_MISMATCH, Expected collective type: 'all_reduce' does not match found collective "
    "type: 'broadcast'"
)


def of_errors(said: str) -> str:
    return BLOCK.format(
        head="Collective sequence number: 57 has errors",
        missing="",
        state="scheduled",
        errors=ERRORS.format(said),
    )


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (ABSENT, ("hang", "missing-rank", (1, 3))),
        (ABSENT.replace("collective,", "collective:"), ("hang", "missing-rank", (1, 3))),
        (ABSENT + ABSENT.replace("{1, 3}", "{0}"), ("hang", "missing-rank", (1, 3))),
        (ABSENT.replace("scheduled", "completed"), ("running", "unknown", ())),
        (of_errors(OTHER_TYPE), ("hang", "collective-mismatch", (1,))),
        (of_errors("COLLECTIVE_STATE_MISMATCH"), ("hang", "unknown", ())),
    ],
)
def test_what_the_analyser_has_found(
    tmp_path: Path, text: str, told: tuple[str, str, tuple[int, ...]]
) -> None:
    verdict = report(tmp_path, text, "analysis.txt").verdict
    assert (verdict.outcome, verdict.cause, verdict.culprits) == told


def test_the_operation_and_its_line_are_told(tmp_path: Path) -> None:
    found = report(tmp_path, ABSENT, "analysis.txt")
    assert len(found.snapshot.ranks) == 4
    process = found.snapshot.ranks[0].process
    assert process is not None and process.where is not None
    assert (process.where.file, process.where.line) == ("/app/train.py", 65)
    assert "all_reduce" in str(process.waits[0].op)
