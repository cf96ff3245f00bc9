"""The tool alone needs no package but those that pyproject.toml declares for it."""

from __future__ import annotations

import importlib.metadata
import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from repository import ROOT

GUIDE = ("helpers.labs", "helpers.panel")

BLOCKED = """
import importlib, json, pkgutil, sys

class Blocked:
    def __init__(self, allowed):
        self.allowed = {*allowed, *sys.stdlib_module_names, "helpers", "stuck_ranks"}

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] not in self.allowed:
            raise ModuleNotFoundError(f"{name} is blocked", name=name)

allowed, guide = json.loads(sys.argv[1])
sys.meta_path.insert(0, Blocked(allowed))
import helpers
found = pkgutil.walk_packages(helpers.__path__, "helpers.", onerror=lambda name: None)
names = [name for _, name, _ in found if not name.startswith(tuple(guide))]
for name in names:
    if "inject" not in name and name != "helpers.__main__":
        importlib.import_module(name)
print(json.dumps(names))
"""


def modules_of_the_tool() -> set[str]:
    """The top-level modules of what the tool needs, and of what that needs."""
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    names, new = set[str](), {canonicalize_name(Requirement(text).name) for text in wanted}
    while new:
        names |= new
        needs = (Requirement(text) for name in new for text in importlib.metadata.requires(name) or ())
        here = (one for one in needs if one.marker is None or one.marker.evaluate({"extra": ""}))
        new = {canonicalize_name(one.name) for one in here} - names
    owners = importlib.metadata.packages_distributions()
    return {module for module, by in owners.items() if {*map(canonicalize_name, by)} & names}


def imported(allowed: set[str], guide: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-c", BLOCKED, json.dumps([sorted(allowed), guide])]
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)


def test_every_module_of_the_tool_is_imported_with_all_else_blocked() -> None:
    allowed = modules_of_the_tool()
    assert allowed.isdisjoint({"torch", "lightning", "IPython", "ipywidgets", "networkx", "numpy"})
    done = imported(allowed, GUIDE)
    assert done.returncode == 0, done.stderr
    assert {"helpers.session", "helpers.cli.lab", "helpers.observe.sampler"} <= {
        *json.loads(done.stdout)
    }


@pytest.mark.parametrize("missing", ["psutil", "jinja2"])
def test_what_is_blocked_is_missed(missing: str) -> None:
    done = imported(modules_of_the_tool() - {missing}, GUIDE)
    assert f"{missing} is blocked" in done.stderr


def test_a_job_does_not_wait_for_what_judges_it_to_be_imported() -> None:
    """The command line starts the job first: it imports nothing else before that takes long."""
    program = "import sys, helpers.cli.main\nprint(*(name for name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, check=True)
    names = done.stdout.decode().split()
    assert not {"psutil", "logging", "platform"} & {*names}
    names.remove("stuck_ranks.diagnose")  # a docstring, and the name of a public function
    rooms = {
        name.partition(".")[2].partition(".")[0] for name in names if name.startswith("stuck_ranks")
    }
    assert {"cli", "launch"} <= rooms
    assert not rooms & {"session", "observe", "diagnose", "model", "panel", "labs"}


def test_the_verbs_of_the_guide_say_what_is_missing() -> None:
    """As where the tool alone is installed: torch and platformdirs are not."""
    program = BLOCKED.partition("import helpers")[0] + (
        "from helpers.cli.main import main\nsys.exit(main(allowed and ['lab', '05']))"
    )
    words = [sys.executable, "-c", program, json.dumps([sorted(modules_of_the_tool()), GUIDE])]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (64, "")
    assert "belongs to the guide, and platformdirs is not installed here: run `make lab`" in done.stderr
    assert done.stderr.count("\n") == 1


def test_check_and_guide_need_nothing_but_the_tool(tmp_path: Path) -> None:
    """`check` says what is there; the copy of the guide has what its lessons link to."""
    program = BLOCKED.partition("import helpers")[0] + (
        "from helpers.cli.main import main\nfrom helpers.labs import machine\n"
        "machine.installed = lambda name: None\n"
        "assert main(['check']) == 0\nassert main(['check', '--seats', '2']) == 64\n"
        f"assert main(['guide', {str(tmp_path)!r}]) == 0"
    )
    words = [sys.executable, "-c", program, json.dumps([sorted(modules_of_the_tool()), GUIDE])]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Everything that diagnose, attach, read and explain require is there." in done.stdout
    assert "the guide is not installed" in done.stderr
    assert (tmp_path / "notebooks" / "index.ipynb").is_file()
