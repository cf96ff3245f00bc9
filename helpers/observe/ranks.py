"""Which process is which rank: from who each says it is, and from descent."""

from __future__ import annotations

import functools
import signal
from collections.abc import Collection, Iterable, Mapping, Sequence

import msgspec

from ..beacon.record import Record
from ..launch.processes import is_kernel, is_launcher, launcher_in, naming
from ..model.facts import RankView, State
from .identity import Identity, spawned_number
from .process_table import Row, Table

SHELL_ENDS = 1.0
"""Seconds after the end of its last command within which a shell has ended too."""


def unnamed_first(
    table: Table, identities: Mapping[int, Identity], records: Mapping[int, Record]
) -> int | None:
    """Pid of the program that is rank 0 itself and has started the other ranks, as Lightning's does.

    It sets its own variables after its start, so they cannot be read from outside.
    """
    numbered = [pid for pid, identity in identities.items() if identity.rank is not None]
    parents = {table.rows[pid].parent for pid in numbered}
    parents = {pid for pid in parents if pid in table.rows and identities[pid].rank is None}
    if any(identities[pid].rank == 0 for pid in numbered) or len(parents) != 1:
        return None
    first = parents.pop()
    spawns = first in records and spawned_number(records[first]) is not None
    return first if _is_plain_program(table.rows[first]) and not spawns else None


class Roles(msgspec.Struct, frozen=True):
    """The parts that the processes of a job play.

    Attributes:
        ranks: rank -> pid; a rank of unknown number is under a negative key.
        children: pid of a rank -> pids of the processes it has started.
        duplicates: pid of a child -> the rank it has joined as, or tries to.
        launchers: pids of the rest, outermost first.
        wrappers: pid of a launcher -> the rank whose number it has handed down.
    """

    ranks: Mapping[int, int]
    children: Mapping[int, tuple[int, ...]]
    duplicates: Mapping[int, int]
    launchers: tuple[int, ...]
    wrappers: Mapping[int, int] = msgspec.field(default_factory=dict)


def assign(
    table: Table, identities: Mapping[int, Identity], attempt: int | None = None, *, ended: bool = False
) -> Roles:
    """Say which process is which rank.

    Several processes may carry one rank's number: the shell or program that a launcher has started, the
    trainer below it, and whatever the trainer starts. The one that has joined is the rank; two that are
    members at the same time are two of one rank. A carrier above the rank is its wrapper.

    A helper of `multiprocessing` is never a rank; it outlives the one that started it, and loses its
    parent.

    Args:
        table: the processes of the job.
        identities: who each of them says it is.
        attempt: the launcher's attempt to look at; None for the newest.
        ended: True once the command has ended, when no other program can follow.
    """
    if attempt is None:
        attempt = max((identity.attempt for identity in identities.values()), default=0)
    rows = sorted(table.rows.values(), key=lambda row: (row.is_helper, row.started))
    by_rank, finished = _carriers(table, identities, rows, attempt)
    ranks, duplicates = _bearers(table, identities, by_rank)
    carrying = {row for carriers in by_rank.values() for row in carriers}
    bearers = set(ranks.values())
    children: dict[int, tuple[int, ...]] = {}
    launchers: list[int] = []
    for row in rows:
        lineage = [row, *table.ancestors(row.pid)]
        if row.pid in bearers or (row not in carrying and not finished.isdisjoint(lineage)):
            continue
        owner = _owner(table, identities, row, by_rank, bearers, duplicates)
        if owner is None:
            launchers.append(row.pid)
        else:
            children[owner] = (*children.get(owner, ()), row.pid)
    if not ranks and (main := _main_program(table, launchers, ended=ended)) is not None:
        return _single(table, main.pid)
    wrappers = {
        row.pid: number
        for number, carriers in by_rank.items()
        for row in carriers
        if row.pid in launchers and row in table.ancestors(ranks[number])
    }
    return Roles(ranks, children, duplicates, tuple(launchers), wrappers)


