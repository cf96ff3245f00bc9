"""How much of a report a lesson shows: first what happened, last what to do about it."""

from __future__ import annotations

from enum import IntEnum

from msgspec.structs import replace

from ..report.stable import Stable


class Stage(IntEnum):
    """What is shown of a run that failed; each stage includes those before it."""

    OUTCOME = 0
    CULPRITS = 1
    STATEMENT = 2
    FIX = 3


PARTS: dict[Stage, str] = {
    Stage.CULPRITS: "the odd one out and the cause",
    Stage.STATEMENT: "the line and the statement that decided",
    Stage.FIX: "what to do",
}
"""What each stage adds to the one before it."""


def held_back(stage: Stage) -> tuple[str, ...]:
    """What is not shown yet, the next first; nothing at the last stage."""
    return tuple(text for later, text in PARTS.items() if later > stage)


def held_text(stage: Stage) -> str:
    """`3 things are held back: ...`; empty when nothing is."""
    parts = held_back(stage)
    count = f"{len(parts)} things are" if len(parts) > 1 else "1 thing is"
    return f"{count} held back: {'; '.join(parts)}." if parts else ""


_STAGE_OF = {
    "cause": Stage.CULPRITS,
    "culprits": Stage.CULPRITS,
    "where": Stage.STATEMENT,
    "parted": Stage.STATEMENT,
}
"""The stage at which a line of a report's stable text may be shown; the others are shown at once."""


def shown(stable: Stable, stage: Stage) -> Stable:
    """What of a report's stable text a stage shows."""
    facts = tuple((name, value) for name, value in stable.facts if _STAGE_OF.get(name, stage) <= stage)
    if stage >= Stage.CULPRITS:
        return replace(stable, facts=facts)
    return Stable(facts, ranks=(), masked="")
