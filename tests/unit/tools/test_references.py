"""Lines of torch, Lightning, DeepSpeed and Python that the texts name say what the texts say."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import references
from references import PACKAGES, quotes, texts

QUOTES = quotes()


def missing(text: str) -> list[str]:
    """The references of a text that tests/references.toml does not hold."""
    return [
        f"{reference.said} (line {reference.line} of {' or '.join(reference.files) or 'no file'})"
        for reference in references.references(text)
        if not any(
            ((quote.file,), quote.line) == (reference.files, reference.line) and quote.version in text
            for quote in QUOTES
        )
    ]


def test_every_line_that_a_text_names_is_quoted() -> None:
    wrong = [f"{place}: {said}" for place, text in texts() for said in missing(text)]
    assert not wrong, (
        "not in tests/references.toml, or in a version that the text does not name, or of two files:\n"
        + "\n".join(wrong)
    )


def test_every_quoted_line_is_named_by_a_text() -> None:
    named = {(said.files, said.line) for _, text in texts() for said in references.references(text)}
    unused = [
        f"{quote.file}:{quote.line}" for quote in QUOTES if ((quote.file,), quote.line) not in named
    ]
    assert not unused, "no text refers to it any more:\n" + "\n".join(unused)


@pytest.mark.parametrize("package", PACKAGES)
def test_a_quoted_line_is_where_the_texts_say(package: str) -> None:
    held = [quote for quote in QUOTES if quote.package == package and quote.is_of_installed()]
    if not held:
        pytest.skip(f"{package} is not installed, or not in the version that the texts name")
    moved = [
        f"{quote.file}:{quote.line}: {quote.fragment!r} is at {quote.lines() or 'no line'}"
        for quote in held
        if quote.line not in quote.lines()
    ]
    assert not moved, "`python tools/references.py` names the sentences to read again:\n" + "\n".join(
        moved
    )


def test_a_name_continues_a_path_named_before() -> None:
    text = (
        "`fabric/strategies/ddp.py:1`, `ddp.py:2-3`, `:4`; `broken.py:5`, `:6`; `file_baton.py:7, 8`\n"
        '  File ".../torch/_tensor.py", line 9, in backward'
    )
    ddp, baton = "lightning/fabric/strategies/ddp.py", "torch/utils/file_baton.py"
    lines = [(ddp, 1), (ddp, 2), (ddp, 3), (ddp, 4), (baton, 7), (baton, 8), ("torch/_tensor.py", 9)]
    assert [(said.files, said.line) for said in references.references(text)] == [
        ((file,), line) for file, line in lines
    ]


def test_a_name_of_two_files_is_not_accepted() -> None:
    quote = next(quote for quote in QUOTES if quote.file == "lightning/fabric/strategies/ddp.py")
    assert len(missing(f"`ddp.py:{quote.line}`")) == 1
    assert missing(f"`fabric/strategies/ddp.py:{quote.line}`") == []


def test_a_line_of_another_version_is_accepted_where_the_text_says_which() -> None:
    quote = next(quote for quote in QUOTES if quote.version.startswith("torch "))
    assert len(missing(f"`{quote.file}:{quote.line}`")) == 1
    assert missing(f"{quote.version}, `{quote.file}:{quote.line}`") == []


def test_the_tool_says_where_a_line_is_now_and_who_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    old, new = (quote for quote in QUOTES if quote.file == "torch/utils/file_baton.py")
    moved = tmp_path / "references.toml"
    moved.write_text(
        f'[installed."{old.file}"]\n{old.line} = {json.dumps(new.fragment)}\n', encoding="utf-8"
    )
    monkeypatch.setattr(references, "QUOTES", moved)
    assert references.main() == 1
    first, *named = capsys.readouterr().out.splitlines()
    assert first == f"{old.file}:{old.line} -> {new.line}: {new.fragment}"
    assert named == [
        f"    {place}: {said.said}"
        for place, text in texts()
        for said in references.references(text)
        if (said.files, said.line) == ((old.file,), old.line)
    ]
    assert named
