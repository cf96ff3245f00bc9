"""Tables and differences of a lab, as text and as HTML."""

from __future__ import annotations

from msgspec.structs import replace

from helpers.labs.declaration import Document
from helpers.labs.lab import find_lab
from helpers.labs.questions import Claim
from helpers.labs.stage import Stage
from helpers.labs.tables import (
    Difference,
    claims_table,
    comparison,
    difference,
    measured,
    waited_for,
)
from helpers.model.facts import (
    ChildView,
    ErrorView,
    Job,
    ProcessView,
    RankView,
    Report,
    Snapshot,
    Verdict,
)
from helpers.model.frames import Frame
from helpers.model.slow import Share, Slow


def report(failed: bool) -> Report:
    error = ErrorView("DistNetworkError", "port: 45123 ... EADDRINUSE") if failed else None
    worker = ProcessView(31, "dataloader-worker", error=error, ended=3.0, exit_code=int(failed))
    ranks = tuple(
        RankView(
            rank,
            process=ProcessView(20 + rank, "rank", ended=4.0, exit_code=int(failed)),
            children=(ChildView(worker, worker_id=0, joined_as_rank=1 if failed else None),),
        )
        for rank in (0, 1)
    )
    verdict = (
        Verdict("error", "address-in-use", culprits=(0,), where=Frame("broken.py", 23, "<module>"))
        if failed
        else Verdict("ok", "none")
    )
    return Report(verdict, Snapshot(5.0, Job(("python", "x.py"), world_size=2), ranks))


def test_a_comparison_holds_only_what_the_cause_decides() -> None:
    table = comparison(("broken", report(True), Stage.FIX), ("fixed", report(False), Stage.FIX))
    assert repr(table) == "\n".join(
        [
            "                                 broken            fixed",
            "-------------------------------  ----------------  ------",
            "outcome                          error             ok",
            "cause                            address-in-use    none",
            "culprits                         0                 none",
            "where                            broken.py:23      none",
            "errors of the culprits           DistNetworkError  none",
            "ranks that end with exit code 0  0 of 2            2 of 2",
        ]
    )


def test_a_comparison_says_what_a_run_holds_back() -> None:
    table = comparison(("broken", report(True), Stage.CULPRITS), ("fixed", report(False), Stage.FIX))
    rows = {what: (broken, fixed) for what, broken, fixed in table.rows}
    assert rows["where"] == ("held back", "none") and rows["culprits"] == ("0", "none")
    assert rows["outcome"] == ("error", "ok")


def test_long_cells_go_on_in_the_next_line_and_html_keeps_them_whole() -> None:
    claim = Claim("a word " * 20, "refuted here", "`x < y`, *as set*")
    table = claims_table(Document("Titel", "Title", "German", "2025"), [claim])
    assert repr(table).startswith("From an article in German, “Title”, 2025.")
    assert "<em>as set</em>" in table._repr_html_()
    assert max(map(len, repr(table).splitlines())) <= 44 + 44 + 44 + 4
    assert repr(table).count("word") == 20
    html = table._repr_html_()
    assert ("a word " * 20).strip() in html
    assert "<code>x &lt; y</code>" in html


def test_the_difference_of_two_programs() -> None:
    change = difference(find_lab("05"))
    assert repr(change).startswith("--- broken.py\n+++ fixed.py\n@@")
    assert "-fabric.launch()" in change.lines
    assert "+    fabric.launch()" in change.lines
    assert "&quot;__main__&quot;" in change._repr_html_()


def test_equal_programs_have_no_difference() -> None:
    change = difference(find_lab("05"), "fixed", "fixed")
    assert repr(change) == "no difference"
    assert change == Difference(())


def test_a_measure_of_some_runs_has_a_column_for_each_rank() -> None:
    runs = [("fixed", [{"took": 3}, {"took": 4}]), ("alone", [{"took": 5}]), ("broken", [])]
    assert repr(measured(runs, "took")) == "\n".join(
        [
            "took    rank 0  rank 1",
            "------  ------  ------",
            "fixed   3       4",
            "alone   5",
            "broken",
        ]
    )


def test_a_comparison_leaves_out_what_the_kernel_chose() -> None:
    killed = ProcessView(20, "rank", ended=4.0, signal=9)
    verdict = Verdict("error", "out-of-memory", culprits=(1,), where=Frame("broken.py", 8, "load"))
    ranks = (RankView(1, process=killed),)
    chosen = Report(verdict, Snapshot(5.0, Job(("python", "x.py"), world_size=2), ranks))
    rows = {
        row[0]: row[1]
        for row in comparison(("first", chosen, Stage.FIX), ("second", report(False), Stage.FIX)).rows
    }
    assert (rows["culprits"], rows["where"]) == ("by chance", "not the same each time")


def test_who_was_waited_for_in_each_run() -> None:
    at, step = Frame("stutter.py", 15, "accuracy"), Frame("stutter.py", 41, "main")
    shares = (Share((0,), 0.6, 0.0, at, "compute"), Share((1,), 0.0, 0.6, waits_at=step))
    slow = Slow((0,), 0.6, "compute", 9.0, at, shares=shares)
    calm = report(False)
    stutters = replace(calm, verdict=replace(calm.verdict, slow=slow))
    assert waited_for([("stutter", stutters), ("even", calm)]).rows == (
        ("stutter", "rank 0", "stutter.py:15", "it computes", "stutter.py:41"),
        ("even", "nobody", "", "", ""),
    )
    failed = replace(stutters, verdict=replace(stutters.verdict, outcome="error"))
    assert waited_for([("failed", failed)]).rows == (("failed", "nobody", "", "", ""),)
