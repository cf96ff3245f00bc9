"""Builds the site: every page that the first ones lead to, the index of the search, and its files."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import nbformat
from markupsafe import Markup

from helpers.diagnose.pages import TOPICS
from helpers.panel.show.style import style_tag

from . import bodies, exhibits
from .content import Content, content
from .exhibits import Play
from .places import CAUSES, COPIED, FRONT, GUIDE, HANGS, ROOT, place_of, relative
from .playback import playback, templates

STATIC = Path(__file__).with_name("static")
SCRIPTS = ("playback.js", "search.js")
METHOD = "notebooks/method"


@dataclass(frozen=True)
class Entry:
    """A page that the navigation names.

    Attributes:
        source: as `place_of` takes it.
    """

    title: str
    source: str


def navigation() -> dict[str, list[Entry]]:
    """What stands beside each page. The path is that of the start page's table."""
    read = nbformat.read(ROOT / GUIDE, as_version=4)
    [path] = [cell.source for cell in read.cells if cell.source.startswith("## The path")]
    rows = re.findall(r"^\| \d+ \| \[([^\]]+)\]\(([^)]+)\)", path, re.MULTILINE)
    steps = [Entry(title.replace("`", ""), f"notebooks/{file}") for title, file in rows]
    return {
        "Start": [Entry("Watch one hang", FRONT), Entry("The guide", GUIDE)],
        "The path": steps,
        "Look up": [
            Entry("Decision table", f"{METHOD}/decision_table.ipynb"),
            Entry("Cheat sheet", f"{METHOD}/cheat_sheet.ipynb"),
            Entry("Causes", CAUSES),
            Entry("Clusters", "docs/clusters.md"),
            Entry("Glossary", f"{METHOD}/glossary.ipynb"),
        ],
    }


def contents(play: Play = playback) -> dict[str, Content]:
    """Source -> page, for all that the navigation and the pages lead to.

    Raises:
        LinkError: a page leads to what is not there.
    """
    topics = (f"{CAUSES.rpartition('/')[0]}/topics/{name.replace('-', '_')}.md" for name in TOPICS)
    wanted = [entry.source for entries in navigation().values() for entry in entries]
    wanted += [*topics, *exhibits.hangs()]
    found: dict[str, Content] = {}
    while wanted:
        source = wanted.pop(0)
        if source not in found and not source.endswith(COPIED):
            found[source] = content(source, _body(source, play))
            wanted += found[source].sources
    return found


def _body(source: str, play: Play) -> str:
    if source == FRONT:
        return exhibits.front(play)
    if source == CAUSES:
        return bodies.causes()
    if source.startswith(f"{HANGS}/"):
        return exhibits.hang(source.rpartition("/")[2], play)
    if source.endswith(".ipynb"):
        return bodies.notebook(source)
    return bodies.document(source) if source.endswith(".md") else bodies.program(source)


def files(pages: Mapping[str, Content]) -> dict[str, bytes]:
    """Place -> what is there, for a whole site."""
    named = navigation()
    made = {page.place: _page(page, named).encode() for page in pages.values()}
    for page in pages.values():
        for source in page.sources:
            if source.endswith(COPIED):
                made[source.removeprefix("notebooks/")] = (ROOT / source).read_bytes()
    made |= {name: (STATIC / name).read_bytes() for name in SCRIPTS}
    made["site.css"] = stylesheet().encode()
    made["search-index.js"] = search_index(pages.values()).encode()
    return made


def write(folder: Path, made: Mapping[str, bytes]) -> None:
    """Write a site into a folder, in place of what is there."""
    shutil.rmtree(folder, ignore_errors=True)
    for place, data in made.items():
        (folder / place).parent.mkdir(parents=True, exist_ok=True)
        (folder / place).write_bytes(data)


def stylesheet() -> str:
    """The panel's own rules, and those of the site, which say what its colours are."""
    panel = style_tag().removeprefix("<style>").removesuffix("</style>")
    return panel + (STATIC / "site.css").read_text(encoding="utf-8")


def search_index(pages: Iterable[Content]) -> str:
    """A script with the sections of all pages, so that a page opened as a file has them, too."""
    listed = [page for page in pages if not page.place.startswith("benchmarks/")]
    sections = [
        (number, section.anchor, section.heading, section.text)
        for number, page in enumerate(listed)
        for section in page.sections
    ]
    index = {"pages": [(page.title, page.place) for page in listed], "sections": sections}
    return f"window.searchIndex = {json.dumps(index, ensure_ascii=False, separators=(',', ':'))};\n"


def _page(page: Content, named: Mapping[str, list[Entry]]) -> str:
    """The whole of a page."""
    order = [entry for entries in named.values() for entry in entries]
    at = next((number for number, entry in enumerate(order) if entry.source == page.source), None)
    following = order[at + 1] if at is not None and at + 1 < len(order) else None
    return (
        templates()
        .get_template("page.html")
        .render(
            page=page,
            body=Markup(bodies.with_listings(page.html)),
            named=named,
            following=following,
            headings=[section for section in page.sections if section.level == 2],
            root="../" * page.place.count("/"),
            link=lambda source: relative(place_of(source), page.place),
            plays='class="playback"' in page.html,
        )
    )
