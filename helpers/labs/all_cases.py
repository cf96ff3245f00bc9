"""Every program of the labs with every combination of its knobs: what is expected, what is reported."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import msgspec

from ..model.facts import Report
from ..observe.recording import Recorder
from ..report.stable import chosen_by_chance
from ..session import Session
from .declaration import BY_CHANCE, Expected
from .lab import Lab, LabError, RunFolder, beside_python
from .results import judge


class Case(msgspec.Struct, frozen=True):
    """One program with one value for each knob that applies to it.

    Attributes:
        alone: True for the program as a user starts it in a terminal, without what a lab adds.
    """

    lab: Lab
    program: str
    knobs: Mapping[str, str]
    alone: bool = False

    @property
    def shown(self) -> str:
        """`05_spawn_ports broken launcher=python`."""
        knobs = [f"{name}={value}" for name, value in self.knobs.items()]
        return " ".join([self.lab.name, self.program, *knobs, *(["alone"] if self.alone else [])])

    @property
    def expected(self) -> Expected:
        """What `lab.toml` says of it."""
        return self.lab.expected(self.program, self.knobs)

    @property
    def wanted(self) -> str:
        """The same in words, to be compared with `Result.verdict`."""
        expected = self.expected
        culprits = None if expected.culprits == BY_CHANCE else expected.culprits
        return words(expected.outcome, expected.cause, culprits)


class Result(msgspec.Struct, frozen=True):
    """What became of a case.

    Attributes:
        verdict: the outcome, the cause and the culprits, or why there is none.
        failed: what a run that ended well should have left and did not, one line each check.
        report: of the run; None when it was not started.
    """

    verdict: str
    seconds: float
    failed: tuple[str, ...] = ()
    report: Report | None = None


def cases(labs: Iterable[Lab]) -> Iterator[Case]:
    """All cases of some labs, in the order of their files; what should end well also runs alone."""
    for lab in labs:
        for program in lab.file.programs:
            for knobs in lab.file.combinations(program):
                yield Case(lab, program, knobs)
            alone = Case(lab, program, lab.settings(program, {}), alone=True)
            if alone.expected.outcome == "ok":
                yield alone


def run(case: Case, record: Path | None = None) -> Result:
    """Run a case, and judge what its ranks have left when it is expected to end well.

    Args:
        record: file for a recording of the run, None for no recording.
    """
    begun = time.monotonic()
    try:
        with RunFolder() as folder:
            session = _session(case, folder)
            if record is not None:
                session.record(Recorder(record))
            session.start()
            try:
                report = session.wait()
            except BaseException:
                session.stop()
                raise
            failed: tuple[str, ...] = ()
            if case.expected.outcome == "ok" and not case.alone:
                judgement = judge(case.lab, case.program, report, folder, case.knobs)
                failed = tuple(f"{c.what}: {c.why}" for c in judgement.checks if not c.passed)
    except LabError as refused:
        return Result(str(refused), time.monotonic() - begun)
    return Result(_of_report(report), time.monotonic() - begun, failed, report)


def _session(case: Case, folder: Path) -> Session:
    lab = case.lab
    if not case.alone:
        return lab.session(case.program, folder=folder, **case.knobs)
    program, *arguments = lab.command(case.program, case.knobs)
    return Session(
        [beside_python(program), *arguments], cwd=lab.folder, max_seconds=lab.file.max_seconds
    )


def main(labs: Iterable[Lab]) -> int:
    """Run all cases that this machine can run, and print a line for each.

    Returns:
        0 when every one gives what is expected of it, else 1.
    """
    listed = [(case, case.lab.lacking(case.program, case.knobs)) for case in cases(labs)]
    width = max((len(case.shown) for case, why in listed if not why), default=0)
    counted: Counter[str] = Counter()
    print(f"{'':4}  {'program and settings':{width}}  {'expected':36}  {'got':36}  seconds", flush=True)
    for case, why in listed:
        if why:
            counted[f"skipped: {why}"] += 1
            continue
        wanted, result = case.wanted, run(case)
        word = "ok" if result.verdict == wanted and not result.failed else "DIFF"
        counted[word] += 1
        line = f"{word:4}  {case.shown:{width}}  {wanted:36}  {result.verdict:36}  {result.seconds:7.1f}"
        print("\n      ".join([line, *result.failed]), flush=True)
    print(f"{counted.pop('ok', 0)} as expected, {counted['DIFF']} not")
    for reason in sorted(set(counted) - {"DIFF"}):
        print(f"{counted[reason]} {reason}")
    return int(counted["DIFF"] > 0)


def _of_report(report: Report) -> str:
    verdict = report.verdict
    culprits = None if chosen_by_chance(report) else verdict.culprits
    return words(verdict.outcome, verdict.cause, culprits)


def words(outcome: str, cause: str, culprits: Iterable[int] | None) -> str:
    """Outcome, cause and culprits in one phrase; None for culprits that chance chooses."""
    ranks = BY_CHANCE if culprits is None else ", ".join(map(str, culprits))
    return outcome if cause == "none" else f"{outcome} {cause} [{ranks}]"
