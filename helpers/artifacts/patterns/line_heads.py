"""What launchers and log collectors write before a line, or between the logs of ranks."""

from __future__ import annotations

from .pattern import pattern, prefix

COLLECTED = prefix(
    r"^\d{4}-\d\d-\d\dT[\d:.]+(?:Z|[+-]\d\d:\d\d)(?: std(?:out|err) [FP])? ",
    "Kubernetes 1.9 to 1.34, pkg/kubelet/kuberuntime/logs/logs.go; `kubectl logs --timestamps`",
    "2026-11-23T12:00:00.123456789Z stderr F [rank1]: Traceback (most recent call last):",
    "2026-11-23T12:00:00.123456789Z [rank1]: Traceback (most recent call last):",
)
"""When a line of a container was written."""

POD = prefix(
    r"^\[pod/(?P<writer>[^/\] ]+)/[^\] ]+\] ",
    "Kubernetes 1.17 to 1.34, `kubectl logs --prefix`, staging/src/k8s.io/kubectl/pkg/cmd/logs/logs.go",
    "[pod/train-worker-1/pytorch] Traceback (most recent call last):",
)
"""The pod that has written a line."""

TASK = prefix(
    r"^(?:P\d+ )? *(?P<number>\d+): ?",
    "Slurm 16.05 to 26.05, `srun --label`, src/common/write_labelled_message.c",
    " 3: Traceback (most recent call last):",
    "007: step 1",
    "P1  2: step 1",
)
"""The task that has written a line; with one process a task it is the rank."""

ACTOR = prefix(
    r"^\([\w.<>:]+(?P<more>[^()]*?) ?\bpid=(?P<pid>\d+)(?:, ip=(?P<ip>[\d.:a-f]+))?[^()]*\) ",
    "Ray 1.0 to 2.50, python/ray/_private/worker.py, print_worker_logs",
    "(RayTrainWorker pid=270291, ip=10.0.0.4) Traceback (most recent call last):",
    "(RayWorkerWrapper pid=270291) step 1",
    "(VllmWorker rank=2 pid=4242) step 1",
)
"""The process that has written a line."""

TITLE = prefix(
    r"^\w+::\w*?(?P<others>(?:_(?:DP|PP)\d+)*)(?:_TP(?P<tensor>\d+))?(?:_(?:EP|ATTN|MOE)\w*)?$",
    "SGLang 0.4 to 0.5, sglang/srt/managers/scheduler.py; vLLM 0.10 to 0.11, vllm/utils, "
    "set_process_title",
    "sglang::scheduler_PP2_TP1",
    "sglang::scheduler_TP1",
    "VLLM::Worker_TP1",
    "sglang::scheduler",
)
"""The title that a server gives its process, with its place: in tensor parallelism alone, its rank."""

PLACE = prefix(
    r"^\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d"
    r"(?P<place>(?: [A-Z_]+\d+)*?(?: TP(?P<tensor>\d+))?(?: [A-Z_]+\d+)*)\] ",
    "SGLang 0.3 to 0.5, sglang/srt/utils, configure_logger",
    "[2026-11-23 12:00:00 TP4] Scheduler hit an exception: Traceback (most recent call last):",
    "[2026-11-23 12:00:00 PP1 TP1] Scheduler watchdog timeout (self.watchdog_timeout=300)",
)
"""The place of the process that has logged a record, of which only the first line has it; in tensor
parallelism alone, its rank."""

WORLD_RANK = pattern(
    "world_rank=",
    r"\(ip=(?P<ip>[\d.:a-f]+), pid=(?P<pid>\d+)\) world_rank=(?P<rank>\d+)",
    "Ray Train 2.5 to 2.50, python/ray/train/_internal/backend_executor.py",
    "- (ip=10.0.163.141, pid=4091) world_rank=3, local_rank=3, node_rank=0",
)
"""The rank of an actor."""

TEE = prefix(
    r"^(?P<replica>[A-Za-z][\w.-]*/\d+ )?\[(?!rank\d)(?(replica)\w*?|[A-Za-z_]\w*?)(?P<number>\d+)\]:",
    "torch 1.9 to 2.15, `torchrun --tee`, torch/distributed/elastic/multiprocessing/tail_log.py; "
    "TorchX 0.1 to 0.7, torchx/cli/cmd_log.py",
    "[default1]:Traceback (most recent call last):",
    "[trainer12]:step 1",
    "trainer/0 [1]:step 1",
)
"""The local rank that has written a line."""

MPI = prefix(
    r"^(?:\w{3} \w{3} +\d+ [\d:]+ \d{4})?\[(?:[\w.@-]+@)?(?:1,)?(?:mpirank:)?(?P<rank>\d+)"
    r"(?:,[\w.-]+)?\]<std(?:out|err|diag)>: ?",
    "Open MPI 1.3 to 5.0, `mpirun --tag-output`, orte/util/../iof; SageMaker, its training toolkit; "
    "Horovod, `horovodrun`",
    "[1,8]<stdout>:Traceback (most recent call last):",
    "[1,mpirank:2,algo-1]<stderr>:Traceback (most recent call last):",
)
"""The rank that has written a line, by the launcher."""

TAGGED = prefix(
    r"^[\[(](?:RANK|(?:global_?)?rank)(?: ?[=:] ?| )?(?P<rank>\d+)[\])]:?(?! Child process) ?",
    "loggers of programs and of Ray Train: no library of its own",
    "[rank=3] Traceback (most recent call last):",
    "[RANK 2] step 1",
)
"""The rank that has written a line, by its program."""

PREPENDED = prefix(
    r"^\[(?P<rank>\d+)\] ?",
    "Intel MPI and MPICH 3 and 4, `mpirun -prepend-rank`",
    "[3] Traceback (most recent call last):",
)
"""The rank that has written a line, where lines of tracebacks have such labels."""

RANK = prefix(
    r"\[rank(?P<rank>\d+)\]: ?",
    "torch 2.2 to 2.15, c10/util/Logging.cpp; 2.3 to 2.15, torch/distributed/distributed_c10d.py",
    "[rank1]:[E ProcessGroupNCCL.cpp:1316] [PG 0 Rank 1] Heartbeat monitor timed out!",
    "[default1]:[rank1]: Traceback (most recent call last):",
)
"""The rank that has written a line: the global one."""
