"""How long until a tool names something about a hang, and what: `diagnose` and what torch's users have.

Ten of the jobs in tests/jobs hang, or would. Each runs under each tool. What a tool prints is searched
for what is true of the job: the marked lines of its program, and what jobs.toml says.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import psutil
from score.jobs import Job, read
from score.trial import MARKER

from helpers.launch.processes import free_port

ROOT = Path(__file__).resolve().parent.parent
PUT_IN = Path(__file__).resolve().parent / "put_in"

AFTER = 5.0
"""Seconds that every tool waits before it calls a rank stuck: its time-out, or when the user acts."""

SETTLES = 5.0
"""Seconds that a tool may take after that, for its own work."""

STARTS = 180.0
"""Seconds within which a job has come to its stall."""

AT_A_TIME = 3
"""Jobs that run at a time; they wait for most of it."""

DEFAULT = 1800
"""Seconds of gloo's own time-out: torch.distributed.constants.default_pg_timeout."""

ASPECTS = ("rank", "call", "line", "cause", "branch", "fix")

PROGRAM = "train.py"
"""The name of every job's program while it runs: its own name says too much."""

FIX = r"\b(what to do|fix|please|try|make sure|ensure|should|consider|you can|you may)\b"
"""A sentence that tells the reader to do something, whatever it is."""


class Hang(NamedTuple):
    """What is searched for, beside the marks and jobs.toml: patterns of the call and of the cause."""

    call: str
    cause: str


MISMATCH = r"mismatch|never match|differ|not the same|do not match|desync"

HANGS = {
    "barrier_for_one": Hang("barrier", MISMATCH),
    "swallowed_error": Hang("broadcast", MISMATCH),
    "partial_group": Hang(r"new_?group", rf"{MISMATCH}|missing|failed to pass|not joined"),
    "both_receive": Hang("i?recv|receives?", f"{MISMATCH}|both|each other"),
    "key_never_set": Hang(
        r"store\W*get|\bget\(|get for|store key", "weights-ready|no rank (has )?sets?|never set"
    ),
    "left_lock_file": Hang("file_?baton|sleep", "lock"),
    "asleep": Hang("sleep", "sleep|missing|failed to pass|not joined"),
    "worker_asleep": Hang("sleep", "worker|sleep"),
    "exits_hard": Hang(r"\b_exit\b|exited|exit code", "exited|has left|closed by peer"),
    "killed": Hang(r"kill(ed)?\b|sigkill", r"killed|sigkill|exitcode *: *-9|signal 9"),
}


class Said(NamedTuple):
    """A line that a tool has printed, and the monotonic time of it."""

    at: float
    text: str


@dataclass(frozen=True)
class Truth:
    """What is true of a job."""

    job: Job
    hang: Hang

    def asked(self) -> tuple[str, ...]:
        """The aspects that the job has: not each has an odd rank, a first line and a branch."""
        lines = self.job.lines()
        lacks = {
            "rank": not self.job.culprits,
            "line": "culprit" not in lines,
            "branch": "parted" not in lines,
        }
        return tuple(aspect for aspect in ASPECTS if not lacks.get(aspect))

    def named(self, text: str) -> set[str]:
        """The aspects that a text names."""
        lines = self.job.lines()
        patterns = {
            "call": self.hang.call,
            "line": _place(lines.get("culprit")),
            "cause": self.hang.cause,
            "branch": _place(lines.get("parted")),
            "fix": FIX,
        }
        found = {name for name, pattern in patterns.items() if re.search(pattern, text, re.IGNORECASE)}
        if singled_out(text, set(self.job.culprits or ())):
            found.add("rank")
        return found & set(self.asked())


def _place(line: tuple[str, int] | None) -> str:
    """The pattern of a line as Python, py-spy, torch and this project write it."""
    if line is None:
        return "(?!)"
    return rf"{re.escape(PROGRAM)}(\"?, line |:|\(| line ){line[1]}\b"


SPEAKER = re.compile(r"^(\[rank ?\d+\]:|\[[EWI]\d{4} [^]]*\] ?)+(\[rank \d+\]: )?", re.IGNORECASE)
"""What torch puts before a line to say which rank has printed it."""

RANKS = re.compile(r"\branks?[ :=#\[]*((?:\d+(?:, ?| and |\b))+)", re.IGNORECASE)


