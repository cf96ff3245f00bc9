"""The ranks' calls do not match: operation, order, groups, root, or receive against receive."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace

from ...model.clauses import MOST_CLAUSES, Predicate, clauses, every_clause, grouped, verb
from ...model.facts import ProcessView, Verdict
from ...model.findings import Mismatch
from ...model.frames import Frame, innermost_user
from ...model.parting import Call
from ...model.waits import Communication, InCollective, InP2P
from ...model.wording import group_name, operation, place, plural, sentence, spoken
from ..aborted_calls import classes, described
from ..events import Event
from ..fingerprints import Fingerprint, different_calls
from ..matching import Divergence, divergence
from ..messages import NO_MEMBER, OTHER_CALLS, OTHER_SIZES
from ..parting.history import Desync
from ..parting.relative import went_aside
from ..scene import Facts, minority, odd_ones, passed_unnumbered


def find(facts: Facts) -> Verdict | None:
    """Stuck ranks are in different calls, and each call needs the others."""
    event = facts.first
    if event is None or event.consequence:
        unequal = _unequal_groups(facts)
        if unequal is not None:
            return unequal
    if event is not None:
        return _met(facts, event)
    core = facts.graph.core
    calls = {rank: _call(facts, rank) for rank in sorted(facts.stuck)}
    blocked = {rank: wait for rank, wait in calls.items() if wait is not None}
    if len(core) < 2 or not core <= blocked.keys():
        return _in_unseen_groups(facts)
    return _differ(facts, blocked, divergence(facts.graph.ranks, core))


def _differ(
    facts: Facts, blocked: dict[int, Communication], diverged: Divergence | None
) -> Verdict | None:
    """The ranks of the core are in calls that do not match.

    Args:
        blocked: the calls in which ranks are stuck.
        diverged: where the ranks' calls first differ.
    """
    issued = diverged[2] if diverged else {}
    places: dict[int, object] = {
        rank: issued[rank].op if rank in issued else _place(wait) for rank, wait in blocked.items()
    }
    places.update(dict.fromkeys(_in_or_past_group(facts, blocked), "new_group"))
    disputed = {places[rank] for rank in facts.graph.core}
    calls = {rank: wait for rank, wait in blocked.items() if places[rank] in disputed}
    passed = {rank: entry.op for rank, entry in issued.items() if rank not in blocked}
    if passed_unnumbered(facts, calls) is not None:
        return None
    odd = odd_ones(facts, {rank: places[rank] for rank in calls} | passed)
    calls = _distinguished(calls)
    behind = {r: replace(wait, within=()) for r, wait in blocked.items() if r not in calls}
    evidence = [*every_clause(_states(calls)), *every_clause(_states(behind))]
    return Verdict(
        outcome="hang",
        cause="collective-mismatch",
        detail=_against(calls, diverged),
        summary=_summary(facts, calls, odd) + _parted(calls, diverged) + ".",
        culprits=odd,
        where=_where(facts, calls, odd),
        evidence=(*evidence, *_met_before(facts, diverged)),
        finding=_finding(facts, calls, odd, diverged),
    )


def _finding(
    facts: Facts,
    calls: Mapping[int, Communication],
    odd: Sequence[int],
    diverged: Divergence | None = None,
) -> Mismatch:
    """The calls that do not match, in fields."""
    first = [process.blocking[0] for process in facts.processes(tuple(odd)) if process.blocking]
    group, seq, _ = diverged if diverged is not None else (None, None, {})
    waits = [wait for rank in facts.alive for wait in facts.waits(rank)]
    peers, tags = _unmatched(calls)
    return Mismatch(
        group=group,
        seq=seq,
        calls=_issued(calls, diverged),
        odd=tuple(odd),
        messages=bool(first) and all(isinstance(wait, InP2P) for wait in first),
        peers=peers,
        tags=tags,
        misdirected=_misdirected(facts, calls),
        roots=_roots(calls),
        outside=_outside(facts),
        collective=not any(isinstance(w, InP2P) or w.op == "new_group" for w in waits),
        makes_group=bool(facts.graph.needs.disputed) or any(wait.op == "new_group" for wait in waits),
        threads=any(_uses_threads(process) for process in facts.processes(tuple(sorted(facts.stuck)))),
    )


def _pairs(calls: Mapping[int, Communication]) -> Iterator[tuple[int, InP2P, int, InP2P]]:
    """Each rank that sends, with its send, to one that receives, with what that receives."""
    for rank, send in sorted(calls.items()):
        for peer in send.peers if isinstance(send, InP2P) and send.sends else ():
            receive = calls.get(peer)
            if isinstance(send, InP2P) and isinstance(receive, InP2P) and not receive.sends:
                yield rank, send, peer, receive


def _unmatched(calls: Mapping[int, Communication]) -> tuple[str, str]:
    """The first rank that sends to one that receives from another; one whose tag is another there."""
    peers = tags = ""
    for rank, send, peer, receive in _pairs(calls):
        sends, receives = f"rank {rank} sends to rank {peer}{_at_line(send)}", _at_line(receive)
        if receive.peers and rank not in receive.peers:
            peers = peers or f"{sends}, which receives from {spoken(receive.peers)} first{receives}"
        elif receive.peers and None not in (send.tag, receive.tag) and send.tag != receive.tag:
            mismatch = f"which receives with tag {receive.tag}{receives}"
            tags = tags or f"{sends} with tag {send.tag}, {mismatch}"
    return peers, tags


def _misdirected(facts: Facts, calls: Mapping[int, Communication]) -> str:
    """The first message on its way to one rank for which, by its tag, another one waits."""
    first = [(rank, wait) for rank in sorted(facts.alive) for wait in facts.waits(rank)[:1]]
    waits = [(rank, wait) for rank, wait in first if isinstance(wait, InP2P) and not wait.sends]
    for rank, send, peer, receive in _pairs(calls):
        for other, wait in waits:
            tagged = send.tag is not None and receive.tag != send.tag == wait.tag
            if tagged and rank in wait.peers:
                to = f"rank {rank} sends to rank {peer}{_at_line(send)}, with tag {send.tag},"
                return f"{to} what rank {other} waits for{_at_line(wait)}"
    return ""


def _at_line(wait: Communication) -> str:
    return f" ({place(wait.where)})" if wait.where is not None else ""


def _outside(facts: Facts) -> str:
    """The ranks that torch has warned: they have called something in a group of others."""
    ops = {
        rank: match[1]
        for rank, lines in facts.snapshot.output
        for match in [next(filter(None, map(NO_MEMBER.search, lines)), None)]
        if match is not None and rank in facts.stuck
    }
    texts = (
        f"{spoken(ranks)} {plural(ranks, 'has', 'have')} called {op}"
        for op, ranks in grouped(ops).items()
    )
    return " and ".join(texts)


def _roots(calls: Mapping[int, Communication]) -> str:
    """`0 on rank 0, 1 on rank 1`, where the calls differ in their root and in nothing else."""
    if not _roots_differ(dict(calls)):
        return ""
    roots = {rank: wait.root for rank, wait in calls.items() if isinstance(wait, InCollective)}
    return ", ".join(f"{root} on {spoken(ranks)}" for root, ranks in grouped(roots).items())


def _issued(calls: Mapping[int, Communication], diverged: Divergence | None) -> tuple[Call, ...]:
    """What the ranks have issued where their calls first differ, else what they are in."""
    name = _rooted if _roots_differ(dict(calls)) else _op
    name = operation if len({wait.group for wait in calls.values()}) > 1 else name
    ops = {rank: (name(wait), wait.where) for rank, wait in sorted(calls.items())}
    group, seq, issued = diverged if diverged is not None else (None, None, {})
    for rank, call in sorted(issued.items()):
        wait = calls.get(rank)
        at_place = isinstance(wait, InCollective) and (wait.group, wait.seq) == (group, seq)
        ops[rank] = (call.op, wait.where if at_place and wait is not None else None)
    return tuple(Call(tuple(ranks), op, at) for (op, at), ranks in grouped(ops).items())


def _uses_threads(process: ProcessView) -> bool:
    """True where two threads of a process communicate in one group: nothing orders their calls."""
    groups = [group for _, group in {*process.communicates}]
    return len({*groups}) < len(groups)


def _met(facts: Facts, event: Event) -> Verdict | None:
    """Two different calls have met, and a backend has failed over their sizes, or says so."""
    if event.error is None:
        return None
    compared = different_calls(event.error.message)
    if compared is not None or OTHER_CALLS.search(event.error.message):
        return _compared_by_backend(event, compared or {})
    if not OTHER_SIZES.search(event.error.message):
        return None
    calls = facts.aborted
    same = classes(calls)
    if len({*same.values()}) < 2:
        return _excluded(facts, event)
    odd = minority(same)
    listed = clauses({r: verb("was", "were", f"in {text}") for r, text in described(calls).items()})
    return Verdict(
        outcome="error",
        cause="collective-mismatch",
        proved=all(call.certain for call in calls.values()),
        detail=f"two different calls have met: {listed}: {event.error.text}",
        summary=f"Two different calls have met: {listed}: {event.error.text}",
        culprits=odd,
        where=next((calls[rank].where for rank in odd if calls[rank].where is not None), event.where),
        evidence=(f"rank {event.rank}: {event.error.text}",),
        finding=Mismatch(
            calls=tuple(Call((rank,), call.op, call.where) for rank, call in sorted(calls.items())),
            odd=odd,
        ),
    )


def _excluded(facts: Facts, event: Event) -> Verdict | None:
    """Some ranks never come to the call that has failed: what has met it was another one."""
    absent = [*facts.excluded]
    if not absent or event.error is None or event.rank is None:
        return None
    call = facts.aborted[event.rank]
    text = described({event.rank: call})[event.rank]
    never = f"{spoken(absent)} never {plural(absent, 'comes', 'come')} there"
    odd = minority({rank: rank in absent for rank in facts.graph.ranks})
    return Verdict(
        outcome="error",
        cause="collective-mismatch",
        proved=False,
        detail=f"{never}: two different calls have met: {event.error.text}",
        summary=(
            f"Two different calls have met: {event.who} was in {text}, and {never}: {event.error.text}"
        ),
        culprits=odd,
        where=call.where,
        evidence=(f"{event.who}: {event.error.text}",),
        finding=Mismatch(calls=(Call((event.rank,), call.op, call.where),), odd=odd, collective=True),
    )


def _compared_by_backend(event: Event, by_rank: Mapping[int, Fingerprint]) -> Verdict:
    """The backend has compared the calls of the ranks itself, and says which they are.

    Args:
        by_rank: rank -> its call; of a text that is cut off not of all.
    """
    calls = tuple(Call((rank,), call.op, None) for rank, call in sorted(by_rank.items()))
    operations = dict.fromkeys(call.op for call in calls)
    # A rank with another operation and without a number has sent nothing, and is elsewhere.
    odd = [rank for rank, call in sorted(by_rank.items()) if call.seq == 0 and len(operations) > 1]
    numbered = {
        rank: call.op + ("" if call.seq is None else f" #{call.seq}") for rank, call in by_rank.items()
    }
    listed = clauses({rank: verb("was", "were", f"in {call}") for rank, call in numbered.items()})
    cut_off = ", and what another rank was in is cut off" if len(by_rank) == 1 else ""
    seq = max((call.seq for call in by_rank.values() if call.seq is not None), default=None)
    return Verdict(
        outcome="error",
        cause="collective-mismatch",
        detail=" against ".join(numbered.values()) if len(by_rank) > 1 else event.text,
        summary=f"Two different calls have met: {listed or event.text}{cut_off}.",
        culprits=tuple(odd or sorted(by_rank)),
        where=event.where,
        evidence=(f"{event.who}: {event.text}",),
        finding=Mismatch(seq=seq, calls=calls, odd=tuple(odd or sorted(by_rank)), collective=True),
    )


def _where(facts: Facts, calls: dict[int, Communication], odd: Sequence[int]) -> Frame | None:
    """The line of the first rank that is odd; of two, of the one that went aside of the other's way.

    Where the ranks' calls have come apart earlier, it is the line of that call.
    """
    stacks = {rank: process.users_stack for rank in odd for process in facts.processes((rank,))}
    lines = {rank: calls[rank].where or facts.where((rank,)) for rank in odd}
    desync = facts.desyncs[0] if len(facts.desyncs) == 1 else None
    if desync is not None and any(_is_past(calls[r], desync) for r in desync.calls if r in calls):
        odd = minority(desync.calls)
        stacks = {rank: tuple(reversed(desync.calls[rank].stack)) for rank in odd}
        lines = {rank: innermost_user(desync.calls[rank].stack) for rank in odd}
    if len(odd) == 2 and went_aside(stacks.get(odd[1], ()), stacks.get(odd[0], ())):
        odd = odd[::-1]
    return next((lines[rank] for rank in odd if lines[rank] is not None), None)


def _is_past(wait: Communication, desync: Desync) -> bool:
    """True for a rank that waits in a later call of the group."""
    return isinstance(wait, InCollective) and wait.group == desync.group and (wait.seq or 0) > desync.seq


def _unequal_groups(facts: Facts) -> Verdict | None:
    """Ranks have made a group with other members, and are stuck in it or have lost each other there."""
    if not facts.graph.needs.disputed or not (facts.stuck or facts.first):
        return None
    name, by_rank = next(iter(sorted(facts.graph.needs.disputed.items())))
    groups = grouped(by_rank).items()
    listed = "; ".join(f"{spoken(members)} on {spoken(ranks)}" for members, ranks in groups)

    odd = minority(by_rank)
    making = [r for r in odd for wait in facts.waits(r) if wait.op == "new_group"]
    return Verdict(
        outcome="hang",
        cause="collective-mismatch",
        detail=f"group {name} has other members on other ranks: {listed}",
        summary=(
            f"The ranks do not make the same groups: group {name} has {listed}. Every rank must call "
            "new_group for every group, in the same order."
        ),
        culprits=odd,
        where=facts.where((*making, *odd)),
        evidence=(listed,),
        finding=Mismatch(group=name, odd=odd, collective=False, makes_group=True),
    )


def _in_unseen_groups(facts: Facts) -> Verdict | None:
    """All ranks rest in collectives, not all in the same one; of which group cannot be seen of some."""
    everybody = facts.graph.ranks.keys()
    calls = {
        rank: wait
        for rank in sorted(facts.stuck)
        for wait in facts.waits(rank)[:1]
        if isinstance(wait, InCollective) and (not wait.members or everybody <= {*wait.members})
    }
    ops: dict[int, object] = {rank: wait.op for rank, wait in calls.items()}
    unseen = any(wait.group is None for wait in calls.values())
    if not unseen or calls.keys() != everybody or len(set(ops.values())) < 2:
        return None
    odd, waits = minority(ops), dict[int, Communication](calls)
    return Verdict(
        outcome="hang",
        cause="collective-mismatch",
        detail=_against(waits, None),
        summary=f"{_summary(facts, waits, odd)}.",
        culprits=odd,
        where=_where(facts, waits, odd),
        evidence=tuple(every_clause(_states(waits))),
        finding=_finding(facts, waits, odd),
    )


def _call(facts: Facts, rank: int) -> Communication | None:
    """The collective or point-to-point call in which a rank is stuck."""
    for wait in facts.waits(rank):
        if isinstance(wait, Communication) and facts.graph.needs.absent(rank, wait):
            return wait
    return None


def _in_or_past_group(facts: Facts, blocked: dict[int, Communication]) -> list[int]:
    """The ranks that have reached, or passed, the first new group in which one of them is blocked."""
    numbers = [
        wait.group_number
        for wait in blocked.values()
        if isinstance(wait, InCollective) and wait.group_number is not None
    ]
    counts = {rank: process.groups_made for rank in blocked for process in facts.processes((rank,))}
    return [rank for rank, groups in counts.items() if numbers and (groups or 0) >= min(numbers)]


def _place(wait: Communication) -> tuple[object, ...]:
    """Operation and group; of a collective also its number and its root, of a message its tag."""
    numbers = (wait.seq, wait.root) if isinstance(wait, InCollective) else (wait.tag,)
    return wait.op, wait.group, *numbers


def _against(calls: dict[int, Communication], diverged: Divergence | None) -> str:
    if diverged is not None:
        group, seq, issued = diverged
        ops = dict.fromkeys(issued[rank].op for rank in sorted(issued))
        return f"{' against '.join(ops)} at #{seq} of {group_name(group)}"
    name = _rooted if _roots_differ(calls) else operation
    names = [name(wait) for _, wait in sorted(calls.items())]
    return " against ".join(dict.fromkeys(names) if len(set(names)) > 1 else names[:2])


def _summary(facts: Facts, calls: dict[int, Communication], odd: Sequence[int]) -> str:
    among = frozenset(odd)
    rest = {rank: wait for rank, wait in calls.items() if rank not in among}
    if not rest:
        listed = clauses(_states(calls, root=_roots_differ(calls)))
        if all(isinstance(wait, InP2P) and not wait.sends for wait in calls.values()):
            return f"The ranks all wait to receive and none of them sends: {listed}"
        return f"The ranks wait in calls that can never match: {listed}"
    states = _states({rank: wait for rank, wait in calls.items() if rank in among})
    then = " and" if len({*states.values()}) == 1 else ", and they"
    return f"{sentence(clauses(states))}{_missed(facts, rest, among, then)}"


def _missed(facts: Facts, rest: dict[int, Communication], odd: frozenset[int], then: str) -> str:
    """The calls in which others wait for odd ranks, each for those that it needs.

    Args:
        then: what leads on from what the odd ranks do to what all of them do not.
    """
    calls = {}
    peers = facts.graph.waited_for_among(odd)
    for rank in peers.keys() & rest.keys() or rest:
        needed, to = peers.get(rank, odd), not isinstance(rest[rank], InP2P)
        calls[rank] = needed, to, f"{operation(rest[rank])}{_at(rest[rank])}"
    text, groups = "", sorted(grouped(calls).items(), key=lambda group: group[0][0] != odd)
    for (needed, to, missed), ranks in groups[:MOST_CLAUSES]:
        never = plural(needed, *(("reaches", "reach") if to else ("answers", "answer")))
        if needed != odd:
            never = f", and {spoken(sorted(needed))} never {never}"
        elif text:
            never = ", nor" if to and groups[0][0][1] else f", nor {never}"
        else:
            never = f"{then} never {never}"
        text += f"{never} {missed}, where {spoken(ranks)} {plural(ranks, 'is', 'are')} waiting"
    waiting = [rank for _, ranks in groups[MOST_CLAUSES:] for rank in ranks]
    if waiting:
        text += f", and {spoken(waiting)} {plural(waiting, 'is', 'are')} waiting elsewhere"
    return text


def _parted(calls: dict[int, Communication], diverged: Divergence | None) -> str:
    """Where the ranks' calls first differ, unless that is where they are now."""
    if diverged is None:
        return ""
    group, seq, issued = diverged
    if all(isinstance(w, InCollective) and (w.group, w.seq) == (group, seq) for w in calls.values()):
        return ""
    by_op = grouped({rank: call.op for rank, call in issued.items()})
    listed = ", ".join(f"{op} on {spoken(ranks)}" for op, ranks in by_op.items())
    return f"; their calls first differ at #{seq} of {group_name(group)}: {listed}"


