"""Time and memory of `read` on the recordings that all nodes of a job have made."""

from __future__ import annotations

import gzip
import json
import re
import tempfile
from collections.abc import Iterator, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

from reading import judged

from helpers.beacon.membership import members

NODES = (8, 64, 512)
RANKS = 8
"""Ranks of a node."""

RECORDING = Path(__file__).resolve().parent.parent / "tests" / "recordings" / "saves_when_due.jsonl.gz"
"""A real run on one node: eight ranks, of which two come to a barrier where the others sum."""

USUAL, ODD = 1, (2, 6)
"""A rank that sums, and those that come to the barrier."""

TRAINS, HANGS, EVERY = 30, 70, 0.25
"""Looks at ranks that train, and at ranks that hang, beside those of the real run; seconds between."""

IN_MOTION = {"call": None, "native": None}
"""What is told of a thread that moves."""

Look = dict[str, Any]


def nodes() -> Iterator[str]:
    """A hang that no node can prove alone: one rank of all is in a barrier, the others sum."""
    yield "| recordings | ranks | looks | size | read | memory |"
    yield "|---|---|---|---|---|---|"
    for number in NODES:
        with tempfile.TemporaryDirectory() as name:
            odd, looks = _write_recordings(Path(name), number)
            size = sum(file.stat().st_size for file in Path(name).iterdir())
            run, told = judged(name)
        assert (told["cause"], told["culprits"]) == ("collective-mismatch", [odd]), told["summary"]
        job = told["job"]
        assert (job["world_size"], job["nodes_seen"]) == (RANKS * number, number), job
        yield (
            f"| {number} | {RANKS * number} | {looks} | {size / 1e6:.1f} MB | {run.seconds:.1f} s "
            f"| {run.memory / 1e6:.0f} MB |"
        )
    yield ""
    yield (
        "The recordings of a job with 8 ranks on each node, in which one rank is in another operation "
        "than all others, read together. The memory is that of all processes of the command."
    )


def _write_recordings(folder: Path, number: int) -> tuple[int, int]:
    """A recording of each node; returns the odd rank, and how many looks there are."""
    label, *real = map(json.loads, gzip.decompress(RECORDING.read_bytes()).splitlines())
    label["watched"]["command"] = ["torchrun", f"--nnodes={number}", "saves_when_due.py"]
    usual = _stretched([_with_usual(look, ODD) for look in real])
    other = _stretched([_with_usual(look, ODD[:1]) for look in real])
    at = number * 2 // 3
    for node in range(number):
        label["watched"]["host"] = f"n{node}"
        lines = (
            json.dumps(line, separators=(",", ":")) for line in (label, *(usual, other)[node == at])
        )
        text = _of_node("\n".join((*lines, "")), node, number)
        (folder / f"n{node}.rec").write_bytes(gzip.compress(text.encode(), compresslevel=1))
    return RANKS * at + ODD[1], len(usual)


def _with_usual(look: Look, ranks: tuple[int, ...]) -> Look:
    """The look at a node on which some of the ranks do what the usual one does."""
    usual = _pid(USUAL)
    told = {one["pid"]: one for one in look.get("told", ())}
    for rank in ranks:
        told.pop(_pid(rank), None)
        if usual in told:
            text = json.dumps(told[usual]).replace(str(usual), str(_pid(rank)))
            told[_pid(rank)] = json.loads(re.sub(rf'RANK": "{USUAL}"', f'RANK": "{rank}"', text))
            record = told[_pid(rank)].get("record")
            if record is not None and record["dist"] is not None:
                record["dist"]["rank"] = rank
    return {**look, "told": [*told.values()]}


def _pid(rank: int) -> int:
    return 1618 + rank


def _stretched(looks: list[Look]) -> list[Look]:
    """The same run, but that it trains for a while before it hangs, and then hangs for a while."""
    newest = {one["pid"]: one["record"] for look in looks for one in look["told"] if one.get("record")}
    first = next(at for at, look in enumerate(looks) if any(map(_stands, look["told"])))
    *start, last = looks[:first]
    trains = [_in_motion(last, newest, EVERY * turn) for turn in range(TRAINS)]
    hangs = [_later(look, EVERY * TRAINS) for look in looks[first:]]
    rest = {**hangs[-1], "answers": []}
    return [*start, *trains, *hangs, *(_later(rest, EVERY * turn) for turn in range(1, HANGS + 1))]


def _stands(told: Mapping[str, Any]) -> bool:
    """True where a rank hangs: its Flight Recorder has been read."""
    return told.get("record") is not None and told["record"]["flight"] is not None


def _in_motion(look: Look, newest: Mapping[int, Look], by: float) -> Look:
    """A look at ranks that train."""
    look = _later(look, by)
    told = [one for one in look["told"] if one["pid"] < _pid(0)]
    for pid in map(_pid, range(RANKS)):
        record = deepcopy(newest[pid])
        record["flight"] = None
        record["threads"] = [{**one, **IN_MOTION, "since": look["time"]} for one in record["threads"]]
        told.append({"pid": pid, "written": look["time"], "record": record})
    return {**look, "told": told}


def _later(look: Look, by: float) -> Look:
    """The same, some seconds later."""
    look = deepcopy(look)
    look["time"] += by
    for one in look["told"]:
        one["written"] += by
        record = one.get("record") or {}
        for since in (*record.get("threads", ()), record.get("flight") or {"since": 0.0}):
            since["since"] += by
    return look


def _of_node(text: str, node: int, number: int) -> str:
    """What a node of one node has recorded, as one of several would have."""
    world = RANKS * number
    text = re.sub(r'"RANK":"(\d)"', lambda of: f'"RANK":"{RANKS * node + int(of[1])}"', text)
    text = re.sub(r'{"rank":(\d),', lambda of: f'{{"rank":{RANKS * node + int(of[1])},', text)
    for here, there in (
        (f'"WORLD_SIZE":"{RANKS}","LOCAL', f'"WORLD_SIZE":"{world}","LOCAL'),
        (
            '"GROUP_RANK":"0","GROUP_WORLD_SIZE":"1"',
            f'"GROUP_RANK":"{node}","GROUP_WORLD_SIZE":"{number}"',
        ),
        ('"MASTER_ADDR":"localhost"', '"MASTER_ADDR":"n0"'),
        (f'"world_size":{RANKS}', f'"world_size":{world}'),
        (_members(RANKS), _members(world)),
    ):
        assert here in text, here
        text = text.replace(here, there)
    return text


def _members(number: int) -> str:
    """What a record tells of a group of all ranks."""
    return json.dumps(members(range(number)), separators=(",", ":"))[1:-1]
