"""The schema of a JSON report: valid, as the code has it, and broken by what does not belong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_args

import pytest
from contract import SCHEMA, violations
from jsonschema import Draft202012Validator

from helpers.diagnose.diagnose import diagnose
from helpers.model.facts import Cause, Job, Outcome, Snapshot, State
from helpers.model.parting import Kind
from helpers.model.waits import WaitKind
from helpers.report.report import build, to_json


def fine() -> dict[str, Any]:
    snapshot = Snapshot(1.0, Job(("true",), exit_code=0, ended=1.0))
    return to_json(build(diagnose([snapshot], final=True), snapshot))


def test_the_schema_is_one() -> None:
    Draft202012Validator.check_schema(SCHEMA)


def test_its_words_are_those_of_the_code() -> None:
    parts, kinds = SCHEMA["properties"], SCHEMA["$defs"]
    assert parts["outcome"]["enum"] == list(get_args(Outcome))
    assert parts["cause"]["enum"] == list(get_args(Cause))
    assert kinds["state"]["enum"] == list(get_args(State))
    assert kinds["wait"]["properties"]["kind"]["enum"] == list(get_args(WaitKind))
    assert kinds["parting"]["properties"]["kind"]["enum"] == [*get_args(Kind), None]


@pytest.mark.parametrize(
    ("change", "named"),
    [
        (lambda said: said.update(more=1), "more"),
        (lambda said: said.update(cause="bad-luck"), "$.cause"),
        (lambda said: said["job"].pop("signal"), "signal"),
        (lambda said: said.update(culprits=None), "$.culprits"),
    ],
    ids=["another key", "no cause", "a key is missing", "null"],
)
def test_what_breaks_it_is_named(change: Callable[[dict[str, Any]], object], named: str) -> None:
    said = fine()
    assert violations(said) == []
    change(said)
    (violation,) = violations(said)
    assert named in violation
