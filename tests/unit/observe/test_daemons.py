"""What a job leaves running on purpose is told from its ranks and what belongs to them."""

from __future__ import annotations

import pytest

from helpers.observe.daemons import daemons
from helpers.observe.identity import Identity
from helpers.observe.process_table import Row

LAUNCHER, RANK, WORKER, DAEMON, ITS_CHILD, GONE = 10, 20, 21, 30, 31, 40
TRAIN = ("python", "train.py")


def rows() -> dict[int, Row]:
    """A launcher, a rank that it has started in a session, and a daemon that the rank has started."""
    commands = {
        LAUNCHER: (1, ("python", "/env/bin/torchrun", "train.py")),
        RANK: (LAUNCHER, TRAIN),
        WORKER: (RANK, TRAIN),
        DAEMON: (RANK, ("tensorboard",)),
        ITS_CHILD: (DAEMON, ("tensorboard-data-server",)),
    }
    return {
        pid: Row(pid, parent, float(pid), command, look_time=0.0)
        for pid, (parent, command) in commands.items()
    }


def carries(rank: int | None, *, joined: bool = False) -> Identity:
    return Identity(rank=rank, joined=joined)


@pytest.mark.parametrize(
    ("sessions", "identities", "left"),
    [
        pytest.param(
            {DAEMON: DAEMON, ITS_CHILD: DAEMON}, {}, {DAEMON: [DAEMON, ITS_CHILD]}, id="daemon"
        ),
        pytest.param({ITS_CHILD: DAEMON}, {}, {DAEMON: [ITS_CHILD]}, id="its first process has gone"),
        pytest.param(
            {DAEMON: DAEMON},
            {RANK: carries(0, joined=True), DAEMON: carries(0)},
            {DAEMON: [DAEMON]},
            id="has inherited the rank's variables",
        ),
        pytest.param({DAEMON: DAEMON}, {DAEMON: carries(1)}, {}, id="carries a rank of its own"),
        pytest.param({DAEMON: DAEMON}, {DAEMON: carries(None, joined=True)}, {}, id="has joined"),
        pytest.param({RANK: RANK}, {}, {}, id="started by a launcher"),
        pytest.param({WORKER: RANK}, {}, {}, id="in the session of what a launcher has started"),
        pytest.param({GONE: GONE}, {}, {}, id="never seen by a look"),
        pytest.param({DAEMON: DAEMON, GONE: DAEMON}, {}, {}, id="with a process that no look has seen"),
    ],
)
def test_sessions_that_are_left(
    sessions: dict[int, int], identities: dict[int, Identity], left: dict[int, list[int]]
) -> None:
    assert daemons(sessions, rows(), identities) == left
