"""The fixes of a cause's page, and which of them fit a case. No I/O.

In the page, a comment after a fix names the situation in which it fits, and says the fix in the user's
own lines: `<!-- call-on-some-ranks: Take `{call}` ({call_at}) out of `{statement}` ({parted}). -->`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ...model.facts import Fitting, Snapshot, Verdict
from ..pages import Fix
from ..scene import Facts
from .case import Case
from .situations import SITUATIONS


def fitting(fixes: Sequence[Fix], verdict: Verdict, snapshot: Snapshot) -> tuple[Fitting, ...]:
    """The fixes that fit what a run has come to, in the order of the page; none where that is not known.

    Of a fix that can be said in several ways, the first counts of which everything is known.
    """
    case = Case(verdict, Facts(snapshot))
    fields = case.fields()
    found = []
    for number, fix in enumerate(fixes, start=1):
        for name, text in fix.fits:
            if needed(text) <= fields.keys() and SITUATIONS[name](case):
                found.append(Fitting(number, text.format(**fields), fix.text))
                break
    return tuple(found)


def needed(text: str) -> set[str]:
    """The fields that a text names."""
    return set(re.findall(r"{(\w+)}", text))
