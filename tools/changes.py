"""Every change that the instrument makes to a job: one row each, which docs/changes.md and tests read.

`python tools/changes.py` writes them into that page. `tests/real/test_changes.py` compares the world of
a program with and without the instrument: each difference must be declared here, and each row that
says how it shows must show.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

PAGE = Path(__file__).resolve().parents[1] / "docs" / "changes.md"
BEGIN, END = "<!-- changes: tools/changes.py -->\n", "\n<!-- end of changes -->"

Whose = Literal["every process", "Python processes", "processes with torch", "the command", "labs"]


@dataclass(frozen=True)
class Change:
    """One change.

    Attributes:
        what: is different, whose: in which processes, why: what for, and what follows from it; Markdown.
        shows: names of the differences that a program can see, as the test has them; `*` stands for any
            part. Empty for what shows under special circumstances only, for which other tests are.
    """

    what: str
    whose: Whose
    why: str
    shows: tuple[str, ...] = ()


CHANGES = (
    Change(
        "Standard output and error (file descriptors 1 and 2) are a pipe, one for each Python "
        "process, from which they are shown. Python writes each line at once. A reader of the pipe is "
        "kept open in the process, at a descriptor of 200 or more.",
        "every process",
        "All ranks share what a launcher gives them. `isatty` is false, so a progress bar may print "
        "lines, and the C library buffers. A pipe that is not read holds the job up; SIGPIPE never "
        "comes.",
        (
            "descriptor 1",
            "descriptor 2",
            "line buffering",
        ),
    ),
    Change(
        "Signals to `diagnose` are passed on 50 ms later, to the process group of the command.",
        "the command",
        "In a terminal, the foreground's process group is not the job's. docs/diagnose.md lists them.",
    ),
    Change(
        "When `diagnose` ends the job, launchers are stopped and ranks get SIGINT; half a second later "
        "all get SIGCONT and SIGTERM, and 0.7 s after that SIGKILL.",
        "every process",
        "So ranks in Python code run `finally`, and no launcher starts a rank again.",
    ),
    Change(
        "Standard input is that of `diagnose`; in a notebook it is a pipe that never delivers.",
        "the command",
        "A program that reads it waits in a notebook, and is shown to wait for input.",
    ),
    Change(
        "Descriptors above 2 that `diagnose` was given to hand down (`<(...)`, locks, make's "
        "jobserver) go to the command; in a notebook none does.",
        "the command",
        "They are the job's alone from then on. Where systemd's variables name `diagnose` "
        "(`LISTEN_PID`, `WATCHDOG_PID`), a shell renames them before it executes the command.",
    ),
    Change(
        "The job runs in a session and a process group of its own, below a guardian process, "
        "which also becomes the parent of its orphans (`PR_SET_CHILD_SUBREAPER`).",
        "every process",
        "So all of it can be stopped, whatever happens to the tool. What its libraries keep in "
        "TMPDIR (`torchelastic_*` of torchrun, `pymp-*` of `multiprocessing`) stays there when it "
        "is stopped: TMPDIR is left as it is, since torch's compile cache lies in it.",
        (
            "session",
            "process group",
            "parent",
            "parent of an orphan",
        ),
    ),
    Change(
        "The environment has `STUCK_RANKS_RUN`, `STUCK_RANKS_ID`, `STUCK_RANKS_PATH` and "
        "`STUCK_RANKS_GUARDIAN` (docs/variables.md).",
        "every process",
        "By these the processes of a run are found and report.",
        ("environment STUCK_RANKS_*",),
    ),
    Change(
        "`PYTHONPATH` gains one folder, before all others.",
        "every process",
        "The code in it, the beacon, uses Python's standard library only and takes the folder off "
        "`sys.path` again; with the option `-S`, nothing does.",
        ("environment PYTHONPATH",),
    ),
    Change(
        "`sys.modules` has the beacon (`stuck_ranks_beacon`) and what it imports.",
        "Python processes",
        "It is the witness of Python 3.8 and later; older ones, `-I`, `-E` and `-S` have none. "
        "`-X importtime` and `-v` show it.",
        (
            "module *",
            "importer cache",
        ),
    ),
    Change(
        "One more thread, which blocks all signals and is unknown to `threading`; it rests around "
        "forks and `os.unshare`, and hooks at forks and at the exit are registered for it.",
        "Python processes",
        "It looks at the process five times a second, all of one machine at the same moments. "
        "Namespaces for which a process may have one thread only cannot be entered through `ctypes`. "
        "None is in a sub-interpreter, nor in a "
        "pid namespace of the job's own; while there are sub-interpreters (3.12 and later), the "
        "process is read from outside.",
        (
            "threads",
            "hooks at exit",
        ),
    ),
    Change(
        "`os.waitpid`, `os._exit`, `os.kill` and `sys.exit`, with 3.12 also `os.unshare` and "
        "`os.setns`, with 3.13 alone also `os.fork` and `os.forkpty`, are objects that take a "
        "note and call the function.",
        "Python processes",
        "They are called, shown, copied and pickled as the functions and leave no frame in a "
        "traceback; `type()` tells them apart, and a debugger's `step` goes into them.",
        tuple(f"name *.{name}" for name in ("waitpid", "_waitpid", "_exit", "kill", "exit")),
    ),
    Change(
        "`faulthandler` is enabled on a file of the run, whose descriptor is 200 or more, unless "
        "the job enables it.",
        "Python processes",
        "So a crash tells its stack.",
        (
            "faulthandler",
            "descriptor 2??",
            "signals caught",
        ),
    ),
    Change(
        "Where `kernel.yama.ptrace_scope` is 1, as on Ubuntu, a process that uses `ctypes` names "
        "`stuck-ranks` as one that may read its memory (`PR_SET_PTRACER`).",
        "Python processes",
        "So its line is seen while a C call holds the interpreter lock.",
    ),
    Change(
        "`_WaitCounter` in `torch.distributed.c10d_logger` is a function that calls the class.",
        "processes with torch",
        "So a call of `init_process_group` is noticed, however brief the group, and one of `new_group`.",
        ("name torch.distributed.c10d_logger._WaitCounter",),
    ),
    Change(
        "`_rank_not_in_group` in `torch.distributed` and its `distributed_c10d`, by which each call of "
        "the network asks whether the rank takes part, is a function around torch's (`__wrapped__`).",
        "processes with torch",
        "So each call made through Python is counted. Of the newest 64, the order is kept, and the "
        "numbers, truth values, short texts and lengths that the user's lines can name, at most 32 a "
        "call. Reading them takes at most 0.1 % of the time: where calls come fast, only every second, "
        "fourth, ... call is read. "
        "The note itself costs 5 to 7 microseconds a call (benchmarks/bench.md).",
    ),
    Change(
        "Where torch is built with NCCL, and neither the pipe nor the dump of its Flight Recorder is "
        "set: from the first call of `init_process_group` on, `TORCH_NCCL_DEBUG_INFO_PIPE_FILE` and "
        "`TORCH_FR_DUMP_TEMP_FILE` (before 2.9, `TORCH_NCCL_DEBUG_INFO_TEMP_FILE`) lead into the run's "
        "folder, and `NCCL_SET_THREAD_NAME` is 1, unless it is set.",
        "processes with torch",
        "So torch itself dumps what NCCL's recorder holds when it is asked to: once the numbers of "
        "all collectives have not moved for 3 s, at most every 30 s. What torch dumps at a "
        "timeout goes where it would go without us, through a link, although torch's log names that. "
        "NCCL's threads have names, by which their work is told from that of the rank.",
    ),
    Change(
        "A rank that has kept a processor busy in C for 10 s, at a line that does not tell why, is "
        "stopped for some tenths of a second while `py-spy dump --native` reads its stack, once there.",
        "processes with torch",
        "Where a device is used, so that a wait for that is told from a computation.",
    ),
    Change(
        "How far each group of NCCL is (`pg_status` of its recorder) is read five times a second.",
        "processes with torch",
        "These are numbers that torch's watchdog keeps; no event of CUDA is queried, and no entry read.",
    ),
    Change(
        "`torch._inductor`, while that has not been imported, is an object that imports it when "
        "another thread asks, for the 0.1 s in which the Flight Recorder is read.",
        "processes with torch",
        "The recorder asks for it, and torch would import it, which takes a second.",
    ),
    Change(
        "Memory is limited as the lab says.",
        "labs",
        "A program that takes too much must not take the machine down with it.",
    ),
)


def to_markdown() -> str:
    """The table, as the page has it."""
    rows = [f"| {change.what} | {change.whose} | {change.why} |" for change in CHANGES]
    return "\n".join(("| what is different | in | what for, and what follows |", "|---|---|---|", *rows))


def main() -> None:
    """Put the table in the place of the one that is there."""
    text = PAGE.read_text()
    before, after = text.partition(BEGIN)[0], text.partition(END)[2]
    PAGE.write_text(f"{before}{BEGIN}{to_markdown()}{END}{after}")


if __name__ == "__main__":
    main()
