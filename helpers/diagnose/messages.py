"""What foreign code says when it fails, as patterns: each with what it means and where it was seen.

Paths are those of the project named before them. A path of C++ is that of the source; its text was
found in the libraries of torch 2.13 unless another version is given. `jobs/` is tests/jobs here.
"""

from __future__ import annotations

import re

from ..model.facts import ErrorView
from ..model.findings import Topic


def _any_of(*rows: tuple[str, str, str]) -> re.Pattern[str]:
    """One pattern for all rows of (pattern, meaning, seen in)."""
    return re.compile("|".join(pattern for pattern, _, _ in rows))


FOLLOWS = _any_of(
    (
        r"Connection closed by (?:remote )?peer",
        "the process at the other end has gone",
        "gloo/transport/tcp/pair.cc; jobs/wrong_file",
    ),
    (
        r"Connection reset by peer",
        "the same, with data on its way: ECONNRESET",
        "gloo/transport/tcp/pair.cc after `Read error`; jobs/worker_killed",
    ),
    (
        r"\b(?:[Rr]ead error|[Ww]rite error|readv|writev) \[[^\]]*\]\S*: ",
        "the connection to another rank has failed in any other way",
        "gloo/transport/tcp/pair.cc",
    ),
    (
        r"NET/IB ?: Got completion (?:from peer|with) ",
        "the process at the other end, or the network to it, does not answer",
        "nccl 2.4 to 2.30, src/transport/net_ib.cc",
    ),
    (
        r"Broken pipe",
        "the same, on writing: EPIPE",
        "gloo/transport/tcp/pair.cc after `writev`; Python's BrokenPipeError",
    ),
    (
        r"Timed out waiting \d+ms",
        "the other rank did not take part in time",
        "gloo/transport/tcp/unbound_buffer.cc; jobs/short_timeout",
    ),
    (
        r"Application timeout caused pair closure",
        "an operation before this one timed out in that way",
        "gloo/transport/tcp/unbound_buffer.cc",
    ),
    (
        r"failed to pass monitoredBarrier",
        "a rank did not come to the barrier in time",
        "torch/csrc/distributed/c10d/ProcessGroupGloo.cpp; jobs/monitored_barrier_fails",
    ),
    (
        r"successfully reached monitoredBarrier",
        "rank 0 did not come to the barrier, or has given up waiting for another one",
        "torch/csrc/distributed/c10d/ProcessGroupGloo.cpp; jobs/monitored_barrier_fails",
    ),
    (
        r"Socket Timeout",
        "nobody has set the key, or the store does not answer",
        "torch/csrc/distributed/c10d/Utils.hpp, TCPStore.cpp",
    ),
    (
        r"[Ww]ait timeout",
        "nobody has set the key that a rank waits for",
        "torch/csrc/distributed/c10d/HashStore.cpp: `Wait timeout`; `wait timeout after {}ms, keys: {}`",
    ),
    (
        r"Connection was likely closed",
        "the process that serves the store has gone",
        "torch/csrc/distributed/c10d/Utils.hpp, on receiving and on sending",
    ),
    (
        r"Watchdog caught collective operation timeout",
        "the other ranks did not take part in time",
        "torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp, 2.0 to 2.15; not in the CPU build",
    ),
    (
        r"NCCL communicator was aborted",
        "an operation failed or timed out before this one",
        "torch/csrc/distributed/c10d/NCCLUtils.cpp; not in the CPU build",
    ),
    (
        r"remote process exited or there was a network error"
        r"|due to a network error or a remote process exiting",
        "the process at the other end has gone, or the network has failed",
        "nccl 2.14 to 2.30, src/init.cc, in torch/csrc/distributed/c10d/NCCLUtils.cpp's words",
    ),
    (
        r"connectFullMesh failed",
        "the process at the other end cannot be reached",
        "gloo/rendezvous/context.cc",
    ),
    (
        r"Horovod has been shut down\. This was caused by an exception on one of the ranks",
        "a rank has ended, or all were asked to",
        "horovod 0.13 to 0.28, horovod/common/common.h: `SHUT_DOWN_ERROR`",
    ),
    (
        r"EI000[26]: .*(?:times? out|did not send the data in time)",
        "another rank has not sent its record, or has not opened its socket, in time",
        "CANN's list of errors, EI0002 and EI0006",
    ),
    (
        r"Failed to meet rendezvous .*: Socket closed",
        "the process that serves the rendezvous has gone",
        "torch_xla 1.5 to 1.13, third_party/xla_client/mesh_service.cc",
    ),
    (
        r"AclrtSynchronizeDeviceWithTimeout|error code is 507048",
        "a collective of HCCL has waited in vain for another rank",
        "torch_npu, npuSynchronizeDevice; EI0002 of CANN's list of errors",
    ),
    (
        r"DataLoader worker \(pid",
        "the rank lost its worker, which has the first error",
        "torch/utils/data/dataloader.py and torch/csrc/DataLoader.cpp",
    ),
)
"""The message says itself that it follows from the end, or the absence, of another process."""

