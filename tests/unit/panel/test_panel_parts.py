"""The tabs below the picture, each from snapshots alone: ports, processes, memory, stacks, output."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from histories import (
    child,
    ended,
    error,
    gone,
    joining,
    key,
    launcher,
    process,
    rank,
    snapshot,
    store,
    worker,
    working,
)
from msgspec.structs import replace
from panel_fakes import control, text_of

from helpers.diagnose.diagnose import diagnose
from helpers.job_files import LARGEST
from helpers.model.facts import Blocker, Port, RankView, Snapshot
from helpers.model.frames import Frame
from helpers.model.slow import Share
from helpers.panel.run.log_view import EVERY, LogView, matching_lines
from helpers.panel.show import words
from helpers.panel.show.ports import APART, entries, port_map
from helpers.panel.show.tabs import MOST, memory_bars, process_tree, ranking, stack
from helpers.report.source_lines import Sources

IN_USE = error("DistNetworkError", "port: 29500, code: -98, name: EADDRINUSE", "train.py:3 main")


def gloo(port: int) -> Port:
    return Port("127.0.0.1", port, "gloo")


def test_a_port_that_two_want_is_a_conflict_and_stands_first() -> None:
    refused = gone(worker(0, 0), error=IN_USE)
    taken = snapshot(rank(0, ports=(gloo(100), store(29500)), children=[refused]), rank(1))
    shown = text_of(port_map(taken))
    assert shown.startswith(
        "✕ conflict 29500 the job's store held by rank 0 refused to DataLoader worker 0 of rank 0"
    )
    assert "100 gloo, listens for other ranks held by rank 0" in shown


def test_a_stranger_on_a_port_is_a_conflict() -> None:
    stranger = Blocker(900, "owns port 29500", "python old_job.py")
    shown = port_map(snapshot(rank(0), strangers=((29500, stranger),)))
    assert "✕ conflict 29500 wanted by the job held by pid 900, outside the job : python old_job.py" in (
        text_of(shown)
    )
    assert 'class="sr-bad"' in shown


def test_a_map_that_does_not_reveal_shows_no_conflict() -> None:
    refused = gone(worker(0, 0), error=IN_USE)
    stranger = Blocker(900, "owns port 1", "python old_job.py")
    seen = snapshot(rank(0, ports=(store(29500),), children=[refused]), strangers=((1, stranger),))
    assert [entry.conflict for entry in entries(seen)] == [True, True]
    assert [entry.conflict for entry in entries(seen, reveal=False)] == [False]
    assert "conflict" not in port_map(seen, reveal=False)


def test_many_listeners_of_one_kind_share_an_entry() -> None:
    crowd = [rank(n, ports=(gloo(4000 + n),)) for n in range(1, APART + 1)]
    crowd.insert(0, rank(0, ports=(gloo(4000), store(29500))))
    shown = text_of(port_map(snapshot(*crowd)))
    assert shown == (
        "29500 the job's store held by rank 0 at 127.0.0.1 "
        "9 ports gloo, listens for other ranks held by ranks 0-8 between 4000 and 4008"
    )


def test_processes_stand_below_those_that_started_them() -> None:
    views = [rank(0, children=[worker(0, 0, command=("python", "-c", "spawn_main"))]), rank(1)]
    html = process_tree(snapshot(*views, launchers=[launcher(command=("torchrun", "train.py"))]))
    shown = text_of(html)
    assert html.count("<ul") == 3, "the launcher; its ranks; the worker of rank 0"
    assert shown.startswith("launcher , pid 900 ◆ waiting torchrun train.py rank 0 , pid 1000")
    assert "DataLoader worker 0 of rank 0 , pid 2000 ▶ running python -c spawn_main rank 1" in shown


def test_a_pid_that_is_its_own_ancestor_ends_no_tree() -> None:
    circle = rank(0, parent=2000, children=[worker(0, 0)])
    shown = process_tree(snapshot(circle, rank(1, parent=1001)))
    assert "rank 1" in shown


def test_of_many_processes_the_rest_is_counted() -> None:
    assert "and 7 more" in process_tree(snapshot(*(rank(n) for n in range(MOST + 7))))


def test_memory_shows_now_and_the_most() -> None:
    before = snapshot(rank(0, memory=400_000_000), rank(1, memory=100_000_000), time=1.0)
    after = snapshot(ended(0, 1), rank(1, memory=200_000_000), time=2.0)
    html = memory_bars([before, after])
    shown = text_of(html)
    assert "Memory: 200 MB in 2 processes" in shown
    assert "rank 0 ended 400 MB rank 1 200 MB 200 MB" in shown
    assert [float(w) for w in re.findall(r"width:(\d+)%", html)] == [0, 50]
    assert [float(w) for w in re.findall(r"left:(\d+)%", html)] == [100, 50]


def test_a_stack_has_the_user_s_own_lines_first_with_their_source(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import torch\ndef step():\n    loss = model(x) < 3\n")
    library = Frame("/lib/torch/nn/functional.py", 9, "linear", user=False)
    stands = process(1, "rank", at="train.py:3 step", stack=(library, Frame("train.py", 3, "step")))
    html = stack("rank 0", stands, Sources(tmp_path))
    shown = text_of(html)
    own, whole = shown.index("train.py:3 step loss = model(x) < 3"), shown.index("The whole stack")
    assert own < whole < shown.index("functional.py:9 linear")


def test_a_process_without_a_stack_says_why() -> None:
    silent = process(1, "rank", at=None, beacon=False)
    assert "No stack: it has no beacon." in stack("rank 0", silent, Sources(None))


def test_only_fair_files_are_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.py")
    (tmp_path / "huge.py").write_text("x = 1\n" * (LARGEST // 6 + 1))
    (tmp_path / "binary.py").write_bytes(b"\xff\xfe\x00\n\x1b[31mred\n")
    (tmp_path / "folder.py").mkdir()
    sources = Sources(tmp_path)
    for name in ("pipe.py", "huge.py", "folder.py", "missing.py", "null\0.py"):
        assert sources.line(Frame(name, 1, "f")) == ""
    assert sources.line(Frame("binary.py", 2, "f")) == "red"
    assert sources.line(Frame("binary.py", 99, "f")) == sources.line(Frame("binary.py", 0, "f")) == ""
    assert sources.line(Frame("binary.py", 2, "f", user=False)) == "red", "it is known by then"
    assert sources.lines() == {"binary.py:2": "red"}


def test_a_recorded_line_needs_no_file() -> None:
    assert Sources(None, {"a.py:3": "x = 1"}).line(Frame("a.py", 3, "f")) == "x = 1"


class Logs:
    def __init__(self, **lines: list[str]) -> None:
        self.lines = {name.replace("_", " "): said for name, said in lines.items()}

    def labels(self) -> list[str]:
        return list(self.lines)

    def tail(self, label: str, lines: int = 200) -> list[str]:
        return self.lines[label][-lines:]


def test_output_is_searched_in_any_case_and_across_processes() -> None:
    logs = Logs(rank_0=["Loss 1", "step 2"], rank_1=["\x1b[31mloss\x1b[0m 3"])
    assert matching_lines(logs, "rank 0", "LOSS") == ["Loss 1"]
    assert matching_lines(logs, EVERY, "loss") == ["[rank 0] Loss 1", "[rank 1] loss 3"]
    assert matching_lines(logs, "rank 0", "") == ["Loss 1", "step 2"]


def test_the_chosen_output_stays_while_processes_come() -> None:
    asked: list[int] = []
    view = LogView(lambda: asked.append(1))
    logs = Logs(job=["launching"])
    view.show(logs)
    choice = control(view, "Output of")
    assert choice.value == "job"
    logs.lines = {"rank 0": ["hello"], "job": ["launching"]}
    view.show(logs)
    assert choice.value == "rank 0", "the first rank is shown once it is there"
    assert asked == []
    choice.value = "job"
    assert asked == [1]
    logs.lines = {"rank 0": ["hello"], "rank 1": ["hi"], "job": ["launching"]}
    view.show(logs)
    assert choice.value == "job"
    view.clear()
    view.show(logs)
    assert choice.value == "rank 0"


def late(view: RankView, state: str) -> RankView:
    assert view.process is not None
    return replace(view, state=state, joined=False, process=replace(view.process, state=state))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("seen", "said"),
    [
        (snapshot(rank(0), rank(1)), "All 2 ranks have joined."),
        (
            snapshot(rank(0, joining()), late(rank(1), "importing"), world=4),
            "0 of 4 ranks joined. Not yet: rank 0 (rendezvous), rank 1 (importing), 2 not seen yet.",
        ),
        (
            snapshot(rank(0), rank(1, key("go"), joined=False)),
            "1 of 2 ranks joined. rank 1 waits for the store key 'go'. Not yet: rank 1 (waiting).",
        ),
        (
            snapshot(rank(0, children=[child(0, joined_as=1)]), rank(1)),
            "All 2 ranks have joined. process of rank 0 has joined too, as rank 1.",
        ),
        (
            snapshot(rank(0, joining(), master="a:1"), rank(1, joining(), master="b:2")),
            "0 of 2 ranks joined. Not yet: ranks 0 and 1 (rendezvous). "
            "They look for the store in 2 places: rank 0 at a:1; rank 1 at b:2.",
        ),
    ],
)
def test_the_rendezvous_in_words(seen: Snapshot, said: str) -> None:
    assert words.rendezvous_line(seen) == said


def test_a_rank_without_a_line_is_importing_not_in_brackets() -> None:
    waiting = rank(0, joining())
    early = replace(late(working(1, at=None), "importing"))
    suspicion = diagnose([snapshot(waiting, early, time=20.0)]).suspicion
    assert suspicion == "Rank 0 waits for rank 1, which is importing."


def ranked(html: str) -> list[str]:
    """The text of each row of the ranking, without its head."""
    return [text_of(row) for row in re.findall(r"<tr.*?</tr>", html.partition("<tbody>")[2], re.S)]


DATA = Frame("data.py", 31, "decode")
STEP = Frame("train.py", 12, "step")


@pytest.mark.parametrize(
    ("shares", "rows"),
    [
        ([], []),
        (
            [
                Share((1,), 0.637, 0.02, DATA, "input", waits_at=STEP),
                Share((0,), 0.004, 0.64, waits_at=STEP),
            ],
            [
                "rank 1 64 % data.py:31 decode it loads data 2 % train.py:12 step",
                "rank 0 0 % 64 % train.py:12 step",
            ],
        ),
        (
            [Share((2, 3), 0.5, 0.0, DATA, "unknown", asleep=True), Share((0,), 0.0, 0.5)],
            ["ranks 2 and 3 50 % data.py:31 decode asleep 0 %", "rank 0 0 % 50 %"],
        ),
        (
            [
                Share((0,), 0.5, 0.0, DATA, "unknown"),
                *(Share((rank,), 0.0, 0.5 + rank / 1000, waits_at=STEP) for rank in range(1, 64)),
            ],
            [
                "rank 0 50 % data.py:31 decode 0 %",
                "63 ranks 1-63 0 % 50-56 % train.py:12 step",
            ],
        ),
    ],
)
def test_the_ranking_of_those_who_are_waited_for(shares: list[Share], rows: list[str]) -> None:
    assert ranked(ranking(shares)) == rows


def test_the_ranking_says_what_helps_where_that_may_be_said() -> None:
    shares = [Share((1,), 0.5, 0.0, Frame("<b>.py", 1, "f"), "input"), Share((0,), 0.0, 0.5)]
    assert "What helps" not in ranking(shares)
    assert "What helps. Load `x`" not in ranking(shares, "Load `x` ahead.")
    assert "<code>x</code> ahead" in ranking(shares, "Load `x` ahead.")
    assert "<b>" not in ranking(shares)
