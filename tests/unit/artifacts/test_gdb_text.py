"""Stacks that gdb and `py-spy --native` have printed, of processes whose rank is told or not."""

from __future__ import annotations

from pathlib import Path

import pytest
from judged_text import report

from helpers.artifacts import gdb_text, native_call

GET = """\
#0  __libc_recv (fd=12, buf=0x7f00, len=8, flags=0) at ../sysdeps/unix/sysv/linux/recv.c:28
#1  0x00007f77aa01 in void c10d::tcputil::recvBytes<unsigned char>(int, unsigned char*, unsigned long) ()
   from /opt/venv/lib/libtorch_cpu.so
#2  0x00007f77aa02 in c10d::TCPStore::doGet(std::string const&) () from /opt/venv/lib/libtorch_cpu.so
#3  0x00007f77aa03 in main () at main.c:3
"""
IDLE = """\
Thread 3 (Thread 0x7f33 (LWP 4244) "python"):
#0  0x00007f32bb01 in __GI___poll (fds=0x7f, nfds=2, timeout=500) at poll.c:29
#1  0x00007f32bb02 in ncclProxyService (_args=0x56) at proxy.cc:1437
"""
MAIN = """\
Thread 1 (Thread 0x7f11 (LWP 4242) "python"):
#0  0x00007f32bb03 in gloo::transport::tcp::UnboundBuffer::waitRecv(int*) () from /opt/libtorch_cpu.so
#1  0x00007f32bb04 in c10d::ProcessGroupGloo::RecvWork::wait(std::chrono) () from /opt/libtorch_cpu.so
#2  0x00000000bb05 in _PyEval_EvalFrameDefault (f=Frame 0x5a, for file /app/train.py, line 5, in fit ())
"""
LISTED = """\
(gdb) info threads
  Id   Target Id         Frame
* 1    Thread 0x7f11 (LWP 4242) "python" 0x00007f73 in poll () at poll.c:84
  2    Thread 0x7f22 (LWP 4243) "python" pthread_cond_wait@@GLIBC_2.3.2 () at pthread_cond_wait.S:185
"""


@pytest.mark.parametrize(
    ("text", "ranks", "said"),
    [
        ("rank 3 is stuck:\n(gdb) bt\n" + GET, [3], "rank 3 is waiting for a key of the store"),
        (GET, [], "a process of the job is waiting for a key of the store"),
        ("==== rank0 ====\n(gdb) thread apply all bt\n\n" + IDLE, [0], "says what rank 0 was doing"),
        (IDLE + "\n" + MAIN, [], "process 4242 is in recv"),
        (LISTED, [], "says what process 4242 waited for"),
        ("[rank0]: step 1\n" + LISTED, [0], "says what process 4242 waited for"),
    ],
)
def test_what_gdb_shows_is_said_and_no_more(
    tmp_path: Path, text: str, ranks: list[int], said: str
) -> None:
    found = report(tmp_path, text, "stacks.txt")
    assert (found.verdict.outcome, found.verdict.cause, found.verdict.culprits) == (
        "hang",
        "unknown",
        (),
    )
    assert said in found.verdict.detail
    assert [
        v.rank for v in found.snapshot.ranks if v.process is not None and v.rank is not None
    ] == ranks


def test_each_rank_has_a_stack_of_its_own(tmp_path: Path) -> None:
    found = report(tmp_path, "rank 0\n" + MAIN + "\nrank 1:\n" + GET, "stacks.txt")
    seen = {view.rank: view.process.waits[0].op for view in found.snapshot.ranks if view.process}
    assert seen == {0: "recv", 1: "get"}


def test_the_threads_of_a_process() -> None:
    told = gdb_text.account((IDLE + MAIN).splitlines(), "stacks.txt")
    assert told is not None and told.pid == 4242
    proxy, main = told.threads
    assert (proxy["main"], main["main"]) == (False, True)
    assert proxy["native"] is not None and proxy["native"]["call"] == "poll"
    assert [frame[:3] for frame in main["frames"]] == [("/app/train.py", 5, "fit")]
    switched = gdb_text.account(
        ("[Switching to thread 3 (Thread 0x7f33 (LWP 4244))]\n" + GET).splitlines(), ""
    )
    assert switched is not None and not switched.threads[0]["main"]


def test_a_core_is_of_a_process_that_a_signal_has_ended(tmp_path: Path) -> None:
    core = "Program terminated with signal SIGSEGV, Segmentation fault.\n" + GET
    assert report(tmp_path, core, "stacks.txt").verdict.cause == "rank-crashed"


@pytest.mark.parametrize(
    "line",
    [
        "#0 all_reduce from /opt/torch/distributed/distributed_c10d.py:2968",
        "frame #0: c10::Error::Error(c10::SourceLocation, std::string) + 0x57 (0x7f in libc10.so)",
        "    #0 0x55e8 in main /app/main.c:3",
    ],
)
def test_other_stacks_are_not_gdbs(line: str) -> None:
    assert gdb_text.BEGINS.match(line) is None


@pytest.mark.parametrize(
    ("functions", "kind", "op"),
    [
        (["poll", "c10d::TCPStore::doWait(x)", "c10d::PrefixStore::wait(x)"], "store", "wait"),
        (["recv", "bootstrapAllGather", "ncclCommInitRankFunc"], "collective", "ncclCommInitRank"),
        (
            ["gloo::transport::tcp::UnboundBuffer::waitRecv", "gloo::allreduce(x)"],
            "collective",
            "allreduce",
        ),
        (["poll", "ncclProxyService"], None, None),
    ],
)
def test_what_functions_of_c_wait_in(functions: list[str], kind: str | None, op: str | None) -> None:
    found = native_call.call(functions)
    assert (found["kind"], found["op"]) == (kind, op) if found is not None else kind is None


PLACES = """\
Process {pid}: {title}
Python v3.12.3 (/usr/bin/python3.12)

Thread {pid} (idle): "MainThread"
    pthread_cond_timedwait (libc.so.6)
    gloo::transport::tcp::UnboundBuffer::waitRecv (libtorch_cpu.so)
    c10d::ProcessGroupGloo::RecvWork::wait (libtorch_cpu.so)
    broadcast (srt/utils.py:90)
"""


@pytest.mark.parametrize(
    ("title", "rank"),
    [("sglang::scheduler_PP2_TP1", None), ("sglang::scheduler_TP1", 1), ("sglang::scheduler", 0)],
)
def test_a_title_tells_the_rank_only_in_tensor_parallelism_alone(
    tmp_path: Path, title: str, rank: int | None
) -> None:
    found = report(tmp_path, PLACES.format(pid=88, title=title), "stacks.txt")
    assert [view.rank for view in found.snapshot.ranks if view.process is not None] == [rank]
    assert (found.verdict.outcome, found.verdict.cause) == ("hang", "unknown")


def test_a_helper_thread_is_never_the_main_one(tmp_path: Path) -> None:
    helper = 'Thread 90 (idle): "Thread-2 (_watchdog_thread)"\n    wait (threading.py:359)\n'
    assert report(tmp_path, helper, "stacks.txt").snapshot.ranks[0].process is not None
    assert report(tmp_path, helper, "stacks.txt").snapshot.ranks[0].process.stack == ()  # type: ignore[union-attr]
