"""What libraries write about their own failures."""

from __future__ import annotations

from .pattern import pattern

_NCCL = "torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp"
_ELASTIC = "torch/distributed/elastic/multiprocessing"

LOCK = pattern(
    ("acquire lock ", "acquired on ", "acquiring lock "),
    r"(?:Attempting to acquire lock|Lock|(?P<late>Timeout on acquiring lock)) (?P<lock>\d+) "
    r"(?P<got>acquired )?(?P<refused>not acquired )?on (?P<path>\S.*?)(?:, waiting [\d.]+ seconds.*)?$",
    "filelock 3.0 to 3.20, filelock/_api.py; datasets 1.0 to 2.14, datasets/utils/filelock.py",
    "DEBUG:filelock:Attempting to acquire lock 140386484514192 on /shared/cache/data.lock",
    "DEBUG:filelock:Lock 140386484514192 not acquired on /shared/data.lock, waiting 0.05 seconds ...",
    "DEBUG:filelock:Lock 140386484514192 acquired on /shared/cache/data.lock",
    "DEBUG:filelock:Timeout on acquiring lock 140386484514192 on /shared/cache/data.lock",
)
"""A process asks for a file lock, waits for it, has it, or has waited for too long."""

OF_PROCESS = pattern(
    " from process ",
    r"(?:lock on|locked file) \S+ from process (?P<rank>\d+)\b",
    "datasets 1.0 to 2.4, datasets/metric.py; evaluate 0.1 to 0.4, evaluate/module.py",
    "ValueError: Couldn't acquire lock on /cache/exp-16-rdv.lock from process 4.",
    "ValueError: Expected to find locked file /16-0.arrow.lock from process 15 but it doesn't exist.",
)
"""A rank has not met the others by files that they share."""

NCCL_WARN = pattern(
    "NCCL WARN",
    r"(?:(?P<host>[^\s:\[\]]+):(?P<pid>\d+):\d+ .*?)?NCCL WARN (?P<said>\S.*)",
    "NCCL 2.14 to 2.30, src/debug.cc, ncclDebugLog",
    "node7:110:697 [3] misc/socket.cc:50 NCCL WARN socketProgress: Connection closed by remote peer "
    "node8<55912>",
    "[2026-11-23 12:00:00] node7:110:697 [3] transport/net_ib.cc:1909 NCCL WARN NET/IB : Got completion "
    "from peer 10.0.0.2<42311> with status=12 opcode=32544 len=0 vendor err 129 (Send)",
)
"""What NCCL has found wrong: with the network, a device, or a peer."""

STORE_BARRIER = pattern(
    "in store based barrier",
    r"(?P<waits>Waiting )?in store based barrier (?:on|to initialize process group for) rank:? "
    r"(?P<rank>\d+), (?:for )?key: (?P<key>\S+) "
    r"\(world_size=(?P<world>\d+), (?:worker_count|num_workers_joined)=(?P<count>\d+)",
    "torch 1.8 to 2.15, torch/distributed/distributed_c10d.py",
    "RuntimeError: Timed out initializing process group in store based barrier on rank: 7, for key: "
    "store_based_barrier_key:32 (world_size=8, worker_count=4, timeout=0:00:30)",
    "torch.distributed.DistStoreError: Timed out initializing process group in store based barrier on "
    "rank 0, for key: store_based_barrier_key:1 (world_size=2, num_workers_joined=1, timeout=0:30:00 "
    "error=x)",
    "Waiting in store based barrier to initialize process group for rank: 0, key: "
    "store_based_barrier_key:1 (world_size=8, worker_count=7, timeout=0:30:00)",
)
"""A rank waits for the others at the end of `init_process_group`, or has waited in vain."""

GAVE_UP = pattern(
    "failed to pass monitoredBarrier",
    r"(?P<said>\[Rank (?P<rank>\d+)\]: Ranks? [\d, ]+ failed to pass monitoredBarrier.*)",
    "torch 1.8 to 2.15, torch/csrc/distributed/c10d/ProcessGroupGloo.cpp",
    "[Rank 0]: Rank 1 failed to pass monitoredBarrier in 1800000 ms",
    "[Rank 0]: Ranks 1, 3 failed to pass monitoredBarrier in 2000 ms",
)
"""Rank 0 has waited in vain for some ranks."""

