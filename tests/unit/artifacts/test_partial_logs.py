"""Logs of which a part is missing: the end of a traceback, a label, the launcher's own words."""

from __future__ import annotations

from pathlib import Path

import pytest
from judged_text import Told, found, report

from helpers.report.text import to_text

HEAD = "Traceback (most recent call last):\n"
SPAWN = "/env/lib/python3.11/site-packages/torch/multiprocessing/spawn.py"
PARENT = (
    f'{HEAD}  File "train.py", line 9, in <module>\n    mp.spawn(run)\n'
    f'  File "{SPAWN}", line 158, in join\n    raise ProcessRaisedException(msg, index, pid)\n'
)
CHILD = (
    "\n-- Process 3 terminated with the following error:\n"
    f'{HEAD}  File "{SPAWN}", line 90, in _wrap\n    fn(i, *args)\n'
    '  File "/job/steps.py", line 30, in run\n    dist.all_gather(sizes, size'
)
RAISED = "torch.multiprocessing.spawn.ProcessRaisedException: \n"
OLD = "Exception: \n"
BOX = """\
╭───────────────────── Traceback (most recent call last) ──────────────────────╮
│ /home/u/train.py:88 in main                                                  │
│                                                                              │
│   85 │   for step, batch in enumerate(loader):                               │
│ ❱ 88 │   │   loss = model(batch)                                             │
│                                                                              │
│ /home/u/.venv/lib/python3.11/site-packages/torch/nn/modules/module.py:1553   │
│ in _wrapped_call_impl                                                        │
│                                                                              │
│ ❱ 1553 │   │   return self._call_impl(*args, **kwargs)                       │
╰──────────────────────────────────────────────────────────────────────────────╯
"""
SERVER = (
    "[2026-11-23 12:00:00 TP{rank}] Scheduler hit an exception: " + HEAD + '  File "/job/serve.py", '
    "line {line}, in run\n    load()\nValueError: rank {rank} has no weights\n\n"
)
STALLED = "[0] [2026-11-23 12:00:00.478: W horovod/common/stall_inspector.cc:107] One or more tensors\n"
SHAPES = (
    "[rank1]: accelerate.utils.operations.DistributedOperationException: Cannot apply desired "
    "operation due to shape mismatches. All shapes across devices must be valid.\n[rank1]: \n"
    "[rank1]: Input shapes:\n" + "".join(f"[rank1]:   - Process {n}: [2, {n // 3}]\n" for n in range(4))
)
ENDED_AT_ONCE = "Initializing distributed: GLOBAL_RANK: {}, MEMBER: {}/4\n"

CASES: dict[str, tuple[str, Told]] = {
    "the parent tells what its child has raised": (
        f"{PARENT}{RAISED}{CHILD}, group)\nValueError: bad\n",
        ("error", "error", (3,)),
    ),
    "an old parent": (f"{PARENT}{OLD}{CHILD}, group)\nValueError: bad\n", ("error", "error", (3,))),
    "of the child's traceback the end is missing": (
        PARENT + OLD + CHILD,
        ("error", "unknown", ()),
    ),
    "of a traceback only the head is there": (f"[rank2]: {HEAD}", ("error", "unknown", ())),
    "a message ends in the last line": (
        "[rank0]: RuntimeError: Connection closed by peer [10.0.0.1]:4000\n"
        "[rank1]: RuntimeError: Connection closed by pe",
        ("error", "unknown", ()),
    ),
    "the failure of Windows to listen": (
        "RuntimeError: Only one usage of each socket address (protocol/network address/port) is "
        "normally permitted.\n",
        ("error", "address-in-use", ()),
    ),
    "the agent cannot connect": (
        f'{HEAD}  File "/env/lib/python3.9/site-packages/torch/distributed/elastic/rendezvous/'
        'c10d_rendezvous_backend.py", line 155, in _create_tcp_store\n    store = TCPStore(\n'
        "RuntimeError: connect() timed out. Original timeout was 60000 ms.\n",
        ("error", "rendezvous-incomplete", ()),
    ),
    "nobody has the name of the store": (
        "ValueError: host not found: Name or service not known\n",
        ("error", "rendezvous-incomplete", ()),
    ),
    "Ray Train names its worker": (
        "(TorchTrainer pid=89392) Worker 2 has failed.\n",
        ("error", "rank-exited", (2,)),
    ),
    "the service of JAX misses a task": (
        "coordination_service.cc:1170] /job:jax_worker/replica:0/task:3 has been set to ERROR in "
        "coordination service: UNAVAILABLE: Task /job:jax_worker/replica:0/task:3 heartbeat timeout.\n",
        ("error", "rank-exited", (3,)),
    ),
    "a handler tells of its signal": (
        "*** SIGSEGV (@0x0) received by PID 4242 (TID 0x7f) from PID 0; stack trace: ***\n",
        ("error", "rank-crashed", ()),
    ),
    "a label of a launcher before the lines of Horovod": (
        f"{STALLED}[0] Missing ranks:\n[0] 0: [broadcast.a, broadcast.b]\n[0] 1: [broadcast.a]\n",
        ("hang", "missing-rank", (0, 1)),
    ),
    "accelerate lists the shapes": (SHAPES, ("error", "shape-mismatch", (3,))),
    "as many starts as ranks, half of them twice": (
        "".join(ENDED_AT_ONCE.format(rank, rank + 1) for rank in (0, 1, 1, 0)),
        ("error", "duplicate-rank", (0, 1)),
    ),
    "a second run in one log": (
        "".join(ENDED_AT_ONCE.format(rank, rank + 1) for rank in (*range(4), *range(4))),
        ("running", "none", ()),
    ),
    "one rank has started again": (
        "".join(ENDED_AT_ONCE.format(rank, rank + 1) for rank in (0, 1, 1, 2)),
        ("running", "none", ()),
    ),
    "ranks of a server": (
        SERVER.format(rank=4, line=3) + SERVER.format(rank=1, line=5),
        ("error", "error", (4,)),
    ),
    "an exit code that Python has not for an exception": (
        "srun: error: node7: task 3: Exited with exit code 6\n",
        ("error", "rank-exited", (3,)),
    ),
}

