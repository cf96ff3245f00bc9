"""Who was waited for, as a sentence, and what helps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..model.facts import Verdict
from ..model.slow import Alike, Share, Slow, SlowKind
from ..model.wording import place, plural, sentence, spoken
from .alike import spread

DOES: dict[SlowKind, str] = {
    "compute": "it computes",
    "input": "it loads data",
    "io": "it reads or writes",
    "gil": "another thread holds the interpreter lock",
    "quota": "it gets too little of a processor",
    "stopped": "a signal stops it",
    "gc": "it collects garbage",
    "compile": "torch compiles",
    "data": "it has more to do there than the others",
    "unknown": "",
}
"""What takes the time, as a clause after the line."""

HELPS: dict[SlowKind, str] = {
    "compute": "Give this work to all ranks alike, or to a process that no rank waits for.",
    "input": "Load ahead: more DataLoader workers, `prefetch_factor`, `persistent_workers`; take costly "
    "decoding out of `__getitem__`.",
    "io": "Write less often, in the background (`torch.distributed.checkpoint.async_save`), or to a "
    "faster disk.",
    "gil": "Move that thread's work to a process of its own (`multiprocessing`): threads of one process "
    "take turns in Python code.",
    "quota": "Look at the affinity of the process (`taskset -p PID`), its niceness, the limit of its "
    "container (`cpu.max`, `cpu.stat`), and at what else runs there.",
    "stopped": "Find what sends the signal (SIGSTOP): a debugger, a scheduler, a shell's job control.",
    "gc": "Keep fewer objects alive, call `gc.freeze()` after set-up, or collect on all ranks at "
    "the same step.",
    "compile": "Compile before the first step, give all ranks the same shapes (padding, "
    "`mark_dynamic`), and see `TORCH_LOGS=recompiles`.",
    "data": "Share the work out evenly: batches of equal length (bucketing), shards of equal size.",
    "unknown": "Look at what it waits for there.",
}
"""What helps, in Markdown."""


def slow_line(verdict: Verdict) -> str:
    """`rank 1, waited for 64 % of the time, mostly at data.py:31 (asleep)`; empty where nobody was."""
    slow, alike = verdict.slow, verdict.alike
    if slow is not None:
        at = f", mostly at {place(slow.where)}" if slow.where is not None else ""
        why = does(slow) and f" ({does(slow)})"
        return f"{spoken(slow.ranks)}, waited for {percent(slow.share)} of the time{at}{why}"
    if alike is None:
        return ""
    return f"all ranks spend {percent(alike.share)} of the time at {place(alike.where)} ({does(alike)})"


def help_line(verdict: Verdict) -> str:
    """What makes it faster, in Markdown; empty where nobody was waited for."""
    return HELPS[verdict.slow.kind] if verdict.slow is not None else ""


def shares(verdict: Verdict) -> tuple[Share, ...]:
    """How the time of each rank went; nothing where nobody was waited for, or after a failure."""
    if verdict.slow is None or verdict.outcome not in ("running", "ok"):
        return ()
    return verdict.slow.shares


SHARES = {
    "awaited": "share of the time others wait for it",
    "awaits": "it waits for others",
}
"""The parts of a bar of a rank, in the picture."""


def share_line(shares: Sequence[Share]) -> str:
    """`Rank 1: others wait for it 64 % of the time, it waits for others 2 %.`, of ranks with these."""
    ranks = sorted(rank for share in shares for rank in share.ranks)
    them, verb = plural(ranks, ("it", "it waits"), ("them", "they wait"))
    return (
        f"{sentence(spoken(ranks))}: others wait for {them}"
        f" {percents(share.waited_for for share in shares)} of the time,"
        f" {verb} for others {percents(share.waits for share in shares)}."
    )


def does(of: Slow | Share | Alike) -> str:
    """What takes the time: `asleep`, `it loads data`; empty where that is not known."""
    return "asleep" if of.asleep else DOES[of.kind]


def percents(shares: Iterable[float]) -> str:
    """`64 %`, or `3-99 %` where they differ."""
    return f"{spread(100 * share for share in shares)} %"


def percent(share: float) -> str:
    """`64 %`."""
    return f"{round(100 * share)} %"
