"""The site, without its recordings but for a small one: its links, what it loads, how large it is."""

from __future__ import annotations

import json
import re
from html import unescape
from posixpath import dirname, normpath
from urllib.parse import unquote

import nbformat
import pytest
from bs4 import BeautifulSoup
from lessons import outputs_of
from repository import ROOT
from website.content import LinkError, content
from website.places import FRONT, place_of
from website.playback import playback
from website.publish import contents, files

from helpers.diagnose.pages import names
from helpers.labs.lab import all_labs
from helpers.labs.practice import all_hangs

MOST = 2_000_000
"""Bytes of a page with all that it loads."""

Site = dict[str, bytes]


@pytest.fixture(scope="module")
def site() -> Site:
    """Place -> what is there; where a recording would play stands its name."""
    return files(contents(lambda file, **_: f"<p>{file.parent.name}</p>"))


@pytest.fixture(scope="module")
def pages(site: Site) -> dict[str, str]:
    return {place: data.decode() for place, data in site.items() if place.endswith(".html")}


def loaded(page: str) -> list[str]:
    """Addresses that a browser fetches for a page by itself."""
    found = re.findall(r'\ssrc="([^"]*)"|<link [^>]*href="([^"]*)"', page)
    return [src or href for src, href in found if href != "data:,"]


def ids_of(page: str) -> list[str]:
    return re.findall(r'\sid="([^"]*)"', page)


def target(place: str, address: str) -> str:
    """The place to which an address in a page leads."""
    path = address.partition("#")[0]
    return normpath(f"{dirname(place)}/{path}".lstrip("/")) if path else place


def test_every_link_leads_to_a_page_and_to_a_place_in_it(site: Site, pages: dict[str, str]) -> None:
    ids = {place: ids_of(page) for place, page in pages.items()}
    broken = []
    for place, page in pages.items():
        for address in re.findall(r'\s(?:href|src)="(?!https?:|data:)([^"]*)"', page):
            there, anchor = target(place, address), unquote(unescape(address)).partition("#")[2]
            if there not in site or (anchor and anchor not in map(unescape, ids[there])):
                broken.append(f"{place}: {address}")
    assert broken == []
    assert [place for place, found in ids.items() if len(found) != len(set(found))] == []


def test_nothing_is_loaded_from_elsewhere(site: Site, pages: dict[str, str]) -> None:
    for page in pages.values():
        assert [address for address in loaded(page) if re.match("[a-z]+:|//", address)] == []
    assert re.findall(rb"@import|url\((?!#)", site["site.css"]) == []
    for place in ("playback.js", "search.js"):
        assert re.findall(rb"https?://(?!www\.w3\.org/2000/svg)|fetch\(|import\(", site[place]) == []


def test_a_page_is_small_with_all_that_it_loads(site: Site, pages: dict[str, str]) -> None:
    for place, page in pages.items():
        parts = {target(place, address) for address in loaded(page)}
        assert len(page.encode()) + sum(len(site[part]) for part in parts) < MOST, place
    assert len(site["search-index.js"]) < MOST


def test_every_page_has_one_first_heading_and_a_title(pages: dict[str, str]) -> None:
    for place, page in pages.items():
        assert page.count("<h1") == 1, place
        assert re.search(r"<title>\S[^<]*</title>", page), place


def test_lessons_causes_and_hangs_are_there(site: Site) -> None:
    places = [f"{lab.name}/{lab.name}.html" for lab in all_labs()]
    places += [f"causes/{name.replace('-', '_')}.html" for name in names()]
    places += [f"practice/{hang.name}.html" for hang in all_hangs()]
    assert [place for place in places if place not in site] == []


