"""Dumps of the Flight Recorder: what is read of them, and what it means."""

from __future__ import annotations

import json
import os
import pickle
from typing import Any

import pytest
from dumps import done, dump, entry
from msgspec.structs import replace

from helpers.artifacts import job, program
from helpers.diagnose.diagnose import diagnose
from helpers.model.facts import Verdict
from helpers.observe import flight_dump
from helpers.observe.account import UnreadableError

WIDE = [[5, 4]]


def judged(*dumps: dict[str, Any] | None) -> Verdict:
    """The verdict on ranks of which each has left a dump, or none."""
    told = [
        flight_dump.account(one, f"/shared/rank_{rank}")
        for rank, one in enumerate(dumps)
        if one is not None
    ]
    seen = job.snapshot(told, program.sources(told))
    return diagnose([replace(seen, time=seen.time - 1.0), seen], final=True)


def of(*entries: dict[str, Any]) -> dict[str, Any]:
    return dump(*entries)


PART = {"state": "scheduled"}

CASES = [
    # The kinds of mismatch that torch's own analyzer knows: test/distributed/flight_recorder/
    # test_fr_analysis.py of pytorch/pytorch.
    (
        "another operation",
        (of(entry("all_reduce")), of(entry("all_gather"))),
        "collective-mismatch",
        (0, 1),
    ),
    (
        "other sizes",
        (of(entry("all_reduce")), of(entry("all_reduce", sizes=WIDE))),
        "shape-mismatch",
        (0, 1),
    ),
    (
        "other sizes of the parts that are gathered",
        (
            of(entry("_all_gather_base", sizes=[[8]], outputs=[[16]])),
            of(entry("_all_gather_base", sizes=[[9]], outputs=[[18]])),
        ),
        "shape-mismatch",
        (0, 1),
    ),
    (
        "another type",
        (of(entry("all_reduce")), of(entry("all_reduce", dtype="Half"))),
        "shape-mismatch",
        (0, 1),
    ),
    (
        "one has finished it, the other has not: nobody is missing",
        (of(entry("all_reduce")), of(done("all_reduce"))),
        "unknown",
        (),
    ),
    (
        "one has not come",
        (of(done("all_reduce"), entry("all_reduce", 2)), of(done("all_reduce"))),
        "missing-rank",
        (1,),
    ),
    ("one has issued nothing", (of(entry("all_reduce")), of()), "missing-rank", (1,)),
    ("of one there is no dump", (of(entry("all_reduce")), None), "unknown", ()),
    ("all are in it", (of(entry("all_reduce")), of(entry("all_reduce"))), "unknown", ()),
    ("all with all", (of(entry("all_to_all")), of(entry("all_to_all"))), "unknown", ()),
    (
        "all with all, and the splits do not match",
        (
            of(entry("all_to_all", sizes=[[4]], outputs=[[6]])),
            of(entry("all_to_all", sizes=[[4]], outputs=[[4]])),
        ),
        "shape-mismatch",
        (0, 1),
    ),
    (
        "several as one, and a part has other sizes",
        (
            of(
                entry("_broadcast_oop"),
                entry("_broadcast_oop", sizes=WIDE),
                entry("ALLGATHER_coalesced", sizes=[[]]),
            ),
            of(
                entry("_broadcast_oop"),
                entry("_broadcast_oop"),
                entry("ALLGATHER_coalesced", sizes=[[]]),
            ),
        ),
        "shape-mismatch",
        (0, 1),
    ),
    (
        "several as one, which the other has not issued yet",
        (
            of(done("all_reduce")),
            of(done("all_reduce"), entry("_reduce_oop", 2), entry("REDUCE_SCATTER_coalesced", 2)),
        ),
        "missing-rank",
        (0,),
    ),
    # More than that analyzer looks at.
    (
        "one has enqueued more than it waits for",
        (of(entry("all_reduce"), entry("broadcast", 2)), of(entry("barrier"))),
        "collective-mismatch",
        (0, 1),
    ),
    (
        "a message that nobody receives",
        (of(entry("send 0->1")), of(entry("all_reduce"))),
        "collective-mismatch",
        (0, 1),
    ),
    ("both receive", (of(entry("recv 0<-1")), of(entry("recv 1<-0"))), "collective-mismatch", (0, 1)),
]


@pytest.mark.parametrize(
    ("dumps", "cause", "culprits"), [row[1:] for row in CASES], ids=[r[0] for r in CASES]
)
def test_what_dumps_mean(
    dumps: tuple[dict[str, Any] | None, ...], cause: str, culprits: tuple[int, ...]
) -> None:
    verdict = judged(*dumps)
    assert (verdict.outcome, verdict.cause, verdict.culprits) == ("hang", cause, culprits)


