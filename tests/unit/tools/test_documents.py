"""What the documents list is what the code has."""

from __future__ import annotations

import re

from repository import ROOT

NAME = re.compile(r"STUCK_RANKS_[A-Z_]*[A-Z]")
CODE = ("helpers", "tools", "tests", "benchmarks", "conftest.py")


def test_every_variable_is_in_the_table_and_has_a_use() -> None:
    files = [path for place in CODE for path in (ROOT / place, *(ROOT / place).rglob("*.py"))]
    used = {name for path in files if path.is_file() for name in NAME.findall(path.read_text())}
    rows = re.findall(r"^\| `(\w+)` \|", (ROOT / "docs" / "variables.md").read_text(), re.M)

    assert sorted(rows) == sorted(used)
    assert "docs/variables.md" in (ROOT / "README.md").read_text()
