"""The sources of a job that is dead or elsewhere, where this machine has them."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence

from ..job_files import text
from ..observe.account import Account
from ..observe.look import AnyQuestion, Source
from ..observe.source import Sources

PATIENCE = 1.0
"""Seconds to wait for a source, which is asked for once."""


def sources(accounts: Sequence[Account]) -> Sources:
    """The sources of the user's files, unless they have been changed since the job ran."""
    written = min((account.written for account in accounts if account.written is not None), default=None)
    return Sources(folder(accounts), _answer, written)


def folder(accounts: Iterable[Account]) -> str:
    """That of the script which most processes run: the user's files are told relative to it."""
    scripts = Counter(
        os.path.dirname(file)
        for account in accounts
        for thread in account.threads
        for file, _, function, user in thread["frames"][-1:]
        if user and function == "<module>" and os.path.isabs(file)
    )
    return scripts.most_common(1)[0][0] if scripts else ""


def _answer(question: AnyQuestion) -> object:
    """The text of a source file, and when it was last changed."""
    if not isinstance(question, Source):
        return None
    try:
        return text(question.path, PATIENCE) if question.path.endswith(".py") else None
    except OSError:
        return None