REACHED = pattern(
    "successfully reached monitoredBarrier",
    r"(?P<said>Rank (?P<rank>\d+) successfully reached monitoredBarrier, but received errors while .*)",
    "torch 1.8 to 2.15, torch/csrc/distributed/c10d/ProcessGroupGloo.cpp",
    "[Rank 5]: Rank 5 successfully reached monitoredBarrier, but received errors while waiting for "
    "send/recv from rank 0. Please check rank 0 logs for faulty rank.",
)
"""Another rank has waited in vain for rank 0's answer."""

BIND = pattern(
    "server socket has failed to",
    r"(?P<said>The server socket has failed to (?:listen on any|bind to) .*)",
    "torch 1.13 to 2.15, torch/csrc/distributed/c10d/socket.cpp",
    "[W socket.cpp:426] [c10d] The server socket has failed to bind to [::]:25641 (errno: 98 - Address "
    "already in use).",
)
"""A process could not listen on a port."""

UNCONNECTED = pattern(
    ("onnectFullMesh failed",),
    r"(?P<said>Gloo connectFullMesh failed with .*)",
    "torch 2.0 to 2.15, torch/csrc/distributed/c10d/ProcessGroupGloo.cpp",
    "[rank1]:[E528 08:52:46.164295950 ProcessGroupGloo.cpp:145] Gloo connectFullMesh failed with "
    "[/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:144] no error",
)
"""A rank cannot open connections to the others."""

FINGERPRINTS = pattern(
    "Detected mismatch between collectives",
    r"(?P<said>Detected mismatch between collectives on ranks\. .*)",
    "torch 1.9 to 2.15, torch/csrc/distributed/c10d/ProcessGroupWrapper.cpp",
    "RuntimeError: Detected mismatch between collectives on ranks. Rank 1 is running collective: "
    "CollectiveFingerPrint(SequenceNumber=485, OpType=ALLREDUCE, TensorShape=[25], TensorDtypes=Float",
)
"""TORCH_DISTRIBUTED_DEBUG=DETAIL has compared the calls of two ranks."""

VLLM_WORKER = pattern(
    "while processing method",
    r"Exception in worker .+? while processing method .+?: (?P<said>.+), "
    r"Traceback \(most recent call last\):$",
    "vLLM 0.4 to 0.6, vllm/executor/multiproc_worker_utils.py",
    "ERROR 06-13 01:30:49 multiproc_worker_utils.py:225] Exception in worker VllmWorkerProcess while "
    "processing method determine_num_available_blocks: Invalid device id, Traceback (most recent call "
    "last):",
)
"""The message of an exception, before its traceback."""

SHAPES = pattern(
    ("due to shape mismatches", "  - Process "),
    r"(?P<said>Cannot apply desired operation due to shape mismatches|Process \d+: \[[\d, ]*\])",
    "accelerate 0.20 to 1.12, accelerate/utils/operations.py, verify_operation",
    "accelerate.utils.operations.DistributedOperationException: Cannot apply desired operation due to "
    "shape mismatches. All shapes across devices must be valid.",
    "  - Process 1: [2, 658, 32256]",
)
"""The shapes that the ranks have given to one operation."""

REDUCER = pattern(
    ("Expected to have finished reduction", "Expected to mark a variable", "marked as ready twice"),
    r"(?P<said>Expected to have finished reduction in the prior iteration before .*"
    r"|Expected to mark a variable ready only once\..*"
    r"|Parameter at index \d+(?: with name \S+)? has been marked as ready twice.*)",
    "torch 1.9 to 2.15, torch/csrc/distributed/c10d/reducer.cpp",
    "RuntimeError: Expected to have finished reduction in the prior iteration before starting a new "
    "one. This error indicates that your module has parameters that were not used in producing loss.",
    "RuntimeError: Expected to mark a variable ready only once. This error is caused by one of x",
    "Parameter at index 319 with name layers.39.weight has been marked as ready twice. This means that "
    "multiple autograd engine  hooks have fired for this particular parameter during this iteration.",
)
"""DDP cannot go on: no other message has these words, whatever the log has lost before them."""

