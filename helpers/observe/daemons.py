"""What a job leaves running on purpose: sessions without a rank, such as a dashboard's. No I/O."""

from __future__ import annotations

from collections.abc import Mapping

from ..launch.processes import is_launcher
from .identity import Identity
from .process_table import Row


def daemons(
    sessions: Mapping[int, int], rows: Mapping[int, Row], identities: Mapping[int, Identity]
) -> dict[int, list[int]]:
    """The sessions whose processes the job has left running.

    A session is no rank's if none of its processes has joined, carries a rank, or was started by a
    launcher: torchrun gives each worker a session, too. A process carries the rank in its environment
    unless another process of the job has it already: then it has inherited that.

    Args:
        sessions: pid -> session of each process that is left in another session than the command's.
        rows: the processes of the job, also those that have ended.
        identities: what is known of them.

    Returns:
        session -> pids.
    """
    by_session: dict[int, list[int]] = {}
    for pid, session in sorted(sessions.items()):
        by_session.setdefault(session, []).append(pid)
    of_ranks = {pid for pid in rows if _is_rank(pid, rows, identities)}
    return {
        session: pids
        for session, pids in by_session.items()
        if of_ranks.isdisjoint((session, *pids)) and rows.keys() >= {*pids}
    }


def _is_rank(pid: int, rows: Mapping[int, Row], identities: Mapping[int, Identity]) -> bool:
    identity, parent = identities.get(pid), rows.get(rows[pid].parent)
    if parent is not None and is_launcher(parent.command):
        return True
    if identity is None or identity.joined or identity.rank is None:
        return identity is not None and identity.joined
    carriers = (carrier for carrier in identities if identities[carrier].rank == identity.rank)
    return pid == min(carriers, key=lambda carrier: rows[carrier].started)
