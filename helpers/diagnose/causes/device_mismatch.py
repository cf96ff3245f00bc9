"""Operands or a generator live on different devices."""

from __future__ import annotations

import ast

from ...model.clauses import clauses, verb
from ...model.facts import Verdict
from ...model.findings import DeviceMismatch
from ...model.wording import place, sentence, stack_of
from ...program.blocks import statements_around
from ..messages import OTHER_DEVICES
from ..scene import Facts, texts


def find(facts: Facts) -> Verdict | None:
    """The first failure is torch's own complaint about devices."""
    event = facts.first
    if event is None or event.error is None or not OTHER_DEVICES.search(event.error.message):
        return None
    events = facts.saying(OTHER_DEVICES)
    mix = {r: verb("mixes", "mix", f"devices at {place(e.where)}: {e.text}") for r, e in events.items()}
    return Verdict(
        outcome="error",
        cause="device-mismatch",
        detail="; ".join(texts(events)) or event.text,
        summary=sentence(clauses(mix)) or f"Devices are mixed: {event.text}",
        culprits=tuple(events),
        where=event.where,
        evidence=texts(events) or (event.text,),
        finding=DeviceMismatch(
            in_init_module="init_module" in _contexts(facts, tuple(events)),
            sets_default=event.where is not None and "set_default_device" in event.where.text,
        ),
    )


def _contexts(facts: Facts, ranks: tuple[int, ...]) -> set[str]:
    """The functions that the `with` blocks call in which the ranks' lines are."""
    frames = [frame for process in facts.processes(ranks) for frame in stack_of(process) if frame.user]
    steps = [step for frame in frames for step in statements_around(frame)]
    items = [item for step in steps if isinstance(step.node, ast.With) for item in step.node.items]
    calls = [item.context_expr.func for item in items if isinstance(item.context_expr, ast.Call)]
    return {getattr(func, "attr", getattr(func, "id", "")) for func in calls}
