"""`guide`: a copy of the guide, in a folder of the user's."""

from __future__ import annotations

import argparse
import shlex
import sys
import tarfile
from pathlib import Path

from .arguments import UsageError

FOLDER = "stuck-ranks-guide"


def add(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> argparse.ArgumentParser:
    """Declare the options."""
    verb = verbs.add_parser("guide", help="copy the guide's notebooks to a folder; say how to open it")
    verb.add_argument(
        "folder", nargs="?", default=FOLDER, help=f"made if it is not there ({FOLDER}, in this folder)"
    )
    verb.add_argument(
        "--overwrite",
        action="store_true",
        help="replace files that differ from the guide's; without it they stay, and are named",
    )
    return verb


def run(options: argparse.Namespace) -> int:
    """Copy it; return 0."""
    from ..labs.check import has_guide
    from ..labs.guide_copy import START, copy_guide

    folder = Path(options.folder)
    try:
        copied = copy_guide(folder, overwrite=options.overwrite)
    except tarfile.TarError as problem:
        raise UsageError(f"the guide cannot be unpacked: {problem}") from None
    except OSError as problem:
        raise UsageError(f"{problem.filename or folder} cannot be written: {problem.strerror}") from None
    files = "1 file" if len(copied.written) == 1 else f"{len(copied.written)} files"
    print(f"The guide is in {folder}: {files} written.")
    if copied.conflicts:
        print("Left as they are, since they differ from the guide's (--overwrite replaces them):")
        print("".join(f"    {path}\n" for path in copied.conflicts), end="")
    if not has_guide():
        print("Its packages are not installed here. In an environment of their own:")
        print("    pip install 'stuck-ranks[labs]'")
    python = shlex.quote(sys.executable) if has_guide() else "python"
    print(f"Open it:\n    cd {shlex.quote(str(folder))}\n    {python} -m jupyterlab {START}")
    return 0
