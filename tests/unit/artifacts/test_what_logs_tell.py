"""Logs as people have them: who speaks, what came first, and what ended the job."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from judged_text import found, report

from helpers.artifacts.artifacts import NothingError, read
from helpers.session import report_of_artifacts

TRACEBACK = """\
Traceback (most recent call last):
  File "/app/train.py", line 88, in <module>
    main()
  File "/app/train.py", line 61, in main
    loss.backward()
"""
OOM = TRACEBACK + "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"
VALUE = TRACEBACK + "ValueError: bad batch\n"

LATE = (
    "[rank{rank}]:[E918 08:00:00.1 ProcessGroupNCCL.cpp:685] [Rank {rank}] Watchdog caught collective "
    "operation timeout: WorkNCCL(SeqNum={seq}, OpType={op}, NumelIn=10, Timeout(ms)=600000) "
    "ran for 600010 milliseconds before timing out.\n"
)
STATUS = (
    "[rank{rank}]:[E918 08:00:00.2 ProcessGroupNCCL.cpp:22] [PG ID {group} PG GUID {guid} Rank {rank}] "
    "failure detected by watchdog at work sequence id: {seq} PG status: last enqueued work: {seq}, last "
    "completed work: {done}\n"
)
WORLD = {"group": 0, "guid": "0(default_pg)"}
TIMEOUTS = LATE.format(rank=0, seq=7, op="ALLREDUCE") + LATE.format(rank=1, seq=7, op="ALLREDUCE")
OOM_KILL = (
    "slurmstepd: error: Detected 1 oom_kill event in StepId=4405.0. Some step tasks were OOM Killed.\n"
)
LIMIT = (
    "slurmstepd: error: *** JOB 123 ON node7 CANCELLED AT 2026-11-23T12:00:00 DUE TO TIME LIMIT ***\n"
)
RESTART = "[default] Worker group FAILED. 1/1 attempts left; will restart worker group\n"
CANCELLED = "slurmstepd: error: *** STEP 123.0 ON node7 CANCELLED AT 2026-11-23T12:00:00 ***\n"
STEPS = "".join(f"step {number} loss 2.{number}\n" for number in range(1, 6))
DEATH_SIGNAL = "W1123 12:00:00.1 9 torch/distributed/elastic/agent.py:719] Received 15 death signal\n"


def said(label: str, text: str) -> str:
    return "".join(f"{label}{line}\n" for line in text.splitlines())


ORDER = {
    "an exception before the timeouts": (
        said("[rank2]: ", OOM) + TIMEOUTS,
        "error",
        "out-of-memory",
        (2,),
    ),
    "an exception after the timeouts": (TIMEOUTS + said("[rank2]: ", OOM), "hang", "unknown", ()),
    "a memory kill after the timeouts": (TIMEOUTS + OOM_KILL, "hang", "unknown", ()),
    "a task killed for memory": (
        OOM_KILL + "srun: error: node7: tasks 1-3: Out Of Memory\n" + CANCELLED,
        "error",
        "out-of-memory",
        (1, 2, 3),
    ),
    "a time limit after the timeouts": (TIMEOUTS + LIMIT, "hang", "unknown", ()),
    "the launcher's signal after the timeouts": (TIMEOUTS + DEATH_SIGNAL, "hang", "unknown", ()),
    "a time limit alone": (STEPS + LIMIT, "error", "unknown", ()),
    "an exception after a time limit": (LIMIT + said("[rank1]: ", VALUE), "error", "unknown", ()),
    "an exception before a time limit": (said("[rank1]: ", VALUE) + LIMIT, "error", "error", (1,)),
    "scancel": (
        STEPS + CANCELLED + "srun: error: node7: tasks 0-3: Terminated\n",
        "error",
        "unknown",
        (),
    ),
    "a task that failed, and its step with it": (
        "srun: error: node7: task 3: Exited with exit code 1\n" + CANCELLED,
        "error",
        "error",
        (3,),
    ),
    "a hang after a restart": (
        said("[rank1]: ", VALUE) + RESTART + TIMEOUTS,
        "hang",
        "unknown",
        (),
    ),
    "a failure after a restart": (
        said("[rank1]: ", VALUE) + RESTART + said("[rank1]: ", VALUE),
        "error",
        "error",
        (1,),
    ),
    "an assertion of a kernel, and the exception that tells its line": (
        "x/Indexing.cu:1: f: thread: [0,0,0] Assertion `i < n` failed.\n" * 3 + said("[rank1]: ", VALUE),
        "error",
        "error",
        (1,),
    ),
    "another process killed for memory": (
        "Out of memory: Killed process 999 (mysqld) total-vm:1kB\n" + said("[rank1]: ", VALUE),
        "error",
        "error",
        (1,),
    ),
    "a worker, and the kernel that killed it": (
        "RuntimeError: DataLoader worker (pid(s) 52) exited unexpectedly\n" + OOM_KILL,
        "error",
        "out-of-memory",
        (),
    ),
    "the root cause, which stands last": (
        "E0304 12:00:00.1 48200 torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: "
        "-9) local_rank: 3 (pid: 13) of binary: x\nFailures:\n[1]:\n  rank      : 0 (local_rank: 0)\n"
        "  exitcode  : -6 (pid: 10)\nRoot Cause (first observed failure):\n[0]:\n"
        "  rank      : 3 (local_rank: 3)\n  exitcode  : -9 (pid: 13)\n",
        "error",
        "rank-crashed",
        (3,),
    ),
}


@pytest.mark.parametrize("case", ORDER)
def test_what_came_first_decides(tmp_path: Path, case: str) -> None:
    text, *expected = ORDER[case]
    assert found(tmp_path, text) == tuple(expected)


CAUGHT = {
    "its process goes on with its work": (said("[rank1]: ", STEPS + VALUE + STEPS), "running"),
    "three lines of a new kind": (said("[rank1]: ", VALUE + STEPS), "running"),
    "another rank goes on": (said("[rank1]: ", VALUE) + said("[rank0]: ", STEPS), "error"),
    "nobody can tell who goes on": ("NCCL version 2.26\n" + VALUE + STEPS, "error"),
    "the same line again": (
        said("[rank1]: ", VALUE + "retry in 5 s\nretry in 5 s\nretry in 5 s\n"),
        "error",
    ),
    "what is printed on the way out": (
        said("[rank1]: ", VALUE + "wandb: run 1\nwandb: run 2\nwandb: run 3\n"),
        "error",
    ),
    "a launcher names its rank": (
        said("[rank1]: ", VALUE + STEPS) + "  rank      : 1 (local_rank: 1)\n  exitcode  : 1 (pid: 9)\n",
        "error",
    ),
    "in a thread": ("Exception in thread Thread-1:\n" + VALUE + "done\n", "running"),
}


@pytest.mark.parametrize("case", CAUGHT)
def test_a_traceback_is_not_a_death(tmp_path: Path, case: str) -> None:
    text, outcome = CAUGHT[case]
    assert found(tmp_path, text)[0] == outcome


def test_the_line_of_another_rank_is_no_part_of_a_line_without_a_full_stop(tmp_path: Path) -> None:
    lines = [
        LATE.format(rank=0, seq=5, op="ALLREDUCE"),
        STATUS.format(rank=0, seq=5, done=4, **WORLD),
        LATE.format(rank=1, seq=5, op="BROADCAST"),
        STATUS.format(rank=1, seq=5, done=4, **WORLD),
    ]
    for order in ((0, 1, 2, 3), (0, 2, 1, 3), (2, 0, 3, 1)):
        text = "".join(lines[number] for number in order)
        assert found(tmp_path, text) == ("hang", "collective-mismatch", (0, 1)), order


def test_two_groups_are_no_mismatch(tmp_path: Path) -> None:
    other = {"group": 3, "guid": 3}
    text = "".join(
        LATE.format(rank=rank, seq=seq, op=op) + STATUS.format(rank=rank, seq=seq, done=seq - 1, **group)
        for rank, seq, op, group in (
            (0, 7, "ALLREDUCE", WORLD),
            (1, 7, "ALLREDUCE", WORLD),
            (2, 90, "_ALLGATHER_BASE", other),
            (3, 90, "_ALLGATHER_BASE", other),
        )
    )
    assert found(tmp_path, text) == ("hang", "unknown", ())


LABELS = {
    "[1,2]<stderr>:": (2,),
    "[1,mpirank:2,algo-1]<stderr>:": (2,),
    "[prterun-node7-4242@1,2]<stderr>: ": (2,),
    "Tue Mar  4 12:00:01 2025[2]<stderr>:": (2,),
    "[2] ": (2,),
    "[rank=2] ": (2,),
    "[RANK 2] ": (2,),
    "(VllmWorker rank=2 pid=333) ERROR 03-04 12:00:09 [multiproc_executor.py:522] ": (2,),
    "node7: ": (),
    "train-worker-1 pytorch ": (),
    "worker-1  | ": (),
    "Mar 04 12:00:09 node7 python[48211]: ": (),
    "2025-03-04 12:00:09,123 ": (),
}


@pytest.mark.parametrize("label", LABELS)
def test_a_label_is_what_stands_before_each_line_of_a_traceback(tmp_path: Path, label: str) -> None:
    assert found(tmp_path, said(label, OOM)) == ("error", "out-of-memory", LABELS[label])


def test_a_machine_that_is_told_is_named(tmp_path: Path) -> None:
    assert report(tmp_path, said("node7: ", OOM)).verdict.summary.startswith("A process on node7 could")


NAMES = {
    "rank_2.log": (2,),
    "none_abc/attempt_0/2/stderr.log": (2,),
    "job.log": (),
    "why_is_it_rank2.log": (),
    "local_rank2.log": (),
}


@pytest.mark.parametrize("name", NAMES)
def test_the_rank_that_a_name_tells(tmp_path: Path, name: str) -> None:
    assert found(tmp_path, OOM, name) == ("error", "out-of-memory", NAMES[name])


def test_names_that_differ_in_the_rank_alone_tell_it(tmp_path: Path) -> None:
    (tmp_path / "train-rank0.out").write_text(STEPS)
    assert found(tmp_path, OOM, "train-rank2.out") == ("error", "out-of-memory", (2,))


def records(wrap: str) -> str:
    lines = [f"[rank2]: {line}" for line in OOM.splitlines()]
    if wrap == "cloudwatch":
        return "".join(json.dumps({"timestamp": 1, "message": line}) + "\n" for line in lines)
    if wrap == "gcp":
        return json.dumps([{"textPayload": line, "timestamp": "x"} for line in lines])
    if wrap == "loki":
        values = [["17", line] for line in lines]
        return json.dumps({"data": {"result": [{"stream": {"pod": "train-2"}, "values": values}]}})
    if wrap == "fluent-bit":
        return "".join(json.dumps({"log": line + "\n", "stream": "stderr"}) + "\n" for line in lines)
    if wrap == "structlog":
        return json.dumps({"event": "failed", "rank": 2, "exception": OOM}) + "\n"
    return "".join(json.dumps({"MESSAGE": [*line.encode()]}) + "\n" for line in lines)


@pytest.mark.parametrize("wrap", ["cloudwatch", "gcp", "loki", "fluent-bit", "structlog", "journald"])
def test_what_a_collector_has_wrapped(tmp_path: Path, wrap: str) -> None:
    told = report(tmp_path, records(wrap))
    assert (told.verdict.cause, told.verdict.culprits) == ("out-of-memory", (2,))
    for entry in told.verdict.evidence:
        file, number, text = entry.split(":", 2)
        line = Path(file).read_text().splitlines()[int(number) - 1]
        assert text.strip() in line or line.startswith(text.strip())


ENDS = {
    "run.sh: line 3: 12345 Killed                  python train.py": ("rank-crashed", ()),
    "zsh: segmentation fault  python train.py": ("rank-crashed", ()),
    "Fatal Python error: Segmentation fault": ("rank-crashed", ()),
    "torch.multiprocessing.spawn.ProcessExitedException: process 1 terminated with signal SIGKILL": (
        "rank-crashed",
        (1,),
    ),
    "ERROR:composer.cli.launcher:Rank 2 crashed with exit code -6": ("rank-crashed", (2,)),
    "['python', 'train.py', '--local_rank=3'] exits with return code = -9": ("rank-crashed", ()),
    "1 Workers (tasks / actors) killed due to memory pressure (OOM), 0 Workers crashed": (
        "out-of-memory",
        (),
    ),
    "n1:1:2 [0] bootstrap.cc:131 NCCL WARN Bootstrap Root : rank 1 of 8 ranks has already checked in": (
        "duplicate-rank",
        (1,),
    ),
    "init.cc:1247 NCCL WARN Mismatched collective detected, please check": ("collective-mismatch", ()),
    "n0:1:2 [5] NCCL WARN socketStartConnect: Connect to 10.0.0.7<17943> failed : Refused": (
        "rendezvous-incomplete",
        (),
    ),
    "x.DistBackendError: [4] is setting up NCCL communicator and retrieving ncclUniqueId from [0] via "
    "c10d key-value store by key '0', but store->get('0') got error: Socket Timeout": (
        "missing-rank",
        (0,),
    ),
    "allreduce.gradients_1 [missing ranks: 3]": ("missing-rank", (3,)),
    "NVRM: Xid (PCI:0000:3b:00): 79, pid=4242, name=python3, GPU has fallen off the bus.": ("error", ()),
    "trainer/0 [1]:[E socket.cpp:610] [c10d] The client socket has failed to connect to any "
    "network address of (node7, 40323).": ("rendezvous-incomplete", ()),
    "[rank1]: Expected to have finished reduction in the prior iteration before starting": (
        "error",
        (1,),
    ),
    "[rank1]: Parameter at index 4 has been marked as ready twice.": ("error", (1,)),
    "n1:1:2 [0] enqueue.cc:9 NCCL WARN Cuda failure 'out of memory'": ("out-of-memory", ()),
    "terminate called without an active exception": ("rank-crashed", ()),
    "x/Indexing.cu:1422: f: block: [3,0,0], thread: [64,0,0] Assertion `i < size` failed.": (
        "error",
        (),
    ),
    "terminate called after throwing an instance of 'c10::Error'\n"
    "  what():  CUDA error: out of memory": ("out-of-memory", ()),
    "terminate called after throwing an instance of 'gloo::EnforceNotMet'\n  what():  [enforce fail at "
    "pair.cc:446] op.preamble.length <= op.nbytes. 8 vs 4": ("shape-mismatch", ()),
    "RuntimeError: [gloo/transport/tcp/pair.cc:538] Read error [10.0.0.7]:4242: Connection timed out": (
        "unknown",
        (),
    ),
    "torch.distributed.DistBackendError: NCCL error in: x.cpp:1, unhandled system error\nLast error:\n"
    "NET/IB : Got completion from peer 10.0.0.2<42311> with error 12, opcode 0": ("unknown", ()),
    "ERROR:    [Errno 98] error while attempting to bind on address ('0.0.0.0', 8000): address already "
    "in use": ("address-in-use", ()),
    "[ERROR] HCCL(7,python3): listen on ip[10.0.0.4] and specific port[16666] fail. Please check": (
        "address-in-use",
        (),
    ),
    "  CUDA out of memory. Tried to allocate 1.96 GiB. GPU 1 has a total": ("out-of-memory", ()),
    "ray.exceptions.RayTaskError(OutOfMemoryError): ray::Worker.step() (pid=104)": ("out-of-memory", ()),
    "ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared "
    "memory (shm).": ("out-of-memory", ()),
    "subprocess.CalledProcessError: Command '['python', 't.py', '--local_rank=7']' died with "
    "<Signals.SIGSEGV: 11>.": ("rank-crashed", ()),
    "Exception in device=TPU:6: Failed to meet rendezvous 'init': Socket closed (14)": ("unknown", ()),
    "logging.cc:113: Unhandled exception: E. what(): thread: Resource unavailable": ("error", ()),
    "The actor is dead because its worker process has died. Worker exit type: SYSTEM_ERROR": (
        "unknown",
        (),
    ),
    "[rank1]: RuntimeError: OPS function error: HcclAllreduce, error code is 6\n[rank1]: EI0006: [PID: "
    "12] Getting socket times out. Reason: Remote Rank did not send the data in time.": ("unknown", ()),
}


@pytest.mark.parametrize("line", ENDS)
def test_one_line_may_tell_it_all(tmp_path: Path, line: str) -> None:
    assert found(tmp_path, line + "\n")[1:] == ENDS[line]


COMPARED = "RuntimeError: Detected mismatch between collectives on ranks. "
IS_IN = "Rank {} is running collective: CollectiveFingerPrint({})"
CALLS = {
    "other operations": ("OpType=ALLGATHER, TensorShape=[6]", "OpType=_ALLGATHER_BASE", (0, 1)),
    "other numbers": ("SequenceNumber=1OpType=BARRIER", "SequenceNumber=0OpType=BARRIER", (0, 1)),
    "nothing sent": ("SequenceNumber=9, OpType=ALLGATHER", "SequenceNumber=0OpType=REDUCE", (1,)),
    "cut off": ("SequenceNumber=9, OpType=BROADCAST, TensorShape=[1], Tens", None, (0,)),
    "other sizes": (
        "SequenceNumber=9, OpType=ALLREDUCE, TensorShape=[1]",
        "SequenceNumber=9, OpType=ALLREDUCE, TensorShape=[2]",
        None,
    ),
}


@pytest.mark.parametrize("case", CALLS)
def test_calls_that_torch_has_compared(tmp_path: Path, case: str) -> None:
    one, other, odd = CALLS[case]
    text = COMPARED + IS_IN.format(0, one)
    text += f", but {IS_IN.format(1, other)}." if other is not None else ""
    outcome, cause, culprits = found(tmp_path, text + "\n")
    assert outcome == "error"
    assert (cause, culprits) == (("shape-mismatch", ()) if odd is None else ("collective-mismatch", odd))


WAITS = (
    "INFO:root:Waiting in store based barrier to initialize process group for rank: {}, key: "
    "store_based_barrier_key:1 (world_size=4, worker_count={}, timeout=0:30:00)\n"
)


@pytest.mark.parametrize(
    ("ranks", "count", "after", "expected"),
    [
        ((0, 1, 3), 3, "", ("hang", "rendezvous-incomplete")),
        ((0, 1), 3, "", ("running", "unknown")),
        ((0, 1, 2, 3), 4, "", ("running", "unknown")),
        ((0, 1, 3), 3, STEPS * 3, ("running", "unknown")),
        ((0, 1, 3), 3, said("[rank2]: ", VALUE), ("error", "error")),
    ],
    ids=["all that have come wait", "one is not seen", "nobody is missing", "they went on", "a failure"],
)
def test_ranks_that_wait_for_others_to_join(
    tmp_path: Path, ranks: tuple[int, ...], count: int, after: str, expected: tuple[str, str]
) -> None:
    text = "".join(WAITS.format(rank, count) for rank in ranks) * 2 + after
    assert found(tmp_path, text)[:2] == expected


LOST_WORKER = VALUE.replace(
    "ValueError: bad batch", "RuntimeError: DataLoader worker (pid 33) is killed by signal: {}."
)

ADVICE = {
    OOM: "activation checkpointing",
    VALUE.replace(
        "ValueError: bad batch", "RuntimeError: CUDA error: uncorrectable ECC error"
    ): "drain the node",
    VALUE.replace(
        "bad batch", "environment variable RANK expected, but not set"
    ): "torchrun --nproc-per-node",
    VALUE.replace(
        "ValueError: bad batch", "RuntimeError: CUDA error: invalid device ordinal"
    ): "LOCAL_RANK",
    VALUE.replace(
        "bad batch", "Expected to have finished reduction in the prior iteration before"
    ): "find_unused_parameters",
    STEPS + LIMIT: "No rank is at fault",
    "NVRM: Xid (PCI:0000:dc:00): 45, pid=18, name=python3, Ch 1 caused by previous Xid 149\n": (
        "drain the node"
    ),
    LOST_WORKER.format("Terminated"): "Find out who sends it",
    LOST_WORKER.format("Killed"): "memory is the usual reason",
}


@pytest.mark.parametrize("text", ADVICE)
def test_the_advice_is_for_this_error(tmp_path: Path, text: str) -> None:
    told = report(tmp_path, text)
    assert any(ADVICE[text] in one.advice for one in told.fitting), told.fitting


def test_a_text_is_never_refused(tmp_path: Path) -> None:
    told = report(tmp_path, "the job\nERROR the frobnicator 7 has failed\nbye\n")
    assert (told.verdict.outcome, told.verdict.cause) == ("error", "unknown")
    assert told.verdict.evidence == (f"{tmp_path}/job.log:2: ERROR the frobnicator 7 has failed",)
    assert any(one.startswith("what is read: ") for one in told.snapshot.not_seen)


@pytest.mark.parametrize(
    "line",
    [
        "n1:16:63 [0] NCCL INFO Call to connect returned Connection refused, retrying",
        "[W426 16:56:01.831 TCPStore.cpp:347] [c10d] TCP client failed to connect/validate to host "
        "n1:97 - retrying (try=6)\nException raised from recvBytes at x/Utils.hpp:680 (most recent",
    ],
)
def test_a_failure_that_is_retried_is_not_the_last_word(tmp_path: Path, line: str) -> None:
    assert found(tmp_path, f"{line}\n") == ("running", "unknown", ())


def test_a_text_without_a_failure_is_called_that(tmp_path: Path) -> None:
    told = report(tmp_path, "hello\n").verdict
    assert (told.outcome, told.cause) == ("running", "unknown")
    assert told.summary.startswith("What was read shows neither a failure nor ranks that wait.")


def test_what_can_be_read_by_nobody(tmp_path: Path) -> None:
    (tmp_path / "empty.log").write_text("")
    with pytest.raises(NothingError, match="nothing here can be read"):
        report_of_artifacts(read([str(tmp_path)]))


def test_the_size_of_a_job_is_known_from_what_tells_it(tmp_path: Path) -> None:
    told = report(tmp_path, LATE.format(rank=7, seq=3, op="ALLREDUCE"))
    assert told.snapshot.job.world_size is None
    assert [view.state for view in told.snapshot.ranks] == ["unseen"] * 7 + ["waiting"]
    world = report(tmp_path, "Initializing distributed: GLOBAL_RANK: 3, MEMBER: 4/8\n")
    assert world.snapshot.job.world_size == 8


@pytest.mark.parametrize("text", [TIMEOUTS + said("[rank2]: ", OOM), said("[rank1]: ", VALUE) + LIMIT])
def test_a_log_may_end_anywhere(tmp_path: Path, text: str) -> None:
    lines = text.splitlines(keepends=True)
    for number in range(2, len(lines)):
        assert report(tmp_path, "".join(lines[:number])).verdict.cause != "none"
