"""Executes notebooks and keeps their outputs apart, for the tests to compare."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from lessons import outputs_of

from helpers.labs.lab import LabError, labs_folder
from helpers.labs.machine import PIN
from helpers.labs.progress import FOLDER
from helpers.report.files import write_atomically

CELL_SECONDS = 600
"""Seconds that one cell may take."""

WIDGET = "application/vnd.jupyter.widget-view+json"
"""A widget ends with its kernel; in a file, its number means nothing."""


class RefreshError(Exception):
    """A notebook cannot be refreshed; the text says why in one sentence."""


def main(paths: Sequence[str]) -> int:
    """Refresh notebooks one after the other; one that fails stays as it is.

    Args:
        paths: files and folders; every notebook of the guide when there is none.

    Returns:
        0 when all went well, else 1.
    """
    failed = False
    try:
        for path in _notebooks(paths):
            print(f"{path.name}: running ...", file=sys.stderr, flush=True)
            try:
                refresh(path)
            except RefreshError as error:
                failed = True
                print(f"{path.name}: {error}", file=sys.stderr)
    except (RefreshError, LabError) as error:
        failed = True
        print(error, file=sys.stderr)
    return 1 if failed else 0


def refresh(path: Path) -> None:
    """Execute a notebook in its folder and write its outputs into the copy that the tests compare.

    The notebook itself loses any outputs that it has.

    Raises:
        RefreshError: nbclient is missing, the file is not a notebook, or a cell fails.
    """
    try:
        import nbclient
        import nbformat
        from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
    except ImportError as error:
        raise RefreshError('nbclient is missing: pip install -e ".[test]"') from error
    try:
        notebook = nbformat.read(path, as_version=4)
    except (OSError, ValueError, nbformat.ValidationError) as error:
        raise RefreshError(f"this is not a notebook that can be read: {error}") from error
    client = nbclient.NotebookClient(
        notebook,
        timeout=CELL_SECONDS,
        kernel_name="python3",
        store_widget_state=False,
        record_timing=False,
        resources={"metadata": {"path": str(path.parent)}},
    )
    try:
        with TemporaryDirectory() as state:
            client.execute(env={**os.environ, PIN: "cpu", FOLDER: state})
    except CellExecutionError as error:
        raise RefreshError(f"a cell fails with {error.ename}: {error.evalue}") from error
    except CellTimeoutError as error:
        raise RefreshError(f"a cell takes more than {CELL_SECONDS} s") from error
    except DeadKernelError as error:
        raise RefreshError("the kernel has died") from error
    clean(notebook)
    _write(notebook, outputs_of(path))
    _write(without_outputs(notebook), path)


def without_outputs(notebook: Any) -> Any:
    """The notebook as a learner gets it."""
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    return notebook


def _write(notebook: Any, path: Path) -> None:
    import nbformat

    try:
        write_atomically(path, nbformat.writes(notebook).rstrip("\n") + "\n")
    except OSError as error:
        raise RefreshError(f"{path.name} cannot be written: {error}") from error


def clean(notebook: Any) -> None:
    """Remove what differs from run to run or from machine to machine."""
    notebook.metadata.pop("widgets", None)
    notebook.metadata.get("language_info", {}).pop("version", None)
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        for output in cell.get("outputs", []):
            output.get("data", {}).pop(WIDGET, None)


def _notebooks(paths: Sequence[str]) -> list[Path]:
    found: list[Path] = []
    for place in [Path(path) for path in paths] or [labs_folder()]:
        if place.is_dir():
            inside = sorted(place.rglob("*.ipynb"))
            found += [path for path in inside if ".ipynb_checkpoints" not in path.parts]
        elif place.is_file():
            found.append(place)
        else:
            raise RefreshError(f"there is no notebook at {place}")
    return [path.resolve() for path in found]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
