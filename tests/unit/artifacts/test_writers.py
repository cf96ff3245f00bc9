"""Lines of several processes in one log, with the labels of launchers and collectors before them."""

from __future__ import annotations

import json

import pytest

from helpers.artifacts.text import Text
from helpers.observe.account import Account

TRACEBACK = """\
Traceback (most recent call last):
  File "/job/train.py", line {line}, in <module>
    step({line})
{error}
"""

DUMP = """\
Thread 0x00007f0000000001 (most recent call first):
  File "/job/train.py", line {line} in step
  File "/job/train.py", line 50 in <module>
"""

LABELS = {
    "torchrun": "[default{rank}]:{text}",
    "torchrun with torch's own": "[default{rank}]:[rank{rank}]: {text}",
    "torch's own": "[rank{rank}]: {text}",
    "srun": "{rank}: {text}",
    "srun, padded": " {rank}: {text}",
    "kubectl, torchrun": "[pod/train-0/main] [default{rank}]:{text}",
    "container": "2026-11-23T12:00:00.123456789Z stderr F [default{rank}]:{text}",
}


def read(lines: list[str]) -> list[Account]:
    text = Text("job.log")
    for line in lines:
        text.take(line)
    return list(text.accounts())


def mixed(label: str, *texts: str) -> list[str]:
    """The lines of as many ranks, in turn, each with its label."""
    parts = [text.splitlines() for text in texts]
    turns = zip(*parts, strict=True)
    return [label.format(rank=rank, text=text) for turn in turns for rank, text in enumerate(turn)]


def tracebacks() -> tuple[str, str]:
    return (
        TRACEBACK.format(line=3, error="ValueError: bad batch"),
        TRACEBACK.format(line=7, error="KeyError: 'loss'"),
    )


def failures(accounts: list[Account]) -> dict[int | None, tuple[str, int]]:
    return {one.rank: (one.error["type"], one.error["frames"][0][1]) for one in accounts if one.error}


@pytest.mark.parametrize("label", LABELS)
def test_mixed_tracebacks_are_taken_apart(label: str) -> None:
    found = failures(read(mixed(LABELS[label], *tracebacks())))
    assert found == {0: ("ValueError", 3), 1: ("KeyError", 7)}


def test_docker_writes_lines_as_json() -> None:
    lines = mixed("[default{rank}]:{text}", *tracebacks())
    packed = [
        json.dumps({"log": line + "\n", "stream": "stderr"}, separators=(",", ":")) for line in lines
    ]
    assert failures(read(packed)) == {0: ("ValueError", 3), 1: ("KeyError", 7)}


@pytest.mark.parametrize(
    "label", ["(Worker pid=10{rank}, ip=10.0.0.4) {text}", "[pod/w-{rank}/main] {text}"]
)
def test_processes_that_are_no_ranks_are_taken_apart(label: str) -> None:
    found = [one.error["type"] for one in read(mixed(label, *tracebacks())) if one.error]
    assert sorted(found) == ["KeyError", "ValueError"]


def test_a_line_that_tells_its_rank_tells_that_of_its_label() -> None:
    lines = mixed("(Worker pid=10{rank}) {text}", *tracebacks())
    begin = ["(Worker pid=100) [rank5]: starts", "(Worker pid=101) [rank4]: starts"]
    assert failures(read(begin + lines)) == {5: ("ValueError", 3), 4: ("KeyError", 7)}


def test_a_label_that_is_no_rank_somewhere_is_none_elsewhere() -> None:
    lines = mixed("{rank}: {text}", *tracebacks())
    assert set(failures(read(["1: [rank9]: starts", "1: [rank8]: starts", *lines]))) == {None}


def test_local_ranks_of_two_nodes_are_no_ranks() -> None:
    lines = mixed("[pod/w-0/main] [default{rank}]:{text}", *tracebacks())
    lines += mixed("[pod/w-1/main] [default{rank}]:{text}", *tracebacks())
    assert set(failures(read(lines))) == {None}


def test_a_local_rank_is_the_rank_that_the_summary_tells() -> None:
    lines = mixed("[default{rank}]:{text}", *tracebacks())
    lines += ["  rank      : 9 (local_rank: 1)", "  exitcode  : 1 (pid: 985)"]
    assert failures(read(lines))[9] == ("KeyError", 7)


def test_mixed_dumps_are_taken_apart() -> None:
    found = read(mixed("[default{rank}]:{text}", DUMP.format(line=3), DUMP.format(line=7)))
    dumped = [(one.rank, one.threads[0]["frames"][0][1]) for one in found if one.threads]
    assert dumped == [(0, 3), (1, 7)]


def test_a_number_and_a_colon_are_no_label_in_a_log_without_labels() -> None:
    lines = ["12: warmup", *TRACEBACK.format(line=3, error="ValueError: bad batch").splitlines()]
    assert failures(read(lines)) == {None: ("ValueError", 3)}
