"""The fixes of a cause's page that fit a case, by its finding and the statement that decided. No I/O.

In the page, a comment after a fix says when it fits, and says it in the user's own lines:
`<!-- by_rank, inside, not both: Every rank has to call `{call}` ({call_at}). -->`. Each term names a
field of the finding (`model.findings`) or of the statement (`statement`), which has to be true, or to
have the value after `=`; what a text names has to be known. `otherwise` is where no other fix fits.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from msgspec.structs import fields

from ..model.facts import Fitting, Snapshot, Verdict
from ..model.frames import Frame
from ..model.parting import Call
from ..model.wording import one_line, place, sentence, spoken
from .pages import Fix
from .scene import Facts
from .statement import statement

OTHERWISE = "otherwise"
"""The first term of a condition that counts only where no other fix fits."""

MARKDOWN = ("guards",)
"""Fields that are Markdown already."""


def fitting(fixes: Sequence[Fix], verdict: Verdict, snapshot: Snapshot) -> tuple[Fitting, ...]:
    """The fixes that fit what a run has come to, in the order of the page; none where that is not known.

    Of a fix that can be said in several ways, the first counts of which everything is known.
    """
    values = fields_of(verdict, Facts(snapshot))
    texts = {name: _text(name, value) for name, value in values.items()}
    for last in (False, True):
        candidates = [
            (number, fix, _wording(fix, values, texts, last=last)) for number, fix in enumerate(fixes, 1)
        ]
        matches = tuple(Fitting(number, text, fix.text) for number, fix, text in candidates if text)
        if matches:
            return matches
    return ()


def fields_of(verdict: Verdict, facts: Facts) -> dict[str, object]:
    """All fields by name: those of the finding, of the statement, and what every verdict has."""
    handled = verdict.handled
    values: dict[str, object] = {
        OTHERWISE: True,
        "at": verdict.where,
        "odd_ranks": verdict.culprits,
        "masked": bool(verdict.masked),
        "error": handled.error.text if handled is not None else "",
        "error_at": handled.where if handled is not None else None,
        "handling": handled.ranks if handled is not None else (),
    }
    for part in (verdict.finding, statement(facts, verdict)):
        values |= {field.name: getattr(part, field.name) for field in fields(part)} if part else {}
    return values


def needed(text: str) -> set[str]:
    """The fields that a text names."""
    return set(re.findall(r"{(\w+)}", text))


def terms(condition: str) -> list[tuple[bool, str, str]]:
    """The terms of a condition: whether it is to be true, the field, and the value it has to have."""
    parts = []
    for term in condition.split(","):
        negated = term.strip().startswith("not ")
        name, _, value = term.strip().removeprefix("not ").partition("=")
        parts.append((not negated, name.strip(), value.strip()))
    return parts


def _wording(fix: Fix, values: Mapping[str, object], texts: Mapping[str, str], *, last: bool) -> str:
    """How a fix is said where it fits; empty where it does not.

    Args:
        last: whether no other fits.
    """
    for condition, text in fix.fits:
        fits = condition.startswith(OTHERWISE) == last and _holds(condition, values)
        if fits and all(texts.get(name) for name in needed(text)):
            return sentence(text.format(**texts))
    return ""


def _holds(condition: str, values: Mapping[str, object]) -> bool:
    return all(
        expected == (str(values.get(name)) == value if value else bool(values.get(name)))
        for expected, name, value in terms(condition)
    )


def _calls(calls: Sequence[Call]) -> str:
    """`all_reduce on rank 0 (train.py:9), barrier on rank 1 (train.py:12)`; nothing of a single one."""
    texts = [
        f"{call.op} on {spoken(call.ranks)}" + (f" ({place(call.where)})" if call.where else "")
        for call in calls
    ]
    return ", ".join(texts) if len(texts) > 1 else ""


def _text(name: str, value: object) -> str:
    """A field as a text names it: a line by its place, ranks in words, without marks of Markdown."""
    if isinstance(value, Frame):
        value = place(value)
    elif isinstance(value, tuple):
        calls = [part for part in value if isinstance(part, Call)]
        value = _calls(calls) if calls else spoken(value) if value else ""
    elif isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str) or name in MARKDOWN:
        return value if isinstance(value, str) else ""
    return one_line(value).replace("`", "'")
