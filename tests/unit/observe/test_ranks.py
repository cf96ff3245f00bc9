"""Which process is which rank, from tables of processes as launchers make them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import beacon_records
import pytest

from helpers.beacon.record import Record
from helpers.beacon.torch_names import DATALOADER_WORKER as WORKER
from helpers.beacon.torch_names import MP_SPAWN
from helpers.observe.identity import Identity, task
from helpers.observe.look import Look, Program
from helpers.observe.process_table import Row, Table
from helpers.observe.ranks import Roles, assign, launcher_name, tell_ends

TORCHRUN = ("/env/bin/python", "/env/bin/torchrun", "--nproc_per_node=2", "train.py")
TRAIN = ("/env/bin/python", "train.py")
NODE = {
    "MASTER_ADDR": "127.0.0.1",
    "MASTER_PORT": "29500",
    "WORLD_SIZE": "2",
    "LOCAL_WORLD_SIZE": "2",
    "GROUP_WORLD_SIZE": "1",
}


@dataclass
class Seen:
    """One process: what the system and its beacon say of it. Pids grow with the time of start."""

    pid: int
    parent: int = 0
    env: Mapping[str, str] = field(default_factory=dict)
    command: tuple[str, ...] = TRAIN
    joined: tuple[int, int] | None = None
    joining: Mapping[str, Any] | None = None
    target: tuple[str, int] | None = None
    beacon: bool = True
    torch: str = "2.13.0"
    waits: bool = False
    ended: float | None = None

    def record(self) -> Record | None:
        if not self.beacon:
            return None
        call = None
        if self.joining is not None:
            facts = {"key": "env://", **self.joining}
            call = beacon_records.call("rendezvous", "init_process_group", **facts)
        dist = self.joined and {
            "rank": self.joined[0],
            "world_size": self.joined[1],
            "groups": [{"backend": "gloo"}],
        }
        return beacon_records.record(
            beacon_records.thread(call=call, frames=[("/job/train.py", 8, "main", True)]),
            env=dict(self.env),
            process=beacon_records.child(*self.target) if self.target is not None else None,
            dist=dist,
            torch=self.torch,
        )


def identities(processes: list[Seen]) -> dict[int, Identity]:
    found = {}
    for process in processes:
        identity = Identity()
        identity.update(process.record(), process.env)
        found[process.pid] = identity
    return found


def table(processes: list[Seen]) -> Table:
    made = Table()
    for process in processes:
        made.rows[process.pid] = Row(
            process.pid,
            process.parent,
            float(process.pid),
            process.command,
            look_time=0.0,
            first_look=float(process.pid),
            waits_for_child=process.waits,
            ended=process.ended,
        )
    return made


def roles(*processes: Seen) -> Roles:
    seen = list(processes)
    return assign(table(seen), identities(seen))


def of_rank(rank: int, **more: str) -> dict[str, str]:
    """The variables that torchrun gives to a rank."""
    return {**NODE, "RANK": str(rank), "LOCAL_RANK": str(rank), **more}


def test_torchrun() -> None:
    found = roles(
        Seen(10, command=TORCHRUN),
        Seen(11, 10, of_rank(0)),
        Seen(12, 10, of_rank(1)),
    )
    assert found.ranks == {0: 11, 1: 12}
    assert found.launchers == (10,)
    assert not found.children and not found.duplicates


def test_a_rank_without_a_beacon_is_known_by_its_environment() -> None:
    found = roles(Seen(10, command=TORCHRUN), Seen(11, 10, of_rank(0), beacon=False))
    assert found.ranks == {0: 11}


def test_a_helper_of_multiprocessing_is_no_rank_when_it_outlives_the_one_that_started_it() -> None:
    """The clocks by which the two are dated differ by up to a second, so it may seem the older one."""
    tracker = ("python", "-c", "from multiprocessing.resource_tracker import main;main(17)")
    found = roles(
        Seen(10),
        Seen(19, 1, of_rank(0), command=tracker),
        Seen(20, 10, of_rank(0), joined=(0, 2)),
        Seen(21, 10, of_rank(1), joined=(1, 2)),
    )
    assert found.ranks == {0: 20, 1: 21}
    assert found.children == {20: (19,)}
    assert not found.duplicates


def test_a_second_rank_that_the_first_one_starts_is_a_rank() -> None:
    """Fabric's `ddp`: rank 0 is the command itself, and becomes rank 0 only when it launches."""
    main = Seen(10, env={**NODE, "LOCAL_RANK": "0", "NODE_RANK": "0"}, joining={"rank": 0})
    child = Seen(11, 10, env={**NODE, "LOCAL_RANK": "1", "NODE_RANK": "0"}, joining={"rank": 1})
    found = roles(main, child)
    assert found.ranks == {0: 10, 1: 11}
    assert found.launchers == ()
    assert not found.children