def _owner(
    table: Table,
    identities: Mapping[int, Identity],
    row: Row,
    by_rank: Mapping[int, Sequence[Row]],
    bearers: Collection[int],
    duplicates: Collection[int],
) -> int | None:
    """Pid of the rank above a process, else of the rank whose number it carries, and that it belongs to.

    It belongs to that as its double, its helper, or another carrier of the number on the same machine.

    Args:
        by_rank: all that carry a rank's number.
        bearers: pids of the ranks; duplicates: of their doubles.
    """
    owner = next((above.pid for above in table.ancestors(row.pid) if above.pid in bearers), None)
    number = identities[row.pid].rank
    if owner is not None or number is None or number not in by_rank:
        return owner
    carriers = by_rank[number]
    rank = next(carrier for carrier in carriers if carrier.pid in bearers)
    double = row.pid in duplicates or (
        row in carriers
        and _outermost(table, row, carriers) != _outermost(table, rank, carriers)
        and not _elsewhere(identities[rank.pid], identities[row.pid])
    )
    return rank.pid if double or row.is_helper else None


def _bearers(
    table: Table, identities: Mapping[int, Identity], by_rank: Mapping[int, Sequence[Row]]
) -> tuple[dict[int, int], dict[int, int]]:
    """Rank -> pid of the carrier that it is; pid of each of its doubles -> rank."""
    ranks: dict[int, int] = {}
    duplicates: dict[int, int] = {}
    for number, carriers in by_rank.items():
        bearer, doubles = _bearer(table, identities, carriers)
        ranks[number] = bearer.pid
        duplicates.update({row.pid: number for row in doubles})
    return ranks, duplicates


def tell_ends(table: Table, roles: Roles) -> None:
    """Take over how a rank has ended from the shell that has waited for it, where nothing else says it.

    A shell ends with the status of its last command, 128 and more for one that a signal has ended
    (POSIX.1-2017, Shell Command Language, 2.8.2).
    """
    for pid, number in roles.wrappers.items():
        shell, rank = table.rows[pid], table.rows[roles.ranks[number]]
        if rank.status is not None or rank.ended is None or shell.is_python:
            continue
        if shell.ended is None or shell.ended - rank.ended > SHELL_ENDS or shell.exit_code is None:
            continue
        code = shell.exit_code
        rank.status = code - 128 if 128 < code < 128 + signal.NSIG else code << 8


def launcher_name(table: Table, roles: Roles, records: Mapping[int, Record]) -> str:
    """`torchrun`, `accelerate`, `deepspeed`, `mp.spawn` or `python`."""
    for pid in roles.launchers:
        if name := launcher_in(" ".join(naming(table.rows[pid].command)).split()):
            return name
        if pid in records and (records[pid]["spawned"] or spawned_number(records[pid])):
            return "mp.spawn"
    return "python"


def _is_plain_program(row: Row) -> bool:
    return row.is_python and not row.is_helper and not is_launcher(row.command)


def _main_program(table: Table, launchers: Sequence[int], *, ended: bool) -> Row | None:
    """The outermost program that is no launcher; None before there is one.

    What runs a notebook (nbconvert, papermill) only waits for the kernel, which is the program.

    Args:
        ended: True once the command has ended: then the last program counts, but for what runs in a
            session of its own, which was left there on purpose.
    """
    plain = [row for pid in launchers if _is_plain_program(row := table.rows[pid])]
    kernels = [row for row in plain if is_kernel(row.command) and (ended or row.ended is None)]
    fronts = [above for row in kernels for above in table.ancestors(row.pid)]
    programs = {row: None for row in plain if row not in fronts}
    outermost = [row for row in programs if programs.keys().isdisjoint(table.ancestors(row.pid))]
    if ended:
        outermost = [row for row in outermost if not row.detached] or outermost
    alive = [row for row in outermost if row.ended is None]
    return next(iter(alive or (outermost[-1:] if ended else ())), None)


