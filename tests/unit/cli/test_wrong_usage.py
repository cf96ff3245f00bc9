"""Wrong usage of the command line: one sentence, 64, nothing started and nothing written."""

from __future__ import annotations

from pathlib import Path

import pytest

from helpers.cli.main import main


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "VERB"),
        (["no-such-verb", "--", "true"], "no-such-verb"),
        (["diagnose"], "no command"),
        (["diagnose", "--"], "no command"),
        (["diagnose", "touch", "ran"], "touch"),
        (["diagnose", "--no-such-option", "--", "touch", "ran"], "--no-such-option"),
        (["diagnose", "--max-seconds", "0", "--", "touch", "ran"], "0"),
        (["diagnose", "--max-seconds", "-1", "--", "touch", "ran"], "-1"),
        (["diagnose", "--max-seconds", "abc", "--", "touch", "ran"], "abc"),
        (["diagnose", "--max-seconds", "nan", "--", "touch", "ran"], "nan"),
        (["diagnose", "--max-seconds", "--", "touch", "ran"], "--max-seconds"),
        (["diagnose", "--patience", "0", "--", "touch", "ran"], "0"),
        (["diagnose", "--json", "x" * 5000, "--", "touch", "ran"], "too long"),
        (["diagnose", "--record", "x" * 5000, "--", "touch", "ran"], "too long"),
        (["diagnose", "--", "no-such-command"], "no-such-command"),
        (["diagnose", "--", "./no-such-command"], "no-such-command"),
        (["diagnose", "--", "./plain.txt"], "not executable"),
        (["diagnose", "--", "./"], "not executable"),
        (["diagnose", "--", ""], "no command"),
        (["diagnose", "--json", "no/report.json", "--", "touch", "ran"], "no/report.json"),
        (["diagnose", "--json", ".", "--", "touch", "ran"], "."),
        (["diagnose", "--json", "plain.txt/report.json", "--", "touch", "ran"], "plain.txt"),
        (["diagnose", "--json", "/proc/report.json", "--", "touch", "ran"], "/proc/report.json"),
        (["diagnose", "--json", "/proc/self/comm", "--", "touch", "ran"], "/proc/self/comm"),
        (["diagnose", "--json", "", "--", "touch", "ran"], ""),
        (["diagnose", "--record", "no/record", "--", "touch", "ran"], "no/record"),
        (["diagnose", "--record", "no/folder/", "--", "touch", "ran"], "no/folder/"),
        (["diagnose", "--record", "plain.txt/", "--", "touch", "ran"], "plain.txt/"),
    ],
    ids=lambda value: " ".join(value) or "nothing" if isinstance(value, list) else "",
)
def test_wrong_usage(
    arguments: list[str],
    says: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "plain.txt").write_text("no program")
    monkeypatch.chdir(tmp_path)
    if "--json" not in arguments and "diagnose" in arguments:
        arguments = [arguments[0], "--json", "report.json", *arguments[1:]]
    assert main(arguments) == 64
    shown = capfd.readouterr()
    assert shown.out == ""
    lines = shown.err.splitlines()
    assert len(lines) == 1 and lines[0].startswith("stuck-ranks: ") and says in lines[0]
    assert [path.name for path in tmp_path.iterdir()] == ["plain.txt"]
