"""Reads a `lab.toml`. Whatever is wrong in it is said in one sentence, with file and key."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast, get_args

from ..model.facts import Cause, Outcome
from .declaration import (
    AT_LIMIT,
    BEST,
    BY_CHANCE,
    MINE,
    VERDICTS,
    Answer,
    Claim,
    Expected,
    Knob,
    LabFile,
    Predict,
    Program,
    Question,
    Refused,
    Results,
    Value,
    combinations,
)
from .lab_table import LabError, Table
from .requirements import NEEDS


def read_lab_file(path: Path) -> LabFile:
    """Read a `lab.toml`.

    Raises:
        LabError: it cannot be read, or something in it is wrong; one sentence with file and key.
    """
    shown = f"{path.parent.name}/{path.name}"
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise LabError(f"{shown} cannot be read: {error}") from error
    except tomllib.TOMLDecodeError as error:
        raise LabError(f"{shown} is no valid TOML: {error}") from error
    return parse_lab(raw, path.parent, shown)


def parse_lab(raw: Mapping[str, Any], folder: Path, shown: str) -> LabFile:
    """Check what a `lab.toml` holds; `shown` names the file in messages. Raises LabError."""
    top = Table(raw, shown)
    turn = top.table("your_turn")
    knobs = {name: _knob(name, table) for name, table in top.tables("knobs")}
    programs = {name: _program(name, table, knobs) for name, table in top.tables("programs")}
    for program in programs.values():
        if not (folder / program.file).is_file():
            raise top.fault(f"programs.{program.name}.file", f"there is no {program.file}")
    if MINE in programs:
        raise top.fault(f"programs.{MINE}", "this name is kept for the learner's own copy")
    copy_of = turn.one_of("copy_of", programs)
    lab = LabFile(
        name=folder.name,
        folder=folder,
        title=top.text("title"),
        minutes=top.whole("minutes"),
        needs=top.text("needs"),
        ranks=top.whole("ranks"),
        max_seconds=top.whole("max_seconds"),
        memory=top.whole("memory_mb", default=0),
        disk=top.whole("disk_mb", default=0),
        environment=tuple(top.strings_table("environment").items()),
        programs=programs
        | {MINE: replace(programs[copy_of], name=MINE, file=turn.text("file"), text="your own copy")},
        knobs=knobs,
        expected=tuple(_expected(table, programs) for table in top.list_of_tables("expected")),
        refused=tuple(_refused(table) for table in top.list_of_tables("refused", default=())),
        results=_results(top.table("results")),
        predict=_predict(top.table("predict")),
        hints=top.strings("hints"),
        quiz=tuple(_question(table) for table in top.list_of_tables("quiz")),
        claims=tuple(_claim(table) for table in top.list_of_tables("claims")),
        references=top.strings("references"),
        task=turn.text("task"),
        copy_of=copy_of,
    )
    turn.done()
    top.done()
    _check_expected(lab, top)
    return lab


def _program(name: str, table: Table, knobs: Mapping[str, Knob]) -> Program:
    applying = table.strings("knobs", default=tuple(knobs), empty=True)
    for knob in applying:
        if knob not in knobs:
            raise table.fault("knobs", f'there is no knob "{knob}", only {", ".join(knobs)}')
    program = Program(name, table.text("file"), table.text("text"), applying, _needs(table))
    table.done()
    return program


def _needs(table: Table) -> tuple[str, ...]:
    needs = table.text_or_texts("needs", default=())
    for need in needs:
        if need not in NEEDS:
            raise table.fault("needs", f'"{need}" is not one of: {", ".join(NEEDS)}')
    return needs


def _knob(name: str, table: Table) -> Knob:
    if not name.isidentifier() or name in ("self", "program", "folder"):
        raise table.fault("", "this cannot be the name of a knob")
    option = table.text("option", default="")
    if option:
        values = {v: Value(v, v, arguments=(option, v)) for v in table.strings("values")}
    else:
        values = {v: _value(v, inner) for v, inner in table.tables("values")}
    knob = Knob(name, table.text("label"), table.one_of("default", [*values, BEST]), values)
    table.done()
    return knob


def _value(name: str, table: Table) -> Value:
    value = Value(
        name,
        table.text("text", default=name),
        table.strings("launcher", default=()),
        table.strings("arguments", default=()),
        tuple(table.strings_table("environment").items()),
        table.whole("ranks", default=None),
        _needs(table),
        table.whole("memory_limit_mb", default=None),
        table.one_of("at_limit", AT_LIMIT, default=""),
    )
    table.done()
    return value


def _expected(table: Table, programs: Mapping[str, Program]) -> Expected:
    expected = Expected(
        program=table.one_of("program", programs),
        knobs=table.choices("knobs"),
        outcome=cast(Outcome, table.one_of("outcome", get_args(Outcome))),
        cause=cast(Cause, table.one_of("cause", get_args(Cause))),
        culprits=None if table.any("culprits") == BY_CHANCE else table.wholes("culprits"),
    )
    table.done()
    return expected


def _refused(table: Table) -> Refused:
    refused = Refused(table.choices("knobs"), table.text("why"))
    table.done()
    return refused


def _results(table: Table) -> Results:
    results = Results(
        table.text("environment"),
        table.text("file"),
        table.strings("equal"),
        table.strings("finite"),
    )
    if "{rank}" not in results.file:
        raise table.fault("file", "{rank} is missing, so all ranks would write one file")
    table.done()
    return results


def _predict(table: Table) -> Predict:
    answers = tuple(
        Answer(inner.text("text"), inner.any("value")) for inner in table.list_of_tables("answers")
    )
    predict = Predict(table.text("question"), table.text("field"), answers, table.text("explanation"))
    table.done()
    return predict


def _question(table: Table) -> Question:
    answers = table.strings("answers")
    right = answers.index(table.one_of("right", answers))
    wrong = table.strings("wrong", default=())
    if wrong and len(wrong) != len(answers) - 1:
        raise table.fault("wrong", "this must say a sentence on each answer that is not right")
    question = Question(table.text("question"), answers, right, table.text("explanation"), wrong)
    table.done()
    return question


def _claim(table: Table) -> Claim:
    claim = Claim(table.text("claim"), table.one_of("verdict", VERDICTS), table.text("shown_by"))
    table.done()
    return claim


def _check_expected(lab: LabFile, top: Table) -> None:
    """Every program is expected once with every combination of the knobs that apply to it."""
    for number, refused in enumerate(lab.refused):
        _check_values(lab, top, f"refused[{number}]", refused.knobs)
    for number, expected in enumerate(lab.expected):
        _check_values(lab, top, f"expected[{number}]", expected.knobs)
        for name in expected.knobs:
            if name not in lab.programs[expected.program].knobs:
                what = f"this knob does not apply to {expected.program}"
                raise top.fault(f"expected[{number}].knobs.{name}", what)
    for program in (name for name in lab.programs if name != MINE):
        for settings in combinations(lab, program):
            times = sum(one.covers(program, settings) for one in lab.expected)
            if times != 1:
                shown = ", ".join(f"{name} {value}" for name, value in settings.items())
                count = "no report is" if times == 0 else f"{times} reports are"
                raise top.fault("expected", f"{count} expected of {program} with {shown or 'no knobs'}")


def _check_values(lab: LabFile, top: Table, key: str, knobs: Mapping[str, tuple[str, ...]]) -> None:
    for name, values in knobs.items():
        if name not in lab.knobs:
            raise top.fault(f"{key}.knobs.{name}", f"there is no such knob, only {', '.join(lab.knobs)}")
        for value in values:
            if value not in lab.knobs[name].values:
                known = ", ".join(lab.knobs[name].values)
                raise top.fault(f"{key}.knobs.{name}", f'"{value}" is not one of: {known}')
