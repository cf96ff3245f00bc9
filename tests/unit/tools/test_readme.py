"""README and its pages: short, with links that lead somewhere, and figures that are those measured."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from changes import BEGIN, END, to_markdown
from repository import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
MOST_WORDS = 900


def test_the_first_page_is_short_and_leads_to_all_others() -> None:
    assert len(README.split()) <= MOST_WORDS
    linked = {(ROOT / "docs" / name).name for name in re.findall(r"\]\(docs/([\w.]+)", README)}
    for page in PAGES:
        folder = page.parent
        linked |= {(folder / name).name for name in re.findall(r"\]\(([\w.]+\.md)", page.read_text())}
    assert {page.name for page in PAGES} - {"README.md"} <= linked


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        if target.startswith("http"):
            continue
        file, _, heading = target.partition("#")
        reached = page.parent / file if file else page
        assert reached.exists(), target
        if heading:
            assert heading in anchors(reached.read_text(encoding="utf-8")), target


def anchors(text: str) -> set[str]:
    """What GitHub makes of headings: lower case, hyphens for spaces, no punctuation."""
    headings = re.findall(r"^#+ (.*)$", text, re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_the_table_of_tools_is_that_of_the_page() -> None:
    why = (ROOT / "docs" / "why.md").read_text(encoding="utf-8")
    shown = why[why.index("| tool |") :].partition("\n\n")[0]
    assert shown.count("\n") == 8, "seven tools"
    assert shown + "\n" in (ROOT / "benchmarks" / "bench.md").read_text(encoding="utf-8")


def test_the_table_of_changes_is_that_of_the_code() -> None:
    page = (ROOT / "docs" / "changes.md").read_text(encoding="utf-8")
    assert to_markdown() == page.partition(BEGIN)[2].partition(END)[0], "run tools/changes.py"


@pytest.mark.parametrize(
    ("page", "shown", "measured"),
    [
        ("score", "| 147 of 147 |", "| cause right | 147 of 147 (100.0%) |"),
        ("score", "| 62 of 62 |", "| statements right, where there is one | 62 of 62 (100.0%) |"),
        ("score", "| 127 of 128 |", "| fixes right, where some fit | 127 of 128 (99.2%) |"),
        ("statements", "| 24 of 45, 3 wrong |", "mended for these programs | **24** | **3** |"),
        ("statements", "| 37 of 45, none wrong |", "test_realistic.py` | 37 | 0 |"),
        ("statements", "parted in 5,400", "in 5,400 of them the ranks parted"),
        ("statements", "named in 4,961", "the ranks' traces differ there | 4,961 |"),
        ("public", "none of 50 runs is", "anything but `ok` would be a false alarm: none of 50 runs"),
    ],
)
def test_figures_are_those_of_their_pages(page: str, shown: str, measured: str) -> None:
    assert shown in (ROOT / "docs" / "why.md").read_text(encoding="utf-8")
    assert measured in (ROOT / "benchmarks" / f"{page}.md").read_text(encoding="utf-8")