def test_the_child_with_another_local_rank_is_a_rank_before_it_joins() -> None:
    main = Seen(10, env={**NODE, "LOCAL_RANK": "0"})
    child = Seen(11, 10, env={**NODE, "LOCAL_RANK": "1"})
    assert roles(main, child).ranks == {0: 10, 1: 11}


def test_before_it_launches_the_command_is_one_process_of_unknown_rank() -> None:
    found = roles(Seen(10), Seen(11, 10, command=("git", "status")))
    assert found.ranks == {-1: 10}
    assert found.children == {10: (11,)}


def test_the_program_below_a_shell_is_the_one_process() -> None:
    found = roles(Seen(10, command=("sh", "run.sh"), beacon=False), Seen(11, 10))
    assert found.ranks == {-1: 11}
    assert found.launchers == (10,)


def test_a_launcher_that_has_not_started_its_ranks_yet_is_no_rank() -> None:
    found = roles(Seen(10, command=TORCHRUN))
    assert not found.ranks
    assert found.launchers == (10,)


def test_mp_spawn() -> None:
    found = roles(
        Seen(10),
        Seen(11, 10, target=(MP_SPAWN, 0)),
        Seen(12, 10, target=(MP_SPAWN, 1)),
        Seen(13, 10, command=("/env/bin/python", "-c", "multiprocessing.resource_tracker")),
    )
    assert found.ranks == {0: 11, 1: 12}
    assert found.launchers == (10, 13)


def test_an_index_of_mp_spawn_gives_way_to_the_rank_that_it_joins_as() -> None:
    found = roles(
        Seen(10), Seen(11, 10, target=(MP_SPAWN, 0), joined=(4, 8)), Seen(12, 10, joined=(5, 8))
    )
    assert found.ranks == {4: 11, 5: 12}


def test_a_worker_that_inherits_its_ranks_variables_is_a_child() -> None:
    found = roles(
        Seen(10, command=TORCHRUN),
        Seen(11, 10, of_rank(0), joined=(0, 2)),
        Seen(12, 10, of_rank(1), joined=(1, 2)),
        Seen(13, 11, of_rank(0), target=(WORKER, 0)),
        Seen(14, 12, of_rank(1), target=(WORKER, 0)),
    )
    assert found.ranks == {0: 11, 1: 12}
    assert found.children == {11: (13,), 12: (14,)}
    assert not found.duplicates


@pytest.mark.parametrize("facts", [{"joined": (0, 2)}, {"joining": {"rank": 0}}])
def test_a_worker_that_joins_as_its_rank_is_a_duplicate(facts: Any) -> None:
    found = roles(
        Seen(10, command=TORCHRUN),
        Seen(11, 10, of_rank(0), joined=(0, 2)),
        Seen(13, 11, of_rank(0), target=(WORKER, 0), **facts),
    )
    assert found.ranks == {0: 11}
    assert found.children == {11: (13,)}
    assert found.duplicates == {13: 0}


def test_a_program_that_a_worker_starts_is_a_child_of_the_rank() -> None:
    found = roles(
        Seen(11, env=of_rank(0), joined=(0, 2)),
        Seen(13, 11, of_rank(0)),
        Seen(15, 13, of_rank(0), command=("ninja",), beacon=False),
    )
    assert found.children == {11: (13, 15)}


