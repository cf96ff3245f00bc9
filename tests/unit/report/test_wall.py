"""The wall: a thin lane for each rank of a large job, calls that differ told apart, no verdict."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest
from looks import diverging

from helpers.report.wall import wall

RANKS, ODD = 64, 41
SNAPSHOTS = tuple(diverging(RANKS, ODD).snapshots())
LAST = SNAPSHOTS[-1].time
SVG = "{http://www.w3.org/2000/svg}"


def lanes_of(drawn: str) -> dict[int, ElementTree.Element]:
    groups = ElementTree.fromstring(drawn).iter(f"{SVG}g")
    return {int(group.attrib["data-rank"]): group for group in groups if "data-rank" in group.attrib}


def looks_of(lane: ElementTree.Element) -> list[str]:
    return [path.attrib["class"] for path in lane.iter(f"{SVG}path")]


def test_each_rank_has_its_lane_and_the_rare_call_its_own_pattern() -> None:
    lanes = lanes_of(wall(SNAPSHOTS, begin=0.0, until=LAST))
    assert list(lanes) == list(range(RANKS))
    for rank, lane in lanes.items():
        assert looks_of(lane)[-1] == ("other" if rank == ODD else "collective"), rank


def test_what_is_drawn_is_also_said() -> None:
    drawn = wall(SNAPSHOTS, begin=0.0, until=LAST)
    [said] = re.findall(r"<desc[^>]*>(.*)</desc>", drawn)
    assert "ranks 0-40 and 42-63: in all_reduce #7" in said and "rank 41: in barrier #7" in said
    titles = [title.text or "" for title in lanes_of(drawn)[ODD].iter(f"{SVG}title")]
    assert titles[-1].startswith("rank 41: in barrier #7") and "train.py:41" in titles[-1]


@pytest.mark.parametrize("begin", [0.0, 5.0])
def test_what_was_before_its_begin_is_left_out(begin: float) -> None:
    drawn = wall(SNAPSHOTS, begin=begin, until=LAST)
    times = [float(time) for time in re.findall(r">(\d+) s</text>", drawn)]
    assert min(times) >= begin and ("running" in drawn)


def test_the_scale_is_that_of_the_whole_run() -> None:
    [early] = [wall(SNAPSHOTS[:8], begin=1.0, until=LAST)]
    assert re.findall(r">\d+ s</text>", early) == re.findall(
        r">\d+ s</text>", wall(SNAPSHOTS, begin=1.0, until=LAST)
    )
    assert "barrier" not in early
