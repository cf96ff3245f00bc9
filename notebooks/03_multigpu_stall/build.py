"""Builds the C++ operator that DeepSpeed compiles when a job starts, with one process and no ranks.

TORCH_EXTENSIONS_DIR=/path/of/the/job DS_ACCELERATOR=cpu python build.py
"""

import os
import shutil
import sys
import threading
import time
from pathlib import Path

PROGRESS = 10.0
"""Seconds between two lines of progress."""


def missing_tools() -> list[str]:
    """What a build needs and is not found here."""
    compiler = any(shutil.which(name) for name in ("c++", "g++", "clang++"))
    ninja = shutil.which("ninja")
    return ["a C++ compiler"] * (not compiler) + ["ninja"] * (not ninja)


def kept_build() -> Path:
    """Where the build for these versions is kept."""
    import deepspeed
    import torch

    made_for = (torch.__version__, deepspeed.__version__, sys.implementation.cache_tag)
    return Path(__file__).with_name(".built") / "-".join(made_for)


def show_progress(done: threading.Event) -> None:
    start = time.monotonic()
    while not done.wait(PROGRESS):
        print(f"deepspeed_shm_comm: compiling for {time.monotonic() - start:.0f} s", flush=True)


def build() -> None:
    """Compiles the operator, unless it is there, and loads it: one to two minutes on two free cores."""
    if lacking := missing_tools():
        sys.exit(f"DeepSpeed cannot build its operator here: there is no {' and no '.join(lacking)}.")
    from deepspeed.ops.op_builder.cpu import ShareMemCommBuilder

    done = threading.Event()
    threading.Thread(target=show_progress, args=(done,)).start()
    try:
        ShareMemCommBuilder().load(verbose=False)
    finally:
        done.set()
    print("deepspeed_shm_comm: built and loaded", flush=True)


def build_once(folder: Path) -> None:
    """The same into a job's folder, from a copy that the first build leaves in `.built`.

    So no two jobs share a lock. The copy keeps the times of the files: ninja compiles again where
    something differs from what it was made of, and nothing where all is the same.
    """
    kept = kept_build()
    if kept.is_dir():
        shutil.copytree(kept, folder, dirs_exist_ok=True)
    build()
    if not kept.is_dir():
        keep(folder, kept)


def keep(folder: Path, kept: Path) -> None:
    """Copies a build aside and gives it its name in one step, so that no half of it is ever used."""
    part = kept.with_name(f"{kept.name}.{os.getpid()}")
    shutil.copytree(folder, part)
    try:
        part.rename(kept)
    except OSError:  # another job has kept its own in the meantime
        shutil.rmtree(part)


if __name__ == "__main__":
    build()
