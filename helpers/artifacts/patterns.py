"""What foreign software writes into logs, as patterns: what takes a line apart, and where it comes from.

Versions are those whose released libraries were found to hold the text, of 1.13.1 to 2.15.0 for torch.
"""

from __future__ import annotations

import re

import msgspec


class Pattern(msgspec.Struct, frozen=True):
    """One message.

    Attributes:
        needles: texts of which each line with it has one: other lines are not looked at. None for a
            prefix, which matters only together with what stands behind it.
        regex: takes it apart.
        source: software, versions and file.
        examples: lines of it, one for each wording.
    """

    needles: tuple[str, ...]
    regex: re.Pattern[str]
    source: str
    examples: tuple[str, ...]

    def search(self, line: str) -> re.Match[str] | None:
        """The message in a line, if it is there."""
        if self.needles and not any(needle in line for needle in self.needles):
            return None
        return self.regex.search(line)

    def all(self, line: str) -> list[re.Match[str]]:
        """Each place in a line that has the message, in their order."""
        return [*self.regex.finditer(line)] if self.search(line) is not None else []


def _pattern(needles: str | tuple[str, ...], regex: str, source: str, *examples: str) -> Pattern:
    wanted = (needles,) if isinstance(needles, str) else needles
    return Pattern(wanted, re.compile(regex), source, examples)


def _prefix(regex: str, source: str, *examples: str) -> Pattern:
    return Pattern((), re.compile(regex), source, examples)


_NCCL = "torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp"
_TRACE = "torch/csrc/distributed/c10d/TraceUtils.h"
_ELASTIC = "torch/distributed/elastic/multiprocessing"

COLLECTED = _prefix(
    r"^\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d)(?: std(?:out|err) [FP])? ",
    "Kubernetes 1.9 to 1.34, pkg/kubelet/kuberuntime/logs/logs.go; `kubectl logs --timestamps`",
    "2026-11-23T12:00:00.123456789Z stderr F [rank1]: Traceback (most recent call last):",
    "2026-11-23T12:00:00.123456789Z [rank1]: Traceback (most recent call last):",
)
"""When a line of a container was written."""

POD = _prefix(
    r"^\[pod/(?P<writer>[^/\] ]+)/[^\] ]+\] ",
    "Kubernetes 1.17 to 1.34, `kubectl logs --prefix`, staging/src/k8s.io/kubectl/pkg/cmd/logs/logs.go",
    "[pod/train-worker-1/pytorch] Traceback (most recent call last):",
)
"""The pod that has written a line."""

TASK = _prefix(
    r"^(?:P\d+ )? *(?P<number>\d+): ?",
    "Slurm 16.05 to 26.05, `srun --label`, src/common/write_labelled_message.c",
    " 3: Traceback (most recent call last):",
    "007: step 1",
    "P1  2: step 1",
)
"""The task that has written a line; with one process a task it is the rank."""

ACTOR = _prefix(
    r"^\([\w.<>:]+(?P<more>[^()]*?) ?\bpid=(?P<pid>\d+)(?:, ip=(?P<ip>[\d.:a-f]+))?[^()]*\) ",
    "Ray 1.0 to 2.50, python/ray/_private/worker.py, print_worker_logs",
    "(RayTrainWorker pid=270291, ip=10.0.0.4) Traceback (most recent call last):",
    "(RayWorkerWrapper pid=270291) step 1",
    "(VllmWorker rank=2 pid=4242) step 1",
)
"""The process that has written a line."""

TITLE = _prefix(
    r"^\w+::\w*?(?P<others>(?:_(?:DP|PP)\d+)*)(?:_TP(?P<tensor>\d+))?(?:_(?:EP|ATTN|MOE)\w*)?$",
    "SGLang 0.4 to 0.5, sglang/srt/managers/scheduler.py; vLLM 0.10 to 0.11, vllm/utils, "
    "set_process_title",
    "sglang::scheduler_PP2_TP1",
    "sglang::scheduler_TP1",
    "VLLM::Worker_TP1",
    "sglang::scheduler",
)
"""The title that a server gives its process, with its place: in tensor parallelism alone, its rank."""

WORLD_RANK = _pattern(
    "world_rank=",
    r"\(ip=(?P<ip>[\d.:a-f]+), pid=(?P<pid>\d+)\) world_rank=(?P<rank>\d+)",
    "Ray Train 2.5 to 2.50, python/ray/train/_internal/backend_executor.py",
    "- (ip=10.0.163.141, pid=4091) world_rank=3, local_rank=3, node_rank=0",
)
"""The rank of an actor."""

TEE = _prefix(
    r"^(?P<replica>[A-Za-z][\w.-]*/\d+ )?\[(?!rank\d)(?(replica)\w*?|[A-Za-z_]\w*?)(?P<number>\d+)\]:",
    "torch 1.9 to 2.15, `torchrun --tee`, torch/distributed/elastic/multiprocessing/tail_log.py; "
    "TorchX 0.1 to 0.7, torchx/cli/cmd_log.py",
    "[default1]:Traceback (most recent call last):",
    "[trainer12]:step 1",
    "trainer/0 [1]:step 1",
)
"""The local rank that has written a line."""