def test_a_restart_replaces_the_ranks_of_the_attempt_before() -> None:
    again = {"TORCHELASTIC_RESTART_COUNT": "1"}
    found = roles(
        Seen(10, command=TORCHRUN),
        Seen(11, 10, of_rank(0, TORCHELASTIC_RESTART_COUNT="0")),
        Seen(12, 10, of_rank(1, TORCHELASTIC_RESTART_COUNT="0")),
        Seen(21, 10, of_rank(0, **again)),
        Seen(22, 10, of_rank(1, **again)),
    )
    assert found.ranks == {0: 21, 1: 22}
    assert 11 not in found.launchers and 12 not in found.launchers


def test_the_children_of_an_attempt_before_are_no_children_of_the_new_one() -> None:
    found = roles(
        Seen(10, command=TORCHRUN),
        Seen(11, 10, of_rank(0, TORCHELASTIC_RESTART_COUNT="0")),
        Seen(12, 11, of_rank(0, TORCHELASTIC_RESTART_COUNT="0"), target=(WORKER, 0)),
        Seen(21, 10, of_rank(0, TORCHELASTIC_RESTART_COUNT="1")),
    )
    assert found.ranks == {0: 21}
    assert not found.children


@pytest.mark.parametrize(("done", "left"), [(None, 3), ("1", 2), ("3", 0), ("4", 0)])
def test_how_often_a_launcher_may_start_again(done: str | None, left: int) -> None:
    identity = Identity()
    count = {} if done is None else {"TORCHELASTIC_RESTART_COUNT": done}
    identity.update(None, of_rank(0, TORCHELASTIC_MAX_RESTARTS="3", **count))
    assert identity.restarts == left


def test_a_job_after_another_one_takes_its_ranks() -> None:
    processes = [
        Seen(10, env=of_rank(0), joined=(0, 2)),
        Seen(11, env=of_rank(1), joined=(1, 2)),
        Seen(12, env=of_rank(2), joined=(2, 3)),
        Seen(20, env=of_rank(0), joined=(0, 2)),
        Seen(21, env=of_rank(1), joined=(1, 2)),
    ]
    made = table(processes)
    for row in made.rows.values():
        row.first_look, row.ended = float(row.pid), (15.0 if row.pid < 20 else None)
    found = assign(made, identities(processes))
    assert found.ranks == {0: 20, 1: 21} and not found.duplicates


def test_a_job_beside_another_one_has_a_store_of_its_own() -> None:
    other = of_rank(0, MASTER_PORT="29600")
    found = roles(Seen(10, env=of_rank(0), joined=(0, 2)), Seen(11, env=other, joined=(0, 2)))
    assert (found.ranks, found.launchers, found.duplicates) == ({0: 10}, (11,), {})


def test_a_job_inside_a_rank_is_a_matter_of_that_rank() -> None:
    inside = {"MASTER_PORT": "29600", "WORLD_SIZE": "4"}
    found = roles(
        Seen(10, env=of_rank(0), joined=(0, 2)),
        Seen(11, env=of_rank(1), joined=(1, 2)),
        Seen(12, 10, of_rank(0), command=TORCHRUN),
        *(Seen(13 + n, 12, of_rank(n, **inside), joined=(n, 4)) for n in range(4)),
    )
    assert (found.ranks, found.duplicates) == ({0: 10, 1: 11}, {})
    assert found.children == {10: (12, 13, 14, 15, 16)}


def test_of_two_unrelated_processes_with_one_rank_the_first_has_it() -> None:
    found = roles(
        Seen(10, command=("sh", "run.sh"), beacon=False),
        Seen(11, 10, of_rank(0), joined=(0, 2)),
        Seen(12, 10, of_rank(0), joining={"rank": 0}),
    )
    assert found.ranks == {0: 11}
    assert found.children == {11: (12,)}
    assert found.duplicates == {12: 0}


def test_an_unrelated_process_with_a_taken_rank_that_does_not_join_is_no_duplicate() -> None:
    found = roles(
        Seen(10, command=("sh", "run.sh"), beacon=False),
        Seen(11, 10, of_rank(0), joined=(0, 2)),
        Seen(12, 10, of_rank(0)),
    )
    assert not found.duplicates


# Wrappers


SHELL = ("bash", "-c", "python train.py; exit $?")


