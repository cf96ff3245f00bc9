"""The report of `check`: facts of machines that are made up, and how the labs run on them."""

from __future__ import annotations

import io
import shlex
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from packaging.version import Version
from rich.console import Console

from helpers.labs import check, machine
from helpers.labs.check import GIB, Fact, LabLine, exit_code, lab_line, render
from helpers.labs.lab import all_labs

CPU_TORCH = {"version": "2.13.0+cpu", "cuda": None, "gpus": [], "nccl": [], "gloo": True}


def gpu_torch(count: int) -> dict[str, object]:
    names = ["NVIDIA H200"] * count
    return {**CPU_TORCH, "version": "2.13.0", "cuda": "13.0", "gpus": names, "nccl": [2, 28, 9]}


def facts(torch: dict[str, object] = CPU_TORCH, without: tuple[str, ...] = ()) -> list[Fact]:
    """The facts of a machine that has everything but some packages."""
    packages = {**dict.fromkeys(check.REQUIRED, "99.0.0"), **dict.fromkeys(check.OPTIONAL, "1")}
    return [
        check.python_fact((3, 12, 1)),
        check.platform_fact("Linux", "6.1"),
        *check.torch_facts(torch),
        *(check.package_fact(n, None if n in without else v) for n, v in packages.items()),
        *(check.tool_fact(name, f"/usr/bin/{name}") for name in ("C++ compiler", "ninja", "py-spy")),
        check.memory_fact(8 * GIB, None),
        check.cores_fact(2),
    ]


def text(found: list[Fact], labs: list[LabLine] | None = None) -> str:
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(render(found, labs or []))
    return console.export_text()


MakeUp = Callable[..., dict[str, LabLine]]


@pytest.fixture
def labs_on(monkeypatch: pytest.MonkeyPatch) -> MakeUp:
    """How the labs run on a machine that has so many GPUs, and has everything but some things."""

    def labs_on(
        gpus: int = 0, without: tuple[str, ...] = (), memory: int = 8 * GIB
    ) -> dict[str, LabLine]:
        def path(name: str) -> Callable[[], str | None]:
            return lambda: None if name in without else f"/bin/{name}"

        monkeypatch.delenv(machine.PIN)
        monkeypatch.setattr(machine, "_gpus", lambda: gpus)
        monkeypatch.setattr(machine, "_can_stall", lambda: True)
        monkeypatch.setattr(machine, "compiler", path("compiler"))
        monkeypatch.setattr(machine, "ninja", path("ninja"))
        monkeypatch.setattr(machine, "installed", lambda name: None if name in without else "1")
        monkeypatch.setattr(machine, "free_memory", lambda: memory)
        monkeypatch.setattr(sys, "prefix", "/env")
        return {lab.name: lab_line(lab) for lab in all_labs()}

    return labs_on


def test_a_machine_with_everything_is_fine_and_runs_all_labs_on_the_cpu(labs_on: MakeUp) -> None:
    assert exit_code(facts()) == 0
    labs = list(labs_on().values())
    assert {lab.runs for lab in labs} == {"cpu"}
    assert text(facts(), labs).count("cpu gloo") == len(labs)
    assert "Everything required is there." in text(facts())


def test_without_torch_the_exit_code_is_1_and_a_sentence_says_so() -> None:
    found = facts({"error": "not installed"})
    assert exit_code(found) == 1
    said = text(found, [LabLine("01", "cpu"), LabLine("02", "cpu")])
    assert said.count("skipped") == said.count("missing: torch") == 2
    assert "The guide cannot run here: torch missing." in said
    assert "No lab runs without torch. Run make lab" in said


def test_a_torch_without_gloo_does_not_do() -> None:
    assert exit_code(facts({**CPU_TORCH, "gloo": False})) == 1


@pytest.mark.parametrize("name", check.REQUIRED)
def test_a_required_package_that_lacks_is_missing(name: str) -> None:
    found = facts(without=(name,))
    assert exit_code(found) == 1
    assert f"cannot run here: {name} missing" in text(found)


