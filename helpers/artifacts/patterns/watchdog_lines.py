"""What watchdogs and analysers write of late operations, and of ranks that others wait for."""

from __future__ import annotations

from .pattern import pattern, prefix

_NCCL = "torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp"
_TRACE = "torch/csrc/distributed/c10d/TraceUtils.h"
_FR = "torch/distributed/flight_recorder/components"

WORK = pattern(
    "WorkNCCL(",
    r"WorkNCCL\((?:SeqNum=(?P<seq>\d+), )?OpType=(?P<op>\w+)(?:, TensorShape=\[(?P<shape>[\d, ]*)\])?"
    r"(?:, NumelIn=(?P<numel>\d+))?(?:, NumelOut=\d+)?, Timeout\(ms\)=\d+(?:\)|$)",
    f"torch 1.13 to 2.15, {_NCCL}, operator<<",
    "WorkNCCL(SeqNum=2, OpType=ALLREDUCE, TensorShape=[4, 8], Timeout(ms)=1800000)",
    "WorkNCCL(SeqNum=2, OpType=BROADCAST, Timeout(ms)=1800000)",
    "WorkNCCL(SeqNum=31, OpType=_REDUCE_SCATTER_BASE, NumelIn=67108864, NumelOut=8388608, "
    "Timeout(ms)=600000)",
    "WorkNCCL(OpType=ALLREDUCE, Timeout(ms)=1800000)",
    "WorkNCCL(SeqNum=2, OpType=BROADCAST, Timeout(ms)=18000",
)
"""An operation, as the watchdog names it."""

LATE = pattern(
    ("collective operation timeout", "timed out in "),
    r"(?:Watchdog caught|Caught) collective operation timeout: WorkNCCL\("
    r"|WorkNCCL\(.*\) timed out in (?:call to wait\(\)|blocking wait)",
    f"torch 1.13 to 2.15, {_NCCL}, checkTimeout",
    "[rank1]:[E1123 12:00:00.123456789 ProcessGroupNCCL.cpp:616] [Rank 1] Watchdog caught collective "
    "operation timeout: WorkNCCL(SeqNum=31, OpType=ALLREDUCE, NumelIn=12, NumelOut=12, "
    "Timeout(ms)=600000) ran for 600031 milliseconds before timing out.",
    "[Rank 1] Work WorkNCCL(SeqNum=2521, OpType=ALLREDUCE, NumelIn=16, NumelOut=16, "
    "Timeout(ms)=600000) timed out in blocking wait (TORCH_NCCL_BLOCKING_WAIT=1).",
)
"""That operation has taken longer than the timeout of its group."""

STATUS = pattern(
    "ast enqueued ",
    r"(?:(?:at work|at NCCL work|work sequence id): (?P<seq>\d+)[ ,].*?)?"
    r"ast enqueued (?:NCCL )?work: (?P<enqueued>-?\d+), "
    r"last completed (?:NCCL )?work: (?P<completed>-?\d+)",
    f"torch 2.3 to 2.15, {_NCCL}, watchdog and heartbeat monitor",
    "[rank1]:[E ProcessGroupNCCL.cpp:1537] [PG 0 Rank 1] Timeout at NCCL work: 1, last enqueued NCCL "
    "work: 1, last completed NCCL work: 3452013982.",
    "[PG ID 2 PG GUID 3 Rank 1] Exception (either an error or timeout) detected by watchdog at work: "
    "31, last enqueued NCCL work: 58, last completed NCCL work: 30.",
    "[PG ID 0 PG GUID 0(default_pg) Rank 1]  failure detected by watchdog at work sequence id: 241 PG "
    "status: last enqueued work: 315, last completed work: -1",
    "[PG 0 Rank 0] Received a global timeout from another rank and will start to dump the debug info. "
    "Last enqueued NCCL work: 2, last completed NCCL work: 1.",
)
"""How far a rank has come in a group; -1, or what happened to be in memory, where it has not begun."""