def shell(pid: int, rank: int = 0, **facts: Any) -> Seen:
    return Seen(pid, 10, of_rank(rank), command=SHELL, beacon=False, waits=True, **facts)


@pytest.mark.parametrize("facts", [{}, {"joined": (0, 2)}, {"joining": {"rank": 0}}])
def test_a_shell_around_the_trainer_is_its_wrapper(facts: Any) -> None:
    found = roles(Seen(10, command=TORCHRUN), shell(11), Seen(12, 11, of_rank(0), **facts))
    assert (found.ranks, found.launchers, found.wrappers) == ({0: 12}, (10, 11), {11: 0})
    assert not found.children and not found.duplicates


@pytest.mark.parametrize("facts", [{"joined": (0, 2)}, {"joining": {"rank": 0}}])
def test_a_program_that_has_not_joined_hands_its_rank_to_the_one_below_that_has(facts: Any) -> None:
    """Whether it waits for it or polls; a program of its own or a fork; and through a shell."""
    found = roles(
        Seen(10, command=TORCHRUN),
        Seen(11, 10, of_rank(0)),
        Seen(12, 11, of_rank(0), command=SHELL, beacon=False),
        Seen(13, 12, of_rank(0), **facts),
        Seen(14, 13, of_rank(0), target=(WORKER, 0)),
    )
    assert (found.ranks, found.wrappers) == ({0: 13}, {11: 0, 12: 0})
    assert (found.children, found.duplicates) == ({13: (14,)}, {})


def test_a_program_that_only_waits_for_another_hands_its_rank_down_before_that_one_joins() -> None:
    waiting = Seen(11, env=of_rank(0), waits=True)
    assert roles(waiting, Seen(12, 11, of_rank(0))).ranks == {0: 12}
    compiler = Seen(13, 11, of_rank(0), command=("gcc",), beacon=False)
    assert roles(waiting, Seen(12, 11, of_rank(0)), compiler).ranks == {0: 11}
    assert roles(waiting, compiler).ranks == {0: 11}
    waiting.waits = False
    assert roles(waiting, Seen(12, 11, of_rank(0))).ranks == {0: 11}
    waiting.torch = ""
    assert roles(waiting, Seen(12, 11, of_rank(0))).ranks == {0: 12}
    assert roles(waiting, compiler).ranks == {0: 11}


def test_between_two_programs_the_shell_is_the_rank() -> None:
    begun = [Seen(10, command=TORCHRUN), shell(11), Seen(12, 11, of_rank(0), ended=13.0)]
    assert roles(*begun).ranks == {0: 11}
    pipe = Seen(14, 11, of_rank(0), command=("tee", "log"), beacon=False)
    found = roles(*begun, pipe, Seen(15, 11, of_rank(0)))
    assert (found.ranks, found.launchers) == ({0: 15}, (10, 11, 12, 14))
    assert not found.children


def test_other_ranks_that_have_ended_stay_when_a_shell_goes_on_to_its_next_program() -> None:
    found = roles(
        Seen(10, command=TORCHRUN),
        shell(11),
        Seen(12, 10, of_rank(1), ended=14.0),
        Seen(13, 11, of_rank(0), ended=14.0),
        Seen(15, 11, of_rank(0)),
    )
    assert found.ranks == {0: 15, 1: 12}


def test_of_two_programs_of_a_shell_the_one_that_joins_is_the_rank() -> None:
    both = [shell(11), Seen(12, 11, of_rank(0)), Seen(13, 11, of_rank(0))]
    assert roles(*both).ranks == {0: 11}
    both[2].joined = (0, 2)
    assert (roles(*both).ranks, roles(*both).duplicates) == ({0: 13}, {})
    both[1].joined = (0, 2)
    found = roles(*both)
    assert (found.ranks, found.children, found.duplicates) == ({0: 12}, {12: (13,)}, {13: 0})


def test_a_worker_that_joins_below_a_wrapped_rank_is_a_duplicate() -> None:
    found = roles(
        shell(11),
        Seen(12, 11, of_rank(0), joined=(0, 2)),
        Seen(13, 12, of_rank(0), target=(WORKER, 0), joined=(0, 2)),
    )
    assert (found.ranks, found.children, found.duplicates) == ({0: 12}, {12: (13,)}, {13: 0})


