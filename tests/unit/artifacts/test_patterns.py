"""Every pattern of a foreign message, against the lines that its row gives."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from helpers.artifacts import job
from helpers.artifacts.log import NEEDLES
from helpers.artifacts.patterns import PATTERNS, failure_lines
from helpers.artifacts.text import Text
from helpers.diagnose.diagnose import diagnose
from helpers.observe.source import Sources


@pytest.mark.parametrize("name", PATTERNS)
def test_a_row_takes_its_examples_apart(name: str) -> None:
    row = PATTERNS[name]
    assert row.source and row.examples
    for example in row.examples:
        match = row.search(example)
        assert match is not None, example
        assert all(any(short in needle.encode() for short in NEEDLES) for needle in row.needles)


@pytest.mark.parametrize(
    ("name", "example", "told"),
    [
        ("WORK", 0, {"seq": "2", "op": "ALLREDUCE", "shape": "4, 8", "numel": None}),
        ("WORK", 2, {"seq": "31", "op": "_REDUCE_SCATTER_BASE", "numel": "67108864"}),
        ("STATUS", 1, {"seq": "31", "enqueued": "58", "completed": "30"}),
        ("STATUS", 2, {"seq": "241", "enqueued": "315", "completed": "-1"}),
        ("STATUS", 3, {"seq": None, "enqueued": "2", "completed": "1"}),
        ("GROUP", 0, {"id": "0", "rank": "1", "description": None}),
        ("GROUP", 1, {"id": "0", "description": "default_pg"}),
        ("GROUP", 2, {"guid": "117", "description": "EXPERT_TENSOR_AND_MODEL_PARALLEL_GROUP"}),
        ("GROUP", 3, {"name": "1"}),
        ("SUMMARY_EXIT", 1, {"code": "-9", "pid": "1134"}),
        ("TASK_ENDED", 1, {"host": "node[7-8]", "tasks": "1,3-5", "how": "Killed"}),
        ("STORE_BARRIER", 1, {"rank": "0", "world": "2", "count": "1"}),
        ("FRAME", 0, {"function": "all_reduce", "line": "2968"}),
        ("DESYNC_RANKS", 0, {"ranks": "3, 4, 5, 6", "state": "started", "op": "_ALLGATHER_BASE"}),
    ],
)
def test_what_a_row_takes_out(name: str, example: int, told: dict[str, str | None]) -> None:
    match = PATTERNS[name].search(PATTERNS[name].examples[example])
    assert match is not None
    assert told.items() <= match.groupdict().items()


def test_what_nccl_has_warned_of_is_evidence() -> None:
    late = (
        "[rank{rank}]:[E1123 12:00:00.123456789 ProcessGroupNCCL.cpp:629] [Rank {rank}] Watchdog caught "
        "collective operation timeout: WorkNCCL(SeqNum=57, OpType=ALLREDUCE, NumelIn=10, NumelOut=10, "
        "Timeout(ms)=600000) ran for 600029 milliseconds before timing out."
    )
    text = Text("job.log")
    for line in (late.format(rank=0), late.format(rank=1), failure_lines.NCCL_WARN.examples[1]):
        text.take(line)
    seen = job.snapshot(text.accounts(), Sources("", lambda _: None))
    verdict = diagnose([replace(seen, time=seen.time - 1.0), seen], final=True)
    assert (verdict.cause, verdict.culprits) == ("unknown", ())
    assert verdict.evidence[-1].startswith("process 110 on node7: NCCL WARN NET/IB : Got completion")