def _met_before(facts: Facts, diverged: Divergence | None) -> tuple[str, ...]:
    """That ranks may have met in the barrier before from two lines, which can no longer be seen.

    All barriers look the same: one too many on one rank completes with the next one of the others,
    and that rank is then found at a barrier again.
    """
    if diverged is None:
        return ()
    group, seq, issued = diverged
    at_barrier = [rank for rank, entry in sorted(issued.items()) if entry.op == "barrier"]
    elsewhere = [rank for rank, entry in sorted(issued.items()) if entry.op != "barrier"]
    if not at_barrier or not elsewhere:
        return ()
    before = {
        (entry.op, entry.done)
        for process in facts.processes(sorted(issued))
        for entry in process.collectives
        if entry.seq == seq - 1 and entry.group == group
    }
    if before != {("barrier", True)}:
        return ()
    comes = plural(at_barrier, "comes", "come")
    twice = f"{spoken(at_barrier)} {comes} to a barrier twice in a row, at #{seq - 1} and #{seq}"
    once = f"{spoken(elsewhere)} only at #{seq - 1}"
    return (f"{twice}, {once}: there they have met, perhaps from different lines",)


def _states(calls: dict[int, Communication], *, root: bool = False) -> dict[int, Predicate]:
    """What is said of each rank: the call in which it is, and its line.

    Args:
        root: whether to tell the rank from which, or to which, it sends.
    """
    name = _rooted if root else operation
    return {rank: _stands_in(wait, name(wait)) for rank, wait in calls.items()}


