"""What a report says of a job that is known by what it has left."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from dumps import done, dump

from helpers.artifacts.artifacts import read
from helpers.report.report import Report, to_json
from helpers.session import NOTHING_WRONG, report_of_artifacts

WATCHDOG = (
    "[rank{rank}]:[E1123 12:00:00.123456789 ProcessGroupNCCL.cpp:629] [Rank {rank}] Watchdog caught "
    "collective operation timeout: WorkNCCL(SeqNum=57, OpType=ALLREDUCE, NumelIn=10, NumelOut=10, "
    "Timeout(ms)=600000) ran for 600029 milliseconds before timing out.\n"
)
STUCK_WATCHDOG = (
    "[rank{rank}]:[E ProcessGroupNCCL.cpp:1316] [PG 0 Rank {rank}] Heartbeat monitor timed out! Process "
    "will be terminated after dumping debug info. workMetaList_.size()=3\n"
)
SUMMARY = """\
Failures:
[0]:
  time      : 2026-11-23_12:00:00
  host      : n0
  rank      : 1 (local_rank: 1)
  exitcode  : 1 (pid: 4243)
  error_file: <N/A>
"""
REACHED = (
    "[Rank 5]: Rank 5 successfully reached monitoredBarrier, but received errors while waiting for "
    "send/recv from rank 0. Please check rank 0 logs for faulty rank.\n"
)


def of_log(folder: Path, text: str) -> Report:
    (folder / "job.log").write_text(text)
    return report_of_artifacts(read([str(folder)]))[0]


@pytest.mark.parametrize(
    ("text", "cause", "says"),
    [
        (
            STUCK_WATCHDOG.format(rank=0) + STUCK_WATCHDOG.format(rank=1),
            "unknown",
            "Probably a hang: ranks 0 and 1 have said nothing more; whether they have moved "
            "since is not known. Nothing that was read says what ranks 0 and 1 were doing.",
        ),
        (SUMMARY, "error", "Rank 1 raised an exception that is not in what was read."),
        (REACHED, "unknown", "Rank 5 raised RuntimeError: Rank 5 successfully reached"),
    ],
    ids=[
        "a watchdog that is stuck itself",
        "an exit code without its exception",
        "a barrier that broke",
    ],
)
def test_what_is_said_where_the_log_does_not_tell_why(
    tmp_path: Path, text: str, cause: str, says: str
) -> None:
    verdict = of_log(tmp_path, text).verdict
    assert verdict.cause == cause
    assert verdict.summary.startswith(says) and ".." not in verdict.summary


def test_a_rank_below_one_that_is_told_of_is_unseen(tmp_path: Path) -> None:
    ranks = of_log(tmp_path, REACHED).snapshot.ranks
    assert [view.state for view in ranks] == ["unseen"] * 5 + ["exited"]


def test_nothing_is_said_to_run(tmp_path: Path) -> None:
    for rank in range(2):
        (tmp_path / f"rank{rank}.json").write_text(json.dumps(dump(done("barrier"))))
    report, _ = report_of_artifacts(read([str(tmp_path)]))
    assert (report.verdict.outcome, report.verdict.summary) == ("running", NOTHING_WRONG)


@pytest.mark.parametrize(
    ("text", "hardware"), [(WATCHDOG.format(rank=0), "cuda"), (REACHED, None)], ids=["NCCL", "untold"]
)
def test_the_hardware_is_told_where_it_is_known(tmp_path: Path, text: str, hardware: str | None) -> None:
    job = to_json(of_log(tmp_path, text))["job"]
    assert isinstance(job, dict) and job["hardware"] == hardware


@pytest.mark.parametrize("number", [1 << 17, 10**12], ids=["just too many", "far too many"])
def test_a_number_that_no_rank_has_is_damage(tmp_path: Path, number: int) -> None:
    told = dump(done("barrier"), ranks=(0, number))
    (tmp_path / f"rank{number}.json").write_text(json.dumps(told))
    (tmp_path / "rank1.json").write_text(json.dumps(told))
    report, _ = report_of_artifacts(read([str(tmp_path)]))
    assert [view.rank for view in report.snapshot.ranks] == [0, 1]
