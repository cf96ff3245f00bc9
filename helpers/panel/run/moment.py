"""What a panel shows of a run at one moment."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ...model.facts import Report, Snapshot, Verdict
from ...report.source_lines import Sources
from .log_view import Lines


class Moment(msgspec.Struct, frozen=True):
    """A run up to now.

    Attributes:
        snapshots: in the order of time, at least one.
        verdict: what follows from them so far.
        logs: what the processes have printed.
        sources: gives source lines.
        report: None until the run is over.
        until: the least end of the time axis, in seconds; None for the newest snapshot.
    """

    snapshots: Sequence[Snapshot]
    verdict: Verdict
    logs: Lines
    sources: Sources
    report: Report | None = None
    until: float | None = None

    @property
    def newest(self) -> Snapshot:
        """The newest snapshot."""
        return self.snapshots[-1]