MPI = _prefix(
    r"^(?:\w{3} \w{3} +\d+ [\d:]+ \d{4})?\[(?:[\w.@-]+@)?(?:1,)?(?:mpirank:)?(?P<rank>\d+)"
    r"(?:,[\w.-]+)?\]<std(?:out|err|diag)>: ?",
    "Open MPI 1.3 to 5.0, `mpirun --tag-output`, orte/util/../iof; SageMaker, its training toolkit; "
    "Horovod, `horovodrun`",
    "[1,8]<stdout>:Traceback (most recent call last):",
    "[1,mpirank:2,algo-1]<stderr>:Traceback (most recent call last):",
)
"""The rank that has written a line, by the launcher."""

TAGGED = _prefix(
    r"^[\[(](?:RANK|(?:global_?)?rank)(?: ?[=:] ?| )?(?P<rank>\d+)[\])]:?(?! Child process) ?",
    "loggers of programs and of Ray Train: no library of its own",
    "[rank=3] Traceback (most recent call last):",
    "[RANK 2] step 1",
)
"""The rank that has written a line, by its program."""

PREPENDED = _prefix(
    r"^\[(?P<rank>\d+)\] ?",
    "Intel MPI and MPICH 3 and 4, `mpirun -prepend-rank`",
    "[3] Traceback (most recent call last):",
)
"""The rank that has written a line, where lines of tracebacks have such labels."""

RANK = _prefix(
    r"\[rank(?P<rank>\d+)\]: ?",
    "torch 2.2 to 2.15, c10/util/Logging.cpp; 2.3 to 2.15, torch/distributed/distributed_c10d.py",
    "[rank1]:[E ProcessGroupNCCL.cpp:1316] [PG 0 Rank 1] Heartbeat monitor timed out!",
    "[default1]:[rank1]: Traceback (most recent call last):",
)
"""The rank that has written a line: the global one."""

WORK = _pattern(
    "WorkNCCL(",
    r"WorkNCCL\((?:SeqNum=(?P<seq>\d+), )?OpType=(?P<op>\w+)(?:, TensorShape=\[(?P<shape>[\d, ]*)\])?"
    r"(?:, NumelIn=(?P<numel>\d+))?(?:, NumelOut=\d+)?, Timeout\(ms\)=\d+\)",
    f"torch 1.13 to 2.15, {_NCCL}, operator<<",
    "WorkNCCL(SeqNum=2, OpType=ALLREDUCE, TensorShape=[4, 8], Timeout(ms)=1800000)",
    "WorkNCCL(SeqNum=2, OpType=BROADCAST, Timeout(ms)=1800000)",
    "WorkNCCL(SeqNum=31, OpType=_REDUCE_SCATTER_BASE, NumelIn=67108864, NumelOut=8388608, "
    "Timeout(ms)=600000)",
    "WorkNCCL(OpType=ALLREDUCE, Timeout(ms)=1800000)",
)
"""An operation, as the watchdog names it."""

