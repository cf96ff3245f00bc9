"""Writes requirements.lock: installs everything into a new environment and writes down what came.

Run by `make lock`, on Linux with the oldest supported Python. `make lock TORCH=2.14.0` moves torch.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path

from setup_env import LOCK, ROOT, choose_build, cpu_index_answers, torch_pin

# Left out: this project, the installer itself, and what only the CUDA build of torch brings
# (that build pins it exactly by itself).
LEFT_OUT = re.compile(r"^(stuck-ranks|pip|wheel|nvidia-.*|cuda-.*|triton)$")

HEADER = """\
# Exact versions of all that `.[labs,test]` installs on Linux, used as constraints:
#     pip install -c requirements.lock -e ".[labs,test]"
# Made by `make lock` (`make lock TORCH=VERSION` moves torch) and changed in no other way.
# torch has no local version, so the same line fits the CPU build and the CUDA builds.
"""


def locked(frozen: str) -> str:
    """Return the lock file's text for the output of `pip freeze --all`."""
    pins = {}
    for line in frozen.splitlines():
        found = re.match(r"^([A-Za-z0-9._-]+)==([^\s+]+)", line)
        if found and not LEFT_OUT.match(found.group(1).lower()):
            pins[found.group(1)] = found.group(2)
    lines = [f"{name}=={pins[name]}\n" for name in sorted(pins, key=str.lower)]
    return HEADER + "".join(lines)


def main(arguments: list[str]) -> int:
    """Make the lock file anew; an argument is the version of torch to take."""
    version = arguments[0] if arguments else torch_pin(LOCK.read_text())
    index = choose_build("Linux", False, cpu_index_answers).index
    source = ["--extra-index-url", index] if index else []
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        pip = [str(Path(folder) / "bin" / "python"), "-m", "pip"]
        # torch first, alone: a range would take the newest build with all of CUDA.
        for wanted in ([f"torch=={version}"], ["-e", f"{ROOT}[labs,test]"]):
            subprocess.run([*pip, "install", "--quiet", *source, *wanted], check=True)
        frozen = subprocess.run([*pip, "freeze", "--all"], check=True, capture_output=True, text=True)
    LOCK.write_text(locked(frozen.stdout))
    print(f"{LOCK.name} is new: see git diff.")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
