"""Writes the table of changes to a job into the README (`python tools/make_changes.py`)."""

from __future__ import annotations

from pathlib import Path

from helpers.launch.changes import to_markdown

README = Path(__file__).resolve().parents[1] / "README.md"
BEGIN, END = "<!-- changes: helpers/launch/changes.py -->\n", "\n<!-- end of changes -->"


def main() -> None:
    """Put the table in the place of the one that is there."""
    text = README.read_text()
    before, after = text.partition(BEGIN)[0], text.partition(END)[2]
    README.write_text(f"{before}{BEGIN}{to_markdown()}{END}{after}")


if __name__ == "__main__":
    main()
