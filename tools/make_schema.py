"""Writes docs/report.schema.json, the contract of the JSON report, from its types."""

from __future__ import annotations

import json
from pathlib import Path

from helpers.report.contract import schema

FILE = Path(__file__).parents[1] / "docs" / "report.schema.json"


def text() -> str:
    """What the file holds."""
    return json.dumps(schema(), indent=1) + "\n"


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
