"""What a job on several machines shows of its network: stores, interfaces, ends that do not answer."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
from histories import in_collective, joining, rank, snapshot
from msgspec.structs import replace

from helpers.diagnose.diagnose import diagnose
from helpers.diagnose.fixes import fitting
from helpers.diagnose.pages import page
from helpers.model.facts import ErrorView, Job, Port, ProcessView, RankView, Snapshot, Verdict
from helpers.model.frames import Frame
from helpers.model.network import Interface, Rendezvous, StoreView

REFUSED = (
    "Gloo connectFullMesh failed with [gloo/transport/tcp/pair.cc:152] timed out connecting: SO_ERROR: "
    "Connection refused, remote=[{}]:8618$0"
)
BY_NCCL = "NCCL error: ncclSystemError. Last error:\nsocketStartConnect: Connect to {}<41403> failed : x"
NOT_THERE = "[enforce fail at gloo/transport/tcp/device.cc:84] Unable to find address for: eth9"
COMMAND = ("torchrun", "train.py")
CONNECTS = (Frame("train.py", 6, "main", user=True),)
ADDRESSES = (
    Interface("n0", "lo", "127.0.0.1"),
    Interface("n0", "eth0", "10.0.0.1"),
    Interface("n0", "docker0", "172.17.0.1"),
    Interface("n1", "lo", "127.0.0.1"),
    Interface("n1", "eth0", "10.0.0.2"),
    Interface("n1", "docker0", "172.17.0.1"),
)


def here(
    number: int, host: str, *, says: str = "", interface: str = "", listens: str = "", silent: str = ""
) -> RankView:
    """A rank that waits in the rendezvous, or has failed there."""
    error = ErrorView("RuntimeError", says, CONNECTS, time=5.0) if says else None
    ended = {"ended": 5.0, "exit_code": 1, "state": "exited", "waits": ()} if says else {}
    view = rank(number, joining(), at="train.py:6 main", still=40.0, idle=40.0)
    assert view.process is not None
    process = replace(
        view.process,
        error=error,
        ports=(Port(listens, 4242, "gloo"),) if listens else (),
        unanswered=(silent,) if silent else (),
        **ended,  # type: ignore[arg-type]
    )
    state = "exited" if says else view.state
    return replace(view, process=process, state=state, host=host, interface=interface)


def unseen(number: int) -> RankView:
    return RankView(number, state="unseen")


def judged(
    ranks: Sequence[RankView], stores: Sequence[StoreView] = (), *, patience: float = 30.0
) -> tuple[Verdict, Snapshot]:
    """The last verdict on a job on two machines."""
    hosts = {view.host for view in ranks}
    job = Job(
        ("torchrun", "train.py"), "torchrun", len(ranks), single_node=False, master="10.0.0.1:29500"
    )
    known = tuple(one for one in ADDRESSES if one.host in hosts)
    newest = Snapshot(60.0, job, tuple(ranks), stores=tuple(stores), interfaces=known)
    history = [replace(newest, time=newest.time - 1.0), newest]
    return diagnose(history, patience=patience, final=True), newest


LO, DOCKER = "GLOO_SOCKET_IFNAME=lo", "GLOO_SOCKET_IFNAME=docker0"
WRONG = [
    (
        "loopback, seen from the other machine",
        [here(0, "n0", says=REFUSED.format("127.0.0.1")), unseen(1)],
        (),
        ("A rank on another machine has given the others 127.0.0.1", "reaches no other machine"),
    ),
    (
        "loopback, all seen",
        [here(0, "n0", says=REFUSED.format("127.0.0.1")), here(1, "n1", interface=LO)],
        (1,),
        ("Rank 1 (host n1) has given the others 127.0.0.1 to connect to (GLOO_SOCKET_IFNAME=lo)",),
    ),
    (
        "a host name that stands for a loopback address",
        [here(0, "n0", says=REFUSED.format("127.0.1.1")), here(1, "n1", listens="127.0.1.1")],
        (1,),
        ("Rank 1 (host n1) has given the others 127.0.1.1",),
    ),
    (
        "an address that both machines have, seen from one",
        [here(0, "n0", says=REFUSED.format("172.17.0.1"), interface=DOCKER), unseen(1)],
        (0,),
        ("Rank 0 (host n0) has given the others 172.17.0.1", "several machines have (docker0)"),
    ),
    (
        "an address that both machines have, all seen",
        [
            here(0, "n0", says=REFUSED.format("172.17.0.1"), interface=DOCKER),
            here(1, "n1", interface=DOCKER),
        ],
        (0, 1),
        ("Ranks 0 and 1 (hosts n0, n1) have given the others 172.17.0.1", "so rank 0 could not connect"),
    ),
    (
        "after another rank has told of what follows from it",
        [
            here(0, "n0", says="connectFullMesh failed with: Connection closed by peer [10.0.0.1]:7"),
            here(1, "n0", says=REFUSED.format("127.0.0.1")),
            here(2, "n1", interface=LO),
        ],
        (2,),
        ("Rank 2 (host n1) has given the others 127.0.0.1", "so ranks 0 and 1 could not connect"),
    ),
    (
        "in NCCL's words",
        [here(0, "n0", says=BY_NCCL.format("127.0.0.1")), unseen(1)],
        (),
        ("has given the others 127.0.0.1",),
    ),
    (
        "an interface that is not there",
        [here(0, "n0"), here(1, "n1", says=NOT_THERE, interface="GLOO_SOCKET_IFNAME=eth9")],
        (1,),
        ("(GLOO_SOCKET_IFNAME=eth9) names a network interface that rank 1 (host n1) does not have",),
    ),
    (
        "an interface that is not there, for all that start with it",
        [
            here(0, "n0", interface="GLOO_SOCKET_IFNAME=eth9"),
            here(1, "n1", interface="GLOO_SOCKET_IFNAME=eth9"),
            here(2, "n1", says=NOT_THERE, interface="GLOO_SOCKET_IFNAME=eth9"),
        ],
        (1, 2),
        ("a network interface that ranks 1 and 2 (host n1) do not have, so they cannot join",),
    ),
]


@pytest.mark.parametrize(
    ("ranks", "culprits", "says"),
    [row[1:] for row in WRONG],
    ids=[r[0] for r in WRONG],
)
def test_the_wrong_interface_is_named(
    ranks: list[RankView], culprits: tuple[int, ...], says: tuple[str, ...]
) -> None:
    verdict, newest = judged(ranks)
    assert (verdict.outcome, verdict.cause) == ("error", "rendezvous-incomplete")
    assert verdict.detail.startswith("wrong network interface: ")
    assert verdict.culprits == culprits
    for part in says:
        assert part in verdict.summary
    fits = fitting(page(verdict.cause).fixes, verdict, newest)
    assert [("GLOO_SOCKET_IFNAME" in one.advice) for one in fits] == [True]


FOLLOWS = [
    "[Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=12, OpType=ALLREDUCE, "
    "NumelIn=4, NumelOut=4, Timeout(ms)=600000) ran for 600010 milliseconds before timing out.",
    "[gloo/transport/tcp/pair.cc:553] Connection closed by peer [10.0.0.2]:10667",
    "[gloo/transport/tcp/unbound_buffer.cc:78] Timed out waiting 1800000ms for recv operation",
    "NCCL error: ncclRemoteError: A call failed possibly due to a network error or a remote process "
    "exiting prematurely.",
]


@pytest.mark.parametrize("says", FOLLOWS)
def test_what_follows_from_a_rank_out_of_sight_blames_nobody_here(says: str) -> None:
    verdict, _ = judged([here(0, "n0", says=says), unseen(1)])
    assert (verdict.outcome, verdict.cause, verdict.culprits) == ("error", "unknown", ())
    assert "stuck-ranks read FOLDER" in verdict.summary
    assert ("10.0.0.2" in verdict.detail) is ("10.0.0.2" in says)


def test_a_refusal_where_the_store_is_has_another_reason_than_the_interface() -> None:
    alone, _ = judged([here(0, "n0", says=REFUSED.format("10.0.0.1")), unseen(1)])
    assert (alone.cause, alone.culprits) == ("unknown", ())


def test_a_refusal_at_an_address_of_its_own_is_not_blamed_on_the_interface() -> None:
    alone, _ = judged([here(0, "n0", says=REFUSED.format("10.0.0.2")), unseen(1)])
    assert (alone.outcome, alone.cause, alone.culprits) == ("error", "unknown", ())
    assert "10.0.0.2" in alone.detail
    failed = here(1, "n1", says="no such file")
    together, _ = judged([here(0, "n0", says=REFUSED.format("10.0.0.2")), failed])
    assert (together.cause, together.culprits) == ("error", (1,))


STORE = StoreView("10.0.0.1:29500", "n1", ranks=(0, 1))


@pytest.mark.parametrize(
    ("first", "stores", "culprits"),
    [
        (unseen(0), [STORE], ()),
        (unseen(0), [], ()),
        (unseen(0), [replace(STORE, ranks=(1,))], ()),
        (here(0, "n0", listens="10.9.0.1"), [STORE], (0,)),
    ],
    ids=["alone", "before the store was looked at", "before the store was looked at again", "all"],
)
def test_ranks_that_get_no_answer_from_each_other(
    first: RankView, stores: list[StoreView], culprits: tuple[int, ...]
) -> None:
    ranks = [first, here(1, "n1", silent="10.9.0.1:4242")]
    verdict, _ = judged(ranks, stores)
    assert (verdict.outcome, verdict.cause, verdict.proved) == ("hang", "rendezvous-incomplete", False)
    assert verdict.culprits == culprits
    assert verdict.detail.startswith("rank 1 (host n1) gets no answer from 10.9.0.1")
    assert judged(ranks, stores, patience=math.inf)[0].outcome != "hang"


def test_a_store_that_a_rank_gets_no_answer_from_is_known_before_it_is_looked_at() -> None:
    verdict, _ = judged([unseen(0), here(1, "n1", silent="10.0.0.1:29500")])
    assert (verdict.outcome, verdict.cause) == ("hang", "rendezvous-incomplete")
    assert verdict.detail == "the ranks look for the store at 10.0.0.1:29500, which does not answer"


REFUSES = StoreView("10.0.0.9:29500", "n1", "refuses the connection: nobody listens there")
OTHER = [
    (
        "alone",
        [unseen(0), here(1, "n1")],
        [REFUSES],
        (),
        "at 10.0.0.9:29500, which refuses the connection",
    ),
    (
        "together",
        [here(0, "n0"), replace(here(1, "n1"), master="10.0.0.9:29500")],
        [StoreView("10.0.0.1:29500", "n0", ranks=(0,)), REFUSES],
        (1,),
        "rank 1 at 10.0.0.9:29500, which refuses the connection",
    ),
    (
        "two names of one store",
        [here(0, "n0"), replace(here(1, "n1"), master="node0:29500")],
        [StoreView("10.0.0.1:29500", "n0", ranks=(0, 1)), StoreView("node0:29500", "n1", ranks=(0, 1))],
        (),
        "every rank is in the rendezvous",
    ),
]


@pytest.mark.parametrize(
    ("ranks", "stores", "culprits", "says"), [row[1:] for row in OTHER], ids=[row[0] for row in OTHER]
)
def test_ranks_that_do_not_find_the_store(
    ranks: list[RankView], stores: list[StoreView], culprits: tuple[int, ...], says: str
) -> None:
    at = [replace(view, master=view.master or "10.0.0.1:29500") for view in ranks]
    verdict, _ = judged(at, stores)
    assert (verdict.outcome, verdict.cause, verdict.culprits) == (
        "hang",
        "rendezvous-incomplete",
        culprits,
    )
    assert says in verdict.detail


def test_a_cut_link_is_named_also_where_some_ranks_have_come_through_the_call() -> None:
    """A ring is done on some ranks before others: those wait in the next call, or in this one."""
    ops = ["all_reduce"] * 4
    calls = [[*ops, "all_reduce"], ops, ops, [*ops, "all_reduce"]]
    members, rests = (0, 1, 2, 3), {"still": 40.0, "idle": 40.0}
    views = [in_collective(n, *done, members=members, **rests) for n, done in enumerate(calls)]
    ranks = [replace(view, host=f"n{n // 2}") for n, view in enumerate(views)]
    assert ranks[3].process is not None
    ranks[3] = replace(ranks[3], process=replace(ranks[3].process, unanswered=("10.0.0.1:4242",)))
    verdict, _ = judged(ranks)
    assert (verdict.outcome, verdict.cause, verdict.culprits) == ("hang", "unknown", ())
    assert verdict.detail.startswith(
        "the network: rank 3 (host n1) gets no answer from 10.0.0.1 (host n0)"
    )


def launcher(node: int, host: str, address: str, *, listens: bool) -> ProcessView:
    return ProcessView(
        900 + node,
        "launcher",
        command=COMMAND,
        state="waiting",
        stack=(Frame("/lib/torch/static_tcp_rendezvous.py", 67, "next_rendezvous", user=False),),
        ports=(Port("::", 29500, "other"),) if listens else (),
        still=40.0,
        idle=40.0,
        rendezvous=Rendezvous(address, node, 2, host),
    )


SERVES = launcher(0, "n0", "10.0.0.1:29500", listens=True)
LAUNCHERS = [
    ("a node that never comes", [SERVES], [], ("node 1 has not joined the rendezvous",)),
    (
        "another address",
        [SERVES, launcher(1, "n1", "10.0.0.9:29500", listens=False)],
        [StoreView("10.0.0.9:29500", "n1", "cannot be reached: no route to host")],
        ("node 1 (host n1) looks for the rendezvous at 10.0.0.9:29500, which cannot be reached",),
    ),
    (
        "a firewall",
        [launcher(1, "n1", "10.0.0.1:29500", listens=False)],
        [StoreView("10.0.0.1:29500", "n1", "does not answer"), StoreView("10.0.0.1:29500", "n0")],
        ("node 1 (host n1) looks for the rendezvous at 10.0.0.1:29500, which does not answer",),
    ),
    (
        "each node for itself",
        [SERVES, launcher(1, "n1", "10.0.0.2:29500", listens=True)],
        [],
        ("each serves a rendezvous of its own", "10.0.0.1:29500", "10.0.0.2:29500"),
    ),
]


@pytest.mark.parametrize(
    ("launchers", "stores", "says"), [row[1:] for row in LAUNCHERS], ids=[row[0] for row in LAUNCHERS]
)
def test_launchers_that_do_not_meet(
    launchers: list[ProcessView], stores: list[StoreView], says: tuple[str, ...]
) -> None:
    newest = replace(
        snapshot(world=0), launchers=tuple(launchers), stores=tuple(stores), time=60.0, ranks=()
    )
    verdict = diagnose([replace(newest, time=59.0), newest], final=True)
    assert (verdict.outcome, verdict.cause, verdict.culprits) == ("hang", "rendezvous-incomplete", ())
    for part in says:
        assert part in verdict.detail