def _single(table: Table, main: int) -> Roles:
    """A program that is not distributed, or not yet: its one process, under the key -1."""
    below = tuple(
        row.pid
        for row in table.rows.values()
        if main in [above.pid for above in table.ancestors(row.pid)]
    )
    launchers = tuple(pid for pid in table.rows if pid != main and pid not in below)
    return Roles({-1: main}, {main: below}, {}, launchers)


def _carriers(
    table: Table, identities: Mapping[int, Identity], rows: Sequence[Row], attempt: int
) -> tuple[dict[int, list[Row]], set[Row]]:
    """Rank -> the processes that carry its number, in the order of their start; and those that are over.

    When a carrier begins after the first one has ended, and not below it, then all that had ended by
    then is a job, or a launch, before this one: it is over, as are other attempts of the launcher.
    """
    by_rank: dict[int, list[Row]] = {}
    finished: set[Row] = set()
    restarted: list[Row] = []
    for row in _numbered(table, identities, rows):
        identity = identities[row.pid]
        if identity.attempt != attempt or identity.rank is None:
            finished.add(row)
            continue
        carriers = by_rank.setdefault(identity.rank, [])
        if carriers and carriers[0].precedes(row) and carriers[0] not in table.ancestors(row.pid):
            finished.update(carriers)
            carriers.clear()
            restarted.append(row)
        carriers.append(row)
    for number, carriers in list(by_rank.items()):
        if any(carriers[0].precedes(row) for row in restarted):
            finished.update(by_rank.pop(number))
    return by_rank, finished


def _bearer(
    table: Table, identities: Mapping[int, Identity], carriers: Sequence[Row]
) -> tuple[Row, list[Row]]:
    """Of all carriers of one number the process that is the rank, and those that are its doubles.

    The rank is the first member, or the next one that joined after it had left. Before any has joined
    it is the outermost carrier, or the one that this hands its number down to.
    """
    rank = carriers[0]
    joined = [row for row in carriers if identities[row.pid].since is not None]
    members = [row for row in joined if _meet(table, identities, rank, row)]
    if not members:
        while (heir := _heir(table, identities, rank, carriers)) is not None:
            rank = heir
        return rank, []
    members.sort(key=lambda row: identities[row.pid].since or 0.0)
    rank = members[0]
    doubles: list[Row] = []
    for row in members[1:]:
        previous, joins = identities[rank.pid], identities[row.pid].since or 0.0
        leaves = previous.until or 0.0
        # Seen to leave in the very look that found the other one: it may have been started after that.
        may_follow = not previous.member and leaves <= row.first_look
        if rank.precedes(row) or leaves < joins or may_follow:
            rank = row
            doubles.clear()
        else:
            doubles.append(row)
    return rank, doubles


def _meet(table: Table, identities: Mapping[int, Identity], first: Row, row: Row) -> bool:
    """True for a carrier below the first one, or beside it in the same job."""
    beside = first.pid != row.pid and first not in table.ancestors(row.pid)
    return not (beside and _elsewhere(identities[first.pid], identities[row.pid]))


def _heir(
    table: Table, identities: Mapping[int, Identity], row: Row, carriers: Sequence[Row]
) -> Row | None:
    """The one program below `row` that does the rank's work before it joins, if `row` cannot.

    A shell never joins, nor does a program without torch. Another may, unless it only waits for the one
    process it has started. Between two programs a shell has its number back: it may go on to another.
    Once it has ended, its last program shows how the rank has ended.
    """
    programs = [carrier for carrier in carriers if _is_plain_program(carrier)]
    below = [program for program in programs if _nearest(table, program, programs, row)]
    alive = [program for program in below if program.ended is None]
    loaded = identities[row.pid].loaded
    if row.is_python if loaded is None else loaded:
        return alive[0] if alive and _waits_for_only_child(table, row) else None
    if row.ended is not None and below and not alive:
        return below[-1]
    return alive[0] if len(alive) == 1 else None


