"""What schedulers, the kernel and signal handlers write when they end a job or a process."""

from __future__ import annotations

from .pattern import pattern

_ENDS = (
    "DUE TO /got signal: /eath signal/walltime /TERM_RUN/Reason:/low on /TIMEOUT/PREEMPTED/NODE_F/Node f"
    "/##[error]/took longer/sending signal/DeadlineE/Host EC2/received SIG/Terminated/Hangup"
    "/provided time limit"
)

ENDED_FROM_OUTSIDE = pattern(
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
    r"|process received (?P<main>SIGTERM)"
    r"|^ *The user-provided (?P<mpi>time limit) for job execution has been reached"
    r"|Job exceeded its (?P<mail>walltime) limit",
    "Slurm 18.08 to 26.05, slurmd/slurmstepd/req.c, sacct and scontrol; torch 1.9 to 2.15, "
    "torch/distributed/elastic/multiprocessing/api.py and agent/server/api.py; OpenPBS, mom; LSF, bhist;"
    " Kubernetes 1.9 to 1.34, pkg/kubelet/eviction and kubectl/pkg/describe; Open MPI 1.8 to 4.1, "
    "orte/tools/orterun/help-orterun.txt",
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
    "  The user-provided time limit for job execution has been reached:",
    "Job exceeded its walltime limit. Job was aborted",
)
"""Somebody outside of the job has ended it: no rank has failed."""

CANCELLED = pattern(
    "CANCELLED AT ",
    r"\*\*\* (?:STEP|JOB) \S+ ON \S+ CANCELLED AT \S+ \*\*\*",
    "Slurm 18.08 to 26.05, slurmd/slurmstepd/req.c",
    "slurmstepd: error: *** STEP 6053.0 ON node7 CANCELLED AT 2026-11-23T12:00:00 ***",
)
"""A step of Slurm's was ended: by `scancel`, or because one of its tasks has failed."""

SIGNAL_BLOCK = pattern(
    "] Signal: ",
    r"^\[\S+:\d+\] Signal: (?P<how>Segmentation fault|Aborted|Bus error|Illegal instruction"
    r"|Floating point exception) \(\d+\)",
    "Open MPI 1.3 to 5.0, opal/util/stacktrace.c",
    "[node7:12345] Signal: Segmentation fault (11)",
)
"""Open MPI tells of the signal that ends its process."""

SIGNAL_HANDLER = pattern(
    " received by PID ",
    r"^\*\*\* (?P<name>SIG[A-Z]+)(?: \(@0x[0-9a-f]+\))? received by PID (?P<pid>\d+)\b",
    "Abseil, absl/debugging/failure_signal_handler.cc; glog 0.3 to 0.7, src/signalhandler.cc",
    "*** SIGTERM received by PID 7636 (TID 7636) on cpu 6 from PID 7408; stack trace: ***",
    "*** SIGSEGV (@0x0) received by PID 4242 (TID 0x7f1c2b7fe700) from PID 0; stack trace: ***",
)
"""A library's handler tells of the signal that ends its process."""

XID = pattern(
    "NVRM: Xid",
    r"NVRM: Xid \((?P<device>[^)]+)\): (?P<said>\d+, .*)",
    "NVIDIA's driver 390 to 580, in the kernel's log; docs.nvidia.com/deploy/xid-errors",
    "[1234.5] NVRM: Xid (PCI:0000:3b:00): 79, pid=4242, name=python3, GPU has fallen off the bus.",
)
"""The driver has reported an error of a GPU."""

MEMORY_KILL = pattern(
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
