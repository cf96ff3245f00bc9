"""Who was waited for, from what ranks noted of their calls."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import slow_truth
from make_slow import FOLDER, Declared, KeptRuns, Score, Trial, select
from sections import put
from slow_truth import Call, Ledger, Truth, truth


def meeting(number: int, *arrivals: float, lasts: float = 0.0) -> list[Call]:
    """A collective of ranks 0, 1, ... that arrive at these times; it is over when the last has come."""
    ranks = tuple(range(len(arrivals)))
    over = max(arrivals) + lasts
    return [Call(rank, ("all", number), ranks, at, at, over) for rank, at in enumerate(arrivals)]


def joined(size: int, at: float = 0.0) -> dict[int, float]:
    return dict.fromkeys(range(size), at)


def test_the_last_to_arrive_is_waited_for_since_the_last_but_one() -> None:
    found = truth(Ledger(3, joined(3), [*meeting(1, 1, 2, 6), *meeting(2, 10, 10, 10)]))
    assert found.seconds == 10
    assert found.share([2]) == pytest.approx(0.4)
    assert found.share([1, 2]) == pytest.approx(0.1)
    assert found.slow() == (2,)


def test_nothing_counts_before_all_have_joined() -> None:
    found = truth(Ledger(2, {0: 0.0, 1: 8.0}, [*meeting(1, 1, 9), *meeting(2, 18, 18)]))
    assert (found.seconds, found.slow()) == (10, (1,))
    assert found.share([1]) == pytest.approx(0.1)


def test_what_a_call_takes_once_all_have_come_is_waiting_for_nobody() -> None:
    found = truth(Ledger(2, joined(2), meeting(1, 1, 1, lasts=9)))
    assert found.shares == {}


def test_ranks_that_wait_for_one_that_waits_itself_wait_for_the_last() -> None:
    calls = [
        Call(0, ("all", 1), (0, 1, 2), 0, 0, 10),
        Call(1, ("1-2", 1), (1, 2), 0, 0, 9),
        Call(2, ("1-2", 1), (1, 2), 9, 9, 9),
        Call(1, ("all", 1), (0, 1, 2), 9, 9, 10),
        Call(2, ("all", 1), (0, 1, 2), 10, 10, 10),
    ]
    assert truth(Ledger(3, joined(3), calls)).shares == {(2,): 1.0}


def test_a_rank_that_has_begun_a_call_is_not_missed_before_it_waits_for_its_end() -> None:
    calls = [Call(0, ("all", 1), (0, 1), 1, 8, 9), Call(1, ("all", 1), (0, 1), 2, 2, 9)]
    assert truth(Ledger(2, joined(2), calls)).shares == {}


def test_a_rank_that_never_comes_is_waited_for_to_the_end() -> None:
    found = truth(Ledger(2, joined(2), [*meeting(1, 5, 5), Call(0, ("all", 2), (0, 1), 5, 5, 10)]))
    assert found.shares == {(1,): 0.5}


def test_a_part_of_the_time_can_be_asked() -> None:
    ledger = Ledger(2, joined(2), [*meeting(1, 0, 5), *meeting(2, 10, 10)])
    assert truth(ledger, since=4, until=6).shares == {(1,): 0.5}
    assert truth(ledger, since=11).seconds == 0


@pytest.mark.parametrize(
    ("shares", "slow"),
    [
        ({(0,): 0.3, (1,): 0.1}, (0,)),
        ({(2, 3): 0.5, (3,): 0.1}, (2, 3)),
        ({(0,): 0.45, (1,): 0.44}, ()),
        ({(0,): 0.09}, ()),
        ({}, ()),
    ],
)
def test_ranks_stand_out_by_a_tenth(shares: dict[tuple[int, ...], float], slow: tuple[int, ...]) -> None:
    assert Truth(10, shares).slow() == slow


def test_a_line_cut_short_is_left_out(tmp_path: Path) -> None:
    line = {"rank": 0, "channel": "0", "number": 1, "ranks": [0], "there": 1, "before": 1, "after": 2}
    begun = json.dumps({"rank": 0, "joined": 0.5, "size": 1})
    (tmp_path / "0.jsonl").write_text(f'{begun}\n{json.dumps(line)}\n{{"rank": 0, "chan')
    read = slow_truth.read(tmp_path)
    assert (read.complete, read.joined, len(read.calls)) == (True, {0: 0.5}, 1)


def trial(ranks: tuple[int, ...] = (1,), slow: Any = None, **report: Any) -> Trial:
    """A run of worker_decode, in which the share of the declared ranks was 0.5."""
    declared = Declared(command="worker_decode.py", ranks=ranks, says="...", kind=("input",))
    whole = {"outcome": "ok", "cause": "none", "slow": slow, **report}
    return Trial("job", declared, Truth(10, {ranks: 0.5} if ranks else {}), whole)


def told(**changes: Any) -> dict[str, Any]:
    """What a report says that is right of `trial`."""
    (line,) = select("worker_decode")["worker_decode"].lines()
    where = {"file": "worker_decode.py", "line": line}
    return {"rank": 1, "ranks": [1], "where": where, "share": 0.55, "kind": "input"} | changes


@pytest.mark.parametrize(
    ("made", "wrong"),
    [
        (trial(slow=told()), ()),
        (trial(slow=told(rank=0, ranks=[0])), ("rank",)),
        (trial(slow=told(share=0.61)), ("share",)),
        (trial(slow=told(where=None)), ("line",)),
        (trial(slow=told(kind="io")), ("kind",)),
        (trial(), ("rank", "line", "share", "kind")),
        (trial(slow=told(), outcome="hang", cause="missing-rank"), ("called hung",)),
        (trial(ranks=()), ()),
        (trial(ranks=(), slow=told()), ("blamed",)),
    ],
)
def test_a_report_is_compared_with_the_truth(made: Trial, wrong: tuple[str, ...]) -> None:
    assert made.wrong() == wrong
    assert all(Score([made]).bar().values()) == (wrong in ((), ("kind",)))


def test_a_run_that_was_not_as_declared_is_void() -> None:
    made = trial(slow=told(rank=0, ranks=[0]))
    void = Trial("job", made.declared, Truth(10, {(0,): 0.4}), made.report)
    assert void.wrong() == ("void",)
    assert Score([void]).right("rank") == (0, 0)


def test_every_program_is_declared_and_every_slow_line_marked() -> None:
    programs = {path.name for path in FOLDER.glob("*.py")} - {"ledger.py"}
    declared = select(None)
    assert {one.program for one in declared.values() if one.can_run} <= programs
    assert all(f"[{Path(name).stem}]" in (FOLDER / "slow.toml").read_text() for name in programs)


def test_an_interrupted_pass_goes_on_where_it_was(tmp_path: Path) -> None:
    file, made = tmp_path / "idle.jsonl", trial(slow=told())
    kept, programs = KeptRuns(file), {"job": made.declared}
    assert kept.trials(programs) == []
    file.write_bytes(b'{"name": "other", "sec')
    kept.add(made)
    (read,) = kept.trials(programs)
    assert (read.name, read.truth, read.slow, read.wrong()) == ("job", made.truth, made.slow, ())
    assert kept.trials({}) == []


def test_each_condition_is_a_section_of_the_page(tmp_path: Path) -> None:
    page = tmp_path / "slow.md"
    for title in ("Idle", "Busy", "Idle"):
        put(page, "Slow", Score([trial(slow=told())]).to_markdown(title, f"Made for {title}."))
    text = page.read_text()
    heads = [line for line in text.splitlines() if line.startswith("#")]
    assert heads == [
        "# Slow",
        "## Idle",
        "## Busy",
    ]
    assert text.count("| job | 1 | 1 | 0.50 | 0.55 |") == 2
