"""How the guide runs on this machine: facts, judged one by one, and what they mean for each lab."""

from __future__ import annotations

import importlib.metadata
import platform
import re
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from html import escape as escape_html
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec
import psutil
from rich.console import Console, Group, RenderableType
from rich.markup import escape
from rich.table import Column, Table

from ..launch.memory_limit import MB
from ..report.markdown import inline, paragraph
from . import machine
from .declaration import Hardware
from .lab import Lab, LabError, all_labs

if TYPE_CHECKING:
    from packaging.version import Version

__all__ = ["Fact", "Here", "LabLine", "collect", "exit_code", "here", "lab_line", "main", "render"]

Status = Literal["ok", "warn", "missing"]

GIB = 2**30
SET_UP = "Run make lab in the checkout, which installs it."
SYS_PTRACE_BIT = 19

REQUIRED = ("lightning", "ipykernel", "ipywidgets", "anywidget", "jupyterlab")
"""The packages that the guide cannot do without, but for torch."""

GUIDE = "the guide"
"""The fact that stands for all of these where the tool is installed alone."""

OPTIONAL = {
    "nbval": "Only make test needs it, and installs it.",
    "transformers": f"The part of lab 03 on host memory needs it. {SET_UP}",
    "safetensors": f"The part of lab 03 on host memory needs it. {SET_UP}",
    "accelerate": "Only jobs started with accelerate launch need it.",
    "deepspeed": f"The part of lab 03 on DeepSpeed needs it. {SET_UP}",
}
"""The others, and what stays closed without them."""


class Fact(msgspec.Struct, frozen=True):
    """One thing this machine has or lacks.

    Attributes:
        name: what it is.
        value: what was found, in words.
        status: "ok"; "warn" when something of the guide does less; "missing" when nothing works.
        advice: one sentence on what to do or what follows, or "".
    """

    name: str
    value: str
    status: Status = "ok"
    advice: str = ""


class LabLine(msgspec.Struct, frozen=True):
    """How one lab runs here.

    Attributes:
        name: the lab's folder.
        runs: the best hardware that it finds.
        note: what differs here from a machine that has everything, and why; or "".
    """

    name: str
    runs: Hardware
    note: str = ""


class Here(msgspec.Struct, frozen=True):
    """This machine, as a notebook cell shows it: what is not ok, and all of it folded.

    Attributes:
        facts: as `collect` returns them.
        labs: a line for each lab.
    """

    facts: tuple[Fact, ...]
    labs: tuple[LabLine, ...]

    @property
    def notable(self) -> list[str]:
        """A sentence or two on each thing that is not as it could be."""
        notes = [
            f"**{fact.name}**: {fact.value}. {fact.advice}" for fact in self.facts if fact.status != "ok"
        ]
        return notes + [f"**{lab.name}**: {lab.note}" for lab in self.labs if lab.note]

    def __repr__(self) -> str:
        lines = [closing(self.facts), *(f"- {note}" for note in self.notable)]
        return "\n".join(lines).replace("**", "")

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{fact.status}</td>"
            f"<th scope='row' style='text-align:left'>{escape_html(fact.name)}</th>"
            f"<td style='text-align:left'>{escape_html(fact.value)}</td></tr>"
            for fact in self.facts
        )
        items = "".join(f"<li>{inline(note, strong=True)}</li>" for note in self.notable)
        return (
            f"{paragraph(closing(self.facts))}{items and f'<ul>{items}</ul>'}"
            f"<details><summary>All that was looked at</summary><table>{rows}</table></details>"
        )


def here() -> Here:
    """Look at this machine and at what each lab finds on it. Raises LabError."""
    return Here(tuple(collect()), tuple(map(lab_line, all_labs())))


def collect() -> list[Fact]:
    """Look at this machine and this Python.

    Returns:
        The facts in the order in which they are shown. It takes a few seconds, most of them to
        import torch in another process. Nothing is changed, and what cannot be read is a fact. Where the
        tool is installed alone, these are the facts that concern it.
    """
    ptrace = ptrace_fact(_read("/proc/sys/kernel/yama/ptrace_scope"), _read("/proc/self/status"))
    tools = (ptrace, tool_fact("py-spy", machine.py_spy()))
    if not has_guide():
        return [
            Fact("Python", platform.python_version()),
            platform_fact(platform.system(), platform.release()),
            *tools,
            Fact(
                GUIDE,
                "not installed",
                "ok",
                "Its labs need stuck-ranks[labs]: torch, JupyterLab and more.",
            ),
        ]
    return [
        python_fact(sys.version_info[:3]),
        platform_fact(platform.system(), platform.release()),
        *torch_facts(machine.probe_torch()),
        *(package_fact(name, machine.installed(name)) for name in (*REQUIRED, *OPTIONAL)),
        tool_fact("C++ compiler", machine.compiler()),
        tool_fact("ninja", machine.ninja()),
        memory_fact(psutil.virtual_memory().available, machine.memory_room()),
        cores_fact(machine.cores()),
        *tools,
        disk_fact(shutil.disk_usage(Path.cwd()).free),
    ]