def _stands_in(wait: Communication, name: str) -> Predicate:
    """`is blocked in all_reduce #6 at a.py:9`; one that is enqueued is waited for."""
    if isinstance(wait, InCollective) and wait.enqueued:
        return verb("waits", "wait", f"for {name}{_at(wait)}")
    return verb("is", "are", f"blocked in {name}{_at(wait)}")


def _roots_differ(calls: dict[int, Communication]) -> bool:
    """True when the calls differ in their root and in nothing else."""
    places = {_place(wait) for wait in calls.values()}
    return len({place[:3] for place in places}) == 1 < len(places)


def _rooted(wait: Communication) -> str:
    """The operation with the rank from which, or to which, it sends."""
    if isinstance(wait, InCollective) and wait.root is not None:
        return f"{operation(wait)} with root {wait.root}"
    return operation(wait)


def _op(wait: Communication) -> str:
    return wait.op


def _distinguished(calls: dict[int, Communication]) -> dict[int, Communication]:
    """The calls, each with the one library function that says what it is for, where that is needed.

    Ranks may all be in one line of the user's: then it is the innermost function of a library's that not
    all of them are in.
    """
    paths = {wait.within for wait in calls.values()}
    steps = zip(*paths, strict=False)
    shared = len(list(itertools.takewhile(lambda step: len(set(step)) == 1, steps)))
    one_line = len({wait.where for wait in calls.values()}) == 1
    differs = one_line and len({path[shared:][-1:] for path in paths}) > 1
    return {
        rank: wait if wait.within == within else replace(wait, within=within)
        for rank, wait in calls.items()
        for within in [wait.within[shared:][-1:] if differs else ()]
    }


def _at(wait: Communication) -> str:
    inside = f" (in {wait.within[0]})" if wait.within else ""
    if wait.where is not None:
        return f" at {place(wait.where)}{inside}"
    return f", called by a library{inside}" if wait.traced else ""