GROUP = pattern(
    "[PG ",
    r"\[PG (?:ID \d+ PG GUID (?P<guid>[^\s(]+)|GUID (?P<name>[^\s(]+)|(?P<id>[^\s(]+))"
    r"(?: ?\((?P<description>[^()]*)\))? Rank (?P<rank>\d+)\]",
    f"torch 2.3 to 2.15, {_NCCL}, createLogPrefix",
    "[PG 0 Rank 1] Timeout at NCCL work: 7",
    "[PG 0 (default_pg) Rank 1] Timeout at NCCL work: 7",
    "[PG ID 14 PG GUID 117(EXPERT_TENSOR_AND_MODEL_PARALLEL_GROUP) Rank 0] x",
    "[PG GUID 1 Rank 1] Watchdog caught collective operation timeout: x",
)
"""The group of which a line tells, and the rank in that group."""

IN_GROUP = pattern(
    "[Rank ",
    r"\[Rank (?P<rank>\d+)\]",
    f"torch 1.13 to 2.13, {_NCCL}",
    "[E ProcessGroupNCCL.cpp:821] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(x)",
)
"""The rank in a group that is not told."""

CONNECTS = pattern(
    "is setting up NCCL communicator",
    r"\[(?P<rank>\d+)\] is setting up NCCL communicator and retrieving ncclUniqueId",
    f"torch 1.13 to 2.15, {_NCCL}, broadcastUniqueNCCLID",
    "torch.distributed.DistBackendError: [4] is setting up NCCL communicator and retrieving "
    "ncclUniqueId from [0] via c10d key-value store by key '0', but store->get('0') got error: "
    "Socket Timeout",
)
"""A rank waits for the first one of its group, and is that rank in it."""

TIMED_OUT = pattern(
    (
        "collective timeout",
        "Watchdog caught c",
        "got stuck for",
        "Heartbeat monitor timed out",
        "Operation timed out after",
    ),
    r"due to (?:a )?collective timeout|watchdog got stuck for \d+ seconds|Heartbeat monitor timed out!"
    r"|watchdog detected a collective timeout|Watchdog caught c[a-z ]*$"
    r"|\[TC\].* Operation timed out after \d+ ms",
    f"torch 2.2 to 2.15, {_NCCL}, heartbeat monitor; 2.14 and 2.15, torch/csrc/distributed/c10d/nccl2",
    "[PG ID 0 PG GUID 0(default_pg) Rank 0] Received a dump signal due to a collective timeout from  "
    "rank 2 and we will try our best to dump the debug info.",
    "[PG ID 0 PG GUID 0 Rank 0] ProcessGroupNCCL's watchdog got stuck for 480 seconds without making "
    "progress in monitoring enqueued collectives.",
    "[PG 0 Rank 0] Heartbeat monitor timed out! Process will be terminated after dumping debug info.",
    "[rank3]:[E1123 12:00:00.123456789 WorkNCCL.cpp:160] [TC][rank=3][name=0] Operation timed out after "
    "600031 ms",
)
"""Some operation has taken too long: of this rank, or of another one."""

FRAME = pattern(
    " from ",
    r"^#\d+ (?P<function>.+) from (?P<file>.+):(?P<line>\d+)$",
    f"torch 2.6 to 2.15, {_NCCL}, printTraceback",
    "#0 all_reduce from /opt/venv/lib/python3/site-packages/torch/distributed/distributed_c10d.py:2968",
)
"""A line that led to an operation that is late, innermost first."""

DESYNC_ABSENT = pattern(
    "lagging ranks that caused",
    r"ranks \[(?P<ranks>[\d, ]+)\] are the lagging ranks that caused this timeout\. They never joined",
    f"torch 1.13 to 2.15, {_TRACE}, retrieveDesyncReport",
    "\t - To our best knowledge, ranks [1, 3] are the lagging ranks that caused this timeout. They "
    "never joined any collectives",
)
"""Ranks that have issued nothing in a group."""

DESYNC_SEQ = pattern(
    " ranks:",
    r"^\s*#(?P<seq>\d+) (?P<state>started|finished) ranks:",
    f"torch 1.13 to 2.15, {_TRACE}, retrieveDesyncReport",
    "\t   #182 finished ranks:",
)

DESYNC_RANKS = pattern(
    ("] started ", "] finished "),
    r"^\s*\[(?P<ranks>[\d, ]+)\] (?P<state>started|finished) (?P<op>[A-Z_]+)$",
    f"torch 1.13 to 2.15, {_TRACE}, retrieveDesyncReport",
    "\t     [3, 4, 5, 6] started _ALLGATHER_BASE",
)
"""The newest operation of some ranks; its number comes before."""