def has_guide() -> bool:
    """Say whether any of the guide's own packages is installed; else this is the tool alone."""
    return any(machine.installed(name) for name in REQUIRED)


def python_fact(version: tuple[int, ...]) -> Fact:
    """Judge a Python version, given as numbers."""
    fits = (3, 11) <= version[:2] < (3, 14)
    advice = "" if fits else "The guide needs Python 3.11, 3.12 or 3.13."
    return Fact("Python", ".".join(map(str, version)), "ok" if fits else "missing", advice)


def platform_fact(system: str, release: str) -> Fact:
    """Judge an operating system by the name and release that Python gives it."""
    if system == "Linux":
        wsl = "microsoft" in release.lower()
        return Fact("platform", f"Linux {release}" + (" (WSL)" if wsl else ""))
    if system == "Darwin":
        return Fact(
            "platform", f"macOS, Darwin {release}", "warn", "What needs Linux's /proc is left out."
        )
    return Fact("platform", system, "missing", "Run the guide in Linux; on Windows, inside WSL.")


def torch_facts(probe: Mapping[str, object]) -> list[Fact]:
    """Turn what `machine.probe_torch` found into facts on torch, GPUs and NCCL."""
    if "error" in probe:
        advice = f"No lab runs without torch. {SET_UP}"
        return [
            Fact("torch", str(probe["error"]), "missing", advice),
            Fact("GPUs", "unknown without torch", "warn"),
        ]
    build = f"CUDA or ROCm {probe['cuda']}" if probe["cuda"] else "CPU build"
    status, advice = _judge("torch", str(probe["version"]))
    if not probe["gloo"]:
        status, advice = "missing", "This torch has no gloo, which all labs need on the CPU."
    facts = [Fact("torch", f"{probe['version']} ({build})", status, advice)]
    gpus, nccl = probe["gpus"], probe["nccl"]
    names = [str(name) for name in gpus] if isinstance(gpus, list) else []
    if not names:
        note = "Labs run on the CPU over gloo." if not probe["cuda"] else "torch sees no GPU here."
        return [*facts, Fact("GPUs", "none", "ok", note)]
    version = ".".join(map(str, nccl)) if isinstance(nccl, list) and nccl else ""
    return [
        *facts,
        Fact("GPUs", f"{len(names)}: {', '.join(sorted(set(names)))}"),
        Fact("NCCL", version or "none", "ok" if version else "warn"),
    ]


def package_fact(name: str, version: str | None) -> Fact:
    """Judge a package of REQUIRED or OPTIONAL by its version; None means not installed."""
    if name in OPTIONAL:
        if version is None:
            return Fact(name, "not installed", "warn", OPTIONAL[name])
        return Fact(name, version)
    if version is None:
        return Fact(name, "not installed", "missing", SET_UP)
    return Fact(name, version, *_judge(name, version))


def _judge(name: str, version: str) -> tuple[Status, str]:
    """Compare a package's version with the lowest that this project declares to need."""
    from packaging.version import Version  # the tool alone comes without it

    floor = floors().get(name)
    if floor is None or Version(version) >= floor:
        return "ok", ""
    return "warn", f"The guide is made for {floor} or newer. {SET_UP}"


def floors() -> dict[str, Version]:
    """The lowest version of each package that this project needs; none where it is not installed."""
    from packaging.requirements import Requirement
    from packaging.version import Version

    try:
        declared = importlib.metadata.requires("stuck-ranks") or []
    except importlib.metadata.PackageNotFoundError:
        return {}
    return {
        wanted.name: Version(part.version)
        for wanted in map(Requirement, declared)
        for part in wanted.specifier
        if part.operator == ">="
    }


def tool_fact(name: str, path: str | None) -> Fact:
    """Say whether a helpful command is there; `path` is None when it is nowhere."""
    lacking = {
        "C++ compiler": "The part of lab 03 on DeepSpeed needs one: install g++ or clang.",
        "ninja": f"The part of lab 03 on DeepSpeed needs it. {SET_UP}",
        "py-spy": "Without it, `attach` cannot read stacks.",
    }
    value = Path(path).name if path else "not found"
    return Fact(name, value, "ok" if path else "warn", "" if path else lacking[name])


def memory_fact(available: int, room: int | None) -> Fact:
    """Judge free memory, in bytes; room is what a control group still allows, if one limits."""
    limited = room is not None and room < available
    free = room if room is not None and limited else available
    value = f"{free / GIB:.1f} GiB free" + (" (limit of the container or job)" if limited else "")
    if free >= 2 * GIB:
        return Fact("memory", value)
    return Fact("memory", value, "warn", "A lab of two ranks needs about 2 GiB.")


def cores_fact(cores: int) -> Fact:
    """Judge the number of cores this process may use."""
    if cores >= 2:
        return Fact("cores", str(cores))
    return Fact("cores", str(cores), "warn", "Two ranks share one core: runs take longer.")


