"""What every notebook of the guide keeps: small cells, one rhythm, clean outputs in a copy."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import nbformat
import pytest
from lessons import OUTPUTS, outputs_of
from refresh import WIDGET

from helpers.labs.lab import all_labs, labs_folder

NOTEBOOKS = sorted(
    path for path in labs_folder().rglob("*.ipynb") if ".ipynb_checkpoints" not in path.parts
)
RHYTHM = [
    "## The report you got",
    "## The program",
    "## The panel",
    "## Predict",
    "## Run it",
    "## Read it by hand",
    "## Why",
    "## Your turn",
    "## The documented fix",
    "## What the document says, and what we measured",
    "## Check yourself",
    "## In your own cluster",
]
VOLATILE = "nbval-ignore-output"
"""Tag of a cell whose output says something about the machine; nbval does not compare it."""

DUMPS = {
    line.strip() for lab in all_labs() for question in lab.quiz for line in question.dump.splitlines()
}
"""Lines of recorded output that the labs' questions quote; they differ nowhere."""

every_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def code_cells(path: Path) -> list[Any]:
    cells = nbformat.read(path, as_version=4).cells
    return [cell for cell in cells if cell.cell_type == "code"]


def text_of(output: Any) -> str:
    data = output.get("data", {})
    return "\n".join([output.get("text", ""), data.get("text/plain", ""), data.get("text/html", "")])


@every_notebook
def test_code_cells_are_few_and_short(path: Path) -> None:
    cells = code_cells(path)
    assert len(cells) <= 15
    for cell in cells:
        lines = [line for line in cell.source.splitlines() if line.strip()]
        assert 1 <= len(lines) <= 6
        assert not re.search(r"^\s*(def|class|for|while|if|try|with)\b|\bsleep\b", cell.source, re.M)


@pytest.mark.parametrize("lab", all_labs(), ids=lambda lab: lab.name)
def test_a_lab_keeps_the_rhythm(lab: Any) -> None:
    notebook = nbformat.read(lab.folder / f"{lab.name}.ipynb", as_version=4)
    text = [cell.source for cell in notebook.cells if cell.cell_type == "markdown"]
    headings = re.findall(r"^## .*$", "\n".join(text), re.M)
    assert [heading for heading in headings if heading in RHYTHM] == RHYTHM
    assert f"**{lab.minutes} minutes**" in text[0]
    assert re.search(r"\*\*difficulty: (easy|medium|hard)\*\*", text[0])


@pytest.mark.parametrize("lab", all_labs(), ids=lambda lab: lab.name)
def test_the_path_has_each_lab_with_its_time_and_difficulty(lab: Any) -> None:
    notebook = nbformat.read(lab.folder / f"{lab.name}.ipynb", as_version=4)
    found = re.search(r"\*\*difficulty: (\w+)\*\*", notebook.cells[0].source)
    assert found
    wanted = rf"{lab.name}.*\| {lab.minutes} min \| {found[1]} \|"
    for page in (labs_folder() / "index.ipynb", labs_folder().parent / "README.md"):
        assert re.search(wanted, page.read_text(encoding="utf-8")), page.name


@every_notebook
def test_metadata_is_plain(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    assert notebook.metadata.kernelspec.name == "python3"
    assert "widgets" not in notebook.metadata
    assert "version" not in notebook.metadata.language_info
    assert not any("execution" in cell.metadata for cell in notebook.cells)


@every_notebook
def test_a_learner_sees_no_output_before_the_first_run(path: Path) -> None:
    assert not [cell for cell in code_cells(path) if cell.outputs or cell.execution_count]


@every_notebook
def test_the_outputs_are_those_of_the_same_cells(path: Path) -> None:
    lesson, copy = (nbformat.read(file, as_version=4) for file in (path, outputs_of(path)))
    assert [(c.id, c.cell_type, c.source, c.metadata) for c in copy.cells] == [
        (c.id, c.cell_type, c.source, c.metadata) for c in lesson.cells
    ], "run: make refresh"
    counts = [cell.execution_count for cell in code_cells(outputs_of(path))]
    assert counts == list(range(1, len(counts) + 1))


def test_there_are_no_outputs_of_other_notebooks() -> None:
    assert {path.name for path in OUTPUTS.glob("*.ipynb")} == {path.name for path in NOTEBOOKS}


@every_notebook
def test_outputs_are_the_same_on_every_machine(path: Path) -> None:
    for cell in code_cells(outputs_of(path)):
        if VOLATILE in cell.metadata.get("tags", []):
            continue
        for output in cell.outputs:
            assert WIDGET not in output.get("data", {})
            text = "\n".join(line for line in text_of(output).splitlines() if line.strip() not in DUMPS)
            assert output.output_type != "error"
            assert not re.search(r"(?<![\w.:/<])/(home|root|tmp|usr|work|Users|opt|var)/", text)
            assert not re.search(r"\bpid[ =:]*\d+|\b0x[0-9a-f]{6,}|\b\d+\.\d+ s\b", text)


@every_notebook
def test_links_go_somewhere(path: Path) -> None:
    for cell in nbformat.read(path, as_version=4).cells:
        for target in re.findall(r"\]\(([^)#]+)", cell.source):
            if target.startswith("https://"):
                continue
            file = (path.parent / target).resolve()
            assert file.is_file(), target