def test_when_shell_and_program_have_ended_the_program_tells_how() -> None:
    found = roles(shell(11, ended=20.0), Seen(12, 11, of_rank(0), ended=19.5))
    assert (found.ranks, found.wrappers) == ({0: 12}, {11: 0})


STATUSES = [
    ("a signal", 139 << 8, 0.2, 11),
    ("an exit code", 3 << 8, 0.2, 3 << 8),
    ("success", 0, 0.2, 0),
    ("the shell did more", 3 << 8, 5.0, None),
    ("the shell was killed", 9, 0.2, None),
]


@pytest.mark.parametrize(
    ("status", "later", "told"), [r[1:] for r in STATUSES], ids=[r[0] for r in STATUSES]
)
def test_a_shell_ends_as_its_last_program(status: int, later: float, told: int | None) -> None:
    processes = [shell(11, ended=20.0 + later), Seen(12, 11, of_rank(0), joined=(0, 2), ended=20.0)]
    made = table(processes)
    made.rows[11].status = status
    tell_ends(made, assign(made, identities(processes)))
    assert made.rows[12].status == told


def test_ranks_that_a_wrapper_starts_at_a_port_of_its_own_are_ranks() -> None:
    found = roles(
        *(shell(11 + n, n) for n in range(2)),
        *(Seen(21 + n, 11 + n, of_rank(n, MASTER_PORT="29600"), joined=(n, 2)) for n in range(2)),
    )
    assert (found.ranks, found.wrappers) == ({0: 21, 1: 22}, {11: 0, 12: 1})


def test_a_job_that_a_wrapper_starts_below_each_rank_is_a_matter_of_that_rank() -> None:
    inside = {"MASTER_PORT": "29600"}
    found = roles(
        Seen(10, command=TORCHRUN),
        shell(11, 0),
        shell(12, 1),
        Seen(13, 11, of_rank(0), command=TORCHRUN),
        *(Seen(14 + n, 13, of_rank(n, **inside), joined=(n, 2)) for n in range(2)),
    )
    assert (found.ranks, found.duplicates) == ({0: 11, 1: 12}, {})
    assert found.children == {11: (13, 14, 15)}


def test_a_launcher_and_a_shell_around_it_are_no_rank_though_they_carry_a_number() -> None:
    """The number of their node, as a scheduler's operator sets it; also after a restart of all ranks."""
    node = {"RANK": "0", "MASTER_PORT": "29500", "WORLD_SIZE": "1"}
    again = {"TORCHELASTIC_RESTART_COUNT": "1"}
    found = roles(
        Seen(9, env=node, command=("bash", "run.sh"), beacon=False),
        Seen(10, 9, node, command=TORCHRUN),
        Seen(11, 10, of_rank(0, **again)),
        Seen(12, 10, of_rank(1, **again)),
    )
    assert (found.ranks, found.launchers, found.wrappers) == ({0: 11, 1: 12}, (9, 10), {})


def test_a_program_that_has_left_before_the_one_below_it_joins_is_its_wrapper() -> None:
    """Two that have never been members at the same time are no doubles."""
    first, second = Seen(11, env=of_rank(0), joined=(0, 2)), Seen(12, 11, of_rank(0))
    made = table([first, second])
    known = {11: Identity(), 12: Identity()}

    def look(now: float) -> Roles:
        for seen in (first, second):
            known[seen.pid].update(seen.record(), seen.env, now)
        return assign(made, known)

    assert look(1.0).ranks == {0: 11}
    first.joined = None
    assert look(2.0).ranks == {0: 11}
    second.joined = (0, 2)
    assert (look(3.0).ranks, look(3.0).duplicates) == ({0: 12}, {})
    second.joined = None
    assert look(4.0).ranks == {0: 12}
    first.joined = (0, 2)
    assert (look(5.0).ranks, look(5.0).duplicates) == ({0: 11}, {})