def singled_out(text: str, culprits: set[int]) -> bool:
    """True where the odd ranks are named in a way in which no other rank is.

    A line that says the same of another rank, the number apart, singles out none. Who prints a line and
    whom it names are two things. torchrun's root cause is one more thing than its other failures.
    """
    said: dict[str, set[frozenset[int]]] = {}
    section = ""
    for line in text.splitlines():
        section = line if line.startswith(("Root Cause", "Failures")) else section
        rest = SPEAKER.sub("", line)
        speaker = line.removesuffix(rest)
        for named, whole in ((speaker, line), (rest, rest)):
            ranks = frozenset(
                int(number) for group in RANKS.findall(named) for number in re.findall(r"\d+", group)
            )
            if ranks:
                said.setdefault(section + re.sub(r"\d+", "#", whole), set()).add(ranks)
    mine = frozenset(culprits)
    return any(
        of == {mine} or (bool(of) and frozenset().union(*of) == mine) for of in said.values() if mine
    )


@dataclass
class Run:
    """A job under a tool, while it runs."""

    truth: Truth
    place: Path
    port: int
    process: subprocess.Popen[str]
    said: list[Said]

    @property
    def stalled(self) -> float | None:
        """The last moment that a rank noted before its blocking call."""
        notes = [json.loads(file.read_text() or "{}") for file in self.place.glob("../marks/*.json")]
        return max((note["monotonic"] for note in notes if note), default=None)

    def hear(self, stream: Iterator[str]) -> None:
        """Take down what is printed, with the time."""
        for line in stream:
            self.said.append(Said(time.monotonic(), line.rstrip()))

    def ask(self, command: Sequence[str]) -> None:
        """Run a command of the user and hear what it prints."""
        with subprocess.Popen(
            command, cwd=self.place, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        ) as asked:
            assert asked.stdout is not None
            self.hear(asked.stdout)


@dataclass(frozen=True)
class Tool:
    """What a user has put in beforehand, and does when a job has stood still for `AFTER` seconds."""

    name: str
    put_in: str = ""
    environment: Mapping[str, str] | None = None
    wraps: tuple[str, ...] = ()
    acts: Callable[[Run], None] | None = None


def _dump_recorders(run: Run) -> None:
    """Have every rank write its recorder, and let torch's analyzer read what has been written."""
    folder = run.place.parent / "dumps"
    folder.joinpath("now").touch()
    enough = time.monotonic() + SETTLES / 2
    while time.monotonic() < enough and len(list(folder.glob("rank_*"))) < _ranks(run):
        time.sleep(0.05)
    folder.joinpath("now").unlink()
    tool = str(Path(sys.executable).with_name("torchfrtrace"))
    run.ask([tool, "--allow-incomplete-ranks", "--print_stack_trace", "-p", "rank_", str(folder)])


def _ranks(run: Run) -> int:
    """How many ranks a job has, from its program or its command."""
    found = re.search(
        r"nproc-per-node=(\d+)|nprocs=(\d+)",
        run.truth.job.command + run.truth.job.program.read_text(),
    )
    assert found is not None, run.truth.job.name
    return int(found[1] or found[2])


def _read_pages(run: Run) -> None:
    """Open the debug server's pages of stacks and recorders, without the markup."""
    for page in ("stacks", "fr_trace_json", "tcpstore"):
        with suppress(OSError):
            with urllib.request.urlopen(
                f"http://localhost:{run.port}/{page}", timeout=SETTLES
            ) as answer:
                text = answer.read().decode(errors="replace")
            text = re.sub(r"(?s)<(style|script|nav|head)\b.*?</\1>|<[^>]*>", "", text)
            run.hear(iter(text.splitlines()))


def _dump_stacks(run: Run) -> None:
    """py-spy on every process of the job: the ranks by their innermost line of the user's own."""
    at: dict[str, list[str]] = {}
    for pid, rank in _pids(run.process.pid):
        dump = subprocess.run(["py-spy", "dump", "--pid", str(pid)], capture_output=True, text=True)
        frames = re.findall(r"^    (\S.*)$", dump.stdout.partition('"MainThread"')[2], re.MULTILINE)
        own = [frame for frame in frames if (run.place / _file(frame)).is_file()]
        if own:
            at.setdefault(f"{own[0]}, in {frames[0]}", []).append(rank)
    for frame, ranks in sorted(at.items(), key=lambda entry: len(entry[1])):
        run.hear(iter([f"{'rank' if len(ranks) == 1 else 'ranks'} {', '.join(ranks)}: {frame}"]))


def _file(frame: str) -> str:
    return Path(frame.rpartition("(")[2].partition(":")[0]).name


def _pids(root: int) -> Iterator[tuple[int, str]]:
    """Every Python process of a job, and the rank that it has: `spawn` starts them in order."""
    below = psutil.Process(root).children(recursive=True)
    spawned = 0
    for process in below:
        with suppress(psutil.Error):
            environment, command = process.environ(), " ".join(process.cmdline())
            if "resource_tracker" in command:
                continue
            parent = process.parent()
            worker = parent is not None and parent.pid != root
            if "RANK" in environment:
                yield process.pid, environment["RANK"] + (" worker" if worker else "")
            elif "spawn_main" in command:
                yield process.pid, str(spawned)
                spawned += 1


