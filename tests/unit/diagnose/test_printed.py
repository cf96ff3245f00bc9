"""What only some ranks have printed, from the lines of each rank."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from helpers.artifacts.artifacts import read
from helpers.diagnose.printed import LONGEST, MOST, printed
from helpers.model.facts import Job, Snapshot

STEPS = [f"step {step} loss 0.{step}" for step in range(9)]
TRACEBACK = [
    "Traceback (most recent call last):",
    '  File "train.py", line 9, in read',
    "    raise ValueError('record 7')",
    "    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^",
    "ValueError: record 7",
]


def told(*ranks: list[str]) -> list[tuple[tuple[int, ...], str]]:
    output = tuple((rank, tuple(lines)) for rank, lines in enumerate(ranks))
    found = printed(Snapshot(9.0, Job(("x",), world_size=len(ranks)), output=output))
    return [(one.ranks, one.text) for one in found]


TELLING = {
    "only one rank says why": (
        [[*STEPS, "validation loss rose, ending early"], STEPS],
        [((0,), "validation loss rose, ending early")],
    ),
    "the others are silent": (
        [["epoch 0", "epoch 1", "epoch 2", "saving the best model"], [], []],
        [((0,), "saving the best model")],
    ),
    "the rank that speaks for all is silent": (
        [[], ["skipping batch 5: disk read failed"]],
        [((1,), "skipping batch 5: disk read failed")],
    ),
    "two of three say the same": (
        [STEPS, [*STEPS, "bad record, skipping"], [*STEPS, "bad record, skipping"]],
        [((1, 2), "bad record, skipping")],
    ),
    "each says something of its own": (
        [[*STEPS, "I am the server"], [*STEPS, "sending weights"]],
        [((0,), "I am the server"), ((1,), "sending weights")],
    ),
    "one that was ahead of the others": (
        [[*STEPS, "step 9 loss 0.9", "stopping"], STEPS],
        [((0,), "stopping")],
    ),
    "an exception that was caught": (
        [STEPS, [*STEPS, *TRACEBACK]],
        [((1,), "ValueError: record 7")],
    ),
    "who it is, within the line": ([STEPS, [*STEPS, "rank 1 leaves"]], [((1,), "rank 1 leaves")]),
    "a label before each line": (
        [[f"[rank0]: {line}" for line in [*STEPS, "leaving"]], [f"[rank1]: {line}" for line in STEPS]],
        [((0,), "leaving")],
    ),
}

HEALTHY = {
    "nothing": [[], []],
    "one rank, whatever it says": [[*STEPS, "leaving"]],
    "the same": [STEPS, STEPS],
    "other values": [STEPS, [line.replace("loss 0.", "loss 1.") for line in STEPS]],
    "one rank speaks for all": [["building the model"], []],
    "all others are silent, but for progress": [[], ["epoch 0", "epoch 1", "epoch 2"]],
    "its own number": [["rank 0 of 2 on cuda:0 is ready"], ["rank 1 of 2 on cuda:1 is ready"]],
    "another order": [["loading", "building", "ready"], ["building", "loading", "ready"]],
    "another order at the end": [[*STEPS, "saved", "closed"], [*STEPS, "closed", "saved"]],
    "one is ahead": [STEPS, STEPS[:5]],
    "one is ahead, with a bar": [["  3%|     | 3/99 [00:01<00:33, 2.9it/s]"], [" 90%|  | 90/99"]],
    "one prints its progress": [["epoch 0", "epoch 1", "epoch 2"], []],
    "timings": [[*STEPS, "saved in 1.3 s at 12:01:07"], [*STEPS, "saved in 900 ms at 12:01:08"]],
    "how many records each has": [[*STEPS, "read 12 files"], [*STEPS, "read 13 files"]],
    "what a library says": [
        [*STEPS, "[W1128 20:16:59.1 Utils.hpp:137] Warning: deprecated"],
        [*STEPS, "/lib/x.py:12: UserWarning: slow", "  warnings.warn(", "/lib/y.py:9: few workers"],
    ],
    "marks": [["=====", "---", "ready"], ["ready"]],
}


@pytest.mark.parametrize("name", TELLING)
def test_what_only_some_have_printed_is_told(name: str) -> None:
    ranks, expected = TELLING[name]
    assert told(*ranks) == expected


@pytest.mark.parametrize("name", HEALTHY)
def test_ranks_that_do_the_same_have_nothing_of_their_own(name: str) -> None:
    assert told(*HEALTHY[name]) == []


@pytest.mark.parametrize("seed", range(10))
def test_of_a_healthy_log_that_stops_anywhere_nothing_is_told(seed: int) -> None:
    """Ten logs of ranks that keep together to within a step, cut off somewhere."""
    chance = random.Random(seed)
    ranks = []
    end = chance.randint(4, 40)
    for rank in range(chance.randint(2, 8)):
        lines = [f"rank {rank}: {chance.randint(3, 9)} GB free", "model built", "data loaded"]
        lines[1:] = chance.sample(lines[1:], 2)
        for step in range(end + chance.randint(0, 1)):
            lines.append(
                f"[rank {rank}] step {step}: loss {chance.random():.4f} ({chance.random():.1f} s)"
            )
            if step % 5 == 4:
                lines.append(f"checkpoint {step // 5} written")
        ranks.append(lines)
    assert told(*ranks) == []


def test_the_newest_lines_are_told_and_no_more_of_one_than_a_line_holds() -> None:
    words = ["alpha", "beta", "gamma", "delta", "x" * (2 * LONGEST)]
    assert told([*STEPS, *words], STEPS) == [
        *(((0,), word) for word in words[-MOST:-1]),
        ((0,), "x" * LONGEST),
    ]


def test_a_secret_is_not_told() -> None:
    ((_, text),) = told([*STEPS, "password=hunter2 was refused"], STEPS)
    assert "hunter2" not in text


def test_it_is_read_from_the_logs_of_each_rank_and_from_one_of_all(tmp_path: Path) -> None:
    ranks = [[*STEPS, "validation loss rose, ending early"], [*STEPS, *TRACEBACK]]
    for rank, lines in enumerate(ranks):
        (tmp_path / f"rank_{rank}.log").write_text("\n".join(lines) + "\n")
    shared = [f"[rank{rank}]: {line}" for rank, lines in enumerate(ranks) for line in lines]
    (tmp_path / "all").mkdir()
    (tmp_path / "all" / "job.log").write_text("\n".join(shared) + "\n")
    for folder in (tmp_path / "all", tmp_path):
        (part,) = read([str(path) for path in folder.iterdir() if path.is_file()]).parts()
        found = printed(part.last)
        assert [(one.ranks, one.text) for one in found] == [
            ((0,), "validation loss rose, ending early"),
            ((1,), "ValueError: record 7"),
        ]
