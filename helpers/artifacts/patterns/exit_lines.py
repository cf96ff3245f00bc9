"""What launchers and supervisors write about processes that have ended."""

from __future__ import annotations

from .pattern import pattern

_ELASTIC = "torch/distributed/elastic/multiprocessing"

FAILED = pattern(
    "failed (exitcode:",
    r"failed \(exitcode: (?P<code>-?\d+)\) local_rank: (?P<local>\d+) \(pid: (?P<pid>\d+)\)",
    f"torch 1.9 to 2.15, {_ELASTIC}/api.py",
    "E1123 14:12:06.754000 974 torch/distributed/elastic/multiprocessing/api.py:1002] failed (exitcode: "
    "-6) local_rank: 1 (pid: 985) of binary: /opt/venv/bin/python",
)
"""The first process that has failed on a node."""

WORKER_FAILED = pattern(
    "torchelastic.worker.status.FAILED",
    r'"name": "torchelastic\.worker\.status\.FAILED", "source": "WORKER"',
    "torch 1.9 to 2.15, torch/distributed/elastic/agent/server/api.py, _construct_event",
    '{"name": "torchelastic.worker.status.FAILED", "source": "WORKER", "timestamp": 0, "metadata": {}}',
)
"""A record of a worker that has failed."""

RESTARTS = pattern(
    "will restart worker group",
    r"Worker group FAILED\. .* will restart worker group|attempts left; will restart worker group",
    "torch 1.9 to 2.15, torch/distributed/elastic/agent/server/api.py",
    "[default] Worker group FAILED. 1/1 attempts left; will restart worker group",
)
"""The launcher starts all ranks again, after a failure."""

ROOT_CAUSE = pattern(
    "Root Cause (first observed failure)",
    r"Root Cause \(first observed failure\)",
    f"torch 1.9 to 2.15, {_ELASTIC}/errors/__init__.py",
    "Root Cause (first observed failure):",
)
"""The first failure follows, which stands last."""

SUMMARY_RANK = pattern(
    ("(local_rank", "(local rank"),
    r"\brank\s*:? ?(?P<rank>\d+) ?\(local[_ ]rank ?: ?(?P<local>\d+)\)",
    f"torch 1.9 to 2.15, {_ELASTIC}/errors/__init__.py",
    "  rank      : 1 (local_rank: 1)",
    "rank2 (local rank: 2)exitcode: -9 (pid: 985)",
)

SUMMARY_EXIT = pattern(
    "exitcode",
    r"exitcode\s*:? ?(?P<code>-?\d+) ?\(pid ?: ?(?P<pid>\d+)\)",
    f"torch 1.9 to 2.15, {_ELASTIC}/errors/__init__.py",
    "  exitcode  : 1 (pid: 985)",
    "  exitcode  : -9 (pid: 1134)  (SIGKILL)",
)
"""How a process has ended, in the summary at the end; its rank comes before, in the same line where the
table has been reflowed or read off a picture."""

