"""What the README shows of the measurements is what their pages say."""

from __future__ import annotations

from changes import BEGIN, END, to_markdown
from repository import ROOT

README = (ROOT / "README.md").read_text()


def test_the_table_of_tools_is_that_of_the_page() -> None:
    shown = README[README.index("| tool |") :].partition("\n\n")[0]
    assert shown.count("\n") == 8, "seven tools"
    assert shown + "\n" in (ROOT / "benchmarks" / "bench.md").read_text()


def test_the_table_of_changes_is_that_of_the_code() -> None:
    assert to_markdown() == README.partition(BEGIN)[2].partition(END)[0], "run tools/changes.py"