@pytest.mark.parametrize("name", check.OPTIONAL)
def test_an_optional_package_that_lacks_is_a_warning_with_advice(name: str) -> None:
    found = facts(without=(name,))
    (fact,) = [fact for fact in found if fact.name == name]
    assert fact.status == "warn"
    assert fact.advice
    assert exit_code(found) == 0


@pytest.mark.parametrize(
    ("version", "status"),
    [("8.1.9", "ok"), ("8.1.8", "warn"), ("8.2", "ok"), ("9.0.0rc1", "ok"), ("8.1.10+x.1", "ok")],
)
def test_versions_are_compared_as_numbers(version: str, status: str) -> None:
    assert check.package_fact("ipywidgets", version).status == status


def test_the_lowest_versions_are_those_that_this_project_declares() -> None:
    floors = check.floors()
    assert {"torch", *check.REQUIRED} <= floors.keys()
    assert floors["ipywidgets"] > Version("8")


def test_a_checkout_that_is_not_installed_judges_no_version(monkeypatch: pytest.MonkeyPatch) -> None:
    def lost(name: str) -> list[str]:
        raise check.importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(check.importlib.metadata, "requires", lost)
    assert check.package_fact("ipywidgets", "0.1").status == "ok"


@pytest.mark.parametrize(
    ("version", "status"), [((3, 10, 9), "missing"), ((3, 11), "ok"), ((3, 14, 0), "missing")]
)
def test_python_versions(version: tuple[int, ...], status: str) -> None:
    assert check.python_fact(version).status == status


@pytest.mark.parametrize(
    ("system", "release", "value", "status"),
    [
        ("Linux", "6.1", "Linux 6.1", "ok"),
        ("Linux", "5.15-microsoft-standard-WSL2", "WSL", "ok"),
        ("Darwin", "25.0", "macOS", "warn"),
        ("Windows", "11", "Windows", "missing"),
    ],
)
def test_platforms(system: str, release: str, value: str, status: str) -> None:
    fact = check.platform_fact(system, release)
    assert value in fact.value
    assert fact.status == status


@pytest.mark.parametrize(
    ("count", "runs"),
    [
        (1, ["cpu", "cpu", "cpu", "one-gpu", "cpu"]),
        (2, ["multi-gpu", "cpu", "multi-gpu", "multi-gpu", "multi-gpu"]),
        (8, ["multi-gpu"] * 5),
    ],
)
def test_gpus_are_used_and_named_once(labs_on: MakeUp, count: int, runs: list[str]) -> None:
    assert [lab.runs for lab in labs_on(count).values()] == runs
    assert f"{count}: NVIDIA H200 " in text(facts(gpu_torch(count)))
    assert "2.28.9" in text(facts(gpu_torch(count)))


@pytest.mark.parametrize(
    ("count", "lab", "note"),
    [
        (0, "01_launch_placement", ""),
        (0, "02_fsdp_saving", "FSDPStrategy needs 3 GPUs here; the lab uses FSDP2 on the CPU instead."),
        (
            0,
            "04_ddp_dataloader",
            "The chain of errors is the same on the CPU; the message that names `cuda` needs a GPU.",
        ),
        (1, "01_launch_placement", "Its ranks need a GPU each."),
        (1, "04_ddp_dataloader", "One rank has the GPU."),
        (2, "02_fsdp_saving", "FSDPStrategy needs 3 GPUs here; the lab uses FSDP2 on the CPU instead."),
        (8, "02_fsdp_saving", ""),
    ],
)
def test_what_a_lab_does_differently_here_is_noted(
    labs_on: MakeUp, count: int, lab: str, note: str
) -> None:
    assert labs_on(count)[lab].note == note


def test_programs_that_cannot_run_here_are_left_out(labs_on: MakeUp) -> None:
    labs = labs_on(without=("transformers", "compiler", "ninja"))
    assert labs["03_multigpu_stall"].note == (
        "Left out: pretrained (needs the package transformers), "
        "prebuilt (needs a C++ compiler and ninja)."
    )
    assert labs["05_spawn_ports"].note == ""


