"""The sources of a program as they are on disk, for what would ask a look for them."""

from __future__ import annotations

from contextlib import suppress

from helpers.job_files import text
from helpers.observe.look import AnyQuestion, Source
from helpers.observe.source import Sources

PATIENCE = 60.0
"""Seconds: a disk of the tests answers, however busy the machine is."""


def sources(cwd: str = "/job") -> Sources:
    """Sources that are there as soon as they are asked for."""

    def answer(question: AnyQuestion) -> str | None:
        assert isinstance(question, Source)
        with suppress(OSError):
            return text(question.path, PATIENCE)[0]
        return None

    return Sources(cwd, answer)