def test_one_of_four_is_in_another_call() -> None:
    ranks = range(4)
    same = dump(entry("all_reduce"), ranks=ranks)
    verdict = judged(same, same, same, dump(entry("barrier"), ranks=ranks))
    assert (verdict.cause, verdict.culprits, verdict.proved) == ("collective-mismatch", (3,), True)


def test_dumps_of_ranks_that_wait_for_nothing_show_no_hang() -> None:
    assert judged(of(done("all_reduce")), of(done("all_reduce"))).outcome == "running"


def test_groups_are_told_apart() -> None:
    sub = {"group": ("1", "tensor parallel")}
    config = {
        "0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1]"},
        "1": {"name": "1", "desc": "tensor parallel", "ranks": "[0, 1]"},
    }
    one = dump(entry("all_reduce", **sub), pg_config=config)
    other = dump(entry("all_reduce"), pg_config=config)
    verdict = judged(one, other)
    assert verdict.cause == "collective-mismatch"
    assert "tensor parallel" in verdict.detail


def test_numbers_may_be_texts() -> None:
    """As in the JSON that torch writes, and in upstream's own tests."""
    first = entry("all_reduce", collective_seq_id="1", p2p_seq_id="0", input_dtypes="float32")
    told = flight_dump.account(of(first), "/shared/rank_0")
    assert told.flight is not None
    assert [(one["seq"], one["dtype"]) for one in told.flight["entries"]] == [(1, "float32")]


def test_where_it_was_issued_is_told() -> None:
    verdict = judged(of(entry("all_reduce", line=12)), of(entry("barrier", line=20)))
    assert verdict.where is not None
    assert (verdict.where.file, verdict.where.line) == ("/home/user/train.py", 12)


def test_a_frame_without_a_line_has_line_0() -> None:
    told = flight_dump.account(of(entry("all_reduce", line=-1)), "/shared/rank_0")
    assert told.threads[0]["frames"][-1][1] == 0


@pytest.mark.parametrize(
    ("name", "rank"),
    [
        ("nccl_trace_rank_3", 3),
        ("fr_trace_12.json", 12),
        ("rank7.pkl.gz", 7),
        ("trace", None),
        ("node2/comm_lib_trace_rank_0", 0),
    ],
)
def test_the_rank_is_the_number_at_the_end_of_the_name(name: str, rank: int | None) -> None:
    assert flight_dump.rank_of(name) == rank


class Calls:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, ("exit 1",)


@pytest.mark.parametrize("harmful", [Calls(), {"entries": [Calls()], "version": "2.10"}, os.system])
def test_a_pickle_that_wants_to_call_something_is_refused(harmful: object) -> None:
    with pytest.raises(UnreadableError, match="wants to call"):
        flight_dump.unpickled(pickle.dumps(harmful))


def test_a_dump_that_is_cut_off_anywhere_is_refused() -> None:
    whole = pickle.dumps(of(entry("all_reduce", line=12)))
    for size in range(len(whole)):
        with pytest.raises(UnreadableError):
            flight_dump.unpickled(whole[:size])


@pytest.mark.parametrize(
    "entries",
    [
        None,
        3,
        [3],
        [{}],
        [{"process_group": 4}],
        [{"collective_seq_id": "x"}],
        [{"frames": 3}],
        {"a": 1},
    ],
)
def test_entries_that_torch_does_not_write_are_refused_or_left_out(entries: object) -> None:
    try:
        told = flight_dump.account({"version": "2.10", "entries": entries}, "/x/rank_0")
    except UnreadableError:
        return
    assert told.rank == 0


def test_json_is_read_as_well() -> None:
    text = json.dumps(of(entry("all_reduce"))).encode()
    assert all(map(flight_dump.is_dump, flight_dump.parsed(text)))
    assert len([*flight_dump.parsed(text + b"\n" + text + text)]) == 3
    with pytest.raises(UnreadableError):
        [*flight_dump.parsed(text[:-1])]
    with pytest.raises(UnreadableError):
        [*flight_dump.parsed(b"[" * 100_000)]


def test_a_number_that_is_none_is_refused_in_one_sentence() -> None:
    endless = dump({**entry("all_reduce"), "time_created_ns": float("inf")})
    with pytest.raises(UnreadableError, match="not as torch writes them"):
        flight_dump.account(endless, "dump_0")