def _waits_for_only_child(table: Table, row: Row) -> bool:
    """True for a live process that only waits for the one process it has started."""
    if row.ended is not None or not row.waits_for_child:
        return False
    children = [child for child in table.rows.values() if child.parent == row.pid]
    return sum(child.ended is None and not child.is_helper for child in children) == 1


def _nearest(table: Table, row: Row, programs: Sequence[Row], top: Row) -> bool:
    """True when `row` is below `top`, and no other of `programs` is between them."""
    chain = table.ancestors(row.pid)
    return top in chain and not any(program in programs for program in chain[: chain.index(top)])


def _outermost(table: Table, row: Row, carriers: Sequence[Row]) -> Row:
    """The outermost of the carriers that a carrier descends from, or itself."""
    return next((above for above in reversed(table.ancestors(row.pid)) if above in carriers), row)


def _numbered(table: Table, identities: Mapping[int, Identity], rows: Sequence[Row]) -> list[Row]:
    """The processes that carry the number of a rank of this job, in the order of their start.

    A launcher, or a shell around the outermost one, may carry the number of its node instead. Another
    job below a rank has a store of its own, and either ranks beside the one that carries the same
    number, or another size, or a host that has joined; if not, its host has chosen a port for its rank.
    """
    launchers = {row for row in rows if is_launcher(row.command)}
    wrappers: set[Row] = set()
    for row in launchers:
        above = set(table.ancestors(row.pid))
        if not above & launchers:
            wrappers |= {wrapper for wrapper in above if not wrapper.is_python}
    carry = [row for row in rows if identities[row.pid].rank is not None and not row.is_helper]
    carriers = {row: None for row in carry if row not in launchers and row not in wrappers}
    guests: set[Row] = set()
    for row in carriers:
        above = set(table.ancestors(row.pid))
        hosts = above & carriers.keys()
        if above & guests or any(_is_guest(table, identities, carriers, host, row) for host in hosts):
            guests.add(row)
    return [row for row in carriers if row not in guests]


def _is_guest(
    table: Table, identities: Mapping[int, Identity], carriers: Collection[Row], above: Row, row: Row
) -> bool:
    host, guest = identities[above.pid], identities[row.pid]
    if not _elsewhere(host, guest):
        return False
    inside = [carrier for carrier in carriers if above in table.ancestors(carrier.pid)]
    if host.rank == guest.rank:
        peers = (identities[carrier.pid] for carrier in inside)
        in_job = any(peer.rank != guest.rank and not _elsewhere(peer, guest) for peer in peers)
        return host.since is not None or in_job or host.world_size != guest.world_size
    outside = (identities[carrier.pid].rank for carrier in carriers if carrier not in inside)
    return guest.rank in outside or (
        host.world_size is not None and (guest.rank or 0) >= host.world_size
    )


def _elsewhere(first: Identity, second: Identity) -> bool:
    """True for two processes that look for their store at different ports."""
    ports = {(identity.master or "").rpartition(":")[2] for identity in (first, second)}
    return len(ports) == 2 and "" not in ports


def with_absent(views: Iterable[RankView], world: int, state: State) -> tuple[RankView, ...]:
    """The ranks in order, those of unknown number last; others of the world size are in a state.

    There may be thousands out of sight, of which each look has to tell.
    """
    by_rank = {view.rank: view for view in views if view.rank is not None}
    absent = _absent(world, state)
    beyond = sorted(rank for rank in by_rank if rank >= world)
    nameless = (view for view in views if view.rank is None)
    return (
        *(by_rank.get(rank, view) for rank, view in enumerate(absent)),
        *(by_rank[rank] for rank in beyond),
        *nameless,
    )


@functools.lru_cache(maxsize=4)
def _absent(world: int, state: State) -> tuple[RankView, ...]:
    return tuple(RankView(rank, state=state) for rank in range(world))