TIMEOUT = re.compile(r"Timed out|timed out|Timeout|timeout|failed to pass monitoredBarrier")
"""A wait took too long, in the words of any library."""

RELAYED = (
    "ChildFailedError",  # torch/distributed/elastic/multiprocessing/errors/__init__.py
    "SignalException",  # torch/distributed/elastic/multiprocessing/api.py
    "ProcessRaisedException",  # torch/multiprocessing/spawn.py
    "ProcessExitedException",  # torch/multiprocessing/spawn.py
    "CalledProcessError",  # Python's subprocess, in launchers that start the job by it
)
"""Types of exceptions by which a parent tells that a child has failed."""

LOGGED = ("NCCL", "NCCL WARN", "Gloo", "CUDA", "ROCm", "HCCL", "Xid")
"""What a library or a driver has logged, under its own name: no exception of Python."""

_LOST = ("ActorDiedError", "RayActorError", "WorkerCrashedError")
"""Ray tells in the process that has asked for a result that the one which owed it has died:
python/ray/exceptions.py, 2.0 to 2.50."""

_NOT_CRASHED = re.compile(
    r"in its creation task|exit type: (?!SYSTEM_ERROR)|(?:node|owner) has died|killed by `?ray\.kill"
)
"""Why an actor may have ended otherwise. What Ray lists as potential root causes it always lists."""


def lost_worker(error: ErrorView) -> bool:
    """True for an exception that says of another process that it has crashed."""
    return error.type in _LOST and _NOT_CRASHED.search(error.message) is None


OTHER_END_GONE = (
    "EOFError",
    "BrokenPipeError",
    "ConnectionAbortedError",
    "ConnectionRefusedError",
    "ConnectionResetError",
    "FileNotFoundError",
)
"""Types that `multiprocessing/connection.py` of Python raises when the other process has ended: on
reading, on writing, and on connecting to a socket that has gone with it."""

_OF_DDP = (
    (
        r"DDP expects same model across all ranks, but Rank",
        "the models of DDP have not as many parameters on all ranks",
        "torch/csrc/distributed/c10d/reducer.cpp",
    ),
    (
        r"appears not to match (sizes|strides) of the same param",
        "parameters of DDP differ between ranks",
        "torch/csrc/distributed/c10d/reducer.cpp; jobs/ddp_sizes",
    ),
)

_TOO_LONG = (
    r"op\.preamble\.length <= op\.nbytes",
    "a message is longer than the buffer it is for",
    "gloo/transport/tcp/pair.cc; jobs/gloo_sizes",
)

TOO_LONG = _any_of(_TOO_LONG)
"""gloo has got data: its barrier sends messages that are empty (gloo/barrier.cc), and never too long."""

_LISTED = (
    r"Cannot apply desired operation due to shape mismatches",
    "accelerate has compared the shapes of the ranks, and lists them",
    "accelerate/utils/operations.py, 0.20 to 1.12",
)

COMPARED = _any_of(*_OF_DDP, _LISTED)
"""What was compared are the sizes of one call on all ranks."""

OTHER_SIZES = _any_of(
    *_OF_DDP,
    _LISTED,
    _TOO_LONG,
    (
        r"Detected mismatch between collectives on ranks",
        "collectives differ, as TORCH_DISTRIBUTED_DEBUG=DETAIL finds out",
        "torch/csrc/distributed/c10d/ProcessGroupWrapper.cpp",
    ),
)
"""Ranks meet in one operation with tensors of different sizes."""

OTHER_CALLS = _any_of(
    (
        r"Mismatched collective detected",
        "ranks have issued different operations in one communicator",
        "nccl 2.4, src/init.cc; 2.26, with NCCL_DEBUG=INFO",
    ),
)
"""A backend says that the ranks are in different calls."""

CHECKED_IN = re.compile(r"rank (\d+) of (\d+) ranks has already checked in")
"""Two processes have met NCCL's bootstrap as one rank: its number, and how many there are: nccl 2.4 to
2.30, src/bootstrap.cc."""

NO_AGENT = re.compile(r"RendezvousConnectionError|RendezvousTimeoutError")
"""The agent of a node has not reached the rendezvous, or has met nobody there:
torch/distributed/elastic/rendezvous/api.py, 1.9 to 2.15."""

NO_GPU_MEMORY = re.compile(
    r"CUDA out of memory|HIP out of memory|CUDA error: out of memory|GPU \d+ has a total"
    r"|Cuda failure (?:\d+ )?'out of memory'"
)
"""The memory of a GPU is used up: c10/cuda/CUDACachingAllocator.cpp."""