LATE = _pattern(
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

STATUS = _pattern(
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

GROUP = _pattern(
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

IN_GROUP = _pattern(
    "[Rank ",
    r"\[Rank (?P<rank>\d+)\]",
    f"torch 1.13 to 2.13, {_NCCL}",
    "[E ProcessGroupNCCL.cpp:821] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(x)",
)
"""The rank in a group that is not told."""

LOCK = _pattern(
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

OF_PROCESS = _pattern(
    " from process ",
    r"(?:lock on|locked file) \S+ from process (?P<rank>\d+)\b",
    "datasets 1.0 to 2.4, datasets/metric.py; evaluate 0.1 to 0.4, evaluate/module.py",
    "ValueError: Couldn't acquire lock on /cache/exp-16-rdv.lock from process 4.",
    "ValueError: Expected to find locked file /16-0.arrow.lock from process 15 but it doesn't exist.",
)
"""A rank has not met the others by files that they share."""

CONNECTS = _pattern(
    "is setting up NCCL communicator",
    r"\[(?P<rank>\d+)\] is setting up NCCL communicator and retrieving ncclUniqueId",
    f"torch 1.13 to 2.15, {_NCCL}, broadcastUniqueNCCLID",
    "torch.distributed.DistBackendError: [4] is setting up NCCL communicator and retrieving "
    "ncclUniqueId from [0] via c10d key-value store by key '0', but store->get('0') got error: "
    "Socket Timeout",
)
"""A rank waits for the first one of its group, and is that rank in it."""

TIMED_OUT = _pattern(
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

FRAME = _pattern(
    " from ",
    r"^#\d+ (?P<function>.+) from (?P<file>.+):(?P<line>\d+)$",
    f"torch 2.6 to 2.15, {_NCCL}, printTraceback",
    "#0 all_reduce from /opt/venv/lib/python3/site-packages/torch/distributed/distributed_c10d.py:2968",
)
"""A line that led to an operation that is late, innermost first."""

DESYNC_ABSENT = _pattern(
    "lagging ranks that caused",
    r"ranks \[(?P<ranks>[\d, ]+)\] are the lagging ranks that caused this timeout\. They never joined",
    f"torch 1.13 to 2.15, {_TRACE}, retrieveDesyncReport",
    "\t - To our best knowledge, ranks [1, 3] are the lagging ranks that caused this timeout. They "
    "never joined any collectives",
)
"""Ranks that have issued nothing in a group."""

DESYNC_SEQ = _pattern(
    " ranks:",
    r"^\s*#(?P<seq>\d+) (?P<state>started|finished) ranks:",
    f"torch 1.13 to 2.15, {_TRACE}, retrieveDesyncReport",
    "\t   #182 finished ranks:",
)

DESYNC_RANKS = _pattern(
    ("] started ", "] finished "),
    r"^\s*\[(?P<ranks>[\d, ]+)\] (?P<state>started|finished) (?P<op>[A-Z_]+)$",
    f"torch 1.13 to 2.15, {_TRACE}, retrieveDesyncReport",
    "\t     [3, 4, 5, 6] started _ALLGATHER_BASE",
)
"""The newest operation of some ranks; its number comes before."""

_FR = "torch/distributed/flight_recorder/components"

UNJOINED = _pattern(
    ("Not all ranks joining collective", "has errors", "mismatch in the collective"),
    r"(?:Not all ranks joining collective[,:]|Input/output mismatch in the collective) sequence number: "
    r"(?P<seq>\d+)|Collective sequence number: (?P<number>\d+) has errors",
    f"torch 2.5 to 2.15, {_FR}/utils.py, before 2.9 in tools/flight_recorder",
    "Not all ranks joining collective, sequence number: 57",
    "Collective sequence number: 57 has errors",
    "Input/output mismatch in the collective sequence number: 57",
)
"""torch's analyser of Flight Recorder dumps has found a collective that does not match."""

ANALYSED = _pattern(
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

FAILED = _pattern(
    "failed (exitcode:",
    r"failed \(exitcode: (?P<code>-?\d+)\) local_rank: (?P<local>\d+) \(pid: (?P<pid>\d+)\)",
    f"torch 1.9 to 2.15, {_ELASTIC}/api.py",
    "E1123 14:12:06.754000 974 torch/distributed/elastic/multiprocessing/api.py:1002] failed (exitcode: "
    "-6) local_rank: 1 (pid: 985) of binary: /opt/venv/bin/python",
)
"""The first process that has failed on a node."""

WORKER_FAILED = _pattern(
    "torchelastic.worker.status.FAILED",
    r'"name": "torchelastic\.worker\.status\.FAILED", "source": "WORKER"',
    "torch 1.9 to 2.15, torch/distributed/elastic/agent/server/api.py, _construct_event",
    '{"name": "torchelastic.worker.status.FAILED", "source": "WORKER", "timestamp": 0, "metadata": {}}',
)
"""A record of a worker that has failed."""

RESTARTS = _pattern(
    "will restart worker group",
    r"Worker group FAILED\. .* will restart worker group|attempts left; will restart worker group",
    "torch 1.9 to 2.15, torch/distributed/elastic/agent/server/api.py",
    "[default] Worker group FAILED. 1/1 attempts left; will restart worker group",
)
"""The launcher starts all ranks again, after a failure."""

ROOT_CAUSE = _pattern(
    "Root Cause (first observed failure)",
    r"Root Cause \(first observed failure\)",
    f"torch 1.9 to 2.15, {_ELASTIC}/errors/__init__.py",
    "Root Cause (first observed failure):",
)
"""The first failure follows, which stands last."""

SUMMARY_RANK = _pattern(
    ("(local_rank", "(local rank"),
    r"\brank\s*:? ?(?P<rank>\d+) ?\(local[_ ]rank ?: ?(?P<local>\d+)\)",
    f"torch 1.9 to 2.15, {_ELASTIC}/errors/__init__.py",
    "  rank      : 1 (local_rank: 1)",
    "rank2 (local rank: 2)exitcode: -9 (pid: 985)",
)

SUMMARY_EXIT = _pattern(
    "exitcode",
    r"exitcode\s*:? ?(?P<code>-?\d+) ?\(pid ?: ?(?P<pid>\d+)\)",
    f"torch 1.9 to 2.15, {_ELASTIC}/errors/__init__.py",
    "  exitcode  : 1 (pid: 985)",
    "  exitcode  : -9 (pid: 1134)  (SIGKILL)",
)
"""How a process has ended, in the summary at the end; its rank comes before, in the same line where the
table has been reflowed or read off a picture."""

TASK_ENDED = _pattern(
    "srun: error:",
    r"srun: error: (?P<host>[^:]+): tasks? (?P<tasks>[\d,\-]+): "
    r"(?P<how>Out Of Memory|Killed|Segmentation fault|Aborted|Bus error|Terminated|Illegal instruction"
    r"|Exited with exit code (?P<code>\d+))",
    "Slurm 18.08 to 26.05, srun/launch.c",
    "srun: error: node7: task 3: Out Of Memory",
    "srun: error: node[7-8]: tasks 1,3-5: Killed",
    "srun: error: node7: task 3: Segmentation fault (core dumped)",
    "srun: error: node7: task 0: Exited with exit code 1",
)
"""How tasks of Slurm have ended; with one process a task they are ranks."""

CHILD_ENDED = _pattern(
    "Child process with PID",
    r"\[rank: (?P<local>\d+)\] Child process with PID (?P<pid>\d+) terminated with code (?P<code>-?\d+)",
    "lightning 2.1 to 2.6, fabric/strategies/launchers/subprocess_script.py",
    "[rank: 1] Child process with PID 4242 terminated with code -9. Forcefully terminating all other "
    "processes to avoid zombies",
)
"""The first child of Lightning's that has failed on a node."""

MEMBER = _pattern(
    "GLOBAL_RANK: ",
    r"GLOBAL_RANK: (?P<rank>\d+), MEMBER: \d+/(?P<world>\d+)",
    "lightning 1.4 to 2.6, fabric/utilities/distributed.py",
    "Initializing distributed: GLOBAL_RANK: 3, MEMBER: 4/8",
)
"""A rank is about to meet the others."""

CRASHED = _pattern(
    ("Fatal Python error: ", "core dumped", "egmentation fault", "Bus error", "Killed", "killed "),
    r"^Fatal Python error: (?P<fatal>Segmentation fault|Aborted|Bus error|Illegal instruction"
    r"|Floating.point exception)"
    r"|^(?:\S+: line \d+: +)?(?:zsh: )?(?:\[\d+\] +)?(?P<pid>\d+ +)?(?P<how>Killed|killed"
    r"|[Ss]egmentation fault|Aborted|[Bb]us error|Illegal instruction)(?: *\(core dumped\))?"
    r"(?: {2,}\S.*)?$",
    "Python 3.3 to 3.14, Modules/faulthandler.c; bash, jobs.c; zsh, Src/jobs.c",
    "Fatal Python error: Segmentation fault",
    "run.sh: line 3: 12345 Killed                  python train.py",
    "zsh: killed     python train.py",
    "Segmentation fault (core dumped)",
)
"""A process has been ended by a signal: which one, the line does not tell."""

RANK_ENDED = _pattern(
    (
        " crashed with exit code ",
        "died unexpectedly",
        "exits with return",
        "terminated with ",
        "exited on",
    ),
    r"\bRank (?P<rank>\d+) crashed with exit code (?P<code>-?\d+)"
    r"|Worker proc \w+-(?P<worker>\d+) died unexpectedly"
    r"|\bexits with return code = (?P<returned>-?\d+)"
    r"|process rank (?P<mpi>\d+) .* exited on signal (?P<number>\d+)"
    r"|died with <Signals\.(?P<died>SIG\w+)"
    r"|process (?P<index>\d+) terminated with (?:signal (?P<signal>SIG\w+)|exit code (?P<exit>\d+))",
    "Composer 0.10 to 0.30, composer/cli/launcher.py; vLLM 0.8 to 0.11, "
    "v1/executor/multiproc_executor.py; DeepSpeed 0.5 to 0.18, deepspeed/launcher/launch.py; "
    "torch 1.5 to 2.15, torch/multiprocessing/spawn.py",
    "ERROR:composer.cli.launcher:Rank 2 crashed with exit code -6",
    "ERROR 07-04 17:35:16 [multiproc_executor.py:140] Worker proc VllmWorker-1 died unexpectedly, "
    "shutting down executor.",
    "[2026-11-23 12:00:00,123] [ERROR] [launch.py:321:sigkill_handler] ['/usr/bin/python', '-u', "
    "'train.py', '--local_rank=1'] exits with return code = -9",
    "torch.multiprocessing.spawn.ProcessExitedException: process 1 terminated with signal SIGKILL",
    "mpirun noticed that process rank 2 with PID 0 on node node7 exited on signal 11 (Aborted).",
)
"""How a rank has ended, in the words of what has started it.

DeepSpeed's launcher prints the command of the process that it started last, whichever has failed."""

MPI_RANK = _pattern(
    (" exited on", "=   RANK "),
    r"process rank (?P<rank>\d+) with PID \d+ on node \S+ exited on$|^= +RANK (?P<number>\d+) PID \d+ ",
    "Open MPI 5, prterun; Intel MPI and MPICH 3 and 4, hydra",
    "prterun noticed that process rank 2 with PID 48212 on node node7 exited on",
    "=   RANK 1 PID 48211 RUNNING AT node7",
)
"""The rank of which the next line tells the signal."""

MPI_SIGNAL = _pattern(
    ("KILLED BY SIGNAL", "signal "),
    r"^=? *(?:KILLED BY SIGNAL:|signal) (?P<number>\d+) \(",
    "Open MPI 5, prterun; Intel MPI and MPICH 3 and 4, hydra",
    "signal 9 (Killed).",
    "=   KILLED BY SIGNAL: 9 (Killed)",
)

ABSENT = _pattern(
    ("missing ranks: ",),
    r"\[missing ranks: (?P<ranks>[\d, ]+)\]",
    "Horovod 0.13 to 0.28, horovod/common/stall_inspector.cc",
    "gradients/AddN_1 [missing ranks: 0]",
)
"""Ranks that have not submitted a tensor for which the others wait."""

READY = _pattern(
    ("ready ranks: ",),
    r"\[ready ranks: (?P<ranks>\d+(?:, \d+)*)\]",
    "Horovod 0.9 to 0.12, horovod/tensorflow/mpi_ops.cc and horovod/common/operations.cc",
    "Stalled ops: allreduce.conv1.weight [ready ranks: 3, 1], allreduce.bn1.bias [ready ranks: 3, 1]",
)
"""Ranks that have submitted a tensor, and wait for the others."""

STALLED = _pattern(
    ("Stalled ranks:", "Missing ranks:"),
    r"^(?:.*\W)?(?:Stalled|Missing) ranks:",
    "Horovod 0.18 to 0.28, horovod/common/stall_inspector.cc",
    "Stalled ranks:",
    "Missing ranks:",
)
"""Lines with the ranks that have not submitted tensors follow: `0: [allreduce.x, ...]`."""

STALLED_RANK = _prefix(
    r"^(?P<rank>\d+): \[",
    "Horovod 0.18 to 0.28, horovod/common/stall_inspector.cc",
    "0: [allreduce.gradients_1, allreduce.gradients_2 ...]",
)

SOME_ENDED = _pattern(
    (
        "Killing subprocess ",
        " died",
        "exited with code ",
        "Exit Code:",
        " Killed",
        "died, exit code",
        "DiedError",
        "Received sigquit",
    ),
    r"\bKilling subprocess \d+|A worker died or was killed while executing a task"
    r"|\bexited with (?:exit )?code (?!0\b)\d+|Exit Code: +(?!0\b)\d+|^make: \*\*\* .* Killed"
    r"|\bpid \d+ died, exit code|(?:Actor|Worker)\w*DiedError|\bReceived sigquit from a child",
    "DeepSpeed 0.5 to 0.18, deepspeed/launcher/launch.py; Ray 2.0 to 2.50, raylet/node_manager.cc; "
    "SGLang 0.4 to 0.5, sglang/srt/entrypoints/engine.py",
    "[2026-11-23 12:00:00,123] [INFO] [launch.py:318:sigkill_handler] Killing subprocess 80",
    "(raylet) A worker died or was killed while executing a task by an unexpected system error.",
    "[2026-11-23 12:00:00] Received sigquit from a child process. It usually means the child failed.",
)
"""A process has ended, and nothing tells which, or how."""

QUITS = _pattern(
    "Received sigquit",
    r"\bReceived sigquit from a child",
    "SGLang 0.4 to 0.5, sglang/srt/entrypoints/engine.py",
    "[2026-11-23 12:00:00] Received sigquit from a child proces. It usually means the child failed.",
)
"""A server kills all its processes, itself included: the shell then prints `Killed`."""

NO_PROGRESS = _pattern(
    "watchdog_timeout=",
    r"(?:\[(?:[\d:-]+ )*(?P<place>(?:[A-Z_]+\d+ ?)+)\] )?(?:\w+ )?[Ww]atchdog timeout "
    r"\(self\.watchdog_timeout=[\d.]+(?!.*soft=True)",
    "SGLang 0.4 to 0.5, sglang/srt/managers/scheduler.py and utils/watchdog.py",
    "[2026-11-23 12:00:00 TP4] Watchdog timeout (self.watchdog_timeout=300)",
    "[2026-11-23 12:00:00 PP1 TP1] Scheduler watchdog timeout (self.watchdog_timeout=300, "
    "self.soft=False)",
    "Scheduler watchdog timeout (self.watchdog_timeout=300, self.soft=False)",
)
"""A process of a server has made no progress for so many seconds; a soft watchdog only tells of it."""

POD_ENDED = _pattern(
    ("exitCode: ", "exited with code "),
    r"Error pod (?P<pod>\S+) container \S+ exitCode: (?P<code>[1-9]\d*)"
    r"|\bPod: (?:[\w-]+\.)?(?P<ended>\S+) exited with code (?P<exit>[1-9]\d*)",
    "Kubeflow's training operator 1.3 to 1.9, pkg/core/pod.go and pkg/controller.v1/*; its common 0.3, "
    "pkg/controller.v1/common/pod.go",
    "DEBUG events Error pod train-worker-0 container pytorch exitCode: 137 terminated message: ",
    "DEBUG events Pod: kubeflow.train-worker-0 exited with code 1",
)
"""How the container of a pod has ended: as a shell tells it, 128 and the signal."""

LOST_ACTOR = _pattern(
    (
        "class_name: ",
        "\tpid: ",
        " pid: ",
        "\tip: ",
        " ip: ",
        "exit type: ",
        " has died",
        "ray.kill",
        "creation task",
    ),
    r"^\s+(?P<about>(?:class_name|pid|ip): \S+)$|Worker (?P<how>exit type: \w+)"
    r"|because (?P<why>its (?:node|owner) has died|it was killed by `?ray\.kill)",
    "Ray 2.0 to 2.50, python/ray/exceptions.py and src/ray/protobuf/common.proto",
    "\tclass_name: RayTrainWorker",
    "The actor is dead because its worker process has died. Worker exit type: SYSTEM_ERROR Worker exit "
    "detail: Worker unexpectedly exits with a connection error code 2. End of file.",
    "The actor died because its node has died. Node Id: 24d0",
)
"""Lines of the message of `ActorDiedError`: which actor it was, and how it has ended."""

SPAWNED = _pattern(
    "terminated with the following error",
    r"^-- Process (?P<rank>\d+) terminated with the following error:",
    "torch 1.2 to 2.15, torch/multiprocessing/spawn.py",
    "-- Process 1 terminated with the following error:",
)
"""The traceback of a child follows, as its parent prints it."""

WORKERS_KILLED = _pattern(
    "killed due to memory pressure",
    r"(?P<number>[1-9]\d*) Workers \(tasks / actors\) killed due to memory pressure \(OOM\)",
    "Ray 2.2 to 2.50, src/ray/raylet/node_manager.cc",
    "(raylet) node_manager.cc:3069: 1 Workers (tasks / actors) killed due to memory pressure (OOM), 0 "
    "Workers crashed due to other reasons at node (ID: 351e, IP: 10.0.0.4) over the last time period.",
)
"""Ray's memory monitor has ended processes."""

_ENDS = (
    "DUE TO /got signal: /eath signal/walltime /TERM_RUN/Reason:/low on /TIMEOUT/PREEMPTED/NODE_F/Node f"
    "/##[error]/took longer/sending signal/DeadlineE/Host EC2/received SIG/Terminated/Hangup"
)

ENDED_FROM_OUTSIDE = _pattern(
    tuple(_ENDS.split("/")),
    r"CANCELLED AT \S+ DUE TO (?P<slurm>[A-Z][A-Z ]+[A-Z])"
    r"|error: Node (?P<node>failure) on"
    r"|SignalException: Process \d+ got signal: (?P<signal>\d+)"
    r"|Received (?P<death>Signals\.SIG\w+|\d+) death signal"
    r"|PBS: job killed: (?P<pbs>walltime)|(?P<lsf>TERM_RUNLIMIT): job killed"
    r"|Reason:\s+(?P<reason>Evicted|DeadlineExceeded|Preempting|NodeLost|Terminated)\b"
    r"|[Tt]he node was (?P<evicted>low on resource)"
    r"|^\d+\S* .*\b(?P<state>TIMEOUT|PREEMPTED|NODE_FAIL)\s+\d+:\d+"
    r"|JobState=(?P<job>TIMEOUT|PREEMPTED|NODE_FAIL)\b"
    r"|^(?:\S+: line \d+: +)?\d+ +(?P<shell>Terminated|Hangup)\b"
    r"|##\[error\]The (?:operation|job|runner) .*(?P<canceled>cancel|shutdown)"
    r"|execution took longer than (?P<gitlab>[\w ]+)|timeout: sending signal (?P<timeout>\w+)"
    r"|\b(?P<deadline>DeadlineExceeded) |[Hh]ost EC2 .*(?P<spot>terminated)"
    r"|process received (?P<main>SIGTERM)",
    "Slurm 18.08 to 26.05, slurmd/slurmstepd/req.c, sacct and scontrol; torch 1.9 to 2.15, "
    "torch/distributed/elastic/multiprocessing/api.py and agent/server/api.py; OpenPBS, mom; LSF, bhist;"
    " Kubernetes 1.9 to 1.34, pkg/kubelet/eviction and kubectl/pkg/describe",
    "slurmstepd: error: *** JOB 123 ON node7 CANCELLED AT 2026-11-23T12:00:00 DUE TO TIME LIMIT ***",
    "slurmstepd: error: *** STEP 123.0 ON node7 CANCELLED AT 2026-11-23T12:00:00 DUE TO PREEMPTION ***",
    "torch.distributed.elastic.multiprocessing.api.SignalException: Process 4242 got signal: 15",
    "W1123 12:00:00.123000 974 torch/distributed/elastic/agent/server/api.py:719] Received "
    "Signals.SIGTERM death signal, shutting down workers",
    "=>> PBS: job killed: walltime 3605 exceeded limit 3600",
    "TERM_RUNLIMIT: job killed after reaching LSF run time limit.",
    "      Reason:       Evicted",
    "The node was low on resource: memory. Container pytorch was using 31Gi",
    "123               python    gpu     ml          8    TIMEOUT      0:0",
)
"""Somebody outside of the job has ended it: no rank has failed."""

CANCELLED = _pattern(
    "CANCELLED AT ",
    r"\*\*\* (?:STEP|JOB) \S+ ON \S+ CANCELLED AT \S+ \*\*\*",
    "Slurm 18.08 to 26.05, slurmd/slurmstepd/req.c",
    "slurmstepd: error: *** STEP 6053.0 ON node7 CANCELLED AT 2026-11-23T12:00:00 ***",
)
"""A step of Slurm's was ended: by `scancel`, or because one of its tasks has failed."""

SIGNAL_BLOCK = _pattern(
    "] Signal: ",
    r"^\[\S+:\d+\] Signal: (?P<how>Segmentation fault|Aborted|Bus error|Illegal instruction"
    r"|Floating point exception) \(\d+\)",
    "Open MPI 1.3 to 5.0, opal/util/stacktrace.c",
    "[node7:12345] Signal: Segmentation fault (11)",
)
"""Open MPI tells of the signal that ends its process."""

XID = _pattern(
    "NVRM: Xid",
    r"NVRM: Xid \((?P<device>[^)]+)\): (?P<said>\d+, .*)",
    "NVIDIA's driver 390 to 580, in the kernel's log; docs.nvidia.com/deploy/xid-errors",
    "[1234.5] NVRM: Xid (PCI:0000:3b:00): 79, pid=4242, name=python3, GPU has fallen off the bus.",
)
"""The driver has reported an error of a GPU."""

MEMORY_KILL = _pattern(
    (
        "oom",
        "OOM",
        "emory: Kill",
        "Killed process",
        "OUT_OF_ME",
        "TERM_MEMLIMIT",
        "killed: mem",
        "emory limit",
    ),
    r"Detected \d+ oom[-_]kill event|(?:Out of memory(?: \([\w ]+\))?|Memory cgroup out of memory): "
    r"Kill(?:ed)? process \d+"
    r"(?: \((?!python|ray|train|pt_|torch|deepspeed|accelerate|vllm)(?P<other>[^)]+)\))?"
    r"|oom-kill:constraint=\w+|\bOOMKilled\b(?!\"?: ?false)|\bOUT_OF_ME(?:MORY\b|\+)|TERM_MEMLIMIT"
    r"|PBS: job killed: mem|exceeded (?:job |step )?memory limit|killed by the OOM killer|'oom-kill'",
    "Linux 4.x to 6.x, mm/oom_kill.c and mm/memcontrol.c; Slurm 18.08 to 26.05, task/cgroup; "
    "Kubernetes, kubectl/pkg/describe/describe.go; Slurm 18.08 to 26.05, sacct, scontrol and mails",
    "slurmstepd: error: Detected 1 oom-kill event(s) in StepId=123.0. Some of your processes may have "
    "been killed by the cgroup out-of-memory handler.",
    "[  510.917639] Memory cgroup out of memory: Killed process 2343 (python3) total-vm:31763532kB",
    "Out of memory: Kill process 1234 (python) score 850 or sacrifice child",
    "[  510.910332] oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0",
    "      Reason:       OOMKilled",
    '                        "reason": "OOMKilled",',
    "123.0            python    gpu     ml          8 OUT_OF_ME+    0:125",
    "   JobState=OUT_OF_MEMORY Reason=OutOfMemory Dependency=(null)",
)
"""The kernel has killed a process for memory."""

NCCL_WARN = _pattern(
    "NCCL WARN",
    r"(?:(?P<host>[^\s:\[\]]+):(?P<pid>\d+):\d+ .*?)?NCCL WARN (?P<said>\S.*)",
    "NCCL 2.14 to 2.30, src/debug.cc, ncclDebugLog",
    "node7:110:697 [3] misc/socket.cc:50 NCCL WARN socketProgress: Connection closed by remote peer "
    "node8<55912>",
    "[2026-11-23 12:00:00] node7:110:697 [3] transport/net_ib.cc:1909 NCCL WARN NET/IB : Got completion "
    "from peer 10.0.0.2<42311> with status=12 opcode=32544 len=0 vendor err 129 (Send)",
)
"""What NCCL has found wrong: with the network, a device, or a peer."""

STORE_BARRIER = _pattern(
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

GAVE_UP = _pattern(
    "failed to pass monitoredBarrier",
    r"(?P<said>\[Rank (?P<rank>\d+)\]: Ranks? [\d, ]+ failed to pass monitoredBarrier.*)",
    "torch 1.8 to 2.15, torch/csrc/distributed/c10d/ProcessGroupGloo.cpp",
    "[Rank 0]: Rank 1 failed to pass monitoredBarrier in 1800000 ms",
    "[Rank 0]: Ranks 1, 3 failed to pass monitoredBarrier in 2000 ms",
)
"""Rank 0 has waited in vain for some ranks."""

REACHED = _pattern(
    "successfully reached monitoredBarrier",
    r"(?P<said>Rank (?P<rank>\d+) successfully reached monitoredBarrier, but received errors while .*)",
    "torch 1.8 to 2.15, torch/csrc/distributed/c10d/ProcessGroupGloo.cpp",
    "[Rank 5]: Rank 5 successfully reached monitoredBarrier, but received errors while waiting for "
    "send/recv from rank 0. Please check rank 0 logs for faulty rank.",
)
"""Another rank has waited in vain for rank 0's answer."""

BIND = _pattern(
    "server socket has failed to",
    r"(?P<said>The server socket has failed to (?:listen on any|bind to) .*)",
    "torch 1.13 to 2.15, torch/csrc/distributed/c10d/socket.cpp",
    "[W socket.cpp:426] [c10d] The server socket has failed to bind to [::]:25641 (errno: 98 - Address "
    "already in use).",
)
"""A process could not listen on a port."""

UNCONNECTED = _pattern(
    ("onnectFullMesh failed",),
    r"(?P<said>Gloo connectFullMesh failed with .*)",
    "torch 2.0 to 2.15, torch/csrc/distributed/c10d/ProcessGroupGloo.cpp",
    "[rank1]:[E528 08:52:46.164295950 ProcessGroupGloo.cpp:145] Gloo connectFullMesh failed with "
    "[/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:144] no error",
)
"""A rank cannot open connections to the others."""

FINGERPRINTS = _pattern(
    "Detected mismatch between collectives",
    r"(?P<said>Detected mismatch between collectives on ranks\. .*)",
    "torch 1.9 to 2.15, torch/csrc/distributed/c10d/ProcessGroupWrapper.cpp",
    "RuntimeError: Detected mismatch between collectives on ranks. Rank 1 is running collective: "
    "CollectiveFingerPrint(SequenceNumber=485, OpType=ALLREDUCE, TensorShape=[25], TensorDtypes=Float",
)
"""TORCH_DISTRIBUTED_DEBUG=DETAIL has compared the calls of two ranks."""

VLLM_WORKER = _pattern(
    "while processing method",
    r"Exception in worker .+? while processing method .+?: (?P<said>.+), "
    r"Traceback \(most recent call last\):$",
    "vLLM 0.4 to 0.6, vllm/executor/multiproc_worker_utils.py",
    "ERROR 06-13 01:30:49 multiproc_worker_utils.py:225] Exception in worker VllmWorkerProcess while "
    "processing method determine_num_available_blocks: Invalid device id, Traceback (most recent call "
    "last):",
)
"""The message of an exception, before its traceback."""

REDUCER = _pattern(
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

DUPLICATE_GPU = _pattern(
    "Duplicate GPU detected",
    r"(?P<said>Duplicate GPU detected : rank \d+ and rank \d+ both on CUDA device \w+)",
    "NCCL 2.14 to 2.30, src/init.cc",
    "Duplicate GPU detected : rank 3 and rank 0 both on CUDA device f000",
)
"""Two ranks have chosen one GPU."""

CHILDS_MESSAGE = _pattern(
    ('"message": "',),
    r'^\s*"message": "(?P<said>(?P<type>[\w.]*(?:Error|Exception)): .*)",?$',
    f"torch 1.9 to 2.15, {_ELASTIC}/errors/error_handler.py",
    '    "message": "RendezvousConnectionError: The connection to the C10d store has failed.",',
)
"""An exception in an error file that has been printed."""

TERMINATED = _pattern(
    "terminate called",
    r"terminate called (?:after throwing an instance of|without an active exception|recursively)",
    "libstdc++ of GCC 4 to 15, libsupc++/vterminate.cc",
    "terminate called after throwing an instance of 'gloo::EnforceNotMet'",
    "terminate called without an active exception",
)
"""A process aborts: nothing has caught an exception of C++."""

WHAT = _pattern(
    "what():",
    r"^ *what\(\): +(?P<said>\S.*)",
    "libstdc++ of GCC 4 to 15, libsupc++/vterminate.cc",
    "  what():  CUDA error: out of memory",
)
"""The message of that exception."""

UNREACHED = _pattern(
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

KERNEL_ASSERTION = _pattern(
    "Assertion `",
    r"\.cu[h]?:\d+: .*(?P<said>Assertion `.*` failed)",
    "CUDA's assert() in a kernel; torch 1.0 to 2.15, aten/src/ATen/native/cuda",
    "aten/src/ATen/native/cuda/Indexing.cu:1422: indexSelectLargeIndex: block: [3,0,0], thread: "
    "[64,0,0] Assertion `srcIndex < srcSelectDimSize` failed.",
)
"""A kernel has found a wrong value: an index that is out of range, mostly."""

UNANSWERED = _pattern(
    "Got completion ",
    r"^(?P<said>NET/IB ?: Got completion (?:from peer|with) .*)",
    "NCCL 2.4 to 2.30, src/transport/net_ib.cc, after `Last error:` of what torch raises",
    "NET/IB : Got completion from peer 10.0.0.2<42311> with error 12, opcode 0",
)
"""The network card has got no answer from another machine."""

WATCHDOG_ENDS = _pattern(
    "watchdog thread terminated with exception",
    r"(?:NCCL|Process group) watchdog thread terminated with exception: "
    r"(?P<said>(?!\[[^]]*\] (?:Watchdog )?[Cc]aught|NCCL error: remote process exited).+)",
    f"torch 1.13 to 2.15, {_NCCL}",
    "[E ProcessGroupNCCL.cpp:915] [Rank 1] NCCL watchdog thread terminated with exception: CUDA error: "
    "an illegal memory access was encountered",
)
"""The device has failed: that is what the watchdog was the first to see."""