def test_a_double_that_is_seen_when_its_rank_has_ended_is_a_double() -> None:
    """As one that joins and leaves while its rank fails, within one look."""
    rank, worker = Seen(11, env=of_rank(0), joined=(0, 2)), Seen(12, 11, of_rank(0))
    made = table([rank, worker])
    known = {11: Identity(), 12: Identity()}
    called = {**(worker.record() or {}), "joining": [("/job/train.py", 8, "main", True)]}
    for now, alive, record in ((1.0, True, worker.record()), (2.0, False, called)):
        known[11].update(rank.record(), rank.env, now, alive=alive)
        known[12].update(record, worker.env, now, alive=alive)
    found = assign(made, known)
    assert (found.ranks, found.duplicates) == ({0: 11}, {12: 0})


# Identity


def identity(env: Mapping[str, str] | None = None, **facts: Any) -> Identity:
    (found,) = identities([Seen(1, env=env or {}, **facts)]).values()
    return found


def test_a_process_group_knows_best() -> None:
    found = identity(of_rank(0), joined=(3, 4))
    assert (found.rank, found.world_size, found.joined, found.backends) == (3, 4, True, ("gloo",))


def test_a_rank_stays_what_it_was_when_its_group_is_destroyed() -> None:
    process = Seen(1, env={"LOCAL_RANK": "0"}, joined=(3, 4))
    found = Identity()
    found.update(process.record(), {})
    process.joined = None
    found.update(process.record(), {})
    assert (found.rank, found.joined) == (3, True)


def test_variables_may_come_later() -> None:
    found = Identity()
    found.update(Seen(1).record(), {})
    assert found == Identity(loaded=True)
    found.update(Seen(1, env={"LOCAL_RANK": "0", "MASTER_PORT": "29500"}).record(), {})
    assert (found.rank, found.local_rank, found.master) == (0, 0, "localhost:29500")


def test_where_init_process_group_was_called_from() -> None:
    found = identity(of_rank(1), joining={"rank": 1, "world_size": 2})
    assert found.member and not found.joined
    assert found.joined_from[0][:2] == ("/job/train.py", 8)


CALLED = [
    ("it has joined and left between two looks", [{}], False, True),
    ("it has failed between two looks", [{"error": {"type": "ValueError"}}], False, False),
    (
        "it was seen there, and has failed",
        [{"in": True}, {"error": {"type": "ValueError"}}],
        False,
        False,
    ),
    ("it was seen there, and goes on without a group", [{"in": True}, {}], True, False),
    ("it is there", [{"in": True}], True, True),
    ("it has a group, and fails later", [{"dist": True}, {"error": {"type": "KeyError"}}], False, True),
]


@pytest.mark.parametrize(
    ("looks", "alive", "member"), [row[1:] for row in CALLED], ids=[row[0] for row in CALLED]
)
def test_who_has_been_a_member(looks: list[Record], alive: bool, member: bool) -> None:
    found = Identity()
    for number, facts in enumerate(looks):
        inside = {"rank": 0} if facts.get("in") else None
        seen = Seen(1, joining=inside, joined=(0, 2) if facts.get("dist") else None)
        record = {**(seen.record() or {}), "joining": [("/job/train.py", 8, "main", True)]}
        last = number == len(looks) - 1
        found.update({**record, "error": facts.get("error")}, {}, 5.0 + number, alive=alive or not last)
    assert (found.since is not None) is member


@pytest.mark.parametrize("text", ["", "zero", "0.5", "-"])
def test_a_rank_that_is_no_number_is_none(text: str) -> None:
    assert identity({"RANK": text, "LOCAL_RANK": text}).rank is None


METHODS = [
    ({"key": "tcp://127.0.0.1:4567"}, "127.0.0.1:4567", True),
    ({"key": "tcp://[::1]:4567?rank=0"}, "[::1]:4567", True),
    ({"key": "tcp://node7:4567"}, "node7:4567", False),
    ({"key": "file:///tmp/store"}, None, True),
    ({"key": "env://"}, None, True),
]


@pytest.mark.parametrize(("joining", "master", "single"), METHODS)
def test_the_address_of_the_store(joining: Any, master: str | None, single: bool) -> None:
    found = identity(joining=joining)
    assert (found.master, found.single_node) == (master, single)


