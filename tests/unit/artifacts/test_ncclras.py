"""What `ncclras` prints, in the layout of NCCL 2.26 to 2.30."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from helpers.artifacts import ncclras
from helpers.artifacts.files import Budget
from helpers.artifacts.reading import content_of

HEAD = """\
NCCL version 2.26.2 compiled with CUDA 12.6
CUDA runtime version 12060, driver version 12060

Job summary
===========

  Nodes  Processes         GPUs  Processes     GPUs
(total)   per node  per process    (total)  (total)
      4          8            1         32       32

Communicators... (0.00s)
=============

Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors
    #  in group  per comm  per node  per comm  in group
    0         1         4         8        32        32   RUNNING  {errors}

Errors
======

"""
WRONG = """\
DEAD
  1 job process is considered dead (unreachable via the RAS network)
  Process 2343 on node 10.0.0.2 managing GPU 4

#0-0 (fa93daea854b060b) INCOMPLETE
  Missing communicator data from 1 rank
  Rank 12 -- GPU 4 managed by process 2343 on node 10.0.0.2

Warnings
========

#0-0 (fa93daea854b060b) MISMATCH
  Communicator ranks have different AllGather operation counts
  30 ranks have launched up to operation 640
  Rank 12 has launched up to operation 641 -- GPU 4 managed by process 2343 on node 10.0.0.2
"""
FINE = [{"rank": rank, "collective_counts": {"AllReduce": 9, "Broadcast": 1}} for rank in range(4)]
LATE = {"rank": 3, "collective_counts": {"AllReduce": 8, "Broadcast": 1}}


def warned(folder: Path, text: str) -> tuple[str, ...]:
    file = folder / "ras.txt"
    file.write_text(text)
    (account,) = content_of(file, Budget()).accounts
    assert account.kind == ncclras.KIND
    return account.warned


def test_what_its_text_says_is_wrong_is_kept(tmp_path: Path) -> None:
    dead, incomplete, mismatch = warned(tmp_path, HEAD.format(errors="INCOMPLETE,MISMATCH") + WRONG)
    assert dead.startswith("ncclras: DEAD: 1 job process is considered dead")
    assert "INCOMPLETE: Missing communicator data from 1 rank; Rank 12 -- GPU 4" in incomplete
    assert "MISMATCH: Communicator ranks have different AllGather operation counts; 30 ranks" in mismatch


def test_a_job_with_nothing_wrong_is_recognised(tmp_path: Path) -> None:
    assert warned(tmp_path, HEAD.format(errors="OK")) == ()


@pytest.mark.parametrize(
    ("communicator", "says"),
    [
        ({"ranks": FINE}, ()),
        (
            {"ranks": [*FINE[:3], LATE]},
            (
                "ncclras: communicator 0x5: AllReduce was launched 8 times by rank 3, 9 times by "
                "ranks 0-2 of it",
            ),
        ),
        (
            {"ranks": FINE[:3], "missing_ranks": [{"rank": 3, "host": "n0"}]},
            ("ncclras: communicator 0x5: nothing is known of its rank 3",),
        ),
    ],
    ids=["all alike", "one is behind", "one is missing"],
)
def test_what_its_json_shows(
    tmp_path: Path, communicator: dict[str, object], says: tuple[str, ...]
) -> None:
    told = {"nccl_version": "2.28.7", "communicators": [{"hash": "0x5", **communicator}]}
    assert warned(tmp_path, json.dumps(told)) == says


def test_json_that_nccl_does_not_write_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "ras.json"
    file.write_text(
        json.dumps({"nccl_version": "2.28.7", "communicators": [{"hash": "0x5", "ranks": 7}]})
    )
    assert content_of(file, Budget()).damaged.startswith("it is not as ncclras writes it")