DUPLICATE_GPU = pattern(
    "Duplicate GPU detected",
    r"(?P<said>Duplicate GPU detected : rank \d+ and rank \d+ both on CUDA device \w+)",
    "NCCL 2.14 to 2.30, src/init.cc",
    "Duplicate GPU detected : rank 3 and rank 0 both on CUDA device f000",
)
"""Two ranks have chosen one GPU."""

CHILDS_MESSAGE = pattern(
    ('"message": "',),
    r'^\s*"message": "(?P<said>(?P<type>[\w.]*(?:Error|Exception)): .*)",?$',
    f"torch 1.9 to 2.15, {_ELASTIC}/errors/error_handler.py",
    '    "message": "RendezvousConnectionError: The connection to the C10d store has failed.",',
)
"""An exception in an error file that has been printed."""

TERMINATED = pattern(
    ("terminate called", "libc++abi"),
    r"terminate called (?:after throwing an instance of|without an active exception|recursively)"
    r"|^libc\+\+abi(?:\.dylib)?: terminat(?:e called|ing) ",
    "libstdc++ of GCC 4 to 15, libsupc++/vterminate.cc; libc++abi of LLVM 3 to 20, "
    "src/cxa_default_handlers.cpp",
    "terminate called after throwing an instance of 'gloo::EnforceNotMet'",
    "terminate called without an active exception",
    "libc++abi: terminating due to uncaught exception of type gloo::EnforceNotMet: no network",
)
"""A process aborts: nothing has caught an exception of C++."""

WHAT = pattern(
    ("what():", "uncaught exception of type "),
    r"^(?: *what\(\): +|libc\+\+abi(?:\.dylib)?: terminating \w.* uncaught exception of type [\w:]+: )"
    r"(?P<said>\S.*)",
    "libstdc++ of GCC 4 to 15, libsupc++/vterminate.cc; libc++abi of LLVM 3 to 20, "
    "src/cxa_default_handlers.cpp",
    "  what():  CUDA error: out of memory",
    "libc++abi.dylib: terminating with uncaught exception of type gloo::EnforceNotMet: no network",
)
"""The message of that exception."""

UNREACHED = pattern(
    "client socket has ",
    r"(?P<said>The client socket has (?:failed to connect to any network address of|timed out after)"
    r" .*)",
    "torch 2.0 to 2.15, torch/csrc/distributed/c10d/socket.cpp",
    "[E socket.cpp:610] [c10d] The client socket has failed to connect to any network address of "
    "(node7, 40323).",
    "[E socket.cpp:610] [c10d] The client socket has timed out after 60000ms while trying to connect to "
    "(node7, 29500).",
)
"""A process cannot reach the store, after all of its attempts."""

KERNEL_ASSERTION = pattern(
    "Assertion `",
    r"\.cu[h]?:\d+: .*(?P<said>Assertion `.*` failed)",
    "CUDA's assert() in a kernel; torch 1.0 to 2.15, aten/src/ATen/native/cuda",
    "aten/src/ATen/native/cuda/Indexing.cu:1422: indexSelectLargeIndex: block: [3,0,0], thread: "
    "[64,0,0] Assertion `srcIndex < srcSelectDimSize` failed.",
)
"""A kernel has found a wrong value: an index that is out of range, mostly."""

UNANSWERED = pattern(
    "Got completion ",
    r"^(?P<said>NET/IB ?: Got completion (?:from peer|with) .*)",
    "NCCL 2.4 to 2.30, src/transport/net_ib.cc, after `Last error:` of what torch raises",
    "NET/IB : Got completion from peer 10.0.0.2<42311> with error 12, opcode 0",
)
"""The network card has got no answer from another machine."""

WATCHDOG_ENDS = pattern(
    "watchdog thread terminated with exception",
    r"(?:NCCL|Process group) watchdog thread terminated with exception: "
    r"(?P<said>(?!\[[^]]*\] (?:Watchdog )?[Cc]aught|NCCL error: remote process exited).+)",
    f"torch 1.13 to 2.15, {_NCCL}",
    "[E ProcessGroupNCCL.cpp:915] [Rank 1] NCCL watchdog thread terminated with exception: CUDA error: "
    "an illegal memory access was encountered",
)
"""The device has failed: that is what the watchdog was the first to see."""

