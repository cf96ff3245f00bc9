"""Logs of real jobs, from public threads: what is said of them, against what was judged by hand."""

from __future__ import annotations

import tomllib
from dataclasses import replace

from contract import violations
from repository import ROOT

from helpers.artifacts import job, program
from helpers.artifacts.files import Budget
from helpers.artifacts.reading import found_in
from helpers.diagnose.diagnose import diagnose
from helpers.model.facts import Verdict
from helpers.report.report import build, to_json

LOGS = ROOT / "tests" / "public_logs"
CASES = tomllib.loads((LOGS / "cases.toml").read_text())

NOTHING = ("unknown", "none")
"""What may always be said: a log need not hold the reason."""


def judged(name: str) -> Verdict | None:
    accounts = found_in(LOGS / name, Budget()).accounts
    if not accounts:
        return None
    seen = job.snapshot(accounts, program.sources(accounts))
    verdict = diagnose([replace(seen, time=seen.time - 1.0), seen], final=True)
    assert violations(to_json(build(verdict, seen))) == []
    return verdict


def test_no_log_gets_a_wrong_cause_and_most_get_the_right_one() -> None:
    wrong, right = [], 0
    for name, case in CASES.items():
        verdict = judged(name)
        cause = "none" if verdict is None else verdict.cause
        fits = cause in (case["cause"], *case.get("acceptable", ()))
        nothing = cause in NOTHING and case["cause"] in NOTHING
        right += fits or nothing
        if not fits and cause not in NOTHING:
            wrong.append(f"{name}: {cause}, not {case['cause']}")
        if verdict is not None and fits and case.get("culprits"):
            assert verdict.culprits in ((), tuple(case["culprits"])), name
    assert not wrong
    assert right >= 0.9 * len(CASES) >= 36
