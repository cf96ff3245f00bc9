"""What an option is where it is not given."""

from __future__ import annotations

import inspect

from helpers.cli.main import parse
from helpers.session import Session


def test_the_patience_of_a_verb_is_that_of_its_session() -> None:
    for words, begins in ((["attach", "1"], Session.attach), (["diagnose", "--", "true"], Session)):
        assert parse(words).patience == inspect.signature(begins).parameters["patience"].default
