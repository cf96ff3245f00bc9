"""Logs of real jobs, from public threads: what is said of them, against what was judged by hand."""

from __future__ import annotations

import tomllib
from pathlib import Path

from contract import violations
from repository import ROOT

from helpers.artifacts.artifacts import read
from helpers.model.facts import Verdict
from helpers.report.report import to_json
from helpers.session import report_of_artifacts

LOGS = ROOT / "tests" / "public_logs"
CASES = tomllib.loads((LOGS / "cases.toml").read_text())

NOTHING = ("unknown", "none")
"""What may always be said: a log need not hold the reason."""

TELLABLE = [name for name, case in CASES.items() if case["cause"] not in NOTHING]
"""Those from which a person can tell the cause."""


def judged(path: Path) -> Verdict:
    report, _ = report_of_artifacts(read([str(path)]))
    assert violations(to_json(report)) == []
    _quoted_as_it_stands(report.verdict.evidence)
    return report.verdict


def _quoted_as_it_stands(evidence: tuple[str, ...]) -> None:
    """Each line that is quoted is in the file at that number."""
    for entry in evidence:
        file, number, text = entry.split(":", 2)
        assert text.strip() in Path(file).read_text().splitlines()[int(number) - 1], entry


def test_no_log_gets_a_wrong_cause_and_most_get_the_right_one() -> None:
    wrong, named = [], set()
    for name, case in CASES.items():
        verdict = judged(LOGS / name)
        accepted = {case["cause"], *case.get("acceptable", ())}
        if verdict.cause not in accepted | {*NOTHING}:
            wrong.append(f"{name}: {verdict.cause}, not {case['cause']}")
        if verdict.cause in accepted - {*NOTHING}:
            named.add(name)
        if verdict.cause in accepted and case.get("culprits"):
            assert verdict.culprits in ((), tuple(case["culprits"])), name
    assert not wrong
    assert len(named & {*TELLABLE}) >= 0.93 * len(TELLABLE) >= 43