_TOPICS: tuple[tuple[Topic, str, str], ...] = (
    (
        "hardware",
        r"uncorrectable (?:NVLink|ECC) error|ECC error|fallen off the bus|GPU is lost"
        r"|HW Exception by GPU|Xid \(PCI|NVLink|hardware stack error"
        r"|^Xid: (?:45\b.*previous Xid )?(?:48|6[1-4]|74|79|9[245]|119|120|14\d|150)\b",
        "the GPU, or its link, has failed: c10/cuda/CUDAException.cpp, the driver's messages",
    ),
    (
        "launch",
        r"environment variable (?:RANK|WORLD_SIZE|MASTER_ADDR|MASTER_PORT|LOCAL_RANK) expected",
        "a rank does not know its place: torch/distributed/rendezvous.py",
    ),
    (
        "libuv",
        r"use_libuv was requested but PyTorch was build without libuv",
        "torch was built without what its store uses by default: TCPStore.cpp, 2.4 to 2.15",
    ),
    (
        "duplicate gpu",
        r"Duplicate GPU detected",
        "ranks have chosen one GPU: NCCL 2.14 to 2.30, src/init.cc",
    ),
    (
        "device ordinal",
        r"invalid device ordinal",
        "a rank wants a GPU that its machine, or CUDA_VISIBLE_DEVICES, does not have",
    ),
    (
        "unused parameters",
        r"Expected to have finished reduction in the prior iteration",
        "DDP waits for gradients that were not computed: torch/csrc/distributed/c10d/reducer.cpp",
    ),
    (
        "device kernel",
        r"illegal memory access|device-side assert|unspecified launch failure|^CUDA: Assertion"
        r"|Memory access fault by GPU|HSA_STATUS_ERROR_",
        "a kernel has failed earlier than the line that says so: c10/cuda/CUDAException.cpp",
    ),
    (
        "device busy",
        r"busy or unavailable",
        "another process has the GPU to itself: cudaErrorDevicesUnavailable",
    ),
    (
        "disk",
        r"No space left on device|[Dd]isk quota exceeded|file write failed|unexpected pos \d+ vs",
        "a file could not be written whole: the C library; caffe2/serialize/inline_container.cc",
    ),
    (
        "nccl",
        r"unhandled (?:cuda|system) error|internal error - please report this issue",
        "NCCL says what has failed only with NCCL_DEBUG: ncclGetErrorString",
    ),
    (
        "lock file",
        r"/[^\s'\"]*\.lock\b",
        "a lock of filelock's on a shared file system: evaluate/module.py, filelock/_error.py",
    ),
)


def topic(text: str) -> Topic:
    """What an exception is about, where there is advice for it.

    Args:
        text: its type and message.
    """
    return next((name for name, pattern, _ in _TOPICS if re.search(pattern, text)), "")


OTHER_DEVICES = _any_of(
    (
        r"Expected all tensors to be on the same device",
        "operands on different devices",
        "libtorch_cpu.so and torch/_subclasses/fake_tensor.py",
    ),
    (
        r"but device \d+ does not equal \d+",
        "operands on different GPUs",
        "aten/src/ATen/TensorUtils.cpp, 0.4 to 2.15",
    ),
    (
        r"Expected a '\w+' device type for generator",
        "a generator on another device than its tensor",
        "torch/include/ATen/core/Generator.h",
    ),
    (
        r"Input type \(\S+\) and weight type",
        "input and weight of a convolution on different devices",
        "aten/src/ATen/native/Convolution.cpp",
    ),
    (
        r"is on \S+, but expected (it|them) to be on",
        "an argument on the CPU that a kernel wants on the GPU",
        "aten/src/ATen/TensorUtils.cpp",
    ),
    (
        r"cannot be called on meta tensors",
        "a value is wanted of a tensor without data",
        "torch/_meta_registrations.py",
    ),
    (
        r"Tensor on device \S+ is not on the expected device",
        "operands on different devices",
        "torch/_prims_common/__init__.py",
    ),
)
"""Operands, or a generator, live on different devices."""

NO_MEMORY = _any_of(
    (
        r"[Oo]ut of memory",
        "the GPU's memory is used up",
        "c10/cuda/CUDACachingAllocator.cpp; not in the CPU build",
    ),
    (r"can't allocate memory", "malloc failed", "c10/core/impl/alloc_cpu.cpp; jobs/memory_empty"),
    (r"Cannot allocate memory", "ENOMEM, in the words of the C library", "jobs/memory_empty"),
)
"""An allocation failed."""

