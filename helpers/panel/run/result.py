"""What a panel's methods return to a notebook cell: no widgets, the same in every run."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from ...model.facts import Cause, Outcome, Report
from ...report.report import stable_text
from ..show import view

HINTS_LATER = "Hints come after the first run. Run this cell again then."


class RunResult(msgspec.Struct, frozen=True):
    """The report of one run; shows the facts that are the same in every run, as text and as a picture.

    Attributes:
        name: of what ran: a program of a lab, or a command.
        report: everything, with pids, ports and seconds.
        results: what its ranks have written, in the order of the ranks.
    """

    name: str
    report: Report
    results: tuple[Mapping[str, object], ...] = ()

    @property
    def outcome(self) -> Outcome:
        """`ok`, `error`, `hang` or `running`."""
        return self.report.verdict.outcome

    @property
    def cause(self) -> Cause:
        """The name of the cause, `none` for a healthy run."""
        return self.report.verdict.cause

    def __repr__(self) -> str:
        return stable_text(self.report)

    def _repr_html_(self) -> str:
        return view.result(self.report)


class Hints(msgspec.Struct, frozen=True):
    """The hints of a lab, each folded into the one before it; none before the run they are about."""

    hints: tuple[str, ...]

    def __repr__(self) -> str:
        if not self.hints:
            return HINTS_LATER
        return f"{len(self.hints)} hints, folded; hints.hints[0] is the first"

    def _repr_html_(self) -> str:
        return view.hints(self.hints) or HINTS_LATER
