from __future__ import annotations

import io
import shlex
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version
from repository import ROOT
from rich.console import Console

from helpers.labs import check, machine
from helpers.labs.check import LABS, exit_code, labs_on_this_machine, render
from helpers.labs.machine import GIB, Fact

CPU_TORCH = {"version": "2.13.0+cpu", "cuda": None, "gpus": [], "nccl": [], "gloo": True}


def gpu_torch(count: int) -> dict[str, object]:
    names = ["NVIDIA H200"] * count
    return {**CPU_TORCH, "version": "2.13.0", "cuda": "13.0", "gpus": names, "nccl": [2, 28, 9]}


def facts(torch: dict[str, object] = CPU_TORCH, without: tuple[str, ...] = ()) -> list[Fact]:
    """The facts of a machine that has all but some things."""
    packages = {**dict.fromkeys(machine.REQUIRED, "99.0.0"), **dict.fromkeys(machine.OPTIONAL, "1")}
    return [
        machine.python_fact((3, 12, 1)),
        machine.platform_fact("Linux", "6.1"),
        *machine.torch_facts(torch),
        *(machine.package_fact(n, None if n in without else v) for n, v in packages.items()),
        *(
            machine.tool_fact(name, None if name in without else f"/usr/bin/{name}")
            for name in ("C++ compiler", "ninja", "py-spy")
        ),
        machine.memory_fact((1 if "memory" in without else 8) * GIB, None),
        machine.cores_fact(2),
    ]


def text(found: list[Fact]) -> str:
    console = Console(width=200, record=True, file=io.StringIO())
    console.print(render(found, labs_on_this_machine(found)))
    return console.export_text()


def test_a_machine_with_everything_is_fine_and_runs_all_labs_on_the_cpu() -> None:
    assert exit_code(facts()) == 0
    assert {lab.runs for lab in labs_on_this_machine(facts())} == {"cpu gloo"}
    assert "Everything required is there." in text(facts())


def test_without_torch_the_exit_code_is_1_and_a_sentence_says_so() -> None:
    found = facts({"error": "not installed"})
    assert exit_code(found) == 1
    assert [(lab.runs, lab.note) for lab in labs_on_this_machine(found)] == [
        ("skipped", "missing: torch")
    ] * len(LABS)
    assert "The guide cannot run here: torch missing." in text(found)
    assert "No lab runs without torch. Run make lab" in text(found)


def test_a_torch_without_gloo_does_not_do() -> None:
    assert exit_code(facts({**CPU_TORCH, "gloo": False})) == 1


@pytest.mark.parametrize("name", machine.REQUIRED)
def test_a_required_package_that_lacks_is_missing(name: str) -> None:
    found = facts(without=(name,))
    assert exit_code(found) == 1
    assert f"cannot run here: {name} missing" in text(found)


@pytest.mark.parametrize("name", machine.OPTIONAL)
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
    assert machine.package_fact("ipywidgets", version).status == status


def test_the_lowest_versions_are_those_of_pyproject() -> None:
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    ranges = {r.name: r.specifier for r in map(Requirement, wanted)}
    for name, floor in {**machine.REQUIRED, "torch": machine.TORCH_FLOOR}.items():
        (lowest,) = [part.version for part in ranges[name] if part.operator == ">="]
        assert Version(lowest).release == floor


@pytest.mark.parametrize(
    ("version", "status"), [((3, 10, 9), "missing"), ((3, 11), "ok"), ((3, 14, 0), "missing")]
)
def test_python_versions(version: tuple[int, ...], status: str) -> None:
    assert machine.python_fact(version).status == status


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
    fact = machine.platform_fact(system, release)
    assert value in fact.value
    assert fact.status == status


@pytest.mark.parametrize(
    ("count", "runs"),
    [
        (1, ["cpu gloo", "cpu gloo", "cpu gloo", "one-gpu", "cpu gloo"]),
        (2, ["multi-gpu", "cpu gloo", "multi-gpu", "multi-gpu", "multi-gpu"]),
        (8, ["multi-gpu"] * 5),
    ],
)
def test_gpus_are_used_and_named_once(count: int, runs: list[str]) -> None:
    found = facts(gpu_torch(count))
    assert [lab.runs for lab in labs_on_this_machine(found)] == runs
    assert f"{count}: NVIDIA H200 " in text(found)
    assert "2.28.9" in text(found)


