"""What the documents list is what the code has."""

from __future__ import annotations

import json
import re
import shlex
import tomllib

from packaging.specifiers import SpecifierSet
from repository import ROOT

NAME = re.compile(r"STUCK_RANKS_[A-Z_]*[A-Z]")
ALL = "--chown=learner:learner . ."
CODE = ("helpers", "tools", "tests", "benchmarks", "conftest.py")


def test_every_variable_is_in_the_table_and_has_a_use() -> None:
    files = [path for place in CODE for path in (ROOT / place, *(ROOT / place).rglob("*.py"))]
    used = {name for path in files if path.is_file() for name in NAME.findall(path.read_text())}
    rows = re.findall(r"^\| `(\w+)` \|", (ROOT / "docs" / "variables.md").read_text(), re.M)

    assert sorted(rows) == sorted(used)


def test_the_container_is_made_of_what_is_here() -> None:
    folder = ROOT / ".devcontainer"
    lines = re.sub(r"\\\n\s*", "", (folder / "Dockerfile").read_text()).splitlines()
    steps = [line.partition(" ")[::2] for line in lines if line and not line.startswith("#")]
    base, stage = [what for word, what in steps if word == "FROM"]
    assert base.split()[1:] == ["AS", stage]
    command = json.loads(steps[-1][1])
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]

    assert SpecifierSet(project["requires-python"]).contains(base.partition(":")[2].partition("-")[0])
    assert {word for word, _ in steps} <= {"FROM", "RUN", "USER", "WORKDIR", "COPY", "CMD"}
    assert steps[-1][0] == "CMD" and "--ip=0.0.0.0" in command
    assert not [word for word in command if "token" in word or "password" in word]
    copied = [shlex.split(what)[1:-1] for word, what in steps if word == "COPY"]
    assert all((ROOT / name).exists() for names in copied for name in names)
    made = [what.split()[1] for word, what in steps if word == "RUN" and "make ." in what]
    assert made == [".venv/stamp-lab"] and "$(VENV)/stamp-lab:" in (ROOT / "Makefile").read_text()

    # What takes long comes before the checkout, whose every change makes anew what comes after it.
    before, after = steps[: steps.index(("COPY", ALL))], steps[steps.index(("COPY", ALL)) :]
    assert [what for _, what in after if "install" in what] == []
    locks = [word for word in " ".join(what for _, what in before).split() if word.endswith(".lock")]
    assert locks == ["requirements-torch.lock"] * 2 + ["requirements.lock"] * 2

    editor = json.loads((folder / "devcontainer.json").read_text())
    assert (folder / editor["build"]["dockerfile"]).is_file()
    assert (folder / editor["build"]["context"]).resolve() == ROOT
    assert ("USER", editor["remoteUser"]) in steps
    assert editor["build"]["target"] == stage  # without packages, which come into the checkout itself
    assert editor["postCreateCommand"] == f"make {made[0]}"

    page = (ROOT / "docs" / "containers.md").read_text()
    run = next(line for line in page.splitlines() if line.startswith("docker run"))
    assert all(option in run for option in editor["runArgs"])
    volume = dict(word.split("=") for word in editor["mounts"][0].split(","))
    assert f"--volume {volume['source']}:{volume['target']}" in run
    assert "--publish 127.0.0.1:8888:8888" in run and "--port=8888" in command