AMD_FAULT = pattern(
    (" by GPU node-", "HSA_STATUS_ERROR_"),
    r"(?P<said>(?:HW Exception|Memory access fault) by GPU node-\d+ .*"
    r"|HSA_STATUS_ERROR_(?:EXCEPTION|MEMORY)\w*.*)",
    "ROCm 3 to 7, rocr-runtime, core/runtime/runtime.cpp and core/inc/exceptions.h",
    "HW Exception by GPU node-9 (Agent handle: 0x64ff272d8bc0) reason :GPU Hang",
    "Memory access fault by GPU node-1 (Agent handle: 0x55d) on address 0x7f. Reason: Unknown.",
)
"""The runtime of AMD's GPUs ends its process."""

GPU_MEMORY = pattern(
    "out of memory. Tried to allocate",
    r"(?<!Error: )(?P<said>(?:CUDA|HIP|XPU|NPU) out of memory\. Tried to allocate .*)",
    "torch 1.0 to 2.15, c10/cuda/CUDACachingAllocator.cpp",
    "CUDA out of memory. Tried to allocate 1.96 GiB. GPU 1 has a total capacity of 63.29 GiB",
)
"""An allocation on a GPU has failed, in whatever a program prints of it."""

IN_USE = pattern(
    "ddress already in use",
    r"(?P<said>\[Errno 98\] .*ddress already in use.*)",
    "Python 3.5 to 3.14, asyncio/base_events.py and socketserver.py, as uvicorn and others log it",
    "ERROR:    [Errno 98] error while attempting to bind on address ('0.0.0.0', 44319): address already "
    "in use",
)
"""A server cannot listen on a port."""

CANN_REASON = pattern(
    ": [PID: ",
    r"(?P<said>\bE[A-Z]\d{4}: \[PID: \d+\] .*)",
    "CANN 7.0 to 8.2, its list of errors",
    "EI0006: [PID: 129] 2026-11-23-12:00:00.444.436 Getting socket times out. Reason: Remote Rank did "
    "not send the data in time.",
)
"""Why an operation of CANN's has failed, below the exception."""

HCCL_LISTEN = pattern(
    "specific port[",
    r"(?P<said>listen on ip\[\S+\] and specific port\[\d+\] fail\..*)",
    "CANN 8.0 to 8.2, hccl, hccl_socket.cc",
    "[ERROR] HCCL(271,python3):2026-11-23-12:00:00.070.463 [hccl_socket.cc:100] socket type[1], listen "
    "on ip[10.0.0.4] and specific port[16666] fail. Please check the port status.",
)
"""HCCL cannot listen on its port."""

WORKER_BUS_ERROR = pattern(
    "insufficient shared memory",
    r"(?P<said>Unexpected bus error encountered in worker\. .*insufficient shared memory.*)",
    "torch 0.4 to 2.15, torch/csrc/DataLoader.cpp",
    "ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared "
    "memory (shm).",
)
"""A DataLoader's worker finds no room in /dev/shm."""

XLA_DEVICE = pattern(
    "Exception in device=",
    r"Exception in device=(?P<device>\w+:\d+): (?P<said>\S.*)",
    "torch_xla 1.5 to 1.13, distributed/xla_multiprocessing.py",
    "Exception in device=TPU:6: Failed to meet rendezvous 'init': Socket closed (14)",
)
"""A process of torch_xla cannot go on."""

UNHANDLED = pattern(
    "Unhandled exception: ",
    r"Unhandled exception: (?P<type>\S+?)\. what\(\): (?P<said>.+?)(?: \[repeated \d+x.*)?$",
    "Ray 1.11 to 2.50, src/ray/util/logging.cc",
    "[2026-11-23 12:00:00,123 E 274 274] logging.cc:113: Unhandled exception: "
    "N5boost10wrapexceptINS_6system12system_errorEEE. what(): thread: Resource temporarily unavailable",
)
"""A process of Ray's ends by an exception of C++."""