INDENTED = f"""\
    {HEAD}      File "/job/train.py", line 9, in main
        step()
        ^^^^^^
    ValueError: bad batch
"""
CASES |= {
    "a traceback that was pasted with blanks before it": (INDENTED, ("error", "error", ())),
    "of such a traceback the head is missing": (
        INDENTED.partition("\n")[2],
        ("error", "error", ()),
    ),
    "an abort of LLVM's C++": (
        "libc++abi: terminating due to uncaught exception of type gloo::EnforceNotMet: no network\n",
        ("error", "error", ()),
    ),
    "a GPU of AMD's hangs": (
        "HW Exception by GPU node-9 (Agent handle: 0x64ff272d8bc0) reason :GPU Hang\n",
        ("error", "error", ()),
    ),
    "mpirun's limit of time": (
        "  The user-provided time limit for job execution has been reached:\n",
        ("error", "unknown", ()),
    ),
    "operands on two GPUs, in old words": (
        "RuntimeError: Expected tensor for 'out' to have the same device as tensor for argument #2 "
        "'mat1'; but device 1 does not equal 3 (while checking arguments for addmm)\n",
        ("error", "device-mismatch", ()),
    ),
    "an abort, and its launcher": (
        "terminate called without an active exception\nE1019 09:31:39.599000 4036 torch/distributed/"
        "elastic/multiprocessing/api.py:874] failed (exitcode: -6) local_rank: 0 (pid: 4042) of binary: "
        "python\n",
        ("error", "rank-crashed", (0,)),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_what_is_there_is_told(tmp_path: Path, case: str) -> None:
    text, told = CASES[case]
    assert found(tmp_path, text) == told


def test_each_exception_of_a_server_has_its_own_frames(tmp_path: Path) -> None:
    seen = report(tmp_path, SERVER.format(rank=4, line=3) + SERVER.format(rank=1, line=5)).snapshot
    raised = {v.rank: v.process.error for v in seen.ranks if v.process is not None and v.process.error}
    assert {rank: error.stack[0].line for rank, error in raised.items()} == {1: 5, 4: 3}
    assert {rank: error.message for rank, error in raised.items()} == {
        rank: f"rank {rank} has no weights" for rank in (1, 4)
    }


def test_lines_below_a_servers_traceback_are_anybodys(tmp_path: Path) -> None:
    text = SERVER.format(rank=4, line=3) + "INFO ready\nValueError: of another process\n"
    (whose,) = {v.rank for v in report(tmp_path, text).snapshot.ranks if v.process is not None} - {4}
    assert whose is None


def test_a_box_of_rich_is_a_traceback(tmp_path: Path) -> None:
    verdict = report(tmp_path, BOX + "RuntimeError: bad batch\n").verdict
    assert (verdict.cause, verdict.detail) == ("error", "RuntimeError: bad batch")
    assert verdict.where is not None and verdict.where.place == "/home/u/train.py:88"


def test_of_a_box_without_its_end_the_last_line_is_quoted(tmp_path: Path) -> None:
    cut = report(tmp_path, "".join(BOX.splitlines(keepends=True)[6:]))
    assert cut.verdict.outcome == "error"
    assert "job.log:4: │ ❱ 1553" in cut.verdict.evidence[0]


def test_a_table_of_rich_is_no_traceback(tmp_path: Path) -> None:
    table = "│ 0 │ model │ Net │ 1.2 M │\n│ 1 │ loss  │ MSE │     0 │\n"
    assert report(tmp_path, table).verdict.outcome == "running"


def test_of_a_cut_traceback_the_last_line_is_quoted_and_the_rest_asked_for(tmp_path: Path) -> None:
    told = report(tmp_path, PARENT + OLD + CHILD)
    assert "all_gather(sizes, size" in told.verdict.evidence[0]
    (fix,) = told.fitting
    assert "read on there" in fix.advice
    assert not any("py-spy" in line and "while the job hangs" in line for line in told.snapshot.not_seen)


THREADS = """\
Current thread 0x00007ff3363ff700 (most recent call first):
  File "common_distributed.py", line 373 in listen
  File "threading.py", line 870 in run
  File "threading.py", line 890 in _bootstrap

Thread 0x00007ff406132180 (most recent call first):
  File "torch/distributed/distributed_c10d.py", line 2477 in barrier
  File "/job/train.py", line 30 in run
  File "multiprocessing/process.py", line 108 in run
"""


def test_a_thread_that_was_started_is_not_the_main_one_and_no_number_is_invented(tmp_path: Path) -> None:
    seen = report(tmp_path, THREADS)
    (view,) = seen.snapshot.ranks
    assert view.rank is None and view.process is not None
    assert [wait.op for wait in view.process.waits] == ["barrier"]
    assert seen.verdict.culprits == ()


def test_a_fix_that_names_its_page_is_followed_by_no_other(tmp_path: Path) -> None:
    told = report(tmp_path, "slurmstepd: error: *** JOB 1 ON n1 CANCELLED AT x DUE TO TIME LIMIT ***\n")
    text = to_text(told)
    assert "explain\n  ended-from-outside" in text and "explain unknown" not in text
    assert "\n\n\n" not in text


ADVICE = {
    "RuntimeError: use_libuv was requested but PyTorch was build without libuv support": "USE_LIBUV=0",
    "HW Exception by GPU node-9 (Agent handle: 0x64) reason :GPU Hang": "drain the node",
    "Memory access fault by GPU node-4 (Agent handle: 0x56) on address (nil).": "CUDA_LAUNCH_BLOCKING",
    "NCCL WARN Call to ibv_modify_qp failed with 110 Connection timed out": "below Python",
    "torch.distributed.elastic.multiprocessing.api.SignalException: Process 9 got signal: 1": "tmux",
    "ValueError: host not found: Name or service not known": "MASTER_ADDR",
    "OSError: [Errno 98] Address already in use": "ss -ltnp",
    "(TorchTrainer pid=89392) Worker 2 has failed.": "the log of rank 2",
}


@pytest.mark.parametrize("line", ADVICE)
def test_the_advice_is_for_what_has_failed(tmp_path: Path, line: str) -> None:
    (fix,) = report(tmp_path, line + "\n").fitting
    assert ADVICE[line] in fix.advice


def test_starts_are_quoted_where_they_tell_of_one_rank_twice(tmp_path: Path) -> None:
    twice = report(tmp_path, CASES["as many starts as ranks, half of them twice"][0])
    again = report(tmp_path, CASES["a second run in one log"][0] + "ValueError: bad batch\n")
    assert any("GLOBAL_RANK: 1" in line for line in twice.verdict.evidence)
    assert not any("GLOBAL_RANK" in line for line in again.verdict.evidence)


def test_one_end_that_two_tell_of_is_one_process(tmp_path: Path) -> None:
    seen = report(tmp_path, CASES["an abort, and its launcher"][0]).snapshot
    assert [view.rank for view in seen.ranks] == [0]