NODES = [
    ("torchrun on one node", of_rank(0), True),
    ("torchrun on two nodes", of_rank(0, GROUP_WORLD_SIZE="2", WORLD_SIZE="4"), False),
    ("fewer local ranks than ranks", {"LOCAL_WORLD_SIZE": "2", "WORLD_SIZE": "4"}, False),
    ("as many local ranks as ranks", {"LOCAL_WORLD_SIZE": "4", "WORLD_SIZE": "4"}, True),
    ("a store elsewhere", {"MASTER_ADDR": "node7", "MASTER_PORT": "1", "RANK": "0"}, False),
    ("a store here", {"MASTER_ADDR": "localhost", "MASTER_PORT": "1", "RANK": "0"}, True),
    ("nothing is said", {}, True),
]


@pytest.mark.parametrize(("env", "single"), [r[1:] for r in NODES], ids=[r[0] for r in NODES])
def test_whether_all_ranks_must_be_on_this_machine(env: Mapping[str, str], single: bool) -> None:
    assert identity(env).single_node is single


STARTED = [
    ("of srun", {"SLURM_STEP_ID": "0", "SLURM_PROCID": "3", "SLURM_NTASKS": "4"}, (3, 4)),
    ("the only one of srun", {"SLURM_STEP_ID": "0", "SLURM_PROCID": "0", "SLURM_NTASKS": "1"}, None),
    ("a batch script of Slurm's", {"SLURM_PROCID": "0", "SLURM_NTASKS": "4"}, None),
    ("of mpirun", {"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2"}, (1, 2)),
    ("of another mpiexec", {"PMI_RANK": "0", "PMI_SIZE": "2"}, (0, 2)),
    ("variables left over in a shell", {"RANK": "0", "WORLD_SIZE": "2"}, None),
    ("damage", {"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "two"}, None),
]


@pytest.mark.parametrize(("env", "found"), [r[1:] for r in STARTED], ids=[r[0] for r in STARTED])
def test_the_number_of_a_task(env: Mapping[str, str], found: tuple[int, int] | None) -> None:
    assert task(env) == found


def test_the_number_of_the_node() -> None:
    assert identity({"GROUP_RANK": "1"}).node == 1
    assert identity({"NODE_RANK": "2"}).node == 2
    assert identity().node == 0


# Launchers


COMMANDS = [
    (TORCHRUN, "torchrun"),
    (("torchrun", "train.py"), "torchrun"),
    (("/env/bin/python", "-m", "torch.distributed.run", "train.py"), "torchrun"),
    (("/env/bin/python", "-m", "torch.distributed.launch", "train.py"), "torchrun"),
    (("/env/bin/python", "/env/bin/accelerate", "launch", "train.py"), "accelerate"),
    (("/env/bin/python", "-m", "accelerate.commands.launch", "train.py"), "accelerate"),
    (("/env/bin/python", "/env/bin/deepspeed", "train.py"), "deepspeed"),
    (("/env/bin/python", "-um", "torch.distributed.run", "train.py"), "torchrun"),
    (("/env/bin/python", "-X", "dev", "-Wignore", "-mtorch.distributed.run", "t.py"), "torchrun"),
    (("srun", "--mpi=none", "torchrun", "train.py"), "torchrun"),
    (("sh", "-c", "cd work && torchrun train.py"), "torchrun"),
    (("sh", "run.sh"), "python"),
    (("/env/bin/python", "train.py", "deepspeed"), "python"),
    (("/env/bin/python", "-W", "torchrun", "train.py"), "python"),
    (("/env/bin/python", "-um", "train", "accelerate"), "python"),
]


@pytest.mark.parametrize(("command", "name"), COMMANDS)
def test_the_name_of_the_launcher(command: tuple[str, ...], name: str) -> None:
    processes = [Seen(10, command=command), Seen(11, 10, of_rank(0))]
    made = table(processes)
    assert launcher_name(made, assign(made, identities(processes)), {}) == name


@pytest.mark.parametrize("word", ["deepspeed", "accelerate", "bin/torchrun"])
def test_a_rank_whose_argument_is_the_name_of_a_launcher(word: str) -> None:
    command = ("/env/bin/python", "-u", "train.py", word)
    ranks = [Seen(11 + rank, 10, of_rank(rank), command=command) for rank in (0, 1)]
    below = Seen(13, 11, of_rank(0), command=("/env/bin/python", "-c", "import torch"))
    processes = [Seen(10, command=TORCHRUN), *ranks, below]
    roles = assign(table(processes), identities(processes))
    assert roles.ranks == {0: 11, 1: 12}
    assert roles.children == {11: (13,)}
    assert roles.launchers == (10,)


def test_a_program_that_spawns_its_ranks() -> None:
    processes = [Seen(10), Seen(11, 10, target=(MP_SPAWN, 0))]
    made = table(processes)
    records = {10: beacon_records.record(spawned={11: 0})}
    assert launcher_name(made, assign(made, identities(processes)), records) == "mp.spawn"


def test_a_rank_that_starts_the_others_is_no_launcher() -> None:
    processes = [Seen(10, env={"LOCAL_RANK": "0"}), Seen(11, 10, {"LOCAL_RANK": "1"})]
    made = table(processes)
    assert launcher_name(made, assign(made, identities(processes)), {}) == "python"


@pytest.mark.parametrize(
    ("found", "wanted"), [(1.0, {12: 0}), (2.0, {})], ids=["below the rank all along", "started since"]
)
def test_a_double_that_is_seen_when_its_rank_has_left_is_a_double(
    found: float, wanted: dict[int, int]
) -> None:
    """As one that joins just before its rank, which goes on, leaves the group: within one look."""
    rank, worker = Seen(11, env=of_rank(0), joined=(0, 2)), Seen(12, 11, of_rank(0))
    made = table([rank, worker])
    made.rows[12].first_look = found
    known = {11: Identity(), 12: Identity()}
    for now, of_first, of_second in ((1.0, (0, 2), None), (2.0, None, (0, 2))):
        rank.joined, worker.joined = of_first, of_second
        for seen in (rank, worker):
            known[seen.pid].update(seen.record(), seen.env, now)
    assert assign(made, known).duplicates == wanted


SERVER = ("/env/bin/python", "-c", "from multiprocessing.forkserver import main; main(1, 2, [])")
TRACKER = ("/env/bin/python", "-c", "from multiprocessing.resource_tracker import main; main(1)")


def test_what_a_fork_server_forks_is_no_helper() -> None:
    """It bears the command line of the server, and may be a rank."""
    made = Table()

    def take(time: float, *programs: tuple[int, int, tuple[str, ...]]) -> None:
        made.take(
            Look(time, programs=tuple(Program(p, 0, up, 0.0, words) for p, up, words in programs)), {}
        )

    take(1.0, (10, 1, TRAIN), (11, 10, TRAIN), (12, 10, TRAIN))
    take(2.0, (13, 11, SERVER), (11, 10, SERVER), (12, 10, TRACKER))
    helpers = {pid for pid, row in made.rows.items() if row.is_helper}
    assert helpers == {11, 12}, "before it runs its own program, a process has that of its parent"


KERNEL = ("/env/bin/python", "-m", "ipykernel_launcher", "-f", "/tmp/kernel.json")
NBCONVERT = ("/env/bin/python", "/env/bin/jupyter-nbconvert", "--execute", "train.ipynb")


def test_a_notebook_is_run_by_its_kernel() -> None:
    found = roles(Seen(10, command=NBCONVERT), Seen(11, 10, command=KERNEL), Seen(12, 11))
    assert found.ranks == {-1: 11}
    assert found.launchers == (10,)
    assert found.children == {11: (12,)}


def test_until_a_kernel_runs_what_starts_it_is_the_program() -> None:
    assert roles(Seen(10, command=NBCONVERT)).ranks == {-1: 10}
    assert roles(Seen(10, command=NBCONVERT), Seen(11, 10, command=KERNEL, ended=20.0)).ranks == {-1: 10}


def test_in_the_end_it_was_the_kernel() -> None:
    seen = [Seen(10, command=NBCONVERT, ended=21.0), Seen(11, 10, command=KERNEL, ended=20.0)]
    assert assign(table(seen), identities(seen), ended=True).ranks == {-1: 11}
