"""A body as it stands in a page: its links lead to places of the site, and all of it can be searched."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from posixpath import dirname, normpath
from urllib.parse import unquote

from bs4 import BeautifulSoup, NavigableString, Tag

from .places import ROOT, place_of, relative

HEADINGS = ("h1", "h2", "h3", "h4")
UNREAD = ("script", "style", "svg")
"""Elements without a text to search."""

INLINE = ("a", "b", "code", "em", "i", "span", "strong")
"""Elements that may stand inside a word."""

_ADDRESS = re.compile(r"https?://[^\s<>()]+[^\s<>().,;:]")


class LinkError(Exception):
    """A page links to a file that does not exist."""


@dataclass(frozen=True)
class Section:
    """A heading, and the text until the next one.

    Attributes:
        anchor: the id of the heading.
    """

    anchor: str
    heading: str
    level: int
    text: str


@dataclass(frozen=True)
class Content:
    """The body of a page.

    Attributes:
        title: the text of its first heading.
        sources: what it leads to or shows, as paths from the root of the repository.
    """

    source: str
    place: str
    title: str
    html: str
    sections: tuple[Section, ...]
    sources: tuple[str, ...]


def content(source: str, body: str) -> Content:
    """The body of a source as a page of the site.

    Args:
        source: as `place_of` takes it; the links of the body are relative to its folder.
        body: HTML with one heading of the first level.

    Raises:
        LinkError: it links to what neither the repository nor the site has.
    """
    soup = BeautifulSoup(body, "html.parser")
    place = place_of(source) or source
    _name_headings(soup, source)
    _link_addresses(soup)
    sources = tuple(_lead(soup, source, place))
    _make_scrollable(soup)
    _name_boxes(soup)
    found = tuple(_sections(soup))
    return Content(source, place, found[0].heading, str(soup), found, sources)


def _name_headings(soup: BeautifulSoup, source: str) -> None:
    """Give each heading the id that links to it use: JupyterLab's in a notebook, else GitHub's."""
    names = Counter[str]()
    for heading in soup.find_all(HEADINGS):
        said = heading.get_text().strip()
        if not source.endswith(".ipynb"):
            said = re.sub(r"[^\w\s-]", "", said.lower())
        name = re.sub(r"\s", "-", said)
        heading["id"] = f"{name}-{names[name]}" if names[name] else name
        names[name] += 1


def _link_addresses(soup: BeautifulSoup) -> None:
    """Make a link of each address that stands in a text."""
    for text in soup.find_all(string=_ADDRESS):
        if text.find_parent(["a", "code", "pre", "script", "style"]):
            continue
        linked = _ADDRESS.sub(lambda found: f'<a href="{found[0]}">{found[0]}</a>', text.output_ready())
        text.replace_with(BeautifulSoup(linked, "html.parser"))


def _lead(soup: BeautifulSoup, source: str, place: str) -> Iterator[str]:
    """Rewrite the links and pictures of a body; yields the sources to which they lead."""
    for tag, name in [(a, "href") for a in soup.find_all("a")] + [
        (i, "src") for i in soup.find_all("img")
    ]:
        address = tag[name]
        if re.match(r"(https?:|mailto:|#)", address):
            continue
        path, _, anchor = address.partition("#")
        target = normpath(f"{dirname(source)}/{unquote(path)}".lstrip("/"))
        there = place_of(target)
        if there is None and (ROOT / target).is_dir():
            tag.unwrap()  # a folder of the checkout
            continue
        if there is None or not (_made_up(target) or (ROOT / target).is_file()):
            raise LinkError(f"{source} links to {address}")
        yield target
        tag[name] = relative(there, place) + (f"#{anchor}" if anchor else "")


def _made_up(source: str) -> bool:
    """True for a page that is made of no single file."""
    return "." not in source


def _make_scrollable(soup: BeautifulSoup) -> None:
    """Let what is wider than the page scroll by itself, by keyboard too."""
    for listing in soup.find_all("pre"):
        listing["tabindex"] = "0"
    wide = soup.find_all("table") + [p for p in soup.select("p > img:only-child") if not p.next_sibling]
    for part in wide:
        label = "Table" if part.name == "table" else "Picture"
        around = soup.new_tag("div", attrs={"class": "wide", "tabindex": "0", "role": "group"})
        around["aria-label"] = label
        (part if part.name == "table" else part.parent).wrap(around)


def _name_boxes(soup: BeautifulSoup) -> None:
    """Let a reader tick the boxes of a list; each is named by its item."""
    for box in soup.select("li input[type=checkbox]"):
        del box["disabled"]
        box["aria-label"] = " ".join(box.find_parent("li").get_text().split())


def _sections(soup: BeautifulSoup) -> Iterator[Section]:
    """The sections of a body in their order; what stands before the first heading is left out."""
    heading, words = None, list[str]()
    for part in _read(soup):
        if isinstance(part, Tag):
            if heading is not None:
                yield _section(heading, words)
            heading, words = part, []
        else:
            words.append(part)
    if heading is not None:
        yield _section(heading, words)


def _read(tag: Tag) -> Iterator[Tag | str]:
    """The headings and the texts below a tag, in their order; no answer to a question is among them."""
    for part in tag.children:
        if isinstance(part, Tag):
            if part.name not in INLINE:
                yield " "
            if part.name in HEADINGS:
                yield part
            elif part.name not in UNREAD and "playback" not in part.get("class", ""):
                yield from _read(part)
        elif type(part) is NavigableString:
            yield str(part)


def _section(heading: Tag, words: list[str]) -> Section:
    said = " ".join(heading.get_text().split())
    return Section(str(heading["id"]), said, int(heading.name[1]), " ".join("".join(words).split()))