UNJOINED = pattern(
    ("Not all ranks joining collective", "has errors", "mismatch in the collective"),
    r"(?:Not all ranks joining collective[,:]|Input/output mismatch in the collective) sequence number: "
    r"(?P<seq>\d+)|Collective sequence number: (?P<number>\d+) has errors",
    f"torch 2.5 to 2.15, {_FR}/utils.py, before 2.9 in tools/flight_recorder",
    "Not all ranks joining collective, sequence number: 57",
    "Collective sequence number: 57 has errors",
    "Input/output mismatch in the collective sequence number: 57",
)
"""torch's analyser of Flight Recorder dumps has found a collective that does not match."""

ANALYSED = pattern(
    (
        *("group info: ", "collective: ", "missing ranks: ", "world size: ", "expected ranks: "),
        *("collective state: ", "error msg: ", "input sizes: "),
    ),
    r"^(?P<name>group info|collective|missing ranks|input sizes|world size|expected ranks"
    r"|collective state|error msg): (?P<said>.*)$",
    f"torch 2.5 to 2.15, {_FR}/types.py, EntryState.log",
    "missing ranks: {1, 3}",
    "error msg: Culprit rank 1; Error type: COLLECTIVE_TYPE_MISMATCH, Expected collective type: "
    "'all_reduce' does not match found collective type: 'broadcast'",
)
"""One of the lines that follow."""

ABSENT = pattern(
    ("missing ranks: ",),
    r"\[missing ranks: (?P<ranks>[\d, ]+)\]",
    "Horovod 0.13 to 0.28, horovod/common/stall_inspector.cc",
    "gradients/AddN_1 [missing ranks: 0]",
)
"""Ranks that have not submitted a tensor for which the others wait."""

READY = pattern(
    ("ready ranks: ",),
    r"\[ready ranks: (?P<ranks>\d+(?:, \d+)*)\]",
    "Horovod 0.9 to 0.12, horovod/tensorflow/mpi_ops.cc and horovod/common/operations.cc",
    "Stalled ops: allreduce.conv1.weight [ready ranks: 3, 1], allreduce.bn1.bias [ready ranks: 3, 1]",
)
"""Ranks that have submitted a tensor, and wait for the others."""

STALLED = pattern(
    ("Stalled ranks:", "Missing ranks:"),
    r"^(?:.*\W)?(?:Stalled|Missing) ranks:",
    "Horovod 0.18 to 0.28, horovod/common/stall_inspector.cc",
    "Stalled ranks:",
    "Missing ranks:",
)
"""Lines with the ranks that have not submitted tensors follow: `0: [allreduce.x, ...]`."""

STALLED_RANK = prefix(
    r"^(?P<rank>\d+): \[",
    "Horovod 0.18 to 0.28, horovod/common/stall_inspector.cc",
    "0: [allreduce.gradients_1, allreduce.gradients_2 ...]",
)

NO_PROGRESS = pattern(
    ("watchdog_timeout=", "and may be stuck: participant "),
    r"and may be stuck: participant \w+\{.*?\brank=(?P<rank>\d+)|"
    r"(?:\w+ )?[Ww]atchdog timeout "
    r"\(self\.watchdog_timeout=[\d.]+(?!.*soft=True)",
    "SGLang 0.4 to 0.5, sglang/srt/managers/scheduler.py and utils/watchdog.py; XLA of 2024, "
    "xla/service/rendezvous.cc and collective_ops_utils.h",
    "[2026-11-23 12:00:00 TP4] Watchdog timeout (self.watchdog_timeout=300)",
    "[2026-11-23 12:00:00 PP1 TP1] Scheduler watchdog timeout (self.watchdog_timeout=300, "
    "self.soft=False)",
    "Scheduler watchdog timeout (self.watchdog_timeout=300, self.soft=False)",
    "collective_ops_utils.h:310] This thread has been waiting for 5000ms for and may be stuck: "
    "participant AllReduceParticipantData{rank=1, element_count=7840, type=F32",
)
"""A process of a server, or a rank in a collective of XLA, has made no progress for so many seconds; a
soft watchdog only tells of it."""
