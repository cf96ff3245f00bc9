"""Histories of snapshots as a picture: what each lane shows, and what the SVG promises."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable
from typing import Any
from xml.etree import ElementTree

import pytest
from histories import (
    absent,
    child,
    collective,
    ended,
    error,
    gone,
    in_collective,
    joining,
    key,
    loading,
    on_nodes,
    process,
    rank,
    recv,
    run,
    sleeping,
    snapshot,
    stopped,
    training,
    worker,
    working,
)
from msgspec.structs import replace

from helpers.model.facts import RankView, Snapshot, Verdict
from helpers.model.frames import Frame
from helpers.model.slow import Share
from helpers.report.lanes import Lane, folded, lanes, meetings
from helpers.report.timeline import ARROWS, timeline

SVG = "{http://www.w3.org/2000/svg}"


def importing(number: int) -> RankView:
    view = rank(number, still=0.1, started=0.5)
    assert view.process is not None
    return replace(view, state="importing", process=replace(view.process, state="importing"))


def mismatch() -> list[Snapshot]:
    """Rank 0 in a barrier and rank 1 in an all_reduce, both the second collective of the group."""
    before = [[importing(0), importing(1)], [working(0), working(1)]]
    both = (0, 1)
    stands = [
        [
            in_collective(0, "all_reduce", "barrier", members=both, still=n * 0.25),
            in_collective(1, "all_reduce", "all_reduce", members=both, still=n * 0.25),
        ]
        for n in range(8)
    ]
    return run(*before, *stands)


def parsed(svg: str) -> ElementTree.Element:
    return ElementTree.fromstring(svg)


def titles(svg: str) -> list[str]:
    """The titles of segments and arrows."""
    return [path.findtext(f"{SVG}title", "") for path in parsed(svg).iter(f"{SVG}path")]


def described(svg: str) -> str:
    return parsed(svg).findtext(f"{SVG}desc", "")


def texts(svg: str) -> list[str]:
    return [element.text or "" for element in parsed(svg).iter(f"{SVG}text")]


def of_class(svg: str, name: str) -> list[ElementTree.Element]:
    return [e for e in parsed(svg).iter() if name in e.get("class", "").split()]


def kinds(lane: Lane) -> list[str]:
    return [segment.kind for segment in lane.segments]


def starting() -> RankView:
    view = rank(0, at=None, still=0.0, started=0.5)
    assert view.process is not None
    return replace(view, process=replace(view.process, state="starting"))


def held() -> RankView:
    return rank(0, still=1.0, gil_held=True)


@pytest.mark.parametrize(
    ("view", "kind", "text"),
    [
        (starting(), "starting", "starting"),
        (importing(0), "importing", "importing"),
        (rank(0, joining()), "rendezvous", "in the rendezvous (init_process_group)"),
        (working(0), "running", "running"),
        (in_collective(0, "barrier", start=7), "collective", "in barrier #7"),
        (rank(0, recv(1)), "waiting", "in recv from rank 1"),
        (rank(0, key("k")), "waiting", "waiting for the store key 'k'"),
        (rank(0, key("k"), asleep="nanosleep"), "waiting", "waiting for the store key 'k'"),
        (sleeping(0), "asleep", "asleep"),
        (stopped(0), "stopped", "stopped by a signal"),
        (held(), "held", "inside a C call that holds the interpreter lock"),
        (ended(0, 0), "ended", "ended with exit code 0"),
        (ended(0, 3), "failed", "ended with exit code 3"),
        (ended(0, signal=9), "failed", "ended with signal 9 (SIGKILL)"),
        (absent(0), "missing", "never started here"),
        (absent(0, "unseen"), "unseen", "out of sight"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_each_state_has_a_kind_and_a_phrase(view: RankView, kind: str, text: str) -> None:
    history = [snapshot(view, time=20.0)]

    (lane,) = lanes(history)

    assert [(segment.kind, segment.text) for segment in lane.segments] == [(kind, text)]
    svg = timeline(history)
    assert any(title.startswith(f"rank 0: {text}") for title in titles(svg))
    assert f"rank 0: {text}" in described(svg)


def test_equal_neighbours_are_one_segment() -> None:
    first, second = lanes(mismatch())

    assert kinds(first) == ["importing", "running", "collective"]
    assert kinds(second) == kinds(first)
    assert [segment.start for segment in first.segments] == [0.5, 1.25, 1.5]
    assert first.segments[-1].end == mismatch()[-1].time
    assert (first.segments[-1].op, first.segments[-1].seq) == ("barrier", 2)


def test_a_segment_begins_when_the_process_came_to_rest() -> None:
    (lane,) = lanes(run([working(0)], [rank(0, recv(1), still=0.2)]))

    assert lane.segments[0].end == pytest.approx(1.05)
    assert lane.segments[1].start == pytest.approx(1.05)


def test_a_segment_never_begins_before_the_one_before_it_was_seen() -> None:
    (lane,) = lanes(run([working(0)], [rank(0, recv(1), still=9.0)]))

    assert [(s.start, s.end) for s in lane.segments] == [(1.0, 1.0), (1.0, 1.25)]


def test_a_number_that_becomes_known_later_does_not_split_a_collective() -> None:
    unnumbered = rank(0, replace(in_wait(), seq=None))
    (lane,) = lanes(run([unnumbered], [in_collective(0, "barrier", start=4)]))

    assert [(s.text, s.seq) for s in lane.segments] == [("in barrier #4", 4)]


def in_wait() -> Any:
    view = in_collective(0, "barrier", start=4)
    assert view.process is not None
    return view.process.waits[0]


def test_lines_split_a_wait_but_not_a_running_rank() -> None:
    here, there = "train.py:1 f", "train.py:2 g"
    (ran,) = lanes(run([working(0, at=here)], [working(0, at=there)]))
    (slept,) = lanes(run([sleeping(0, here)], [sleeping(0, there, still=0.0)]))

    assert kinds(ran) == ["running"]
    assert ran.segments[0].where is not None
    assert ran.segments[0].where.line == 2
    assert kinds(slept) == ["asleep", "asleep"]


def test_a_rank_whose_number_becomes_known_is_one_lane() -> None:
    known = rank(0)
    unknown = replace(known, rank=None)

    (lane,) = lanes(run([unknown], [known]))

    assert (lane.ranks, lane.name) == ((0,), "rank 0")


def test_workers_have_lanes_below_their_rank() -> None:
    children = (
        worker(0, 1, still=0.1),
        worker(0, 0, still=0.1),
        worker(0, 2, idle_worker=True),
        child(0, kind="helper"),
    )
    found = lanes(run([rank(0, children=children), working(1)]))

    assert [lane.name for lane in found] == ["rank 0", "worker 0", "worker 1", "rank 1"]
    assert [lane.child for lane in found] == [False, True, True, False]
    assert "worker 1 of rank 0: running at data.py:7 __getitem__" in "\n".join(
        titles(timeline(run([rank(0, children=children), working(1)])))
    )


def test_a_successor_takes_the_lane_of_a_worker() -> None:
    first = worker(0, 0, still=0.1)
    over = replace(first, process=replace(first.process, state="exited", ended=1.2, exit_code=0))
    second = replace(first, process=replace(first.process, pid=5000))

    found = lanes(
        run([rank(0, children=[first])], [rank(0, children=[over])], [rank(0, children=[second, over])])
    )

    assert [kinds(lane) for lane in found if lane.child] == [["running", "ended", "running"]]


def test_a_child_that_joined_as_a_rank_is_shown() -> None:
    found = lanes([snapshot(rank(0, children=[child(0, joining(), joined_as=0)]))])

    assert [lane.name for lane in found] == ["rank 0", "also rank 0"]


def test_workers_are_left_out_above_sixteen_ranks() -> None:
    views = [rank(n, children=[worker(n, 0, still=0.1)]) for n in range(17)]

    assert sum(lane.child for lane in lanes(run(views[:16]))) == 16
    assert sum(lane.child for lane in lanes(run(views))) == 0


MANY = 16_384


def one_odd(ranks: int, odd: int, each: int = 8) -> list[Snapshot]:
    """Ranks on several nodes, of which one is in another collective than all others."""
    members = tuple(range(ranks))
    views = [
        in_collective(n, "all_reduce", start=7, members=members, at="train.py:30 step") for n in members
    ]
    views[odd] = in_collective(odd, "barrier", start=7, members=members, at="train.py:19 save")
    return run(on_nodes(map(working, members), each), *[on_nodes(views, each)] * 2, every=5.0)


ODD = Verdict("hang", "collective-mismatch", culprits=(17,), since=6.0)


@pytest.mark.parametrize("ranks", [17, 64, MANY])
def test_many_ranks_share_a_lane_where_they_are_alike_at_the_end(ranks: int) -> None:
    odd = min(17, ranks - 2)
    found = lanes(one_odd(ranks, odd))

    assert [(lane.name, len(lane.ranks)) for lane in found] == [
        (f"{ranks - 1:,} ranks", ranks - 1),
        (f"rank {odd}", 1),
    ]
    assert [lane.segments[-1].text for lane in found] == [
        "in all_reduce #7",
        "in barrier #7",
    ]


def test_sixteen_ranks_have_a_lane_each() -> None:
    assert [lane.name for lane in lanes(one_odd(16, 3))] == [f"rank {n}" for n in range(16)]


@pytest.fixture(scope="module")
def many() -> str:
    """The picture of many ranks of which one is odd."""
    return timeline(one_odd(MANY, 17), ODD)


def test_a_lane_of_several_ranks_says_how_many_which_and_where(many: str) -> None:
    assert {"16,383 ranks", "rank 17", "ranks 0-16, 18-16383 on 2,048 nodes", "node 2 (host n2)"} <= {
        *texts(many)
    }
    assert [e.text for e in of_class(many, "named")] == ["rank 17"]
    assert any(
        title.startswith("16,383 ranks, drawn as rank 0: in all_reduce #7") for title in titles(many)
    )
    assert described(many).startswith(
        "ranks 0-16 and 18-16383: in all_reduce #7 at train.py:30 step; "
        "rank 17: in barrier #7 at train.py:19 save from 1.0 s. "
        "First difference at #7 of the default group: ranks 0-16 and 18-16383 all_reduce, "
        "rank 17 barrier."
    )


def test_lanes_of_several_ranks_meet_wait_and_differ(many: str) -> None:
    assert [e.findtext(f"{SVG}title") for e in of_class(many, "arrow")][:2] == [
        "16,383 ranks (0-16, 18-16383) wait for rank 17",
        "rank 17 waits for ranks 0-16 and 18-16383",
    ]
    assert len(of_class(many, "odd")) == 2, "the line that joins both, and the outline of the one rank"


def test_culprits_share_no_lane_with_others() -> None:
    history = run([sleeping(n) for n in range(64)])

    assert [lane.ranks for lane in lanes(history, (3, 9))] == [
        tuple(n for n in range(64) if n not in (3, 9)),
        (3, 9),
    ]
    assert [lane.name for lane in lanes(history)] == ["64 ranks"]


@pytest.mark.parametrize(
    ("views", "texts"),
    [
        ([sleeping(n, f"train.py:{n + 1} f") for n in range(40)], ["asleep at 40 lines"]),
        ([rank(n, key(f"k{n}")) for n in range(40)], ["store get"]),
        ([working(n, at=f"train.py:{n + 1} f") for n in range(40)], ["running at 40 lines"]),
        (
            [in_collective(n, "all_reduce", start=n) for n in range(40)] + [sleeping(40)],
            ["in a collective", "asleep"],
        ),
        (
            [sleeping(n, f"train.py:{n // 20} f") for n in range(40)],
            ["asleep", "asleep"],
        ),
        (
            [sleeping(n, f"train.py:{n // 20} f") for n in range(40)]
            + [rank(n, key(f"k{n}")) for n in range(40, 80)],
            ["asleep", "asleep", "store get"],
        ),
    ],
)
def test_ranks_that_all_differ_share_a_lane_for_what_they_have_in_common(
    views: list[RankView], texts: list[str]
) -> None:
    found = lanes([snapshot(*views)])

    assert [lane.segments[-1].text for lane in found] == texts
    assert sorted(n for lane in found for n in lane.ranks if n is not None) == [*range(len(views))]


def test_a_history_of_ranks_that_differ_in_everything_is_a_bounded_picture() -> None:
    make = [sleeping, working, stopped, lambda n: rank(n, key(f"k{n}")), lambda n: ended(n, n)]
    views = [make[n % 5](n) for n in range(MANY)]
    views = [replace(view, node=n) for n, view in enumerate(views)]
    svg = timeline(run(views, views), Verdict("hang", "unknown", culprits=tuple(range(0, MANY, 3))))

    assert len(lanes(run(views), range(0, MANY, 3))) <= 16
    assert len(svg.encode()) < 50_000
    assert len(described(svg)) < 6000


def test_ranks_out_of_sight_share_a_lane_and_leave_the_others_theirs() -> None:
    views = [working(n) for n in range(8)] + [absent(n, "unseen") for n in range(8, MANY)]
    views[2] = in_collective(2, "all_reduce", start=7, members=tuple(range(MANY)))
    svg = timeline([snapshot(*views)])

    assert [lane.name for lane in lanes([snapshot(*views)])] == [
        *(f"rank {n}" for n in range(8)),
        "16,376 ranks",
    ]
    assert {"ranks 8-16383", "out of sight"} <= set(texts(svg))
    assert {e.findtext(f"{SVG}title") for e in of_class(svg, "arrow")} == {
        None,
        "rank 2 waits for ranks 0, 1 and 3-16383",
    }


def test_few_ranks_stand_below_the_name_of_their_node() -> None:
    views = [replace(working(n), node=n % 2, host=f"n{n % 2}") for n in range(4)]
    svg = timeline(run([*views, absent(4)], [*views, absent(4)]))

    rows = {
        e.text: float(e.get("y", "0"))
        for e in parsed(svg).iter(f"{SVG}text")
        if re.match("rank|node|no known", e.text or "")
    }
    assert sorted(rows, key=lambda name: rows[name]) == [
        *("node 0 (host n0)", "rank 0", "rank 2"),
        *("node 1 (host n1)", "rank 1", "rank 3"),
        *("no known node", "rank 4"),
    ]


def test_nothing_is_said_of_the_node_of_a_job_on_one() -> None:
    views = [replace(working(n), node=3, host="n3") for n in range(20)]

    assert "node" not in timeline(run(views[:4]))
    assert "node" not in timeline(run(views))


def test_a_rank_that_is_out_of_the_picture_for_a_while_leaves_a_gap() -> None:
    (lane,) = lanes(run([working(0)], [working(0)], [], [working(0)], [working(0)]))

    assert [(s.start, s.end) for s in lane.segments] == [(1.0, 1.25), (1.75, 2.0)]


def test_short_segments_are_folded_and_the_newest_is_kept() -> None:
    found = lanes(training(2, 30, late=1))

    short = folded(found, seconds=0.6, limit=1000)

    assert [kinds(lane)[-1] for lane in short] == ["collective", "asleep"]
    assert {kind for lane in short for kind in kinds(lane)} >= {"moving"}
    for lane, whole in zip(short, found, strict=True):
        assert lane.segments[0].start == whole.segments[0].start
        assert lane.segments[-1] == whole.segments[-1]
        assert all(a.end == b.start for a, b in zip(lane.segments, lane.segments[1:], strict=False))
    said = " ".join(s.text for lane in short for s in lane.segments if s.kind == "moving")
    assert "running" in said
    assert "all_reduce" in said


def test_folding_comes_to_an_end_whatever_the_limit() -> None:
    found = folded(lanes(training(3, 40)), seconds=0.01, limit=1)

    assert all(len(lane.segments) <= 2 for lane in found)


def test_collectives_meet_by_group_and_number() -> None:
    found = lanes(mismatch())

    assert {place: [index for index, _ in parts] for place, parts in meetings(found).items()} == {
        ("default", 2): [0, 1]
    }


def test_the_first_difference_is_marked() -> None:
    svg = timeline(mismatch())

    outlined = of_class(svg, "odd")
    assert len(outlined) == 3, "a line that joins both ranks, and an outline each"
    assert len(of_class(svg, "other")) == 1, "the outline of the other operation is dashed"
    assert "≠ first difference: #2 of the default group, barrier / all_reduce" in texts(svg)
    assert (
        "First difference at #2 of the default group: rank 0 barrier, rank 1 all_reduce."
        in described(svg)
    )


def test_only_those_outside_the_majority_are_outlined() -> None:
    ops = ("all_reduce", "barrier", "all_reduce", "all_reduce")
    stands = [[in_collective(n, op, still=0.25 * step) for n, op in enumerate(ops)] for step in range(8)]
    svg = timeline(run([*map(working, range(4))], *stands))

    assert len(of_class(svg, "odd")) == 2, "the line that joins all, and the outline of rank 1"


def test_a_healthy_collective_is_joined_but_not_marked() -> None:
    moments = [[in_collective(n, "all_reduce", still=0.25 * step) for n in (0, 1)] for step in range(8)]
    svg = timeline(run([working(0), working(1)], *moments))

    assert not of_class(svg, "odd")
    assert of_class(svg, "met")
    assert "First difference" not in described(svg)


def test_arrows_say_who_waits_for_whom() -> None:
    history = run([working(0), working(1)], [in_collective(0, "barrier"), sleeping(1)])

    assert [e.findtext(f"{SVG}title") for e in of_class(timeline(history), "arrow")][:1] == [
        "rank 0 waits for rank 1"
    ]
    assert not of_class(timeline(history[:1]), "arrow")


def test_the_verdict_is_pinned() -> None:
    verdict = Verdict(
        "hang", "missing-rank", proved=False, summary="Rank 1 is asleep.", since=1.5, culprits=(1,)
    )
    svg = timeline(mismatch(), verdict)

    assert {"stall from 1.5 s", "hang (not proved): missing-rank"} <= set(texts(svg))
    assert len(of_class(svg, "stall")) == len(of_class(svg, "end")) == 1
    assert [e.text for e in of_class(svg, "named")] == ["rank 1"]
    assert described(svg).endswith("Verdict: hang (not proved): missing-rank. Rank 1 is asleep.")


def test_a_picture_that_does_not_reveal_shows_only_what_was_seen() -> None:
    verdict = Verdict("hang", "collective-mismatch", summary="Rank 1.", since=1.5, culprits=(1,))
    svg = timeline(mismatch(), verdict, reveal=False)

    assert svg == timeline(mismatch(), reveal=False)
    for look in ("pin", "arrow", "odd", "named"):
        assert not of_class(svg, look)
    assert not re.search("Verdict|First difference|Stall|mismatch", described(svg))
    assert "rank 1: in all_reduce #2" in described(svg)


def test_the_verdict_is_pinned_where_it_was_reached() -> None:
    verdict = Verdict("hang", "collective-mismatch", since=1.5)
    early, late = (timeline(mismatch(), verdict, verdict_at=at) for at in (2.0, mismatch()[-1].time))

    x = [
        float(re.findall(r"M([\d.]+)", of_class(svg, "end")[0].get("d", ""))[0]) for svg in (early, late)
    ]
    assert x[0] < x[1]
    assert late == timeline(mismatch(), verdict)


def test_a_good_end_is_not_pinned_as_a_failure() -> None:
    svg = timeline(mismatch(), Verdict("ok", "none"))

    assert len(of_class(svg, "over")) == 1
    assert not of_class(svg, "end")


def test_an_axis_that_goes_on_keeps_its_scale() -> None:
    history = mismatch()
    half, whole = timeline(history[:4], until=9.0), timeline(history, until=9.0)

    ticks = [[t for t in texts(svg) if t.endswith(" s")] for svg in (half, whole)]
    assert ticks[0] == ticks[1]
    assert ticks[0][-1] == "8 s"


def test_a_rank_that_waits_for_its_worker_points_at_it() -> None:
    children = [worker(0, 0, still=0.1), gone(worker(0, 1, still=0.1))]
    svg = timeline(run([rank(0, loading(), children=children)]))

    assert [e.findtext(f"{SVG}title") for e in of_class(svg, "arrow")][:1] == [
        "rank 0 waits for worker 0 of rank 0"
    ]


def test_a_failure_has_its_name_in_the_picture() -> None:
    views = [ended(0, error=error("ValueError", "no such file", "train.py:3 f"), time=1.3)]
    svg = timeline(run([working(0)], views, views, views))

    assert "ValueError" in texts(svg)
    hidden = timeline(run([working(0)], views, views, views), reveal=False)
    assert "ValueError" not in hidden
    assert "ended in failure" in hidden


def test_words_do_not_overlap_in_a_lane() -> None:
    moments = [[in_collective(0, "all_reduce", start=n, still=0.0)] for n in range(1, 40)]
    svg = timeline(run(*moments, [in_collective(0, "all_gather_into_tensor", start=99, still=0.0)]))

    lane = [e for e in of_class(svg, "on") if "#" in (e.text or "")]
    ends = [(float(e.get("x", "0")), len(e.text or "")) for e in lane]
    assert all(x + 5 * size <= after for (x, size), (after, _) in itertools.pairwise(ends))


def test_a_running_job_has_no_verdict_to_pin() -> None:
    svg = timeline(mismatch()[:3], Verdict("running", "none", summary="The job is running."))

    assert not of_class(svg, "end")
    assert not of_class(svg, "stall")


def test_the_description_puts_equal_ranks_together() -> None:
    views = [in_collective(n, "all_reduce", start=7, still=2.0) for n in range(4)]
    views[2] = sleeping(2, "prep.py:12 main", still=3.0)

    assert described(timeline([snapshot(*views, time=20.0)])) == (
        "ranks 0, 1 and 3: in all_reduce #7 at train.py:10 step from 18.0 s; "
        "rank 2: asleep at prep.py:12 main from 17.0 s."
    )


def test_equal_input_gives_equal_text() -> None:
    verdict = Verdict("hang", "missing-rank", since=1.5)

    assert timeline(mismatch(), verdict) == timeline(tuple(mismatch()), verdict)
    assert timeline(mismatch(), verdict) != timeline(mismatch())


def test_two_pictures_on_a_page_share_no_id() -> None:
    first, second = timeline(mismatch()), timeline(training(2, 8))
    ids = [re.findall(r' id="([^"]+)"', svg) for svg in (first, second)]

    assert not set(ids[0]) & set(ids[1])
    for svg, own in zip((first, second), ids, strict=True):
        assert len(own) == len(set(own))
        assert set(re.findall(r"url\(#([^)]+)\)", svg)) <= set(own)
        rules = svg.partition("<style>")[2].partition("</style>")[0]
        selectors = re.findall(r"(?:^|[{},])\s*([#.\w][^{},;:]*)\{", rules)
        assert selectors
        assert all(selector.startswith(f"#{own[0]}") for selector in selectors)


def test_what_comes_from_the_job_is_escaped() -> None:
    evil = '</title><script>alert("1")</script>&\x1b[31m\x00\uffff\udcff'
    views = [
        ended(0, error=error(evil, evil, f"{evil}.py:3 {evil}")),
        rank(1, key(evil), at=f"{evil}.py:3 {evil}"),
        rank(2, collective(evil, group=evil)),
        rank(3, children=[worker(3, 0, at=f"{evil}.py:3 {evil}", still=0.1)]),
    ]
    verdict = Verdict("error", "error", summary=evil, since=1.0)
    svg = timeline(run([*map(working, range(3))], views, views, every=5.0), verdict)

    root = parsed(svg)
    assert not [e for e in root.iter() if "script" in e.tag]
    assert "<script" not in svg
    assert any("<script>" in (e.text or "") for e in root.iter())


def test_nothing_is_loaded_and_nothing_runs() -> None:
    svg = timeline(mismatch())

    assert "http" not in svg.replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"<script|<image|<foreignObject|\son\w+=|href|@import", svg)


@pytest.mark.parametrize("width", [10, 320, 900, 1600])
def test_the_width_is_kept(width: int) -> None:
    root = parsed(timeline(mismatch(), width=width))

    wide = max(width, 320)
    assert root.get("width") == str(wide)
    assert root.get("viewBox", "").split()[2] == str(wide)


def test_the_picture_is_named_for_those_who_do_not_see_it() -> None:
    root = parsed(timeline(mismatch()))
    ids = {e.get("id"): e for e in root.iter() if e.get("id")}

    assert root.get("role") == "img"
    named = [ids[name] for name in root.get("aria-labelledby", "").split()]
    assert [e.tag for e in named] == [f"{SVG}title", f"{SVG}desc"]
    assert named[0].text == "Timeline of 2 ranks, 0.5 s to 3.2 s"


def states() -> Iterable[RankView]:
    yield starting()
    yield importing(1)
    yield rank(2, joining())
    yield working(3)
    yield in_collective(4, "barrier")
    yield rank(5, recv(1))
    yield sleeping(6)
    yield replace(held(), rank=7)
    yield stopped(8)
    yield ended(9, 1)
    yield ended(10, 0)
    yield absent(11)
    yield absent(12, "unseen")


def test_no_two_kinds_differ_by_colour_alone() -> None:
    svg = timeline([snapshot(*states())])
    colourless = [
        re.sub(r"var\(--\w+\)", "", ElementTree.tostring(e, "unicode").replace(e.get("id", ""), ""))
        for e in parsed(svg).iter(f"{SVG}pattern")
    ]

    assert len(set(colourless)) == len(colourless) == 8
    plain = {"running", "missing", "unseen", "failed", "ended"}
    drawn = {segment.kind for lane in lanes([snapshot(*states())]) for segment in lane.segments}
    assert len(drawn - plain) == len(colourless)
    assert len(of_class(svg, "mark")) == 2, "a cross and a tick tell the two ends apart"


@pytest.mark.parametrize(
    "make",
    [list, lambda: [snapshot()], lambda: [snapshot(absent(0))], lambda: [snapshot(time=0.0)]],
)
def test_little_input_gives_a_small_picture(make: Callable[[], list[Snapshot]]) -> None:
    svg = timeline(make())

    assert parsed(svg).get("role") == "img"
    assert len(svg) < 8000


def test_nothing_seen_is_said() -> None:
    assert "No rank has been seen." in texts(timeline([]))
    assert described(timeline([])) == "No rank has been seen."


def test_lanes_stay_readable() -> None:
    heights = {n: int(parsed(timeline(training(n, 4))).get("height", "0")) for n in (2, 8, 16)}

    assert heights[2] < 150
    assert heights[16] < 450
    assert list(heights.values()) == sorted(heights.values())


def test_a_failure_at_the_end_has_room_for_its_name() -> None:
    views = [ended(0, error=error("DistNetworkError", "taken", "train.py:3 f"), time=1.3)]
    svg = timeline(run([working(0)], views))

    [name] = [e for e in of_class(svg, "on") if e.text == "DistNetworkError"]
    assert float(name.get("x", "0")) + 16 * 6 < 900


def odd_halves() -> list[Snapshot]:
    """64 ranks of which each waits for 32 others."""
    views = [in_collective(n, "barrier" if n % 2 else "all_reduce", start=7) for n in range(64)]
    return run(*[views] * 4)


@pytest.mark.parametrize(
    "make",
    [lambda: training(64, 400, late=13), lambda: training(64, 400), odd_halves],
    ids=["late", "well", "odd"],
)
def test_many_ranks_stay_small(make: Callable[[], list[Snapshot]]) -> None:
    svg = timeline(make())
    assert len(svg.encode()) < 400_000
    assert parsed(svg).get("role") == "img"
    assert len(of_class(svg, "arrow")) <= ARROWS + 1


def test_a_process_that_nobody_numbers_has_a_lane_of_its_own() -> None:
    view = replace(rank(None), process=process(4242, "rank"))
    found = lanes([snapshot(view, working(0))])

    assert [(lane.ranks, lane.name) for lane in found] == [((0,), "rank 0"), ((None,), "rank ?")]
    assert "rank ?: running" in described(timeline([snapshot(view, working(0))]))


AT = Frame("data.py", 31, "decode")


def bars(svg: str) -> list[tuple[str, str]]:
    """Title and number of each bar right of a lane."""
    found = [group for group in parsed(svg).iter(f"{SVG}g") if group.get("class") == "share"]
    return [(g.findtext(f"{SVG}title", ""), g.findtext(f"{SVG}text", "")) for g in found]


def slow_run(ranks: int) -> list[Snapshot]:
    both = tuple(range(ranks))
    waiting = [in_collective(n, "all_reduce", members=both, still=0.2) for n in both if n != 1]
    return run(*([waiting[0], working(1), *waiting[1:]] for _ in range(4)))


def waited_for(ranks: int, share: float = 0.64) -> list[Share]:
    others = [Share((rank,), 0.0, share + rank / 10000) for rank in range(ranks) if rank != 1]
    return [Share((1,), share, 0.02, AT, "input"), *others]


def test_a_bar_right_of_each_lane_says_how_the_time_of_its_rank_went() -> None:
    svg = timeline(slow_run(3), shares=waited_for(3))
    assert bars(svg) == [
        ("Rank 0: others wait for it 0 % of the time, it waits for others 64 %.", "64 %"),
        ("Rank 1: others wait for it 64 % of the time, it waits for others 2 %.", "64 %"),
        ("Rank 2: others wait for it 0 % of the time, it waits for others 64 %.", "64 %"),
    ]
    assert "share of the time others wait for it" in texts(svg)
    assert bars(svg)[1][0] in described(svg)
    assert 'class="arrow"' not in svg, "arrows are of the end alone"


def test_without_shares_there_is_no_bar_and_the_picture_is_as_it_was() -> None:
    assert bars(timeline(slow_run(3))) == []
    held_back = timeline(slow_run(3), shares=waited_for(3), reveal=False)
    assert held_back == timeline(slow_run(3), reveal=False)


@pytest.mark.parametrize("width", [520, 900])
@pytest.mark.parametrize("ranks", [2, 16, 64])
def test_bars_have_their_room_at_any_width_and_number_of_ranks(width: int, ranks: int) -> None:
    svg = timeline(slow_run(ranks), shares=waited_for(ranks), width=width)
    shown = bars(svg)
    assert 2 <= len(shown) <= 16
    assert any(title.startswith("Rank 1: others wait for it 64 %") for title, _ in shown)
    if ranks == 64:
        assert any("they wait for others 64-65 %." in title for title, _ in shown)
    drawn = re.findall(r'<path class="(?:awaited|awaits|whole)" d="M([\d.]+) 0h([\d.]+)', svg)
    assert len(drawn) == 3 * len(shown)
    for left, wide in drawn:
        assert width - 74 < float(left) and float(left) + float(wide) <= width
    lanes_end = max(
        float(re.findall(r"[\d.]+", path.get("d", ""))[-1])
        for path in parsed(svg).iter(f"{SVG}path")
        if path.get("class") == "row"
    )
    assert lanes_end <= width - 74


def test_a_group_that_is_waited_for_has_lanes_of_its_own() -> None:
    shares = [Share((1, 2), 0.5, 0.1), *(Share((rank,), 0.0, 0.5) for rank in (0, *range(3, 64)))]
    said = [title for title, _ in bars(timeline(slow_run(64), shares=shares))]
    assert "Ranks 1 and 2: others wait for them 50 % of the time, they wait for others 10 %." in said
