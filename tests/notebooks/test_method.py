"""The pages on the method: text only, links that lead somewhere, commands that exist."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import nbformat
import pytest

from helpers.labs.lab import labs_folder
from helpers.labs.pages import read_page
from helpers.observe.recording import load
from helpers.panel.learn.first_hang import RECORDING
from helpers.report.text import to_text
from helpers.session import report_of

GUIDE = labs_folder()
METHOD = GUIDE / "method"
PAGES = sorted(METHOD.glob("*.ipynb"))
CAUSES = GUIDE.parent / "helpers" / "diagnose" / "causes"

NOT_RUN = "# not run here: needs "
COMMANDS = {
    "stuck-ranks": "the wheel of this project is not installed",
    "pgrep": "procps is not installed",
    "ps": "procps is not installed",
    "tr": "coreutils are not installed",
    "for": "bash is not installed",
    "py-spy": "py-spy is not installed",
    "kill": "bash is not installed",
    "torchrun": "torch is not installed",
    "torchfrtrace": "torch is older than 2.7",
    "curl": "curl is not installed",
    "ss": "iproute2 is not installed",
    "lsof": "lsof is not installed",
    "timeout": "coreutils are not installed",
    "dmesg": "util-linux is not installed",
    "cat": "coreutils are not installed",
    "grep": "grep is not installed",
    "df": "coreutils are not installed",
    "find": "findutils are not installed",
    "fuser": "psmisc is not installed",
}
"""The first word of every command of the cheat sheet, and why it may be absent on a machine."""


def text_of(page: Path) -> str:
    return "\n".join(cell.source for cell in nbformat.read(page, as_version=4).cells)


def anchors_of(page: Path) -> set[str]:
    """The anchors that JupyterLab gives to the headings of a page: spaces become hyphens."""
    prose = re.sub(r"^```.*?^```", "", text_of(page), flags=re.M | re.S)
    return {heading.replace(" ", "-") for heading in re.findall(r"^#+ (.+)$", prose, re.M)}


def first_words() -> list[str]:
    """The first word of every command block of the cheat sheet that has been run."""
    blocks = re.findall(r"^```bash\n(.*?)^```", text_of(METHOD / "cheat_sheet.ipynb"), re.M | re.S)
    run = [block for block in blocks if not block.startswith(NOT_RUN)]
    return [re.sub(r"^(\w+=\S+ )*", "", block).split()[0] for block in run]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_is_text_and_on_the_method_its_questions(page: Path) -> None:
    notebook = nbformat.read(page, as_version=4)
    nbformat.validate(notebook)
    asked = [cell.source.splitlines()[-1] for cell in notebook.cells if cell.cell_type == "code"]
    count = len(read_page("method").questions) if page.stem == "method" else 0
    assert asked == [f'ask("method", {number})' for number in range(1, count + 1)]
    assert [cell.id for cell in notebook.cells] == [
        f"cell-{number:02}" for number in range(len(notebook.cells))
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_and_their_anchors_go_somewhere(page: Path) -> None:
    for target, anchor in re.findall(r"\]\(([^)#\s]*)#?([^)\s]*)\)", text_of(page)):
        if not target.startswith("https://"):
            file = (page.parent / target).resolve() if target else page
            assert file.is_file(), target
            assert not anchor or anchor in anchors_of(file), f"{target}#{anchor}"


def test_every_link_into_the_glossary_finds_its_term() -> None:
    terms = anchors_of(METHOD / "glossary.ipynb")
    for page in GUIDE.rglob("*.ipynb"):
        if ".ipynb_checkpoints" not in page.parts:
            linked = set(re.findall(r"glossary\.ipynb#([^)\s]+)\)", text_of(page)))
            assert linked <= terms, page.name


@pytest.mark.parametrize(
    ("page", "heading"),
    [(METHOD / "decision_table.ipynb", "# Decision table"), (GUIDE / "index.ipynb", "All causes")],
    ids=["decision table", "start page"],
)
def test_every_cause_is_linked(page: Path, heading: str) -> None:
    linked = set(re.findall(r"helpers/diagnose/causes/(\w+\.md)\)", text_of(page).partition(heading)[2]))
    assert linked == {page.name for page in CAUSES.glob("*.md")}


def test_each_step_of_the_method_asks_before_it_explains() -> None:
    cells = nbformat.read(METHOD / "method.ipynb", as_version=4).cells
    steps = [n for n, cell in enumerate(cells) if re.match(r"## \d\. ", cell.source)]
    assert len(steps) == len(read_page("method").questions)
    for number, place in enumerate(steps, start=1):
        question, explained = cells[place + 1 : place + 3]
        assert question.source.endswith(f'ask("method", {number})')
        assert explained.source.startswith(f"<details><summary>Step {number}, explained</summary>")
        assert explained.source.endswith("</details>")


def test_the_report_of_the_method_is_that_of_its_recording() -> None:
    recording = load(METHOD / RECORDING)
    report = report_of(tuple(recording.snapshots()), recording.watched.patience)
    command = " ".join(recording.watched.command)
    shown = text_of(METHOD / "method.ipynb").partition(f"$ stuck-ranks diagnose -- {command}\n")[2]
    assert to_text(report).startswith(shown.partition("```")[0]) and shown


def test_every_command_of_the_cheat_sheet_is_in_the_table() -> None:
    assert set(first_words()) == set(COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_exists(command: str) -> None:
    bash = shutil.which("bash")
    known = bash and not subprocess.run([bash, "-c", f"type {command}"], capture_output=True).returncode
    if not known:
        pytest.skip(COMMANDS[command])