TASK_ENDED = pattern(
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

CHILD_ENDED = pattern(
    "Child process with PID",
    r"\[rank: (?P<local>\d+)\] Child process with PID (?P<pid>\d+) terminated with code (?P<code>-?\d+)",
    "lightning 2.1 to 2.6, fabric/strategies/launchers/subprocess_script.py",
    "[rank: 1] Child process with PID 4242 terminated with code -9. Forcefully terminating all other "
    "processes to avoid zombies",
)
"""The first child of Lightning's that has failed on a node."""

MEMBER = pattern(
    "GLOBAL_RANK: ",
    r"GLOBAL_RANK: (?P<rank>\d+), MEMBER: \d+/(?P<world>\d+)",
    "lightning 1.4 to 2.6, fabric/utilities/distributed.py",
    "Initializing distributed: GLOBAL_RANK: 3, MEMBER: 4/8",
)
"""A rank is about to meet the others."""

CRASHED = pattern(
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

RANK_ENDED = pattern(
    (
        " crashed with exit code ",
        "died unexpectedly",
        "died with <Signals.",
        "exits with return",
        " has failed.",
        "heartbeat timeout",
        "terminated with ",
        "exited on",
    ),
    r"\bRank (?P<rank>\d+) crashed with exit code (?P<code>-?\d+)|^Worker (?P<train>\d+) has failed\."
    r"|UNAVAILABLE: Task /job:\w+/replica:\d+/task:(?P<task>\d+) heartbeat timeout"
    r"|Worker proc \w+-(?P<worker>\d+) died unexpectedly"
    r"|\bexits with return code = (?P<returned>-?\d+)"
    r"|process rank (?P<mpi>\d+) .* exited on signal (?P<number>\d+)"
    r"|died with <Signals\.(?P<died>SIG\w+)"
    r"|process (?P<index>\d+) terminated with (?:signal (?P<signal>SIG\w+)|exit code (?P<exit>\d+))",
    "Composer 0.10 to 0.30, composer/cli/launcher.py; vLLM 0.8 to 0.11, "
    "v1/executor/multiproc_executor.py; DeepSpeed 0.5 to 0.18, deepspeed/launcher/launch.py; "
    "torch 1.5 to 2.15, torch/multiprocessing/spawn.py; Ray 2.0 to 2.50, python/ray/train/_internal/"
    "utils.py; jax 0.4, xla/tsl/distributed_runtime/coordination/coordination_service.cc",
    "Worker 0 has failed.",
    "coordination_service.cc:1170] /job:jax_worker/replica:0/task:3 has been set to ERROR in "
    "coordination service: UNAVAILABLE: Task /job:jax_worker/replica:0/task:3 heartbeat timeout.",
    "ERROR:composer.cli.launcher:Rank 2 crashed with exit code -6",
    "ERROR 07-04 17:35:16 [multiproc_executor.py:140] Worker proc VllmWorker-1 died unexpectedly, "
    "shutting down executor.",
    "[2026-11-23 12:00:00,123] [ERROR] [launch.py:321:sigkill_handler] ['/usr/bin/python', '-u', "
    "'train.py', '--local_rank=1'] exits with return code = -9",
    "torch.multiprocessing.spawn.ProcessExitedException: process 1 terminated with signal SIGKILL",
    "mpirun noticed that process rank 2 with PID 0 on node node7 exited on signal 11 (Aborted).",
    "subprocess.CalledProcessError: Command '['python', 'train.py', '--local_rank=7']' died with "
    "<Signals.SIGSEGV: 11>.",
)
"""How a rank has ended, in the words of what has started it.

The launchers of DeepSpeed and of torch before 1.9 print the command of the process that they started
last, whichever has failed."""

MPI_RANK = pattern(
    (" exited on", "=   RANK ", "Process name: [["),
    r"process rank (?P<rank>\d+) with PID \d+ on node \S+ exited on$|^= +RANK (?P<number>\d+) PID \d+ "
    r"|^ +Process name: \[\[\d+,\d+\],(?P<named>\d+)\]$",
    "Open MPI 5, prterun, 1.6 to 4.1, orterun; Intel MPI and MPICH 3 and 4, hydra",
    "prterun noticed that process rank 2 with PID 48212 on node node7 exited on",
    "=   RANK 1 PID 48211 RUNNING AT node7",
    "  Process name: [[50371,1],0]",
)
"""The rank of which the next line tells the signal, or the exit code."""

MPI_EXIT = pattern(
    "Exit code: ",
    r"^ +Exit code: +(?P<code>\d+)$",
    "Open MPI 1.6 to 4.1, orte/tools/orterun/help-orterun.txt",
    "  Exit code:    1",
)

MPI_SIGNAL = pattern(
    ("KILLED BY SIGNAL", "signal "),
    r"^=? *(?:KILLED BY SIGNAL:|signal) (?P<number>\d+) \(",
    "Open MPI 5, prterun; Intel MPI and MPICH 3 and 4, hydra",
    "signal 9 (Killed).",
    "=   KILLED BY SIGNAL: 9 (Killed)",
)

SOME_ENDED = pattern(
    (
        "Killing subprocess ",
        " died",
        "exited with code ",
        "Exit Code:",
        " Killed",
        "died, exit code",
        "DiedError",
        "Received sigquit",
        "worker process has died",
    ),
    r"\bKilling subprocess \d+|A worker died or was killed while executing a task"
    r"|\bexited with (?:exit )?code (?!0\b)\d+|Exit Code: +(?!0\b)\d+|^make: \*\*\* .* Killed"
    r"|\bpid \d+ died, exit code|(?:Actor|Worker)\w*DiedError|\bReceived sigquit from a child"
    r"|^The actor is dead because its worker process has died",
    "DeepSpeed 0.5 to 0.18, deepspeed/launcher/launch.py; Ray 2.0 to 2.50, raylet/node_manager.cc; "
    "SGLang 0.4 to 0.5, sglang/srt/entrypoints/engine.py",
    "[2026-11-23 12:00:00,123] [INFO] [launch.py:318:sigkill_handler] Killing subprocess 80",
    "(raylet) A worker died or was killed while executing a task by an unexpected system error.",
    "[2026-11-23 12:00:00] Received sigquit from a child process. It usually means the child failed.",
    "The actor is dead because its worker process has died. Worker exit type: SYSTEM_ERROR Worker exit "
    "detail: Worker unexpectedly exits with a connection error code 2. End of file.",
)
"""A process has ended, and nothing tells which, or how."""

QUITS = pattern(
    "Received sigquit",
    r"\bReceived sigquit from a child",
    "SGLang 0.4 to 0.5, sglang/srt/entrypoints/engine.py",
    "[2026-11-23 12:00:00] Received sigquit from a child proces. It usually means the child failed.",
)
"""A server kills all its processes, itself included: the shell then prints `Killed`."""

POD_ENDED = pattern(
    ("exitCode: ", "exited with code "),
    r"Error pod (?P<pod>\S+) container \S+ exitCode: (?P<code>[1-9]\d*)"
    r"|\bPod: (?:[\w-]+\.)?(?P<ended>\S+) exited with code (?P<exit>[1-9]\d*)",
    "Kubeflow's training operator 1.3 to 1.9, pkg/core/pod.go and pkg/controller.v1/*; its common 0.3, "
    "pkg/controller.v1/common/pod.go",
    "DEBUG events Error pod train-worker-0 container pytorch exitCode: 137 terminated message: ",
    "DEBUG events Pod: kubeflow.train-worker-0 exited with code 1",
)
"""How the container of a pod has ended: as a shell tells it, 128 and the signal."""

LOST_ACTOR = pattern(
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

SPAWNED = pattern(
    "terminated with the following error",
    r"^-- Process (?P<rank>\d+) terminated with the following error:",
    "torch 1.2 to 2.15, torch/multiprocessing/spawn.py",
    "-- Process 1 terminated with the following error:",
)
"""The traceback of a child follows, as its parent prints it."""

WORKERS_KILLED = pattern(
    "killed due to memory pressure",
    r"(?P<number>[1-9]\d*) Workers \(tasks / actors\) killed due to memory pressure \(OOM\)",
    "Ray 2.2 to 2.50, src/ray/raylet/node_manager.cc",
    "(raylet) node_manager.cc:3069: 1 Workers (tasks / actors) killed due to memory pressure (OOM), 0 "
    "Workers crashed due to other reasons at node (ID: 351e, IP: 10.0.0.4) over the last time period.",
)
"""Ray's memory monitor has ended processes."""