@pytest.mark.parametrize(
    ("without", "runs", "note"),
    [
        (("deepspeed",), "cpu gloo", "Left out: DeepSpeed (no deepspeed)."),
        (("C++ compiler", "ninja"), "cpu gloo", "Left out: DeepSpeed (no C++ compiler, ninja)."),
        (("memory",), "cpu gloo", "Left out: host memory (less than 2 GiB free)."),
        (
            ("transformers", "ninja"),
            "skipped",
            "Left out: host memory (no transformers); DeepSpeed (no ninja).",
        ),
    ],
)
def test_lab_03_says_what_it_leaves_out(without: tuple[str, ...], runs: str, note: str) -> None:
    labs = {lab.name: lab for lab in labs_on_this_machine(facts(without=without))}
    assert (labs["03_multigpu_stall"].runs, labs["03_multigpu_stall"].note) == (runs, note)
    assert labs["05_spawn_ports"].runs == "cpu gloo"


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


def cgroup(folder: Path, membership: str, files: dict[str, int | str]) -> tuple[Path, Path]:
    proc, root = folder / "proc", folder / "cgroup"
    (proc / "self").mkdir(parents=True)
    (proc / "self" / "cgroup").write_text(membership)
    for name, value in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(f"{value}\n")
    return root, proc


def test_the_tightest_group_of_version_2_counts(tmp_path: Path) -> None:
    files: dict[str, int | str] = {
        "job/step/memory.max": "max",
        "job/step/memory.current": 10,
        "job/memory.max": 1000,
        "job/memory.current": 400,
        "memory.max": 5000,
        "memory.current": 900,
    }
    assert machine.memory_room(*cgroup(tmp_path, "0::/job/step\n", files)) == 600


def test_version_1_and_a_path_that_only_the_host_has(tmp_path: Path) -> None:
    files: dict[str, int | str] = {
        "memory/memory.limit_in_bytes": 1000,
        "memory/memory.usage_in_bytes": 1500,
    }
    found = cgroup(tmp_path, "5:cpu:/\n4:rdma,memory:/docker/abc\n", files)
    assert machine.memory_room(*found) == 0


def test_no_limit_is_none(tmp_path: Path) -> None:
    files: dict[str, int | str] = {
        "memory/memory.limit_in_bytes": 9223372036854771712,
        "memory/memory.usage_in_bytes": 1500,
    }
    assert machine.memory_room(*cgroup(tmp_path, "4:memory:/\nnonsense\n", files)) is None
    assert machine.memory_room(tmp_path, tmp_path / "nowhere") is None


def test_the_smaller_of_free_memory_and_the_groups_room_is_judged() -> None:
    limited = machine.memory_fact(64 * GIB, GIB)
    assert (limited.status, limited.number) == ("warn", GIB)
    assert "limit" in limited.value
    free = machine.memory_fact(4 * GIB, 8 * GIB)
    assert (free.status, free.number) == ("ok", 4 * GIB)
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
    assert word in machine.ptrace_fact(scope, status).value


def test_little_disk_and_one_core_are_warnings() -> None:
    assert machine.disk_fact(GIB).status == "warn"
    assert machine.disk_fact(3 * GIB).status == "ok"
    assert machine.cores_fact(1).status == "warn"


def test_brackets_in_what_was_found_are_shown_as_they_are() -> None:
    assert "[red]x[/nope]" in text([Fact("odd", "[red]x[/nope]", "ok", "[/bold]")])


def test_this_machine_is_described_in_full(capsys: pytest.CaptureFixture[str]) -> None:
    code = check.main()
    said = capsys.readouterr().out
    assert code == 0
    for name in ("Python", "torch", "GPUs", "memory", "cores", "ptrace", "disk", *LABS):
        assert name in said