OURS = Tool(
    "`stuck-ranks diagnose`",
    wraps=(
        sys.executable,
        "-m",
        "helpers",
        "diagnose",
        "--stop-on-suspicion",
        "--patience",
        str(AFTER),
        "--",
    ),
)

TOOLS = (
    Tool("time-out of the process group", put_in="timeout"),
    Tool(
        "`TORCH_DISTRIBUTED_DEBUG=DETAIL`",
        put_in="timeout",
        environment={"TORCH_DISTRIBUTED_DEBUG": "DETAIL"},
    ),
    Tool("`monitored_barrier` before each collective", put_in="timeout,barrier"),
    Tool("Flight Recorder and `torchfrtrace`", put_in="recorder", acts=_dump_recorders),
    Tool("torch's debug server", put_in="server", acts=_read_pages),
    Tool("py-spy on all ranks", acts=_dump_stacks),
)


class Answer(NamedTuple):
    """What a tool has made of a job: seconds from the stall to the first thing named, None if none."""

    seconds: float | None
    named: frozenset[str]


def answer(tool: Tool, truth: Truth) -> Answer:
    """Run one job under one tool."""
    mark = uuid.uuid4().hex
    with tempfile.TemporaryDirectory(prefix="rival-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        for part in ("marks", "dumps", "tmp"):
            folder.joinpath(part).mkdir()
        ignored = shutil.ignore_patterns("*.toml", "__pycache__")
        shutil.copytree(truth.job.folder, folder / "place", ignore=ignored)
        program = (folder / "place" / truth.job.program.name).rename(folder / "place" / PROGRAM)
        _note_the_stall(program)
        port, page = free_port(), free_port()
        path = [str(folder / "place"), *filter(None, [os.environ.get("PYTHONPATH")]), str(ROOT)]
        environment = {
            **os.environ,
            "PATH": os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"])),
            "PYTHONPATH": os.pathsep.join([str(PUT_IN), *path] if tool is not OURS else path),
            "PYTHONUNBUFFERED": "1",
            "OMP_NUM_THREADS": "1",
            "TMPDIR": str(folder / "tmp"),
            "STALL_MARKS": str(folder / "marks"),
            "STUCK_RANKS_GUARDIAN": str(os.getpid()),
            "PUT_IN": tool.put_in,
            "PUT_IN_TIMEOUT": str(AFTER),
            "PUT_IN_PORT": str(page),
            "DUMP_WHEN": str(folder / "dumps" / "now"),
            MARKER: mark,
            **(tool.environment or {}),
        }
        with subprocess.Popen(
            [
                *tool.wraps,
                *shlex.split(
                    truth.job.command.format(port=port).replace(truth.job.program.name, PROGRAM)
                ),
            ],
            cwd=folder / "place",
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as process:
            run = Run(truth, folder / "place", page, process, [])
            assert process.stdout is not None
            listener = threading.Thread(target=run.hear, args=(process.stdout,))
            listener.start()
            try:
                _let_it_hang(run, tool)
            finally:
                _end(mark)
                listener.join()
        stalled = run.stalled
        assert stalled is not None, (truth.job.name, tool.name, [one.text for one in run.said][-20:])
    return _judged(truth, stalled, _own(run.said) if tool is OURS else run.said)


def _own(said: Sequence[Said]) -> list[Said]:
    """What `diagnose` itself says of this job: no output of the job, no general text on a cause."""
    own, general = [], False
    for one in said:
        general = one.text in ("Why", "References") or (general and one.text != "Evidence")
        if not general and not re.match(r"\[(rank \d+|launcher)\]", one.text):
            own.append(one)
    return own


def _note_the_stall(program: Path) -> None:
    """Have the job note the moment before its marked line, and take off the marks that say too much."""
    text = program.read_text()
    if "about_to_block" not in text:
        note = r"\1__import__('marks').about_to_block(); \2"
        text = re.sub(r"(?m)^( *)(\S.*# <- culprit)", note, text)
    program.write_text(re.sub(r" *# <- .*", "", text))


def _let_it_hang(run: Run, tool: Tool) -> None:
    limit = time.monotonic() + STARTS
    while (stalled := run.stalled) is None and run.process.poll() is None:
        assert time.monotonic() < limit, (run.truth.job.name, tool.name)
        time.sleep(0.05)
    if stalled is None:
        return
    with suppress(subprocess.TimeoutExpired):
        run.process.wait(max(0.0, stalled + AFTER - time.monotonic()))
    if tool.acts is not None:
        if run.process.poll() is None:
            tool.acts(run)
        return
    with suppress(subprocess.TimeoutExpired):
        run.process.wait(SETTLES)


def _end(mark: str) -> None:
    """End all that a run has started."""
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.environ().get(MARKER) == mark:
                process.kill()


def _judged(truth: Truth, stalled: float, said: list[Said]) -> Answer:
    """When the first of what is true was named, and all that was."""
    after = [one for one in said if one.at > stalled]
    named = truth.named("\n".join(one.text for one in after)) - {"fix"}
    everything = truth.named("\n".join(one.text for one in after))
    for number in range(1, len(after) + 1 if named else 0):
        if truth.named("\n".join(one.text for one in after[:number])) - {"fix"}:
            return Answer(after[number - 1].at - stalled, frozenset(everything))
    return Answer(None, frozenset(everything if named else ()))


def rivals(names: Sequence[str] = tuple(HANGS)) -> Iterator[str]:
    """Every tool on every hang."""
    jobs = read(ROOT / "tests" / "jobs")
    truths = [Truth(jobs[name], HANGS[name]) for name in names]
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        found = {
            tool.name: list(pool.map(answer, [tool] * len(truths), truths)) for tool in (OURS, *TOOLS)
        }
    asked = {aspect: sum(aspect in truth.asked() for truth in truths) for aspect in ASPECTS}
    yield (
        f"{len(truths)} hangs of `tests/jobs`, on gloo. What a tool prints after the stall is searched "
        "for what is true of the job: the marked lines of its program and the ranks that `jobs.toml` "
        "names. The rank counts where a line names the odd ranks and no line says the same of another "
        "rank; of the line and the branch, file and number have to be there; for the call, the cause "
        "and the fix, `benchmarks/rivals.py` has patterns, which take any advice for a fix. Not every "
        "hang has an odd rank, a line or a branch. Programs run without their marks, and are all named "
        f"`{PROGRAM}`; of `diagnose`, only what it says of this job counts, not the job's output or the "
        "general text on a cause. The patterns were corrected after each tool's output had been read, "
        "where they missed what it says or took a file's name for a cause."
    )
    yield ""
    yield f"| tool | names something after | / ours | named | {' | '.join(ASPECTS)} |"
    yield f"|---|---|---|---|{'---|' * len(ASPECTS)}"
    ours = _median(found[OURS.name])
    for name, answers in found.items():
        middle = _median(answers)
        ratio = f"{middle / ours:.1f}" if middle is not None and ours is not None else "-"
        shares = (
            f"{sum(aspect in one.named for one in answers)} of {asked[aspect]}" for aspect in ASPECTS
        )
        some = sum(one.seconds is not None for one in answers)
        yield (
            f"| {name} | {_seconds(middle)} | {ratio} | {some} of {len(answers)} "
            f"| {' | '.join(shares)} |"
        )
    yield ""
    yield (
        "Median seconds from the stall to the first line that names a rank, call, line or cause; a hang "
        "of which a tool names nothing counts as later than all others. "
        f"All tools have the same patience, {AFTER:g} s: it is the time-out of the process groups and "
        "barriers, `--patience` (with `--stop-on-suspicion`) of `diagnose`, and the moment at which a "
        "user dumps the recorders, opens the server's pages (stacks, recorders, store) or runs py-spy, "
        f"which nothing tells them to. By default, gloo's time-out is {DEFAULT} s. The recorders' group "
        "names are put in first, without which `torchfrtrace` fails on gloo. The time-out, the barrier "
        "before each collective, the thread that dumps and the call that starts the server are put into "
        "the job by `benchmarks/put_in`. py-spy's stacks are put together by their innermost line of "
        f"the job. {AT_A_TIME} jobs run at a time."
    )
    yield ""
    yield f"| hang | {' | '.join(found)} |"
    yield f"|---|{'---|' * len(found)}"
    for number, truth in enumerate(truths):
        cells = []
        for answers in found.values():
            one = answers[number]
            words = ", ".join(aspect for aspect in ASPECTS if aspect in one.named)
            cells.append(f"{_seconds(one.seconds)}: {words}" if words else "nothing")
        yield f"| {truth.job.name} ({truth.job.cause}) | {' | '.join(cells)} |"


def _median(answers: Sequence[Answer]) -> float | None:
    seconds = sorted(float("inf") if one.seconds is None else one.seconds for one in answers)
    middle = statistics.median(seconds)
    return None if middle == float("inf") else middle


def _seconds(value: float | None) -> str:
    return "never" if value is None else f"{value:.1f} s"