@pytest.mark.parametrize("lab", [lab.name for lab in all_labs()])
def test_a_lesson_has_its_outputs(pages: dict[str, str], lab: str) -> None:
    read = nbformat.read(outputs_of(ROOT / "notebooks" / lab / f"{lab}.ipynb"), as_version=4)
    cells = [cell for cell in read.cells if cell.get("outputs")]
    soup = BeautifulSoup(pages[f"{lab}/{lab}.html"], "html.parser")
    shown = soup.select(".output")
    assert len(shown) == len(cells)
    for cell, output in zip(cells, shown, strict=True):
        assert ("In JupyterLab, this is a live panel." in output.get_text()) == ("sr-ended" in str(cell))
        for stream in (part.text for part in cell.outputs if part.output_type == "stream"):
            assert stream.strip() in output.get_text()
    assert "The kernel behind this view has ended" not in soup.get_text()


def test_the_index_leads_to_sections_and_has_their_text(site: Site, pages: dict[str, str]) -> None:
    script = site["search-index.js"].decode()
    index = json.loads(script.removeprefix("window.searchIndex = ").removesuffix(";\n"))
    found = {}
    for number, anchor, heading, text in index["sections"]:
        _, place = index["pages"][number]
        assert anchor in map(unescape, ids_of(pages[place]))
        found[heading] = text
    assert "init_process_group" in found["Symptoms"]
    assert "The phase in which the ranks" in found["rendezvous"]


def test_the_commands_of_the_first_page_are_those_of_the_readme(pages: dict[str, str]) -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    front = BeautifulSoup(pages["index.html"], "html.parser")
    [listing] = front.select("h2#watch-your-own-job ~ .highlight")
    commands = listing.get_text().strip().splitlines()
    assert len(commands) == 2
    assert [command for command in commands if command not in readme] == []


@pytest.mark.parametrize(
    ("source", "place"),
    [
        (FRONT, "index.html"),
        ("notebooks/index.ipynb", "guide.html"),
        ("notebooks/method/glossary.ipynb", "method/glossary.html"),
        ("notebooks/05_spawn_ports/broken.py", "05_spawn_ports/broken.py.html"),
        ("notebooks/05_spawn_ports/lanes.svg", "05_spawn_ports/lanes.svg"),
        ("helpers/diagnose/causes/file_lock.md", "causes/file_lock.html"),
        ("notebooks/practice/hangs/01", "practice/01.html"),
        ("docs/clusters.md", "docs/clusters.html"),
        ("docs/templates", None),
    ],
)
def test_where_a_source_is(source: str, place: str | None) -> None:
    assert place_of(source) == place


def test_links_lead_to_places_and_addresses_become_links() -> None:
    body = (
        '<h1>One</h1><p><a href="docs/clusters.md#x">a</a> <a href="docs/templates/cause">b</a>'
        " https://example.org/c. <code>https://example.org/d</code></p>"
    )
    made = content("README.md", body)
    assert '<a href="docs/clusters.html#x">a</a> b <a href="https://example.org/c">' in made.html
    assert "<code>https://example.org/d</code>" in made.html
    assert made.sources == ("docs/clusters.md",)


def test_a_link_to_nothing_is_refused() -> None:
    with pytest.raises(LinkError, match=r"docs/clusters\.md links to gone\.md"):
        content("docs/clusters.md", '<h1>One</h1><a href="gone.md">x</a>')


def test_what_is_in_a_playback_is_not_searched() -> None:
    made = content("README.md", '<h1>One</h1><p>seen</p><div class="playback"><p>answer</p></div>')
    assert [section.text for section in made.sections] == ["seen"]


def test_a_recording_says_what_each_rank_does_at_any_second() -> None:
    [hang] = [hang for hang in all_hangs() if hang.name == "28"]
    soup = BeautifulSoup(playback(hang.folder / "run.jsonl.gz", width=740), "html.parser")
    told = json.loads(soup.script.get_text())
    assert told["right"] == [2]
    for times in told["ranks"].values():
        seconds = [second for second, _ in times]
        assert seconds == sorted(seconds) and seconds[0] <= told["end"]
        assert {number for _, number in times} <= set(range(len(told["texts"])))
    assert "init_process_group" in told["texts"][told["ranks"]["0"][-1][1]]
    assert {lane["data-rank"] for lane in soup.select(".roomy [data-rank]")} == {"0", "1", "2"}
    assert "rank 2 was never started" in soup.select_one("details.verdict").get_text()
