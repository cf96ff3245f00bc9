"""The schema of a JSON report: valid, as the code has it, and broken by what does not belong."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from contract import SCHEMA, violations
from jsonschema import Draft202012Validator
from msgspec.structs import replace

from helpers.diagnose.diagnose import diagnose
from helpers.model.facts import (
    Blocker,
    ChildView,
    Job,
    Port,
    ProcessView,
    RankView,
    Snapshot,
    Verdict,
)
from helpers.model.frames import Frame
from helpers.model.parting import Branch, Guard, Parting
from helpers.model.waits import InCollective
from helpers.report.contract import schema
from helpers.report.report import build, to_json


def fine() -> dict[str, Any]:
    snapshot = Snapshot(1.0, Job(("true",), exit_code=0, ended=1.0))
    return to_json(build(diagnose([snapshot], final=True), snapshot))


def stuck() -> dict[str, Any]:
    """A report in which every part has an entry."""
    at = Frame("train.py", 12, "save")
    wait = InCollective(op="barrier", group="default", where=at)
    port = Port("127.0.0.1", 41001, "gloo")
    rank = ProcessView(
        pid=1, kind="rank", state="waiting", stack=(at,), where=at, waits=(wait,), ports=(port,)
    )
    worker = ChildView(replace(rank, pid=2, kind="dataloader-worker"))
    snapshot = Snapshot(
        1.0, Job(("x",)), ranks=(RankView(0, state="waiting", process=rank, children=(worker,)),)
    )
    parted = Parting("if", at, "if rank == 0:", branches=(Branch("in its body", (0,)),))
    parted = replace(parted, guards=(Guard("if", (0,), at, "if rank == 0:"),))
    verdict = Verdict("hang", "collective-mismatch", blockers=(Blocker(3, "x", "y"),), parting=parted)
    return to_json(build(verdict, snapshot))


def test_the_schema_is_one() -> None:
    Draft202012Validator.check_schema(SCHEMA)


def test_the_file_holds_what_the_types_say() -> None:
    assert json.loads(json.dumps(schema())) == SCHEMA, "run tools/make_schema.py"


def test_every_key_is_required_and_no_other_allowed() -> None:
    for part in (SCHEMA, *SCHEMA["$defs"].values()):
        assert part["required"] == [*part["properties"]]
        assert part["additionalProperties"] is False


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


@pytest.mark.parametrize(
    "place",
    [
        ("job",),
        ("seconds",),
        ("blockers", 0),
        ("parting",),
        ("parting", "where"),
        ("parting", "branches", 0),
        ("ranks", 0),
        ("ranks", 0, "stack", 0),
        ("ranks", 0, "waits", 0),
        ("ranks", 0, "ports", 0),
        ("ranks", 0, "children", 0),
    ],
    ids=lambda place: ".".join(map(str, place)),
)
def test_another_key_is_refused_wherever_it_stands(place: tuple[Any, ...]) -> None:
    said = stuck()
    assert violations(said) == []
    inside = said
    for step in place:
        inside = inside[step]
    inside["more"] = 1
    assert violations(said) != []


def test_a_state_that_no_rank_has_is_refused() -> None:
    said = stuck()
    said["ranks"][0]["state"] = "tired"
    (violation,) = violations(said)
    assert violation.startswith("$.ranks[0].state: 'tired'")