def test_too_little_memory_is_noted(labs_on: MakeUp) -> None:
    labs = labs_on(memory=1200 * machine.MB)
    assert labs["03_multigpu_stall"].note == "It needs 2500 MB of free memory, and 1200 MB are free."
    assert labs["01_launch_placement"].note == ""


def test_a_torch_that_does_not_import_gives_its_last_line(tmp_path: Path) -> None:
    fake = tmp_path / "python"
    python = shlex.quote(sys.executable)
    fake.write_text(f"#!/bin/sh\nexec {python} -c 'raise OSError(\"libc10.so: no\")'\n")
    fake.chmod(0o755)
    assert machine.probe_torch(str(fake)) == {"error": "OSError: libc10.so: no"}
    fake.write_text("#!/bin/sh\nkill -SEGV $$\n")
    assert machine.probe_torch(str(fake)) == {"error": "its import ended with code -11"}
    fake.write_text("#!/bin/sh\nexec sleep 60\n")
    assert "timed out" in str(machine.probe_torch(str(fake), seconds=0.2)["error"])
    assert "No such file" in str(machine.probe_torch(str(tmp_path / "none"))["error"])


def test_the_smaller_of_free_memory_and_the_groups_room_is_judged() -> None:
    limited = check.memory_fact(64 * GIB, GIB)
    assert (limited.status, limited.value[:3]) == ("warn", "1.0")
    assert "limit" in limited.value
    free = check.memory_fact(4 * GIB, 8 * GIB)
    assert (free.status, free.value[:3]) == ("ok", "4.0")
    assert "limit" not in free.value


@pytest.mark.parametrize(
    ("scope", "status", "word"),
    [
        ("", "CapEff:\t0000000000000000\n", "allowed"),
        ("0\n", "CapEff:\t0000000000000000\n", "allowed"),
        ("1\n", "CapEff:\t0000000000000000\n", "restricted"),
        ("1\n", "CapEff:\t0000000000080000\n", "CAP_SYS_PTRACE"),
        ("3\n", "CapEff:\t000001ffffffffff\n", "restricted"),
        ("1\n", "", "unknown"),
    ],
)
def test_ptrace(scope: str, status: str, word: str) -> None:
    assert word in check.ptrace_fact(scope, status).value


def test_little_disk_and_one_core_are_warnings() -> None:
    assert check.disk_fact(GIB).status == "warn"
    assert check.disk_fact(3 * GIB).status == "ok"
    assert check.cores_fact(1).status == "warn"


def test_brackets_in_what_was_found_are_shown_as_they_are() -> None:
    assert "[red]x[/nope]" in text([Fact("odd", "[red]x[/nope]", "ok", "[/bold]")])


def test_in_a_notebook_what_is_not_ok_comes_first_and_the_rest_is_folded() -> None:
    facts = (Fact("Python", "3.11.7"), Fact("cores", "1", "warn", "Runs take <longer>."))
    shown = check.Here(facts, (LabLine("05_spawn_ports", "cpu"), LabLine("03_x", "cpu", "No GPU.")))
    assert repr(shown).splitlines() == [
        "Everything required is there.",
        "- cores: 1. Runs take <longer>.",
        "- 03_x: No GPU.",
    ]
    before, _, folded = shown._repr_html_().partition("<details>")
    assert "Runs take &lt;longer&gt;." in before and "Python" not in before
    assert "Python" in folded and "3.11.7" in folded
    lacking = check.Here((Fact("torch", "not found", "missing", "Install it."),), ())
    assert "The guide cannot run here: torch missing." in lacking._repr_html_()


def test_this_machine_is_described_in_full(capsys: pytest.CaptureFixture[str]) -> None:
    code = check.main()
    said = capsys.readouterr().out
    assert code == 0
    for name in (
        "Python",
        "torch",
        "GPUs",
        "memory",
        "cores",
        "ptrace",
        "disk",
        *(lab.name for lab in all_labs()),
    ):
        assert name in said


def test_without_the_labs_the_machine_is_described(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("STUCK_RANKS_NOTEBOOKS", str(tmp_path / "lost"))
    assert check.main() == 0
    said = capsys.readouterr().out
    assert "The labs are left out: there are no labs at" in said
    assert "Everything required is there." in said
