"""More evidence never takes a right answer away: recordings are judged with parts of what was seen.

What is dropped is what the statement at which ranks parted is derived from: values, the history of
calls, the sources of libraries. Whatever is named rightly with less has to be named with everything.
"""

from __future__ import annotations

import functools
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from msgspec.structs import replace
from realistic import lines_of
from repository import JOBS, RECORDINGS, ROOT
from score import jobs as collection

from helpers.diagnose.diagnose import diagnose
from helpers.diagnose.parting import parting
from helpers.diagnose.parting.trace import Trace
from helpers.diagnose.settling import HISTORY
from helpers.observe.recording import load

Line = tuple[str, int]
REALISTIC = ROOT / "tests" / "realistic"


def parted_lines() -> dict[Path, set[Line]]:
    """Recording -> the lines that are right, of the programs whose ranks part at a statement."""
    jobs = {name: job.lines() for name, job in collection.read(JOBS).items()}
    found = {
        RECORDINGS / f"{name}.jsonl.gz": {lines["parted"]}
        for name, lines in jobs.items()
        if "parted" in lines
    }
    programs = tomllib.loads((REALISTIC / "programs.toml").read_text(encoding="utf-8"))
    for name, program in programs.items():
        found[REALISTIC / "recordings" / f"{name}.jsonl.gz"] = lines_of(name, program["lines"])
    return found


def without_values(trace: Trace) -> Trace:
    stack = tuple(replace(frame, values={}) for frame in trace.stack)
    return replace(trace, stack=stack, values=())


def without_history(trace: Trace) -> Trace:
    return replace(trace, calls=(), values=(), first=1)


def without_values_of_calls(trace: Trace) -> Trace:
    return replace(trace, values=())


def without_libraries(trace: Trace) -> Trace:
    stack = tuple(frame if frame.user else replace(frame, text="") for frame in trace.stack)
    return replace(trace, stack=stack)


LESS = (
    without_values,
    *(
        pytest.param(less, marks=pytest.mark.weekly)
        for less in (without_history, without_values_of_calls, without_libraries)
    ),
)


def named(recording: Path) -> Line | None:
    """The statement that is named."""
    history = tuple(load(recording).snapshots())[-HISTORY:]
    found = diagnose(history, patience=12.0, final=True).parting
    return (found.where.file, found.where.line) if found is not None and found.where else None


@functools.cache
def with_everything() -> Mapping[Path, Line | None]:
    return {recording: named(recording) for recording in parted_lines()}


@pytest.mark.nightly
@pytest.mark.timeout(
    900
)  # all recordings are judged, a minute or two; 300 s are too few beside a busy loop
@pytest.mark.parametrize("less", LESS, ids=lambda one: one.__name__)
def test_what_is_named_with_less_is_named_with_everything(
    less: Callable[[Trace], Trace], monkeypatch: pytest.MonkeyPatch
) -> None:
    recordings = parted_lines()
    everything = with_everything()
    traces = parting._traces

    def fewer(*words: object) -> Mapping[int, Trace]:
        return {rank: less(trace) for rank, trace in traces(*words).items()}  # type: ignore[arg-type]

    monkeypatch.setattr(parting, "_traces", fewer)
    known = {recording: named(recording) for recording in recordings}
    right = {recording for recording, line in known.items() if line in recordings[recording]}
    assert len(right) > 20
    lost = {recording.name for recording in right if everything[recording] not in recordings[recording]}
    assert not lost
