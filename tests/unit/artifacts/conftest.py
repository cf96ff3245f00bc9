"""How the tests of this folder read files."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from helpers.artifacts import artifacts, reader
from helpers.artifacts.files import Budget
from helpers.artifacts.reading import FileContent, content_of

OF_READERS = "test_files"
"""The module that asks what a reading process withstands."""


@pytest.fixture(autouse=True)
def _in_this_process(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are read in the process of the test: to start one for each takes most of its time."""
    if request.module.__name__.rpartition(".")[2] == OF_READERS:
        return

    def read(_: object, file: Path) -> FileContent:
        content = content_of(file, Budget(artifacts.UNPACKED))
        return msgspec.json.decode(reader._encoded(content), type=FileContent)

    monkeypatch.setattr(artifacts._Reader, "read", read)
