"""How launchers, operators and libraries tell that a rank has ended, or that it waits."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from judged_text import found, report

Told = tuple[str, str, tuple[int, ...]]


STALLED = (
    "WARNING: One or more tensors were submitted by subset of ranks for more than 60 seconds. Stalled "
)
NO_PROGRESS = "[2026-11-23 12:00:00{}] Scheduler watchdog timeout (self.watchdog_timeout=300{})\n"
QUIT = (
    "[2026-11-23 12:00:05] Received sigquit from a child process. It usually means the child failed.\n"
)
VALUE = (
    'Traceback (most recent call last):\n  File "/app/serve.py", line 8, in run\nValueError: bad batch\n'
)

WAITS = {
    "ranks that are ready": (
        STALLED + "ops: a [ready ranks: 5, 1, 4], b [ready ranks: 5, 1, 4]\n",
        ("hang", "missing-rank", (0, 2, 3)),
    ),
    "tensors for which others are ready": (
        STALLED + "ops: a [ready ranks: 0, 2], b [ready ranks: 1, 2]\n",
        ("hang", "missing-rank", (0, 1)),
    ),
    "only the last ranks are missing": (STALLED + "ops: a [ready ranks: 0]\n", ("hang", "unknown", ())),
    "an exception that follows": (
        STALLED + "ops: a [ready ranks: 0, 2]\n" + VALUE,
        ("hang", "missing-rank", (1,)),
    ),
    "a server whose ranks make no progress": (
        "".join(NO_PROGRESS.format(f" TP{rank}", "") for rank in range(2)) + QUIT + "Killed\n",
        ("hang", "unknown", ()),
    ),
    "a stage of a pipeline": (
        NO_PROGRESS.format(" PP1 TP1", ", self.soft=False"),
        ("hang", "unknown", ()),
    ),
    "a watchdog that only tells": (
        NO_PROGRESS.format(" TP1", ", self.soft=True"),
        ("running", "none", ()),
    ),
    "a rank in a collective of XLA": (
        "ops_utils.h:310] This thread has been waiting for 5000ms for and may be stuck: participant "
        "AllReduceParticipantData{rank=1, element_count=7840\n",
        ("hang", "unknown", ()),
    ),
    "a failure before the server's end": (VALUE + QUIT + "Killed\n", ("error", "error", ())),
    "a server's end": (QUIT + "Killed\n", ("error", "unknown", ())),
    "a shell's": ("Killed\n", ("error", "rank-crashed", ())),
}


MEMBERS = "{}: Initializing distributed: GLOBAL_RANK: 1, MEMBER: 2/8\n"


def test_two_tasks_that_start_as_one_rank(tmp_path: Path) -> None:
    twice = MEMBERS.format(0) + MEMBERS.format(1)
    assert found(tmp_path, twice) == ("error", "duplicate-rank", (1,))
    assert found(tmp_path, MEMBERS.format(0) * 2)[1:] == ("none", ())


def test_the_default_group_tells_the_rank_that_a_launcher_numbers_by_node(tmp_path: Path) -> None:
    late = (
        "[rank0]:  what():  [PG ID 0 PG GUID 0(default_pg) Rank 4] Process group watchdog thread "
        "terminated with exception: [Rank 4] Watchdog caught collective operation timeout: WorkNCCL("
        "SeqNum=49, OpType=ALLREDUCE, NumelIn=16, NumelOut=16, Timeout(ms)=300000) ran too long\n"
    )
    told = report(tmp_path, late)
    assert [view.rank for view in told.snapshot.ranks if view.process and view.process.waits] == [4]


def test_the_exit_codes_of_tasks_beside_an_exception_of_nobody(tmp_path: Path) -> None:
    told = report(tmp_path, VALUE + "srun: error: n1: tasks 2-3: Exited with exit code 1\n")
    codes = {view.rank: view.process.exit_code for view in told.snapshot.ranks if view.process}
    assert {rank: code for rank, code in codes.items() if rank in (2, 3)} == {2: 1, 3: 1}
    assert (told.verdict.cause, told.verdict.culprits) == ("error", ())


def test_a_line_that_is_cut_off_names_its_operation(tmp_path: Path) -> None:
    late = (
        "[rank3]:[E9 x.cpp:6] [Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7, "
    )
    told = report(tmp_path, late + "OpType=ALLREDUCE, NumelIn=5, NumelOut=5, Timeout(ms)=300")
    process = told.snapshot.ranks[3].process
    assert process is not None
    assert [(wait.op, wait.sizes) for wait in process.waits] == [("all_reduce", ((5,),))]


@pytest.mark.parametrize("name", WAITS)
def test_what_waits_and_what_follows(tmp_path: Path, name: str) -> None:
    text, told = WAITS[name]
    assert found(tmp_path, text) == told


def test_a_process_with_a_place_in_a_pipeline_gets_no_number(tmp_path: Path) -> None:
    ranks = report(tmp_path, NO_PROGRESS.format(" PP1 TP1", "")).snapshot.ranks
    assert [view.rank for view in ranks] == [None]
    ranks = report(tmp_path, NO_PROGRESS.format(" TP1", "")).snapshot.ranks
    assert [view.rank for view in ranks if view.process is not None] == [1]


TABLE = "Root Cause (first observed failure) :[0]: time : 12:00 host : n0 {} error file: <N/A>\n"

ENDS = {
    "a table in one line": (
        TABLE.format("rank2 (local rank: 2)exitcode: -9 (pid: 36071)"),
        ("error", "rank-crashed", (2,)),
    ),
    "two of a table in one line": (
        "Failures: rank : 1 (local_rank: 1) exitcode : 1 (pid: 12) "
        + TABLE.format("rank : 3 (local_rank: 3) exitcode : -11 (pid: 14)"),
        ("error", "rank-crashed", (3,)),
    ),
    "a pod, by a signal": (
        "DEBUG events Error pod train-worker-0 container pytorch exitCode: 137 terminated message: \n",
        ("error", "rank-crashed", ()),
    ),
    "a pod": (
        "Error pod train-worker-0 container pytorch exitCode: 1 terminated message: \n"
        "DEBUG events Pod: kubeflow.train-worker-0 exited with code 1\n",
        ("error", "error", ()),
    ),
}


@pytest.mark.parametrize("name", ENDS)
def test_how_a_rank_has_ended(tmp_path: Path, name: str) -> None:
    text, told = ENDS[name]
    assert found(tmp_path, text) == told


def test_a_pod_is_named(tmp_path: Path) -> None:
    told = report(
        tmp_path, "Error pod train-worker-0 container pytorch exitCode: 137 terminated message: "
    )
    assert "a process on train-worker-0 was ended by SIGKILL" in told.verdict.detail


DIED = "ray.exceptions.ActorDiedError: The actor died {}\n"
OF_ACTOR = "\tclass_name: RayTrainWorker\n\tactor_id: f25\n\tpid: 43514\n\tip: 10.0.0.4\n"
CRASHED = DIED.format("unexpectedly before finishing this task.") + OF_ACTOR
EXIT = (
    "The actor is dead because its worker process has died. Worker exit type: {} Worker exit detail: x\n"
)


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        (CRASHED + EXIT.format("SYSTEM_ERROR"), "rank-crashed"),
        (CRASHED, "rank-crashed"),
        ("ray.exceptions.WorkerCrashedError: The worker died unexpectedly.\n", "rank-crashed"),
        (CRASHED + EXIT.format("INTENDED_USER_EXIT"), "error"),
        (CRASHED + "The actor died because its node has died. Node Id: 24d0\n", "error"),
        (DIED.format("because of an error raised in its creation task, ray::W.__init__()"), "error"),
        ("(W pid=43514, ip=10.0.0.4) ValueError: bad batch\n" + CRASHED, "error"),
    ],
)
def test_what_ray_tells_of_an_actor(tmp_path: Path, text: str, cause: str) -> None:
    verdict = report(tmp_path, text).verdict
    assert (verdict.outcome, verdict.cause) == ("error", cause)
    if cause == "rank-crashed" and "pid" in text:
        assert "class_name: RayTrainWorker; pid: 43514; ip: 10.0.0.4" in verdict.detail


def event(rank: int, error: object, state: str = "FAILED", source: str = "WORKER") -> str:
    inner = {"local_rank": [rank], "role_rank": [rank], "role_world_size": [4]}
    metadata = {
        "run_id": "none",
        "global_rank": rank,
        "worker_id": "11376",
        "hostname": "n0",
        "state": state,
        "raw_error": json.dumps(error),
        "metadata": json.dumps(inner),
        "agent_restarts": 0,
    }
    name = f"torchelastic.worker.status.{state}"
    return json.dumps({"name": name, "source": source, "timestamp": 0, "metadata": metadata}) + "\n"


RAISED = {
    "message": {
        "message": "ValueError: bad batch",
        "extraInfo": {"py_callstack": VALUE, "timestamp": "1700000000"},
    }
}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (event(2, {"message": "<NONE>"}), ("error", "rank-exited", (2,))),
        (event(2, {"message": "<NONE>"})[:330], ("error", "rank-exited", (2,))),
        (event(2, RAISED), ("error", "error", (2,))),
        (event(2, {"message": "<NONE>"}, "SUCCEEDED"), ("running", "unknown", ())),
        (event(2, {"message": "<NONE>"}, source="AGENT"), ("running", "unknown", ())),
    ],
)
def test_records_of_torchelastic(tmp_path: Path, text: str, told: Told) -> None:
    assert found(tmp_path, "torchelastic\n" + text) == told
    assert found(tmp_path, text) == told


def test_a_record_tells_the_size_of_the_job(tmp_path: Path) -> None:
    assert len(report(tmp_path, event(2, {"message": "<NONE>"})).snapshot.ranks) == 4
