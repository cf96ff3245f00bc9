"""Verdicts from a table of histories: what a job looked like, and what must be said of it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from histories import (
    LIBRARY,
    NOW,
    SPAWN,
    Case,
    absent,
    child,
    collective,
    ended,
    error,
    frame,
    frozen,
    gone,
    in_collective,
    irecv,
    issued,
    joining,
    key,
    launcher,
    loading,
    lock,
    raised,
    rank,
    reading,
    recv,
    resting,
    send,
    sleeping,
    snapshot,
    steady,
    stopped,
    store,
    wait,
    worker,
    working,
)
from msgspec.structs import replace

from helpers.diagnose.diagnose import CAUSES, PROOF_SPAN, diagnose
from helpers.model.facts import Attempt, Blocker, LimitView, RankView, Snapshot
from helpers.model.frames import Frame
from helpers.model.network import StoreView
from helpers.model.waits import InCollective, OnChild, OnCondition, OnIO, OnThread

IN_USE = (
    "The server socket has failed to listen on any local network address. "
    "port: 29500, useIpv6: false, code: -98, name: EADDRINUSE, message: address already in use"
)
NO_PORT = IN_USE.replace("29500", "0")
PEER = "[gloo/transport/tcp/pair.cc:547] Connection closed by peer [127.0.0.1]:40123"
TIMED_OUT = "[gloo/transport/tcp/unbound_buffer.cc:78] Timed out waiting 1800000ms for recv operation"
SHAPES = (
    "[1]: params[0] in this process with sizes [4, 2] appears not to match sizes of the same param "
    "in process 0."
)
PREAMBLE = (
    "[enforce fail at pair.cc:456] op.preamble.length <= op.nbytes. 512 vs 64. Received a message "
    "that is too large"
)
CLIENTS = "Timed out after 31 seconds waiting for clients. 1/2 clients joined."
NO_STORE = (
    "The client socket has failed to connect to any network address of (192.0.2.17, 29500). The client "
    "socket has failed to connect to 192.0.2.17:29500 (errno: 113 - No route to host)."
)
BARRIER = (
    "Timed out initializing process group in store based barrier on rank 0, for key: "
    "store_based_barrier_key:1 (world_size=2, num_workers_joined=1, timeout=0:00:05 error=Wait timeout)"
)
CONNECTION = Frame("/usr/lib/python3.11/multiprocessing/connection.py", 383, "_recv", user=False)
GET_DATA = Frame("/opt/lib/torch/utils/data/dataloader.py", 1291, "_try_get_data", user=False)
WORKER_GONE = "DataLoader worker (pid 2000) is killed by signal: Segmentation fault."
DEVICES = "Expected all tensors to be on the same device, but found two devices, cuda:0 and cpu!"

FULL = LimitView(700, "the kernel, told not to kill", full=True)

STRANGER = Blocker(4711, "owns port 29500", "python old_job.py")

SEEN_BY_SPAWN = error("DistNetworkError", IN_USE, LIBRARY, "train.py:8 main", "train.py:20", SPAWN)


def check(case: Case) -> None:
    """Diagnose a history in which nothing changes, and compare."""
    case.check(diagnose(steady(case.newest), patience=case.patience, final=case.final))


def named(cases: Sequence[Case]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("case", cases, ids=[case.name for case in cases])


ADDRESS_IN_USE = [
    Case(
        "rank 0 finds the port taken by a stranger",
        snapshot(
            raised(0, "DistNetworkError", IN_USE, "train.py:8 main"),
            rank(1, joining()),
            strangers=[(29500, STRANGER)],
        ),
        "error",
        "address-in-use",
        where="train.py:8 main",
        says=("port 29500", "4711"),
    ),
    Case(
        "a worker runs the module again and so opens the store of its own rank",
        snapshot(
            ended(
                0,
                1,
                error=error("RuntimeError", "DataLoader worker (pid 2000) exited unexpectedly"),
                children=[gone(worker(0, error=SEEN_BY_SPAWN))],
                ports=(store(29500),),
            ),
            rank(1, loading(), children=[worker(1, 0, joining(), joined_as=1)]),
        ),
        "error",
        "address-in-use",
        (0,),
        where="train.py:8 main",
        says=("DataLoader worker 0 of rank 0", "runs the module again", "29500"),
        masks=("exited unexpectedly",),
    ),
    Case(
        "a child of rank 2 of four opens the store itself",
        snapshot(
            rank(0, ports=(store(29500),)),
            rank(1),
            ended(
                2,
                1,
                at="train.py:50 main",
                children=[gone(child(2, error=error("OSError", IN_USE, "tool.py:3 serve", time=9.0)))],
            ),
            rank(3),
        ),
        "error",
        "address-in-use",
        (2,),
        where="tool.py:3 serve",
        says=("child process of rank 2", "rank 0 holds", "29500"),
    ),
    Case(
        "Python's own words for the same thing",
        snapshot(
            raised(0, "OSError", "[Errno 98] Address already in use", "serve.py:4 start"),
            working(1),
            working(2),
        ),
        "error",
        "address-in-use",
        (0,),
        where="serve.py:4 start",
    ),
    Case(
        "no port at all is free",
        snapshot(raised(0, "DistNetworkError", NO_PORT, "train.py:8 main"), rank(1, joining())),
        "error",
        "address-in-use",
        (0,),
        where="train.py:8 main",
        says=("no free port", "ip_local_port_range"),
    ),
    Case(
        "the launcher itself cannot listen",
        snapshot(
            launchers=[
                launcher(ended=4.0, exit_code=1, error=error("DistNetworkError", IN_USE, "run.py:3 x"))
            ],
            code=1,
            world=0,
            strangers=[(29500, STRANGER)],
        ),
        "error",
        "address-in-use",
        where=None,
        says=("launcher", "4711"),
    ),
]


@named(ADDRESS_IN_USE)
def test_address_in_use(case: Case) -> None:
    check(case)


def test_a_stranger_on_the_port_is_named_as_the_blocker() -> None:
    verdict = diagnose(steady(ADDRESS_IN_USE[0].newest))
    assert verdict.blockers == (STRANGER,)
    assert any("python old_job.py" in line for line in verdict.evidence)


DUPLICATE_RANK = [
    Case(
        "every rank is there twice although the job ends with exit code 0",
        snapshot(
            ended(0, children=[gone(worker(0, joined_as=0, joined_at="train.py:8 main"), 0)]),
            ended(1, children=[gone(worker(1, joined_as=1, joined_at="train.py:8 main"), 0)]),
            code=0,
        ),
        "error",
        "duplicate-rank",
        (0, 1),
        where="train.py:8 main",
        says=("twice", "DataLoader worker", "train.py:8"),
    ),
    Case(
        "a child of one rank of three joins while everything seems well",
        snapshot(working(0), working(1), working(2, children=[child(2, joined_as=2)])),
        "error",
        "duplicate-rank",
        (2,),
        where=None,
        says=("Rank 2", "a child process"),
    ),
    Case(
        "the duplicates keep the ranks waiting",
        snapshot(
            rank(0, loading(), children=[worker(0, 0, joining(), joined_as=0)]),
            rank(1, loading(), children=[worker(1, 0, joining(), joined_as=1)]),
        ),
        "error",
        "duplicate-rank",
        (0, 1),
    ),
]


@named(DUPLICATE_RANK)
def test_duplicate_rank(case: Case) -> None:
    check(case)


OUT_OF_MEMORY = [
    Case(
        "Python cannot allocate",
        snapshot(raised(1, "MemoryError", "", "load.py:5 read"), in_collective(0, "barrier")),
        "error",
        "out-of-memory",
        (1,),
        where="load.py:5 read",
    ),
    Case(
        "torch's CPU allocator cannot",
        snapshot(
            raised(
                0,
                "RuntimeError",
                "[enforce fail at alloc_cpu.cpp:117] err == 0. DefaultCPUAllocator: can't allocate "
                "memory: you tried to allocate 4000000000000 bytes.",
            ),
            working(1),
        ),
        "error",
        "out-of-memory",
        (0,),
    ),
    Case(
        "the GPU is full on rank 3 of four",
        snapshot(
            in_collective(0, "all_reduce"),
            in_collective(1, "all_reduce"),
            in_collective(2, "all_reduce"),
            raised(3, "OutOfMemoryError", "CUDA out of memory. Tried to allocate 2.00 GiB."),
        ),
        "error",
        "out-of-memory",
        (3,),
        says=("Rank 3", "memory"),
    ),
    Case(
        "the kernel has killed two of four, and a launcher the rest",
        snapshot(
            ended(0, signal=9, time=10.4),
            ended(1, signal=9, time=10.1),
            ended(2, signal=9, time=11.0),
            ended(3, signal=15, time=11.0),
            memory_kills=2,
            limit=LimitView(700, "the kernel", kills=2),
        ),
        "error",
        "out-of-memory",
        (0, 1),
        says=("Ranks 0 and 1", "the other ranks"),
    ),
    Case(
        "all ranks are blocked at a limit at which nobody is killed",
        snapshot(frozen(0, "load.py:5 read"), frozen(1, "load.py:6 read"), limit=FULL),
        "hang",
        "out-of-memory",
        (0, 1),
        where="load.py:5 read",
        says=("Ranks 0 and 1 are blocked", "700 MB"),
    ),
    Case(
        "one rank of three is blocked at the limit, and the others wait for it",
        snapshot(in_collective(0, "barrier"), frozen(1), in_collective(2, "barrier"), limit=FULL),
        "hang",
        "out-of-memory",
        (1,),
        says=("Rank 1 is blocked",),
    ),
    Case(
        "one is blocked at the limit while another works: only patience tells",
        snapshot(resting(frozen(0)), rank(1, recv(0)), working(2), limit=FULL),
        "hang",
        "out-of-memory",
        (0,),
        proved=False,
        final=True,
        says=("Rank 0 is blocked", "700 MB"),
    ),
    Case(
        "a SIGKILL that the kernel's counter explains",
        snapshot(
            in_collective(0, "all_reduce"),
            ended(1, signal=9, at="load.py:5 read"),
            memory_kills=1,
        ),
        "error",
        "out-of-memory",
        (1,),
        where="load.py:5 read",
        says=("memory",),
    ),
    Case(
        "a worker that the kernel has killed for memory",
        snapshot(
            raised(
                0,
                "RuntimeError",
                "DataLoader worker (pid 2000) is killed by signal: Killed.",
                children=[gone(worker(0), signal=9)],
            ),
            working(1),
            memory_kills=1,
        ),
        "error",
        "out-of-memory",
        (0,),
        masks=("is killed by signal",),
    ),
]


@named(OUT_OF_MEMORY)
def test_out_of_memory(case: Case) -> None:
    check(case)


@pytest.mark.parametrize("newest", [snapshot(ended(0), code=0, limit=FULL), OUT_OF_MEMORY[-1].newest])
def test_the_limit_on_memory_is_evidence(newest: Snapshot) -> None:
    limited = replace(newest, limit=FULL)
    assert "700 MB of memory; enforced by the kernel" in diagnose(steady(limited)).evidence[-1]


def test_how_an_earlier_attempt_failed_is_evidence() -> None:
    first = Attempt(
        0,
        (
            raised(0, "RuntimeError", PEER, time=4.1),
            raised(1, "ValueError", "bad checkpoint", "load.py:9 load", time=4.0),
        ),
    )
    second = Attempt(1, (ended(0, signal=9), ended(1, 0)))
    told = (
        "attempt 0 failed before: rank 1: ValueError: bad checkpoint at load.py:9",
        "attempt 1 failed before: rank 0: ended by signal 9 at train.py:10",
    )
    stands = snapshot(in_collective(0, "barrier"), in_collective(1, "all_reduce"), attempt=2)
    verdict = diagnose(steady(replace(stands, earlier=(first, second))))
    assert verdict.cause == "collective-mismatch"
    assert verdict.evidence[-2:] == told
    well = replace(snapshot(ended(0), ended(1), code=0), earlier=(first, Attempt(1, (ended(0),))))
    assert diagnose([well]).evidence == told[:1]


STOPPED_WORKER = worker(0, state="stopped", still=40.0, idle=40.0)

WORKER_STALL = [
    Case(
        "a worker crashed and its rank says so",
        snapshot(
            raised(
                0,
                "RuntimeError",
                WORKER_GONE,
                children=[gone(worker(0, at="data.py:7 __getitem__"), signal=11)],
            ),
            in_collective(1, "all_reduce"),
        ),
        "error",
        "worker-stall",
        (0,),
        where="data.py:7 __getitem__",
        says=("DataLoader worker 0", "rank 0"),
        masks=("is killed by signal",),
    ),
    Case(
        "a worker crashed and only its rank's words tell",
        snapshot(working(0), raised(1, "RuntimeError", WORKER_GONE, "train.py:30 loop"), working(2)),
        "error",
        "worker-stall",
        (1,),
        where="train.py:30 loop",
    ),
    Case(
        "the connection to a worker broke and nothing more is known of it",
        snapshot(
            working(0),
            ended(1, error=error("EOFError", "", CONNECTION, GET_DATA, "train.py:30 loop")),
        ),
        "error",
        "worker-stall",
        (1,),
        where="train.py:30 loop",
    ),
    Case(
        "a connection of the user's own broke",
        snapshot(working(0), ended(1, error=error("EOFError", "", CONNECTION, "train.py:30 ask"))),
        "error",
        "error",
        (1,),
        where="train.py:30 ask",
    ),
    Case(
        "a worker ended while its rank still waits for it",
        snapshot(
            rank(0, loading(), children=[gone(worker(0, 1, at="data.py:9 seek"), 3), worker(0, 0)]),
            in_collective(1, "all_reduce"),
        ),
        "error",
        "worker-stall",
        (0,),
        where="data.py:9 seek",
        says=("DataLoader worker 1", "exit code 3"),
    ),
    Case(
        "a worker is stopped by a signal: only patience tells",
        snapshot(
            resting(rank(0, loading(), children=[STOPPED_WORKER])),
            resting(in_collective(1, "all_reduce")),
            resting(in_collective(2, "all_reduce")),
        ),
        "hang",
        "worker-stall",
        (0,),
        where="data.py:7 __getitem__",
        proved=False,
        final=True,
        says=("Rank 0 waits", "DataLoader worker 0", "stopped"),
    ),
    Case(
        "a worker sleeps for ever: only patience tells",
        snapshot(
            rank(
                0,
                loading(),
                still=40.0,
                idle=40.0,
                children=[worker(0, asleep="nanosleep", still=40.0, idle=40.0)],
            ),
            in_collective(1, "all_reduce", still=40.0, idle=40.0),
        ),
        "hang",
        "worker-stall",
        (0,),
        where="data.py:7 __getitem__",
        proved=False,
        final=True,
        says=("asleep",),
    ),
    Case(
        "a worker ended before anybody knew it for one, and its rank names it",
        snapshot(
            raised(
                0,
                "RuntimeError",
                WORKER_GONE.replace("2000", "3000"),
                children=[gone(child(0), signal=11)],
            ),
            in_collective(1, "all_reduce"),
        ),
        "error",
        "worker-stall",
        (0,),
        where="train.py:10 step",
        says=("ended by signal 11",),
    ),
    Case(
        "a worker is later than its loader's own timeout allows",
        snapshot(
            working(0),
            raised(
                1,
                "RuntimeError",
                "DataLoader timed out after 5 seconds",
                "train.py:30 loop",
                children=[
                    gone(worker(1, 0, idle_worker=True), signal=15),
                    gone(worker(1, 1, at="data.py:9 fetch_far"), signal=15),
                ],
            ),
        ),
        "error",
        "worker-stall",
        (1,),
        where="data.py:9 fetch_far",
        says=("Rank 1 gave up waiting at train.py:30", "DataLoader worker 1", "5 seconds"),
    ),
    Case(
        "a worker was too late, and nobody has seen where it stood",
        snapshot(working(0), raised(1, "RuntimeError", "DataLoader timed out after 5 seconds")),
        "error",
        "worker-stall",
        (1,),
        where="train.py:10 step",
        says=("for a DataLoader worker: RuntimeError",),
    ),
    Case(
        "the workers of both ranks are stopped: no majority, so both ranks must change",
        snapshot(
            resting(rank(0, loading(), children=[STOPPED_WORKER])),
            resting(rank(1, loading(), children=[worker(1, state="stopped", still=40.0, idle=40.0)])),
        ),
        "hang",
        "worker-stall",
        (0, 1),
        proved=False,
        final=True,
    ),
]


@named(WORKER_STALL)
def test_worker_stall(case: Case) -> None:
    check(case)


SHAPE_MISMATCH = [
    Case(
        "DDP's check on two ranks: no majority",
        snapshot(
            in_collective(0, "all_gather", at="train.py:22 setup"),
            raised(1, "RuntimeError", SHAPES, "train.py:22 setup"),
        ),
        "error",
        "shape-mismatch",
        (0, 1),
        where="train.py:22 setup",
        says=("Sizes differ",),
    ),
    Case(
        "one of four complains: it is the odd one",
        snapshot(
            working(0),
            raised(2, "RuntimeError", SHAPES),
            working(1),
            in_collective(3, "all_gather"),
        ),
        "error",
        "shape-mismatch",
        (2,),
    ),
    Case(
        "all but rank 0 complain: rank 0 is the odd one",
        snapshot(
            working(0),
            raised(1, "RuntimeError", SHAPES, time=10.0),
            raised(2, "RuntimeError", SHAPES, time=10.1),
            raised(3, "RuntimeError", SHAPES, time=10.2),
        ),
        "error",
        "shape-mismatch",
        (0,),
    ),
    Case(
        "gloo aborts, and the Flight Recorder tells whose size is odd",
        snapshot(
            in_collective(0, "all_reduce[4]", "all_reduce[8]"),
            in_collective(1, "all_reduce[4]", "all_reduce[8]"),
            ended(
                2,
                None,
                signal=6,
                error=error("EnforceNotMet", PREAMBLE),
                **issued("all_reduce[4]", "all_reduce[2]", done=1),
            ),
        ),
        "error",
        "shape-mismatch",
        (2,),
    ),
    Case(
        "both stand in one operation with two sizes and nothing moves",
        snapshot(in_collective(0, "all_reduce[4]"), in_collective(1, "all_reduce[2]")),
        "hang",
        "shape-mismatch",
        (0, 1),
        says=("sizes",),
    ),
    Case(
        "one is through with the operation, with a smaller tensor, and waits in the next one",
        snapshot(
            in_collective(0, "all_reduce[2]", "barrier", at="train.py:20 log"),
            in_collective(1, "all_reduce[4]", at="train.py:19 step"),
        ),
        "hang",
        "shape-mismatch",
        (0, 1),
        where="train.py:19 step",
        says=("rank 0 has 2 and rank 1 has 4",),
    ),
    Case(
        "the smallest of three is through, and the others have three sizes with it",
        snapshot(
            in_collective(0, "all_reduce[3]", "barrier"),
            in_collective(1, "all_reduce[4]"),
            in_collective(2, "all_reduce[5]"),
        ),
        "hang",
        "shape-mismatch",
        (0, 1, 2),
    ),
    Case(
        "three stand in one operation and one of them has another size",
        snapshot(
            in_collective(0, "all_reduce[4]"),
            in_collective(1, "all_reduce[2]"),
            in_collective(2, "all_reduce[4]"),
        ),
        "hang",
        "shape-mismatch",
        (1,),
    ),
]


@named(SHAPE_MISMATCH)
def test_shape_mismatch(case: Case) -> None:
    check(case)


DEVICE_MISMATCH = [
    Case(
        "both ranks mix devices",
        snapshot(
            raised(0, "RuntimeError", DEVICES, "train.py:31 loss", time=10.1),
            raised(1, "RuntimeError", DEVICES, "train.py:31 loss", time=10.0),
        ),
        "error",
        "device-mismatch",
        (0, 1),
        where="train.py:31 loss",
        says=("cuda:0 and cpu",),
    ),
    Case(
        "the generator of one of three is on another device",
        snapshot(
            in_collective(0, "all_reduce"),
            in_collective(1, "all_reduce"),
            raised(
                2,
                "RuntimeError",
                "Expected a 'cuda' device type for generator but found 'cpu'",
                "train.py:12 loader",
            ),
        ),
        "error",
        "device-mismatch",
        (2,),
        where="train.py:12 loader",
    ),
]


MIXED = (
    DEVICES,
    "Tensor on device meta is not on the expected device cpu!",
    "Tensor for argument #2 'mat1' is on CPU, but expected it to be on GPU (while checking arguments)",
    "Input type (torch.cuda.FloatTensor) and weight type (torch.FloatTensor) should be the same",
)


@pytest.mark.parametrize("message", MIXED)
def test_torch_says_in_several_ways_that_devices_differ(message: str) -> None:
    verdict = diagnose(steady(snapshot(working(0), raised(1, "RuntimeError", message))))
    assert (verdict.cause, verdict.culprits) == ("device-mismatch", (1,))


@named(DEVICE_MISMATCH)
def test_device_mismatch(case: Case) -> None:
    check(case)


RANK_CRASHED = [
    Case(
        "a rank segfaults while the other waits for it",
        snapshot(in_collective(0, "all_reduce"), ended(1, signal=11, at="ext.py:9 call")),
        "hang",
        "rank-crashed",
        (1,),
        where="ext.py:9 call",
        says=("SIGSEGV", "ext.py:9", "rank 0 still waits"),
    ),
    Case(
        "a rank of four is killed, and nothing tells of memory",
        snapshot(
            *(in_collective(n, "barrier", members=(0, 1, 2, 3)) for n in (0, 1, 3)),
            ended(2, signal=9),
        ),
        "hang",
        "rank-crashed",
        (2,),
        says=("SIGKILL", "ranks 0, 1 and 3"),
    ),
    Case(
        "a rank is killed, and a recording has fewer kills for memory than none",
        snapshot(in_collective(0, "barrier"), ended(1, signal=9), memory_kills=-3),
        "hang",
        "rank-crashed",
        (1,),
        says=("SIGKILL",),
    ),
    Case(
        "the job is over",
        snapshot(
            ended(0, signal=11, time=10.0),
            ended(1, signal=15, time=12.0),
            code=1,
            launchers=[
                launcher(
                    ended=13.0,
                    exit_code=1,
                    error=error("ChildFailedError", "train.py FAILED", time=13.0),
                )
            ],
        ),
        "error",
        "rank-crashed",
        (0,),
        says=("SIGSEGV",),
        masks=("ChildFailedError",),
    ),
    Case(
        "someone ends a single rank by hand",
        snapshot(ended(0, signal=15), in_collective(1, "all_reduce")),
        "hang",
        "rank-crashed",
        (0,),
        says=("SIGTERM",),
    ),
    Case(
        "a rank is ended by hand, and nobody saw how the other one ended later",
        snapshot(ended(0, signal=15, time=10.0), ended(1, None, time=11.0), code=1),
        "error",
        "rank-crashed",
        (0,),
    ),
    Case(
        "a rank is killed after one whose end nobody saw: no launcher does that first",
        snapshot(ended(0, signal=9, time=10.2), ended(1, None, time=10.0), code=1),
        "error",
        "rank-crashed",
        (0,),
    ),
]


@named(RANK_CRASHED)
def test_rank_crashed(case: Case) -> None:
    check(case)


ERROR = [
    Case(
        "rank 1 raises, rank 0 loses its connection",
        snapshot(
            raised(0, "RuntimeError", PEER, "train.py:40 reduce", time=10.5),
            raised(1, "ValueError", "bad batch", "data.py:3 read", time=10.0),
        ),
        "error",
        "error",
        (1,),
        where="data.py:3 read",
        says=("Rank 1 raised ValueError: bad batch", "data.py:3"),
        masks=("Connection closed by peer",),
    ),
    Case(
        "what the exception was raised for is said, too",
        snapshot(
            ended(
                0,
                error=error("RuntimeError", "no data.", "train.py:9 load", caused_by="KeyError: 'x'"),
                time=10.0,
            ),
        ),
        "error",
        "error",
        (0,),
        where="train.py:9 load",
        says=("Rank 0 raised RuntimeError: no data at train.py:9", ", caused by KeyError: 'x'."),
    ),
    Case(
        "the victim's error is seen first",
        snapshot(
            raised(0, "RuntimeError", PEER, "train.py:40 reduce", time=9.9),
            raised(1, "ValueError", "bad batch", "data.py:3 read", time=10.0),
        ),
        "error",
        "error",
        (1,),
        where="data.py:3 read",
    ),
    Case(
        "all four raise the same",
        snapshot(
            *(raised(n, "KeyError", "'loss'", "train.py:9 log", time=10 + n / 10) for n in range(4))
        ),
        "error",
        "error",
        (0, 1, 2, 3),
        where="train.py:9 log",
        says=("Ranks 0-3",),
        masks=(),
    ),
    Case(
        "two raise the same, another is told only that they left",
        snapshot(
            raised(0, "ValueError", "bad batch", "data.py:3 read", time=10.0),
            raised(1, "RuntimeError", PEER, time=10.1),
            raised(2, "ValueError", "bad row", "data.py:3 read", time=10.2),
        ),
        "error",
        "error",
        (0, 2),
        masks=("Connection closed by peer", "bad row"),
    ),
    Case(
        "an error inside a library is placed at the user's line",
        snapshot(
            ended(0, error=error("RuntimeError", "boom", LIBRARY, "model.py:5 forward")),
            in_collective(1, "all_reduce"),
        ),
        "error",
        "error",
        (0,),
        where="model.py:5 forward",
    ),
    Case(
        "what a teardown raises hides the first error",
        snapshot(
            ended(
                0,
                error=error(
                    "StopIteration",
                    "",
                    "train.py:3 fit",
                    masked=("RuntimeError: Please call `iter(combined_loader)` first.",),
                ),
            ),
        ),
        "error",
        "error",
        (0,),
        masks=("combined_loader",),
    ),
    Case(
        "one process without any distribution",
        snapshot(raised(0, "ZeroDivisionError", "division by zero", "train.py:2"), code=1),
        "error",
        "error",
        (0,),
        where="train.py:2",
    ),
    Case(
        "no such script",
        snapshot(code=2, world=0, script_error="can't open file 'x.py': [Errno 2] No such file"),
        "error",
        "error",
        where=None,
        says=("cannot run the script", "x.py"),
    ),
    Case(
        "a script that is no Python",
        snapshot(
            code=1,
            world=0,
            script_error="SyntaxError: invalid syntax",
            script_line=frame("train.py:7"),
        ),
        "error",
        "error",
        where="train.py:7",
        says=("SyntaxError",),
    ),
]


@named(ERROR)
def test_error(case: Case) -> None:
    check(case)


RANK_EXITED = [
    Case(
        "a rank returns early while the other waits",
        snapshot(in_collective(0, "barrier"), ended(1, 0, at="train.py:60 main")),
        "hang",
        "rank-exited",
        (1,),
        where="train.py:60 main",
        says=("Rank 1 ended", "rank 0 still needs it", "train.py:60"),
    ),
    Case(
        "two of four leave: they are named, those who wait are not",
        snapshot(in_collective(0, "barrier"), ended(1, 0), in_collective(2, "barrier"), ended(3, 0)),
        "hang",
        "rank-exited",
        (1, 3),
        says=("Ranks 1 and 3",),
    ),
    Case(
        "sys.exit(3) raises nothing",
        snapshot(in_collective(0, "barrier"), in_collective(1, "barrier"), ended(2, 3)),
        "error",
        "rank-exited",
        (2,),
        says=("exit code 3",),
    ),
    Case(
        "the other one learns it from its connection",
        snapshot(
            raised(0, "RuntimeError", PEER, time=10.5), ended(1, 0, time=10.0, at="train.py:60 main")
        ),
        "error",
        "rank-exited",
        (1,),
        where="train.py:60 main",
        masks=("Connection closed by peer",),
    ),
    Case(
        "most ranks come to their end: the odd one out is the one that wants more of them",
        snapshot(
            ended(0, 0, time=10.0, at=None),
            ended(1, 0, time=10.0, at=None),
            raised(2, "RuntimeError", PEER, "train.py:70 extra", time=10.5),
        ),
        "error",
        "rank-exited",
        (2,),
        where="train.py:70 extra",
        says=("rank 2, which still needed them, failed at train.py:70",),
    ),
    Case(
        "most ranks leave at a line of their own",
        snapshot(ended(0, 0), ended(1, 0), in_collective(2, "barrier")),
        "hang",
        "rank-exited",
        (0, 1),
    ),
    Case(
        "one of two ranks comes to its end: there is no majority",
        snapshot(ended(0, 0, at=None), in_collective(1, "barrier")),
        "hang",
        "rank-exited",
        (0,),
    ),
    Case(
        "most ranks come to their end while one waits",
        snapshot(ended(0, 0, at=None), rank(1, key("done")), ended(2, 0, at=None)),
        "hang",
        "rank-exited",
        (1,),
        where="train.py:10 step",
    ),
    Case(
        "of those that have left, a failed call had needed one",
        snapshot(
            ended(0, 0),
            ended(
                1,
                error=replace(error("RuntimeError", PEER, "train.py:10 step"), needed=(1, 2)),
                time=10.2,
            ),
            ended(2, 0),
        ),
        "error",
        "rank-exited",
        (2,),
    ),
    Case(
        "without a beacon no exception is seen: what it needed had left before",
        snapshot(ended(0, 1, beacon=False, ended_in_call=True, time=10.5), ended(1, 0, beacon=False)),
        "error",
        "rank-exited",
        (1,),
        says=("Rank 1 ended",),
    ),
    Case(
        "without a beacon, and in no call: it has left by itself",
        snapshot(ended(0, 1, beacon=False, time=10.5), ended(1, 0, beacon=False)),
        "error",
        "rank-exited",
        (0,),
    ),
    Case(
        "a rank has left a receive behind",
        snapshot(rank(0, recv(1)), ended(1, 0)),
        "hang",
        "rank-exited",
        (1,),
    ),
]


@named(RANK_EXITED)
def test_rank_exited(case: Case) -> None:
    check(case)


RENDEZVOUS_INCOMPLETE = [
    Case(
        "a start script that counts from one",
        snapshot(
            absent(0),
            rank(1, joining(), at="train.py:8 main"),
            rank(2, joining(), at="train.py:8 main"),
            world=2,
            started_by="python",
        ),
        "hang",
        "rendezvous-incomplete",
        (0,),
        where="train.py:8 main",
        says=("rank 0 was never started", "rank 2 lies beyond the world size of 2"),
    ),
    Case(
        "all are there, and nobody listens at the address",
        replace(
            snapshot(
                *(rank(n, joining(), still=40.0, idle=40.0) for n in (0, 1)), master="10.0.0.9:29500"
            ),
            stores=(StoreView("10.0.0.9:29500", "n0", "refuses the connection: nobody listens there"),),
        ),
        "hang",
        "rendezvous-incomplete",
        proved=False,
        final=True,
        says=("10.0.0.9:29500", "nobody listens there"),
    ),
    Case(
        "all are there, and nobody has looked who listens at the address",
        snapshot(*(rank(n, joining(), still=40.0, idle=40.0) for n in (0, 1)), master="10.0.0.9:29500"),
        "hang",
        "rendezvous-incomplete",
        proved=False,
        final=True,
        where="train.py:10 step",
        says=("Every rank", "10.0.0.9:29500"),
    ),
    Case(
        "ranks at three addresses, and most of them at one",
        snapshot(
            *(
                rank(n, joining(), master=f"127.0.0.1:{port}")
                for n, port in enumerate((29500, 29500, 29500, 29501, 29502))
            )
        ),
        "hang",
        "rendezvous-incomplete",
        (3, 4),
        says=("never meet",),
    ),
    Case(
        "a launcher that waits for other nodes",
        snapshot(
            world=0,
            launchers=[
                launcher(
                    stack=(Frame("/lib/torch/dynamic_rendezvous.py", 9, "next_rendezvous", user=False),),
                    idle=40.0,
                )
            ],
        ),
        "hang",
        "rendezvous-incomplete",
        where=None,
        proved=False,
        final=True,
        says=("No rank has been started for 40 s", "other nodes have not joined"),
    ),
    Case(
        "rank 1 of two was never started",
        snapshot(rank(0, joining(), at="train.py:8 main"), absent(1), started_by="python"),
        "hang",
        "rendezvous-incomplete",
        (1,),
        where="train.py:8 main",
        says=("1 of 2", "rank 1", "never"),
    ),
    Case(
        "two of four were never started",
        snapshot(rank(0, joining()), absent(1), rank(2, joining()), absent(3)),
        "hang",
        "rendezvous-incomplete",
        (1, 3),
        says=("2 of 4", "ranks 1 and 3"),
    ),
    Case(
        "of two that have not come only the one that was never started cannot come",
        snapshot(
            rank(0, joining()),
            working(1, state="importing", joined=False),
            absent(2),
            started_by="python",
        ),
        "hang",
        "rendezvous-incomplete",
        (2,),
    ),
    Case(
        "a rank left before it joined",
        snapshot(rank(0, joining()), ended(1, 0, joined=False), absent(2), started_by="python"),
        "hang",
        "rank-exited",
        (1,),
    ),
    Case(
        "two ranks look at different ports",
        snapshot(
            replace(rank(0, joining()), master="127.0.0.1:29500"),
            replace(rank(1, joining()), master="127.0.0.1:29501"),
        ),
        "hang",
        "rendezvous-incomplete",
        (0, 1),
        says=("29500", "29501"),
    ),
    Case(
        "one of three looks at another port",
        snapshot(
            replace(rank(0, joining()), master="127.0.0.1:29500"),
            replace(rank(1, joining()), master="127.0.0.1:29501"),
            replace(rank(2, joining()), master="127.0.0.1:29500"),
        ),
        "hang",
        "rendezvous-incomplete",
        (1,),
    ),
    Case(
        "the rendezvous times out while a rank sleeps before it",
        snapshot(
            raised(0, "DistStoreError", CLIENTS, "train.py:8 main"),
            sleeping(1, joined=False),
        ),
        "error",
        "rendezvous-incomplete",
        (1,),
        where="prep.py:12 wait_a_bit",
        says=("1 of 2", "asleep"),
    ),
    Case(
        "both ranks give up looking for a store that nobody serves",
        snapshot(
            raised(0, "DistNetworkError", NO_STORE, "train.py:8 main"),
            raised(1, "DistNetworkError", NO_STORE, "train.py:8 main"),
        ),
        "error",
        "rendezvous-incomplete",
        (),
        where="train.py:8 main",
        says=("cannot reach the store at 192.0.2.17:29500",),
    ),
    Case(
        "the barrier at the end of the rendezvous times out",
        snapshot(raised(0, "DistStoreError", BARRIER, "train.py:8 main"), sleeping(1, joined=False)),
        "error",
        "rendezvous-incomplete",
        (1,),
        where="prep.py:12 wait_a_bit",
    ),
    Case(
        "the launcher has ended the rank that slept, before anybody looked",
        snapshot(
            raised(0, "DistStoreError", CLIENTS, "train.py:8 main"),
            ended(1, signal=15, joined=False, time=11.0, at="prep.py:12 wait_a_bit"),
            code=1,
        ),
        "error",
        "rendezvous-incomplete",
        (1,),
        where="prep.py:12 wait_a_bit",
        says=("1 of 2",),
    ),
    Case(
        "a rank sleeps before it joins: only patience tells",
        snapshot(
            rank(0, joining(), still=40.0, idle=40.0),
            sleeping(1, joined=False, still=40.0, idle=40.0),
        ),
        "hang",
        "rendezvous-incomplete",
        (1,),
        where="prep.py:12 wait_a_bit",
        proved=False,
        final=True,
    ),
]


@named(RENDEZVOUS_INCOMPLETE)
def test_rendezvous_incomplete(case: Case) -> None:
    check(case)


TWIN = child(0, error=error("DistNetworkError", IN_USE, LIBRARY, "train.py:19 train"))
TWIN = replace(TWIN, process=replace(TWIN.process, parent=900))


def test_a_second_process_of_the_same_rank_fails_as_the_rank_itself_does() -> None:
    ranks = (rank(0, joining(), children=[TWIN], ports=(store(29500),)), absent(1))
    verdict = diagnose(steady(snapshot(*ranks, started_by="python")))
    assert (verdict.outcome, verdict.cause, verdict.culprits) == ("error", "address-in-use", (0,))
    assert verdict.where == frame("train.py:19 train")
    assert (
        "A second process as rank 0 cannot listen on port 29500, which rank 0 holds" in verdict.summary
    )


COLLECTIVE_MISMATCH = [
    Case(
        "a rank that is past the call already counts for its side",
        snapshot(
            in_collective(0, "broadcast", at="best.py:14 save"),
            working(1, **issued("broadcast", done=1)),
            in_collective(2, "all_gather", at="best.py:44 main"),
        ),
        "hang",
        "collective-mismatch",
        (2,),
        where="best.py:44 main",
        detail="broadcast against all_gather at #1 of the default group",
    ),
    Case(
        "save on rank 0 only: broadcast against barrier",
        snapshot(
            in_collective(0, "all_reduce", "broadcast", start=6, at="train.py:41 save"),
            in_collective(1, "all_reduce", "barrier", start=6, at="train.py:43 main"),
        ),
        "hang",
        "collective-mismatch",
        (0, 1),
        where="train.py:41 save",
        says=("broadcast", "barrier", "train.py:41", "train.py:43"),
        detail="broadcast against barrier at #7 of the default group",
    ),
    Case(
        "the odd one of three",
        snapshot(
            in_collective(0, "barrier"),
            in_collective(1, "all_reduce", at="train.py:55 extra"),
            in_collective(2, "barrier"),
        ),
        "hang",
        "collective-mismatch",
        (1,),
        where="train.py:55 extra",
        says=(
            "Rank 1 is blocked in all_reduce #1 at train.py:55 and never reaches barrier",
            "where ranks 0 and 2 are waiting.",
        ),
    ),
    Case(
        "two against two: all disagree",
        snapshot(
            *(in_collective(n, "barrier") for n in (0, 1)),
            *(in_collective(n, "all_gather") for n in (2, 3)),
        ),
        "hang",
        "collective-mismatch",
        (0, 1, 2, 3),
    ),
    Case(
        "one of three is a call ahead: the others have not diverged yet in name",
        snapshot(
            in_collective(0, "all_reduce", "barrier"),
            in_collective(1, "all_reduce", "barrier"),
            in_collective(2, "all_reduce", "broadcast", "barrier"),
        ),
        "hang",
        "collective-mismatch",
        (2,),
    ),
    Case(
        "an earlier divergence counts, not where they stand now",
        snapshot(
            rank(
                0,
                wait(InCollective, "all_reduce", seq=3, group="default", blocking=False),
                collective("barrier", 4),
                **issued("broadcast", "broadcast", "all_reduce", "barrier", done=2),
            ),
            rank(
                1,
                wait(InCollective, "all_gather", seq=3, group="default", blocking=False),
                collective("all_reduce", 4),
                **issued("broadcast", "broadcast", "all_gather", "all_reduce", done=2),
            ),
        ),
        "hang",
        "collective-mismatch",
        (0, 1),
        detail="all_reduce against all_gather at #3",
    ),
    Case(
        "without a Flight Recorder the calls still differ",
        snapshot(rank(0, collective("barrier", None)), rank(1, collective("all_reduce", None))),
        "hang",
        "collective-mismatch",
        (0, 1),
    ),
    Case(
        "both receive",
        snapshot(rank(0, recv(1), at="pp.py:5 fwd"), rank(1, recv(0), at="pp.py:9 bwd")),
        "hang",
        "collective-mismatch",
        (0, 1),
        says=("recv from rank 1", "recv from rank 0", "pp.py:5", "pp.py:9"),
    ),
    Case(
        "both send",
        snapshot(rank(0, send(1)), rank(1, send(0))),
        "hang",
        "collective-mismatch",
        (0, 1),
        says=("send to rank 1",),
    ),
    Case(
        "a ring of receives on three ranks",
        snapshot(rank(0, recv(2)), rank(1, recv(0)), rank(2, recv(1))),
        "hang",
        "collective-mismatch",
        (0, 1, 2),
    ),
    Case(
        "a send and a receive that have different tags",
        snapshot(rank(0, replace(recv(1), tag=7)), rank(1, replace(send(0), tag=8))),
        "hang",
        "collective-mismatch",
        (0, 1),
        says=("recv from rank 1 with tag 7", "send to rank 0 with tag 8"),
    ),
    Case(
        "new_group by the members only, while the rest is elsewhere",
        snapshot(
            rank(0, collective("new_group", None, members=(0, 1, 2))),
            rank(1, collective("new_group", None, members=(0, 1, 2))),
            rank(2, collective("barrier", None, members=(0, 1, 2)), at="train.py:70 end"),
        ),
        "hang",
        "collective-mismatch",
        (2,),
        where="train.py:70 end",
    ),
    Case(
        "one rank leaves out a new group in which one waits for it, and the others are past it",
        snapshot(
            in_collective(0, "barrier", groups_made=3, at="train.py:70 end"),
            in_collective(1, "barrier", groups_made=3, at="train.py:70 end"),
            rank(2, collective("new_group", None, members=(2, 3), group_number=3), groups_made=3),
            in_collective(3, "barrier", groups_made=1, at="train.py:70 end"),
        ),
        "hang",
        "collective-mismatch",
        (3,),
        where="train.py:70 end",
        says=("Rank 3 is blocked in barrier #1", "never reaches new_group", "where rank 2 is waiting"),
    ),
    Case(
        "two groups are used in opposite order",
        snapshot(
            rank(
                0,
                collective("all_reduce", group="tp", members=(0, 1)),
                **issued("all_reduce", group="tp", done=0),
            ),
            rank(
                1,
                collective("all_reduce", group="dp", members=(0, 1)),
                **issued("all_reduce", group="dp", done=0),
            ),
        ),
        "hang",
        "collective-mismatch",
        (0, 1),
        says=("group tp", "group dp"),
    ),
    Case(
        "one of four goes to its small group while three wait in the default one",
        snapshot(
            rank(
                0,
                collective("all_reduce", group="tp", members=(0, 1)),
                **issued("all_reduce", group="tp", done=0),
            ),
            *(in_collective(n, "barrier", members=(0, 1, 2, 3)) for n in (1, 2, 3)),
        ),
        "hang",
        "collective-mismatch",
        (0,),
    ),
    Case(
        "two of four part in a group of their own, and the others wait for them",
        snapshot(
            rank(
                0,
                collective("all_reduce", group="tp", members=(0, 1)),
                at="eval.py:5 score",
                **issued("all_reduce", group="tp", done=0),
            ),
            rank(
                1,
                collective("barrier", group="tp", members=(0, 1)),
                **issued("barrier", group="tp", done=0),
            ),
            *(in_collective(n, "barrier", members=(0, 1, 2, 3)) for n in (2, 3)),
        ),
        "hang",
        "collective-mismatch",
        (0, 1),
        where="eval.py:5 score",
        detail="all_reduce against barrier at #1 of group tp",
        says=(
            "rank 0 is blocked in all_reduce #1 of group tp",
            "rank 1 is blocked in barrier #1 of group tp",
        ),
    ),
    Case(
        "a ring over four groups of two",
        snapshot(
            rank(0, collective("all_reduce", group="tp", members=(0, 1))),
            rank(1, collective("all_reduce", group="dp", members=(1, 3))),
            rank(2, collective("all_reduce", group="dp", members=(0, 2))),
            rank(3, collective("all_reduce", group="tp", members=(2, 3))),
        ),
        "hang",
        "collective-mismatch",
        (0, 1, 2, 3),
        says=(
            "ranks 0 and 3 are blocked in all_reduce #1 of group tp",
            "ranks 1 and 2 are blocked in all_reduce",
        ),
    ),
    Case(
        "each takes another rank for the source of one broadcast",
        snapshot(
            rank(0, collective("broadcast", root=1), **issued("broadcast", done=0)),
            rank(1, collective("broadcast", root=0), **issued("broadcast", done=0)),
        ),
        "hang",
        "collective-mismatch",
        (0, 1),
        says=("rank 0 is blocked in broadcast #1 with root 1", "with root 0"),
    ),
    Case(
        "objects scattered by one rank and broadcast by another",
        snapshot(
            rank(0, collective("broadcast", root=0, sizes=((1,),)), **issued("broadcast[1]", done=0)),
            rank(1, collective("broadcast", root=1, sizes=((3,),)), **issued("broadcast[3]", done=0)),
        ),
        "hang",
        "collective-mismatch",
        (0, 1),
    ),
    Case(
        "one of three takes another rank for the source",
        snapshot(
            rank(0, collective("broadcast", root=1), **issued("broadcast", done=0)),
            rank(1, collective("broadcast", root=0), **issued("broadcast", done=0)),
            rank(2, collective("broadcast", root=0), **issued("broadcast", done=0)),
        ),
        "hang",
        "collective-mismatch",
        (0,),
    ),
    Case(
        "handles of two receives that do not say from whom",
        snapshot(rank(0, irecv(), at="pp.py:5 fwd"), rank(1, irecv(), at="pp.py:5 fwd")),
        "hang",
        "collective-mismatch",
        (0, 1),
        where="pp.py:5 fwd",
        detail="irecv against irecv",
        says=("all wait to receive and none of them sends", "irecv at pp.py:5"),
    ),
    Case(
        "the first stage of a pipeline has sent too little",
        snapshot(
            in_collective(0, "barrier", at="pp.py:30 main"),
            rank(1, recv(0), at="pp.py:19 stage"),
            rank(2, recv(1), at="pp.py:19 stage"),
        ),
        "hang",
        "collective-mismatch",
        (0,),
        where="pp.py:30 main",
        says=(
            "Rank 0 is blocked in barrier",
            "never answers recv from rank 0 at pp.py:19, where rank 1 is waiting.",
        ),
    ),
    Case(
        "two threads of each rank have come in different order",
        snapshot(
            rank(
                0,
                collective("all_reduce", 1),
                collective("broadcast", 2, thread="metrics"),
                **issued("all_reduce", "broadcast", done=0),
            ),
            rank(
                1,
                collective("all_reduce", 2),
                collective("broadcast", 1, thread="metrics"),
                **issued("broadcast", "all_reduce", done=0),
            ),
        ),
        "hang",
        "collective-mismatch",
        (0, 1),
        detail="all_reduce against broadcast at #1",
    ),
    Case(
        "operations in the background have parted before the call in which all stand",
        snapshot(
            rank(
                0,
                wait(InCollective, "all_reduce", seq=2, group="default", blocking=False),
                collective("barrier", 3),
                **issued("all_reduce", "all_reduce", "barrier", done=1),
            ),
            rank(1, collective("barrier", 2), **issued("all_reduce", "barrier", done=1)),
            rank(2, collective("barrier", 2), **issued("all_reduce", "barrier", done=1)),
        ),
        "hang",
        "collective-mismatch",
        (0,),
        detail="all_reduce against barrier at #2",
        says=(
            "their calls first differ at #2 of the default group: all_reduce on rank 0, "
            "barrier on ranks 1 and 2",
        ),
    ),
    Case(
        "a call that a library makes has no line of the user's",
        snapshot(in_collective(0, "barrier"), in_collective(1, "broadcast", at=None)),
        "hang",
        "collective-mismatch",
        (0, 1),
        says=("broadcast #1, called by a library",),
    ),
    Case(
        "a rank that waits for a key is behind the two that part",
        snapshot(rank(0, recv(1)), rank(1, recv(0)), rank(2, key("done"))),
        "hang",
        "collective-mismatch",
        (0, 1),
    ),
    Case(
        "a thread of one may still do what the other waits for: only patience tells",
        snapshot(
            resting(in_collective(0, "barrier", at="train.py:70 end")),
            resting(rank(1, recv(0), at="pp.py:5 fwd", acting_thread="upload")),
        ),
        "hang",
        "collective-mismatch",
        (0, 1),
        proved=False,
        final=True,
        says=("barrier", "recv from rank 0"),
    ),
]

REDUCES = issued("all_reduce", done=0)

NOT_PROVED = [
    (
        "a listener thread on each rank while one rank works",
        (
            rank(0, collective("all_reduce"), replace(recv(1), thread="listener"), **REDUCES),
            rank(1, collective("all_reduce"), replace(recv(0), thread="listener"), **REDUCES),
            working(2),
        ),
    ),
    (
        "a thread waits while its main thread is asleep",
        (
            rank(0, replace(recv(1), thread="listener", blocking=False), asleep="nanosleep"),
            rank(1, recv(0)),
        ),
    ),
    (
        "a handle that may be for either of two groups",
        (
            rank(
                0,
                collective("all_reduce", 1, group="tp", members=(0, 1)),
                collective("all_reduce", 1, group="dp", members=(0, 2)),
            ),
            rank(1, recv(0)),
            working(2),
        ),
    ),
    (
        "handles of receives that a third rank may serve",
        (rank(0, irecv()), rank(1, irecv()), working(2)),
    ),
    (
        "a send and a receive that have one tag",
        (rank(0, replace(recv(1), tag=7)), rank(1, replace(send(0), tag=7))),
    ),
    (
        "calls that differ just now",
        (in_collective(0, "barrier", still=0.4), in_collective(1, "all_reduce", still=0.4)),
    ),
]


@pytest.mark.parametrize("ranks", [row[1] for row in NOT_PROVED], ids=[row[0] for row in NOT_PROVED])
def test_what_may_still_go_on_is_no_hang(ranks: tuple[RankView, ...]) -> None:
    verdict = diagnose(steady(snapshot(*ranks)))
    assert (verdict.outcome, verdict.cause) == ("running", "none"), verdict.summary


def test_a_process_that_has_failed_is_evidence() -> None:
    parent = replace(rank(0, wait(OnThread, "wait")), children=(gone(child(0)), gone(worker(0), code=0)))
    told = diagnose(steady(snapshot(resting(parent))), final=True).evidence
    ended = "a process of rank 0 has ended with exit code 1; it was last seen at train.py:10"
    assert told[1:] == (ended,)


@named(COLLECTIVE_MISMATCH)
def test_collective_mismatch(case: Case) -> None:
    check(case)


MET_BEFORE = [
    ("a barrier too many met the next one of the others", ("barrier", "barrier"), "barrier", True),
    ("one that met in another operation", ("all_reduce", "barrier"), "all_reduce", False),
    (
        "operations that carry data come in a row anyway",
        ("all_reduce", "all_reduce"),
        "all_reduce",
        False,
    ),
]


@pytest.mark.parametrize(
    ("ops", "before", "said"), [row[1:] for row in MET_BEFORE], ids=[row[0] for row in MET_BEFORE]
)
def test_a_barrier_that_met_before_may_have_met_from_another_line(
    ops: tuple[str, str], before: str, said: bool
) -> None:
    odd = in_collective(0, *ops, start=13, at="train.py:62 main")
    others = [in_collective(n, before, "all_gather", start=13, at="train.py:52 main") for n in (1, 2)]
    evidence = " ".join(diagnose(steady(snapshot(odd, *others))).evidence)
    sentence = (
        "rank 0 comes to a barrier twice in a row, at #13 and #14, ranks 1 and 2 only at #13: there"
    )
    assert (f"{sentence} they have met, perhaps from different lines" in evidence) == said


FILE_LOCK = [
    Case(
        "a lock file that nobody holds any more",
        snapshot(
            rank(0, lock("build/lock", "no process"), at="train.py:5 build"),
            rank(1, lock("build/lock", "no process"), at="train.py:5 build"),
        ),
        "hang",
        "file-lock",
        where="train.py:5 build",
        says=("Ranks 0 and 1 wait", "build/lock", "left behind"),
    ),
    Case(
        "the holder waits for the one that waits for the lock",
        snapshot(
            rank(0, lock("data.lock", 1001)),
            in_collective(1, "barrier", members=(0, 1, 2), at="train.py:30 prepare"),
            in_collective(2, "barrier", members=(0, 1, 2)),
        ),
        "hang",
        "file-lock",
        (1,),
        where="train.py:30 prepare",
        says=("rank 1", "data.lock", "train.py:30"),
    ),
    Case(
        "each of two holds what the other waits for",
        snapshot(rank(0, lock("a.lock", 1001)), rank(1, lock("b.lock", 1000))),
        "hang",
        "file-lock",
        (0, 1),
    ),
    Case(
        "a stranger holds it: only patience tells",
        snapshot(
            rank(0, lock("data.lock", 4711), still=40.0, idle=40.0),
            in_collective(1, "barrier", still=40.0, idle=40.0),
        ),
        "hang",
        "file-lock",
        proved=False,
        final=True,
        says=("4711", "data.lock"),
    ),
    Case(
        "a holder that cannot be seen: only patience tells",
        snapshot(
            rank(0, lock("data.lock", "unknown"), still=40.0, idle=40.0),
            in_collective(1, "barrier", still=40.0, idle=40.0),
        ),
        "hang",
        "file-lock",
        proved=False,
        final=True,
        says=("nobody that can be seen",),
    ),
]


@named(FILE_LOCK)
def test_file_lock(case: Case) -> None:
    check(case)


GAVE_UP = "Timed out waiting 5000ms for recv operation to complete"

MISSING_RANK = [
    Case(
        "a rank is stopped by a signal: only patience tells",
        snapshot(resting(in_collective(0, "all_reduce")), resting(stopped(1, "train.py:12 fit"))),
        "hang",
        "missing-rank",
        (1,),
        where="train.py:12 fit",
        proved=False,
        final=True,
        says=("Rank 1", "stopped by a signal", "train.py:12", "rank 0 is waiting"),
    ),
    Case(
        "a rank of four reads an input that never comes",
        snapshot(
            *(in_collective(n, "all_reduce", members=(0, 1, 2, 3)) for n in (0, 1, 2)),
            rank(3, reading(), at="debug.py:9 ask"),
        ),
        "hang",
        "missing-rank",
        (3,),
        where="debug.py:9 ask",
        says=("input", "ranks 0-2 are waiting"),
    ),
    Case(
        "a rank waits for a key that nobody sets",
        snapshot(
            in_collective(0, "barrier"),
            rank(1, key("ready"), at="sync.py:4 wait_for"),
            in_collective(2, "barrier"),
        ),
        "hang",
        "missing-rank",
        (1,),
        where="sync.py:4 wait_for",
        says=("'ready'",),
    ),
    Case(
        "a rank asleep: only patience tells",
        snapshot(
            in_collective(0, "all_reduce", still=40.0, idle=40.0),
            sleeping(1, still=40.0, idle=40.0),
            in_collective(2, "all_reduce", still=40.0, idle=40.0),
        ),
        "hang",
        "missing-rank",
        (1,),
        where="prep.py:12 wait_a_bit",
        proved=False,
        final=True,
        says=("Rank 1", "asleep", "ranks 0 and 2 are waiting"),
    ),
    Case(
        "a rank inside a C call that holds the interpreter lock",
        snapshot(
            in_collective(0, "all_reduce", still=40.0, idle=40.0),
            rank(1, gil_held=True, still=40.0, idle=40.0, at="ext.py:3 call"),
        ),
        "hang",
        "missing-rank",
        (1,),
        where="ext.py:3 call",
        proved=False,
        final=True,
        says=("interpreter lock",),
    ),
    Case(
        "a rank reads from a pipe",
        snapshot(
            in_collective(0, "all_reduce", still=40.0, idle=40.0),
            rank(1, wait(OnIO, "read", target="pipe:[7]"), still=40.0, idle=40.0),
        ),
        "hang",
        "missing-rank",
        (1,),
        proved=False,
        final=True,
        says=("pipe:[7]",),
    ),
    Case(
        "a rank asleep while the other waits for a key: only patience tells",
        snapshot(resting(rank(0, key("ready"))), resting(sleeping(1))),
        "hang",
        "missing-rank",
        (1,),
        proved=False,
        final=True,
        says=("Rank 1 is asleep",),
    ),
    Case(
        "everybody asleep",
        snapshot(resting(sleeping(0)), resting(sleeping(1))),
        "hang",
        "missing-rank",
        (0, 1),
        proved=False,
        final=True,
    ),
    Case(
        "the others gave up waiting for a rank that was busy elsewhere",
        snapshot(
            raised(0, "RuntimeError", GAVE_UP, "train.py:29 step"),
            ended(1, signal=15, time=11.0, at="prep.py:12 unpack"),
            ended(2, signal=15, time=11.0, at="train.py:29 step", ended_in_call=True),
            code=1,
        ),
        "error",
        "missing-rank",
        (1,),
        where="prep.py:12 unpack",
        says=("Rank 1 was still at prep.py:12 when rank 0 gave up waiting at train.py:29",),
        masks=(GAVE_UP,),
    ),
    Case(
        "a monitored barrier names the rank that has not come",
        snapshot(
            raised(0, "RuntimeError", "[Rank 0]: Rank 1 failed to pass monitoredBarrier in 4000 ms"),
            ended(1, signal=15, time=11.0, at="prep.py:12 fetch"),
            code=1,
        ),
        "error",
        "missing-rank",
        (1,),
        where="prep.py:12 fetch",
    ),
    Case(
        "a rank that failed by itself before the others gave up is no missing rank",
        snapshot(
            raised(0, "RuntimeError", GAVE_UP, time=12.0),
            raised(1, "ValueError", "bad", "train.py:8 load", time=6.0),
            code=1,
        ),
        "error",
        "error",
        (1,),
        where="train.py:8 load",
    ),
    Case(
        "every rank gave up: nobody is missing",
        snapshot(
            raised(0, "RuntimeError", GAVE_UP, "a.py:1 f", time=10.0),
            raised(1, "RuntimeError", GAVE_UP, "b.py:2 g", time=10.1),
            code=1,
        ),
        "error",
        "error",
        (0,),
    ),
    Case(
        "a rank that is stopped counts, not the one that waits for a key meanwhile",
        snapshot(
            resting(rank(0, key("ready"))),
            resting(stopped(1, "train.py:12 fit")),
            resting(in_collective(2, "barrier")),
        ),
        "hang",
        "missing-rank",
        (1,),
        where="train.py:12 fit",
        proved=False,
        final=True,
    ),
    Case(
        "a rank tests a condition again and again while the other waits",
        snapshot(
            resting(in_collective(0, "all_reduce")),
            resting(rank(1, wait(OnCondition, "not path.exists()", values=("path = 'go'",)))),
        ),
        "hang",
        "missing-rank",
        (1,),
        proved=False,
        final=True,
        says=("a change of `not path.exists()` (path = 'go')", "rank 0 is waiting"),
    ),
    Case(
        "one is asleep, and the other is stopped by a signal",
        snapshot(resting(sleeping(0)), resting(stopped(1))),
        "hang",
        "missing-rank",
        (0, 1),
        proved=False,
        final=True,
    ),
]


@named(MISSING_RANK)
def test_missing_rank(case: Case) -> None:
    check(case)


UNKNOWN = [
    Case(
        "the command fails before any rank is seen",
        snapshot(launchers=[launcher(ended=13.0, exit_code=1)], code=1),
        "error",
        "unknown",
        says=("The command ended with exit code 1; nothing that was seen explains why.",),
    ),
    Case(
        "a rank is gone, nobody saw how, and the launcher ends the other",
        snapshot(ended(0, signal=15, time=10.2), ended(1, None, time=10.0), code=1),
        "error",
        "unknown",
        (1,),
        says=("Rank 1 ended in a way that nobody here saw", "rank 0: ended by signal 15"),
    ),
    Case(
        "the same in one look",
        snapshot(ended(0, signal=15, time=10.0), ended(1, None, time=10.0), code=1),
        "error",
        "unknown",
        (1,),
    ),
    Case(
        "the command ends badly and nobody says why",
        snapshot(ended(0), ended(1), code=7),
        "error",
        "unknown",
        says=("exit code 7",),
    ),
    Case(
        "the command is ended by a signal",
        replace(
            snapshot(ended(0), ended(1)),
            job=replace(snapshot(ended(0), ended(1)).job, signal=9, ended=19.0),
        ),
        "error",
        "unknown",
        says=("signal 9",),
    ),
    Case(
        "a program of a rank fails, and the job with it",
        snapshot(
            rank(0, wait(OnChild, "wait"), children=[gone(child(0), 2)]),
            in_collective(1, "barrier"),
        ),
        "error",
        "unknown",
        (0,),
        says=("exit code 2",),
    ),
    Case(
        "ranks into which nobody can see: only patience tells",
        snapshot(
            rank(0, beacon=False, at=None, still=40.0, idle=40.0),
            rank(1, beacon=False, at=None, still=40.0, idle=40.0),
        ),
        "hang",
        "unknown",
        where=None,
        proved=False,
        final=True,
        says=("Ranks 0 and 1", "no beacon"),
    ),
    Case(
        "all stand in one operation that does not finish: only patience tells",
        snapshot(
            in_collective(0, "all_reduce[4]", still=40.0, idle=40.0, at="train.py:33 step"),
            in_collective(1, "all_reduce[4]", still=40.0, idle=40.0, at="train.py:33 step"),
        ),
        "hang",
        "unknown",
        where="train.py:33 step",
        proved=False,
        final=True,
        says=("same all_reduce", "network"),
    ),
    Case(
        "calls of which nobody can see whether they belong together: only patience tells",
        snapshot(*(resting(rank(n, wait(InCollective, "all_reduce"))) for n in (0, 1))),
        "hang",
        "unknown",
        where="train.py:10 step",
        proved=False,
        final=True,
        says=("Ranks 0 and 1 cannot go on", "ranks 0 and 1 are in all_reduce at train.py:10"),
    ),
    Case(
        "of two calls one does not say in which group it is: only patience tells",
        snapshot(
            resting(in_collective(0, "barrier", members=(0,))),
            resting(rank(1, wait(InCollective, "all_reduce"))),
        ),
        "hang",
        "unknown",
        proved=False,
        final=True,
        says=("rank 0 is in barrier #1", "rank 1 is in all_reduce"),
    ),
    Case(
        "both ends of a message are there, and it does not come: only patience tells",
        snapshot(resting(rank(0, send(1))), resting(rank(1, recv(0)))),
        "hang",
        "unknown",
        where="train.py:10 step",
        proved=False,
        final=True,
        says=("rank 0 is in send to rank 1", "rank 1 is in recv from rank 0"),
    ),
]


@named(UNKNOWN)
def test_unknown(case: Case) -> None:
    check(case)


HEALTHY = [
    Case("both work", snapshot(working(0), working(1)), "running", "none", final=True, patience=1.0),
    Case(
        "a rank sleeps while the other waits, within patience",
        snapshot(in_collective(0, "all_reduce"), sleeping(1)),
        "running",
        "none",
        final=True,
        says=("Rank 0 waits for rank 1", "prep.py:12", "asleep"),
    ),
    Case(
        "a rank works for minutes while the others wait",
        snapshot(
            in_collective(0, "all_reduce", still=300.0, idle=300.0),
            working(1, still=300.0),
            in_collective(2, "all_reduce", still=300.0, idle=300.0),
        ),
        "running",
        "none",
        says=("Ranks 0 and 2 wait for rank 1",),
    ),
    Case(
        "it works for longer than patience when time is up: it is named, and no hang",
        snapshot(
            in_collective(0, "all_reduce", still=31.0, idle=31.0),
            working(1, still=31.0, at="prep.py:12 tokenize"),
            in_collective(2, "all_reduce", still=2.0, idle=2.0),
        ),
        "running",
        "missing-rank",
        (1,),
        proved=False,
        where="prep.py:12 tokenize",
        final=True,
        says=("Rank 1 is", "has not reached all_reduce", "ranks 0 and 2 are waiting"),
    ),
    Case(
        "it may set the key for which another has waited so long",
        snapshot(
            rank(0, recv(2), still=31.0, idle=31.0),
            rank(1, key("ready"), still=31.0, idle=31.0),
            working(2, at="prep.py:12 tokenize"),
        ),
        "running",
        "missing-rank",
        (2,),
        proved=False,
        final=True,
    ),
    Case(
        "it works for less than that when time is up",
        snapshot(in_collective(0, "all_reduce", still=29.0, idle=29.0), working(1)),
        "running",
        "none",
        final=True,
    ),
    Case(
        "a slow transfer between tensors of one size and two shapes",
        snapshot(in_collective(0, "broadcast[2x8]"), in_collective(1, "broadcast[4x4]")),
        "running",
        "none",
        final=True,
    ),
    Case(
        "NCCL gathers tensors of two sizes, and one rank is through",
        snapshot(working(0, **issued("all_gather[2]")), in_collective(1, "all_gather[4]")),
        "running",
        "none",
    ),
    Case(
        "a slow transfer: all have arrived",
        snapshot(in_collective(0, "all_reduce[4]"), in_collective(1, "all_reduce[4]")),
        "running",
        "none",
        final=True,
    ),
    Case(
        "a rank has finished the operation already",
        snapshot(
            in_collective(0, "all_reduce", "barrier"),
            working(1, **issued("all_reduce", "barrier", "broadcast", done=2)),
        ),
        "running",
        "none",
    ),
    Case(
        "slow, but every wait is young",
        snapshot(in_collective(0, "barrier", still=0.3), in_collective(1, "all_reduce", still=0.4)),
        "running",
        "none",
        final=True,
        patience=0.1,
    ),
    Case(
        "sender and receiver meet",
        snapshot(rank(0, send(1)), rank(1, recv(0))),
        "running",
        "none",
    ),
    Case(
        "a pipeline: rank 2 waits for rank 1, which works",
        snapshot(rank(0, recv(1)), working(1), rank(2, recv(1))),
        "running",
        "none",
        says=("Ranks 0 and 2 wait for rank 1",),
    ),
    Case(
        "a helper program has failed, and its rank goes on",
        snapshot(working(0, children=[gone(child(0), 3)]), working(1)),
        "running",
        "none",
        final=True,
    ),
    Case(
        "a helper program has failed, and the job ended well",
        snapshot(ended(0, children=[gone(child(0), 3)]), ended(1), code=0),
        "ok",
        "none",
    ),
    Case(
        "the workers of a DataLoader wait for their next task",
        snapshot(
            *(working(n, children=[worker(n, w, idle_worker=True) for w in (0, 1)]) for n in (0, 1))
        ),
        "running",
        "none",
        final=True,
    ),
    Case(
        "idle workers of ranks that wait in a collective for a working one",
        snapshot(
            in_collective(0, "all_reduce", children=[worker(0, idle_worker=True, still=90.0)]),
            working(1, children=[worker(1, idle_worker=True, still=90.0)]),
        ),
        "running",
        "none",
        final=True,
    ),
    Case(
        "a worker that fetches an expensive batch uses CPU",
        snapshot(
            rank(
                0,
                loading(),
                still=60.0,
                idle=60.0,
                children=[worker(0, still=0.0, idle=0.0, cpu=99.0)],
            ),
            in_collective(1, "all_reduce", still=60.0, idle=60.0),
        ),
        "running",
        "missing-rank",
        (0,),
        proved=False,
        final=True,
        says=("Rank 0 is", "has not reached all_reduce"),
    ),
    Case(
        "a rank waits for a build that uses CPU, the others for its lock",
        snapshot(
            rank(
                0,
                wait(OnChild, "wait"),
                still=60.0,
                idle=60.0,
                children=[child(0, still=0.0, idle=0.0, cpu=99.0, command=("ninja",))],
            ),
            rank(1, lock("build/lock", 1000), still=60.0, idle=60.0),
        ),
        "running",
        "missing-rank",
        (0,),
        proved=False,
        final=True,
        says=("Rank 0 is waiting for a child process", "rank 1 is waiting for it"),
    ),
    Case(
        "a lock whose holder works",
        snapshot(rank(0, lock("data.lock", 1001)), working(1)),
        "running",
        "none",
        final=True,
    ),
    Case(
        "a key that a working rank may yet set",
        snapshot(rank(0, key("ready")), working(1)),
        "running",
        "none",
        final=True,
    ),
    Case(
        "a prompt on a terminal that somebody may answer",
        snapshot(rank(0, reading()), in_collective(1, "barrier"), stdin="inherit"),
        "running",
        "none",
        final=True,
    ),
    Case(
        "the rendezvous waits for a rank that is importing",
        snapshot(rank(0, joining()), rank(1, state="importing", joined=False, idle=0.0)),
        "running",
        "none",
        final=True,
        says=("Rank 0 waits for rank 1", "importing"),
    ),
    Case(
        "a launcher that starts its ranks one by one",
        snapshot(
            rank(0, joining()),
            absent(1),
            started_by="python",
            launchers=[launcher(wait(OnIO, "poll", blocking=False), state="running")],
        ),
        "running",
        "none",
        final=True,
    ),
    Case(
        "a rank runs ahead asynchronously and works",
        snapshot(
            working(
                0,
                **issued("all_reduce", "all_reduce", done=0),
            ),
            in_collective(1, "all_reduce"),
        ),
        "running",
        "none",
    ),
    Case("every rank came to its end", snapshot(ended(0), ended(1), code=0), "ok", "none"),
    Case(
        "one rank is done early, the other still works",
        snapshot(ended(0), working(1)),
        "running",
        "none",
        final=True,
    ),
    Case(
        "nothing has started yet",
        snapshot(world=0, launchers=[launcher()]),
        "running",
        "none",
    ),
    Case(
        "everybody tests a condition that something outside of the job may change",
        snapshot(*(resting(rank(n, wait(OnCondition, "not path.exists()"))) for n in (0, 1))),
        "running",
        "none",
        final=True,
    ),
    Case(
        "a rank is stopped by a signal while the other waits, within patience",
        snapshot(in_collective(0, "all_reduce"), stopped(1, "train.py:12 fit")),
        "running",
        "none",
        final=True,
        says=("Rank 0 waits for rank 1", "train.py:12", "stopped by a signal"),
    ),
    Case(
        "a worker is stopped by a signal while the other rank waits, within patience",
        snapshot(
            rank(0, loading(), children=[worker(0, state="stopped")]), in_collective(1, "all_reduce")
        ),
        "running",
        "none",
        final=True,
    ),
    Case(
        "a rank's sleep ends in half a minute while the other waits: it is named, and no hang",
        snapshot(resting(in_collective(0, "all_reduce")), resting(sleeping(1, ends=NOW + 31.0))),
        "running",
        "missing-rank",
        (1,),
        where="prep.py:12 wait_a_bit",
        proved=False,
        final=True,
        says=("Rank 1 is asleep", "rank 0 is waiting"),
    ),
    Case(
        "a rank that works may give back the memory for which another is blocked",
        snapshot(frozen(0), working(1), limit=FULL),
        "running",
        "none",
    ),
]


@named(HEALTHY)
def test_a_healthy_job_is_left_alone(case: Case) -> None:
    check(case)


UNSEEN = [
    Case(
        "ranks of another node have not come: nothing is proved",
        snapshot(
            rank(0, joining(), still=90.0, idle=90.0),
            rank(1, joining(), still=90.0, idle=90.0),
            absent(2, "unseen"),
            absent(3, "unseen"),
            single_node=False,
        ),
        "running",
        "none",
    ),
    Case(
        "at the end of patience they are no culprits",
        snapshot(
            rank(0, joining(), still=90.0, idle=90.0, at="train.py:8 main"),
            rank(1, joining(), still=90.0, idle=90.0, at="train.py:8 main"),
            absent(2, "unseen"),
            absent(3, "unseen"),
            single_node=False,
        ),
        "running",
        "none",
        final=True,
    ),
    Case(
        "a collective waits for another node",
        snapshot(
            in_collective(0, "all_reduce", members=(0, 1), still=90.0, idle=90.0),
            absent(1, "unseen"),
            single_node=False,
        ),
        "running",
        "none",
        final=True,
    ),
    Case(
        "their absence does not hide what fails here",
        snapshot(
            in_collective(0, "all_reduce", members=(0, 1, 2)),
            raised(1, "ValueError", "bad", "data.py:3 read"),
            absent(2, "unseen"),
            single_node=False,
        ),
        "error",
        "error",
        (1,),
        where="data.py:3 read",
    ),
    Case(
        "nor a mismatch between the ranks that are seen",
        snapshot(
            in_collective(0, "broadcast", members=(0, 1, 2)),
            in_collective(1, "barrier", members=(0, 1, 2)),
            absent(2, "unseen"),
            single_node=False,
        ),
        "hang",
        "collective-mismatch",
        (0, 1),
    ),
    Case(
        "nor a rank that a signal has stopped",
        snapshot(
            resting(in_collective(0, "all_reduce", members=(0, 1, 2))),
            resting(stopped(1)),
            absent(2, "unseen"),
            single_node=False,
        ),
        "hang",
        "missing-rank",
        (1,),
        proved=False,
        final=True,
    ),
]


@named(UNSEEN)
def test_ranks_on_other_nodes_are_never_culprits(case: Case) -> None:
    check(case)


FIRST_EVENT = [
    Case(
        "a port that is taken in a worker beats the duplicates that follow",
        snapshot(
            raised(
                0,
                "RuntimeError",
                "DataLoader worker (pid(s) 2000) exited unexpectedly",
                children=[gone(worker(0, error=SEEN_BY_SPAWN))],
            ),
            rank(1, loading(), children=[worker(1, 0, joining(), joined_as=1)]),
            code=1,
        ),
        "error",
        "address-in-use",
        (0,),
        masks=("exited unexpectedly",),
    ),
    Case(
        "an exception beats the crash that it leads to",
        snapshot(
            raised(0, "ValueError", "bad", "data.py:3 read", time=10.0),
            ended(1, signal=6, time=10.1),
        ),
        "error",
        "error",
        (0,),
    ),
    Case(
        "an exception beats a signal that is seen earlier",
        snapshot(
            raised(0, "ValueError", "bad", "data.py:3 read", time=10.0), ended(1, signal=6, time=9.9)
        ),
        "error",
        "error",
        (0,),
    ),
    Case(
        "the launcher's SIGTERM follows from what it ends",
        snapshot(
            ended(0, signal=15, time=9.0),
            ended(1, signal=15, time=9.0),
            raised(2, "ValueError", "bad", "data.py:3 read", time=9.5),
            code=1,
        ),
        "error",
        "error",
        (2,),
    ),
    Case(
        "the launcher's own exception is masked",
        snapshot(
            raised(0, "ValueError", "bad", time=10.0),
            ended(1, signal=15, time=11.0),
            code=1,
            launchers=[
                launcher(
                    ended=12.0,
                    exit_code=1,
                    error=error("ChildFailedError", "train.py FAILED", time=9.0),
                )
            ],
        ),
        "error",
        "error",
        (0,),
        masks=("ChildFailedError: train.py FAILED (launcher)",),
    ),
    Case(
        "of two failures the earlier one wins",
        snapshot(
            raised(0, "KeyError", "'x'", "a.py:1 f", time=10.0),
            raised(1, "ValueError", "bad", "b.py:2 g", time=9.0),
        ),
        "error",
        "error",
        (1,),
        where="b.py:2 g",
        masks=("KeyError: 'x' (rank 0)",),
    ),
    Case(
        "a crash beats the connections that it breaks",
        snapshot(
            raised(0, "RuntimeError", PEER, time=10.5),
            ended(1, signal=11, time=10.0, at="ext.py:9 call"),
            raised(2, "RuntimeError", "Broken pipe", time=10.6),
        ),
        "error",
        "rank-crashed",
        (1,),
        where="ext.py:9 call",
        masks=("Connection closed by peer", "Broken pipe"),
    ),
    Case(
        "a rank that leaves after the first failure did not cause it",
        snapshot(
            raised(0, "RuntimeError", TIMED_OUT, "train.py:40 reduce", time=10.0),
            ended(1, 0, time=19.0, at="train.py:60 main"),
            code=1,
        ),
        "error",
        "error",
        (0,),
        where="train.py:40 reduce",
    ),
]


@named(FIRST_EVENT)
def test_the_first_event_wins(case: Case) -> None:
    check(case)


SUSPICIONS = [
    case
    for case in (
        *(*MISSING_RANK, *WORKER_STALL, *FILE_LOCK, *UNKNOWN, *OUT_OF_MEMORY),
        *(*RENDEZVOUS_INCOMPLETE, *COLLECTIVE_MISMATCH),
    )
    if case.final
]


@named(SUSPICIONS)
def test_a_suspicion_is_shown_but_is_no_outcome_before_the_end(case: Case) -> None:
    verdict = diagnose(steady(case.newest), patience=case.patience)
    assert (verdict.outcome, verdict.cause, verdict.culprits) == ("running", "none", ())
    assert verdict.suspicion is not None
    for part in case.says:
        assert part in verdict.suspicion


@named(SUSPICIONS)
def test_no_suspicion_arises_before_patience_has_run_out(case: Case) -> None:
    verdict = diagnose(steady(case.newest), patience=41.0, final=True)
    assert (verdict.outcome, verdict.cause) == ("running", "none")


PROVED_HANGS = [
    case
    for case in (
        *WORKER_STALL,
        *RANK_EXITED,
        *RENDEZVOUS_INCOMPLETE,
        *COLLECTIVE_MISMATCH,
        *FILE_LOCK,
        *MISSING_RANK,
    )
    if case.outcome == "hang" and case.proved
]


@named(PROVED_HANGS)
def test_one_snapshot_proves_no_hang(case: Case) -> None:
    assert diagnose([case.newest]).outcome == "running"


@named(PROVED_HANGS)
def test_the_proof_lasts(case: Case) -> None:
    short = steady(case.newest, seconds=PROOF_SPAN - 0.1, every=0.1)
    assert diagnose(short).outcome == "running"
    assert diagnose(steady(case.newest, seconds=PROOF_SPAN, every=0.1)).outcome == "hang"


@named(PROVED_HANGS)
def test_a_proof_needs_no_patience(case: Case) -> None:
    verdict = diagnose(steady(case.newest), patience=10_000.0)
    assert (verdict.outcome, verdict.proved) == ("hang", True)


@named(PROVED_HANGS)
def test_the_stall_began_when_the_last_of_the_waiting_stood_still(case: Case) -> None:
    assert diagnose(steady(case.newest)).since == pytest.approx(15.0)


def test_a_rank_that_moved_in_between_breaks_the_proof() -> None:
    history = list(steady(snapshot(in_collective(0, "barrier"), rank(1, reading()))))
    assert diagnose(history).outcome == "hang"
    moved = history[-2]
    history[-2] = replace(moved, ranks=(moved.ranks[0], working(1)))
    assert diagnose(history).outcome == "running"


def test_a_proof_of_something_else_in_between_breaks_it_too() -> None:
    history = list(steady(snapshot(in_collective(0, "barrier"), rank(1, reading()))))
    assert diagnose(history).outcome == "hang"
    history[-2] = replace(history[-2], ranks=(rank(0, reading()), in_collective(1, "barrier")))
    assert diagnose(history).outcome == "running"


def test_an_error_needs_one_snapshot_only() -> None:
    assert diagnose([ERROR[0].newest]).cause == "error"


def test_an_empty_history_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one"):
        diagnose([])


def test_what_a_mask_says_names_its_rank() -> None:
    verdict = diagnose(steady(ERROR[0].newest))
    assert verdict.masked == (f"RuntimeError: {PEER} (rank 0)",)


def test_every_cause_of_the_table_has_a_row() -> None:
    tables = (
        *(ADDRESS_IN_USE, DUPLICATE_RANK, OUT_OF_MEMORY, WORKER_STALL, SHAPE_MISMATCH),
        *(DEVICE_MISMATCH, RANK_CRASHED, ERROR, RANK_EXITED, RENDEZVOUS_INCOMPLETE),
        *(COLLECTIVE_MISMATCH, FILE_LOCK, MISSING_RANK, UNKNOWN),
    )
    assert {case.cause for table in tables for case in table} == set(CAUSES)


MEETING = Frame(
    "/opt/lib/torch/distributed/elastic/rendezvous/dynamic.py", 1163, "next_rendezvous", False
)


@pytest.mark.parametrize("strangers", [(), ((29500, STRANGER),)])
def test_a_launcher_that_starts_no_rank(strangers: tuple[tuple[int, Blocker], ...]) -> None:
    meets = launcher(stack=(MEETING,), idle=40.0)
    history = steady(snapshot(world=0, launchers=[meets], strangers=strangers))
    verdict = diagnose(history, final=True)
    assert (verdict.outcome, verdict.cause, verdict.proved) == ("hang", "rendezvous-incomplete", False)
    assert verdict.culprits == ()
    assert verdict.blockers == tuple(blocker for _, blocker in strangers)
    assert ("4711" in verdict.summary) == bool(strangers)
    early = steady(snapshot(world=0, launchers=[launcher(stack=(MEETING,), idle=20.0)]))
    assert diagnose(early, final=True).outcome == "running"


@pytest.mark.parametrize("seen_in_call", [True, False])
def test_two_calls_have_met_where_both_ranks_were_last_seen_in_one(seen_in_call: bool) -> None:
    """Of a rank that ended before it was seen in a call, the line says nothing."""
    aborted = ended(1, None, signal=6, error=error("EnforceNotMet", PREAMBLE, "train.py:15 evaluate"))
    other = ended(0, None, signal=15, at="train.py:11 evaluate", time=11.0, ended_in_call=seen_in_call)
    summary = diagnose(steady(snapshot(other, aborted, code=1, runs=False))).summary
    assert ("Two different calls have met" in summary) is seen_in_call


STRAIGHT = "def step():\n    all_reduce(losses)\n    barrier()\n"
IN_A_LOOP = "def step():\n  for part in parts:\n    all_reduce(losses)\n    barrier()\n"
PARTS_THEM = "def step():\n    if rank:\n        all_reduce(losses)\n    barrier()\n"


@pytest.mark.parametrize(
    ("text", "seq", "cause"),
    [
        (STRAIGHT, None, "unknown"),
        (STRAIGHT, 1, "collective-mismatch"),
        (IN_A_LOOP, None, "collective-mismatch"),
        (PARTS_THEM, None, "collective-mismatch"),
    ],
    ids=["no number tells", "they have one number", "another turn", "a statement has parted them"],
)
def test_who_has_made_a_call_may_have_met_the_one_in_it(text: str, seq: int | None, cause: str) -> None:
    """gloo lets a rank go on from a call in which another one waits with a tensor of another size."""
    lines = text.splitlines()
    ranks = []
    for number, op in enumerate(("barrier", "all_reduce")):
        line = next(n for n, said in enumerate(lines, start=1) if op in said)
        at = Frame("train.py", line, "step", text=text)
        ranks.append(rank(number, collective(op, seq, where=at, members=(0, 1)), at=at))
    verdict = diagnose(steady(snapshot(*ranks)))
    assert (verdict.outcome, verdict.cause) == ("hang", cause)
    assert ("Rank 0 has already made the call in which rank 1 is" in verdict.summary) == (
        cause == "unknown"
    )