def ptrace_fact(scope: str, status: str) -> Fact:
    """Say whether tools such as py-spy and gdb may look into a process of the same user.

    Args:
        scope: the text of Yama's ptrace_scope, "" where there is none.
        status: the text of /proc/self/status, "" where there is none.
    """
    capabilities = re.search(r"^CapEff:\s*([0-9a-f]+)$", status, re.MULTILINE)
    if capabilities is None:
        return Fact("ptrace", "unknown", "ok", "Jobs that stuck-ranks starts need none.")
    if int(capabilities.group(1), 16) >> SYS_PTRACE_BIT & 1 and scope.strip() != "3":
        return Fact("ptrace", "allowed (CAP_SYS_PTRACE)")
    if scope.strip() in ("", "0"):
        return Fact("ptrace", "allowed for processes of the same user")
    advice = "Jobs that stuck-ranks starts need none; py-spy on a running job needs root."
    return Fact("ptrace", f"restricted (ptrace_scope {scope.strip()})", "warn", advice)


def disk_fact(free: int) -> Fact:
    """Judge the free disk of the current folder, in bytes."""
    low = free < 2 * GIB
    advice = "Labs write checkpoints and a C++ build: make 2 GiB free." if low else ""
    return Fact("disk", f"{free / GIB:.1f} GiB free", "warn" if low else "ok", advice)


def lab_line(lab: Lab) -> LabLine:
    """Say how a lab runs here: on which hardware, and what of it is left out."""
    runs = _hardware(lab)
    notes = [lab.file.notes_on[runs]] if runs in lab.file.notes_on else []
    if runs == "cpu" and not notes and machine.lacking("one-gpu", 1) == "":
        notes.append("Its ranks need a GPU each.")
    if (free := machine.free_memory() // MB) < lab.file.memory_mb:
        notes.append(f"It needs {lab.file.memory_mb} MB of free memory, and {free} MB are free.")
    # That GPUs are lacking is said by the hardware.
    left_out = [
        f"{name} ({what})"
        for name, program in lab.file.programs.items()
        for need in program.needs
        if not machine.gpus_wanted(need, lab.file.ranks)
        if (what := machine.lacking(need, lab.file.ranks))
    ]
    if left_out:
        notes.append(f"Left out: {', '.join(left_out)}.")
    return LabLine(lab.name, runs, " ".join(notes))


def _hardware(lab: Lab) -> Hardware:
    """The best hardware that a program of a lab, or a value of its knobs, finds here."""
    takers = [(program.needs, lab.file.ranks) for program in lab.programs.values()]
    for knob in lab.knobs.values():
        takers += [(value.needs, value.ranks or lab.file.ranks) for value in knob.values.values()]
    wanted = [
        machine.gpus_wanted(need, ranks)
        for needs, ranks in takers
        for need in needs
        if not machine.lacking(need, ranks)
    ]
    most = max(wanted, default=0)
    return "multi-gpu" if most > 1 else "one-gpu" if most else "cpu"


def exit_code(facts: Sequence[Fact]) -> int:
    """Return 0 when everything required is there, else 1."""
    return int(any(fact.status == "missing" for fact in facts))


def render(facts: Sequence[Fact], labs: Iterable[LabLine]) -> RenderableType:
    """Return two tables and a closing sentence, for rich."""
    colours = {"ok": "green", "warn": "yellow", "missing": "red"}
    column = Column("found here", overflow="fold")
    this = Table("", column, "status", "what follows", title="This machine")
    for fact in facts:
        status = f"[{colours[fact.status]}]{fact.status}[/]"
        this.add_row(fact.name, escape(fact.value), status, escape(fact.advice))
    missing = [fact.name for fact in facts if fact.status == "missing"]
    table = Table("lab", "runs on", "note", title="The labs on this machine")
    for lab in labs:
        if missing:
            table.add_row(lab.name, "skipped", f"missing: {', '.join(missing)}")
        else:
            table.add_row(lab.name, "cpu gloo" if lab.runs == "cpu" else lab.runs, escape(lab.note))
    return Group(this, *([table] if table.rows else []), closing(facts))


def closing(facts: Iterable[Fact]) -> str:
    """Whether the guide, or the tool alone, can run here, as a sentence."""
    facts = list(facts)
    missing = [fact.name for fact in facts if fact.status == "missing"]
    if missing:
        return f"The guide cannot run here: {', '.join(missing)} missing."
    if any(fact.name == GUIDE for fact in facts):
        return "Everything that diagnose, attach, read and explain require is there."
    return "Everything required is there."


def main() -> int:
    """Print what is here; return 0 when everything required is there, else 1."""
    facts = collect()
    try:
        labs = all_labs() if has_guide() else []
    except LabError as problem:
        print(f"The labs are left out: {problem}.")
        labs = []
    Console().print(render(facts, map(lab_line, labs)))
    return exit_code(facts)


def _read(path: str) -> str:
    """Return a file's text, or "" where it cannot be read."""
    try:
        return Path(path).read_text()
    except OSError:
        return ""


if __name__ == "__main__":
    raise SystemExit(main())
