"""Every cause has a page, and every page has what a reader needs."""

from importlib.resources import files
from typing import get_args, get_type_hints

import pytest
from markdown_it import MarkdownIt

from helpers.diagnose import diagnose, pages
from helpers.diagnose.pages import names, page
from helpers.diagnose.scene import Facts
from helpers.model.facts import Cause, Verdict

CAUSES = [cause for cause in get_args(Cause) if cause != "none"]


def test_each_cause_has_a_page_and_each_page_a_cause() -> None:
    folder = files("helpers.diagnose") / "causes"
    found = {entry.name for entry in folder.iterdir() if entry.name.endswith(".md")}

    assert found == {f"{cause.replace('-', '_')}.md" for cause in CAUSES}
    assert names() == CAUSES


def test_an_error_is_nothing_more_only_when_no_other_cause_explains_it() -> None:
    assert names()[-2:] == ["error", "unknown"]


@pytest.mark.parametrize("cause", CAUSES)
def test_a_cause_is_found_as_every_other(cause: Cause) -> None:
    assert get_type_hints(diagnose.CAUSES[cause]) == {"facts": Facts, "return": Verdict | None}


@pytest.mark.parametrize("cause", CAUSES)
def test_a_page_is_complete(cause: str) -> None:
    read = page(cause)

    sections = [part.partition("\n") for part in read.markdown.split("\n## ")[1:]]
    assert read.markdown.startswith(f"# {cause}\n")
    assert [title for title, _, _ in sections] == list(pages.HEADINGS)
    assert read.meaning.endswith(".")
    assert read.meaning.count(". ") == 0, "the meaning is one sentence"
    for _, _, text in sections:
        assert len(text.strip()) > 40
    assert 25 <= len(read.markdown.splitlines()) <= 60


@pytest.mark.parametrize("cause", CAUSES)
def test_a_page_names_its_sources(cause: str) -> None:
    read = page(cause)

    assert read.references
    assert all(url.startswith("https://") for url in read.references)
    assert len(set(read.references)) == len(read.references)
    assert "http" not in read.markdown.partition("## References")[0], "addresses stand at the end"


@pytest.mark.parametrize("cause", CAUSES)
def test_a_page_uses_only_what_every_form_of_it_shows(cause: str) -> None:
    """Paragraphs, lists and code: a terminal and the panel show nothing else as what it is."""
    body = MarkdownIt().parse(page(cause).markdown)
    inside = {child.type for token in body for child in token.children or ()}

    assert {token.type.removesuffix("_open").removesuffix("_close") for token in body} <= {
        *("heading", "paragraph", "inline", "bullet_list", "ordered_list", "list_item")
    }
    assert inside <= {"text", "code_inline", "softbreak"}


def test_an_unknown_cause_is_refused_with_the_list_of_causes() -> None:
    with pytest.raises(KeyError) as refused:
        page("no-such-cause")

    assert isinstance(refused.value, pages.UnknownCauseError)
    assert "no-such-cause" in str(refused.value)
    assert all(cause in str(refused.value) for cause in CAUSES)
    assert str(refused.value).count(".") == 1


def test_a_page_is_read_once() -> None:
    assert page("error") is page("error")
