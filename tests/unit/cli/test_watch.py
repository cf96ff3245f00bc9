"""A session in a terminal and the signals that came while it ran."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest
from looks import FakeEyes, FakeJob

from helpers.cli.interrupts import Received, Signals
from helpers.cli.watch import Forms, watch
from helpers.model.facts import Report
from helpers.observe.look import Look, Watched
from helpers.session import Session

COMMAND = ("python", "train.py")
WATCHED = Watched(COMMAND, "/job", 1000, 0.0, host="here")


class Quick(Session):
    """Is over before a signal can be acted on."""

    def wait(self, _: float | None = None) -> Report:
        return super().wait(60)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 0)])
def test_after_an_interrupt_the_run_is_interrupted_however_soon_the_job_ends(
    number: signal.Signals, code: int, tmp_path: Path
) -> None:
    eyes = FakeEyes(WATCHED, [Look(0.2, status=0)])
    run = Quick(COMMAND, start_job=FakeJob, look_at=lambda _: eyes, pause=lambda _: False)
    file = tmp_path / "report.json"
    signals = Signals()
    signals.add(Received(number, 0.0, 0))
    assert watch(run, signals, Forms(str(file)), grace=1.0) == code
    assert json.loads(file.read_text())["interrupted"] is (code == 130)