NO_SHARED_MEMORY = _any_of(
    (
        r"unable to (allocate|resize) shared memory\(shm\) for file",
        "a tensor that a DataLoader's worker hands over finds no room in /dev/shm",
        "aten/src/ATen/MapAllocator.cpp; jobs/shared_memory_full",
    ),
    (
        r"unable to (open|mmap|write)\b.*</torch_\d+.*No space left on device",
        "the same, in other steps of it",
        "aten/src/ATen/MapAllocator.cpp",
    ),
    (
        r"out of shared memory|insufficient shared memory",
        "the same, when the worker was killed by SIGBUS as it wrote there",
        "torch/utils/data/_utils/signal_handling.py and torch/csrc/DataLoader.cpp",
    ),
)
"""/dev/shm is full."""

NOT_ALL_JOINED = _any_of(
    (
        r"waiting for clients\. \d+/\d+ clients joined",
        "the store's server waited for the other ranks in vain",
        "torch/csrc/distributed/c10d/TCPStore.cpp",
    ),
    (
        r"Timed out initializing process group in store based barrier",
        "the same, at the barrier at the end of init_process_group",
        "torch/distributed/distributed_c10d.py",
    ),
)
"""The rendezvous timed out."""

NO_STORE = _any_of(
    (
        r"client socket has failed to connect to any network address of \((\S+), (\d+)\)",
        "nobody has the store's address, or nobody listens there",
        "torch/csrc/distributed/c10d/socket.cpp, 2.0 to 2.13; jobs/far_store with torch 2.4",
    ),
    (
        r"client socket has timed out after \w+ while trying to connect to \((\S+), (\d+)\)",
        "the same, after the last of several attempts",
        "torch/csrc/distributed/c10d/socket.cpp, 2.0 to 2.13",
    ),
    (
        r"host not found: |connect\(\) timed out\. Original timeout was",
        "nobody has the store's name, or nobody listens there",
        "torch/lib/c10d/Utils.hpp and torch/csrc/distributed/c10d/Utils.hpp, 1.0 to 1.12",
    ),
)
"""A rank cannot reach the store: its host and port, in two of four groups."""

NOT_PASSED = re.compile(
    r"Ranks? ([\d, ]+) failed to pass monitoredBarrier|retrieving ncclUniqueId from \[(\d+)\]"
)
"""The ranks that have not come to a `monitored_barrier`, or have not begun a communicator of NCCL's:
rows of `FOLLOWS`; torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp."""

CANNOT_CONNECT = _any_of(
    (
        r"connectFullMesh failed",
        "a rank cannot open a connection to another one",
        "gloo/rendezvous/context.cc; wrong interface in tests/real/test_several_nodes.py",
    ),
    (
        r"[Cc]onnect to \S+<\d+> (failed|returned)",
        "the same, by NCCL's bootstrap and socket transport",
        "nccl 2.4 to 2.28, src/misc/socket.cc: `socketStartConnect`, `socketPollConnect`",
    ),
)
"""A rank cannot reach the address that another one has given."""

NO_INTERFACE = _any_of(
    (
        r"Unable to find address for: (\S+)",
        "no interface of that name on this machine",
        "gloo/transport/tcp/device.cc; tests/real/test_several_nodes.py",
    ),
    (
        r"Bootstrap : no socket interface found",
        "the same: NCCL_SOCKET_IFNAME leaves none",
        "nccl 2.4 to 2.28, src/bootstrap.cc",
    ),
)
"""The network interface that a setting names is not there."""

PEER = re.compile(r"\[([0-9A-Fa-f.:]+)\]:\d+|[Cc]onnect to (\S+)<\d+>")
"""The address at the other end of a connection, in one of two groups: gloo/transport/tcp/pair.cc writes
`[10.0.0.1]:4242`, NCCL's src/misc/socket.cc `10.0.0.1<4242>`."""

BY_SIGNAL = re.compile(r"DataLoader worker \(pid \d+\) is killed by signal: (\w+)")
"""The signal that has ended a worker: torch/csrc/DataLoader.cpp, 0.4 to 2.15."""

WORKERS = re.compile(r"DataLoader worker \(pid(?:\(s\))? ([\d, ]+)\)")
"""Pids of the workers that a rank has lost: the last row of `FOLLOWS`."""

NO_MEMBER = re.compile(r"Running (\w+) on global rank \d+ which does not belong to the given group")
"""The operation that a rank has called in a group of others, where nothing is done: `_warn_not_in_group`
of torch/distributed/distributed_c10d.py, 2.13."""

JOINED = re.compile(
    r"(\d+)/(\d+) clients joined"
    r"|world_size=(?P<world>\d+), (?:worker_count|num_workers_joined)=(?P<count>\d+)"
)
"""How many have joined, and how many should have, of rows of `NOT_ALL_JOINED`: two of four groups."""

WORKER_LATE = re.compile(r"DataLoader timed out after")
"""The `timeout` of a DataLoader is over: torch/utils/data/dataloader.py; jobs/loader_times_out."""
