"""Predictions: questions about a run that its report answers, asked before the report is shown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from zlib import crc32

from ..diagnose.scene import Facts
from ..model.clauses import standing
from ..model.facts import Cause, ProcessView, Report
from ..model.frames import Frame
from ..model.wording import by_number, doing, one_line, sentence, spoken, stack_of, where_of
from ..report.parts import matters
from ..report.report import to_json
from ..report.slow import shares
from .asked import Asked
from .declaration import Predict
from .statements import deciding
from .stragglers import straggler_questions

NOBODY = "no rank: the cause lies outside the job"
"""The answer for a report without a culprit."""

HANGS: dict[Cause, str] = {
    "collective-mismatch": "the ranks wait in calls that do not match",
    "missing-rank": "a rank is alive, and never arrives where it is waited for",
    "rank-exited": "a rank has ended without an error while others need it",
    "rank-crashed": "a signal has ended a rank while others need it",
    "rendezvous-incomplete": "not all ranks have joined, or not at the same place",
    "file-lock": "a lock file, or a lock on a file, that nobody will release",
    "worker-stall": "a DataLoader worker is stuck or has died",
    "shape-mismatch": "the ranks are in one operation, with different sizes",
}
"""The causes that a hang can have, in a few words."""

SEEN: dict[Cause, str] = {
    "collective-mismatch": "ranks would wait in different calls of one group under the same number",
    "missing-rank": "a rank would be at a line of its own, in no call that the others wait in",
    "rank-exited": "a rank would have ended without an error",
    "rank-crashed": "a signal would have ended a rank",
    "rendezvous-incomplete": "ranks would still wait for others to join",
    "file-lock": "a rank would wait for a lock file, or for a lock on a file",
    "worker-stall": "a rank would wait for a DataLoader worker",
    "shape-mismatch": "the ranks would be in one call under one number, with different sizes",
}
"""What is seen of each cause."""

COMMONEST: Cause = "collective-mismatch"
"""Always among the choices, so that its being there is no hint."""

CAUSES = 4
"""Causes offered as choices."""

LINES = 2
"""Lines of each process offered as choices, the innermost ones."""


def questions(report: Report, predict: Predict, source: Callable[[Frame], str]) -> tuple[Asked, ...]:
    """What can be asked about a run: questions with a choice, whose answer the report knows.

    Args:
        report: of the run.
        predict: the lab's own question.
        source: gives the text of a line of the job's code, empty when it cannot be read.
    """
    lab_question = own_question(report, predict)
    ranks = None if lab_question and predict.field == "culprits" else odd_one_out(report)
    candidates = (lab_question, ranks, _calls(report), _errors(report), _line(report, source))
    return tuple(question for question in candidates if question is not None and _open(question))


def practised(report: Report, source: Callable[[Frame], str]) -> tuple[Asked, ...]:
    """What is asked about a hang, or a slow job, of which nothing is known before.

    Args:
        source: as for `questions`.
    """
    if shares(report.verdict):
        return straggler_questions(report, source)
    candidates = (odd_one_out(report), _calls(report), _line(report, source), _cause(report))
    return tuple(question for question in candidates if question is not None and _open(question))


def own_question(report: Report, predict: Predict) -> Asked | None:
    """The lab's own question, scored by a report; None where none of its answers is right."""
    truth = predict.truth(to_json(report))
    if truth is None:
        return None
    answers = tuple(answer.text for answer in predict.answers)
    return Asked(predict.question, answers, frozenset([truth]), predict.explanation)


def _open(question: Asked) -> bool:
    choices = set(question.choices)
    if len(choices) < 2 or not question.right or not question.right <= choices:
        return False
    return question.several or question.right != choices


def odd_one_out(report: Report) -> Asked:
    """The question for the culprits: of several, all have to be named."""
    views = by_number(report.snapshot.ranks)
    stands = {view.rank: standing(view.process).singular for view in views if view.rank is not None}
    return Asked(
        "Which rank is the odd one out? If there is no majority, tick all of them.",
        (*(spoken([rank]) for rank in stands), NOBODY),
        frozenset(spoken([culprit]) for culprit in report.verdict.culprits) or frozenset([NOBODY]),
        report.verdict.summary,
        several=True,
        instead={
            spoken([rank]): _in_company(rank, stands)
            for rank in stands
            if rank not in report.verdict.culprits
        },
    )


def _in_company(rank: int, stands: Mapping[int, str]) -> str:
    """What speaks against a rank as the odd one out: others stand where it does; else empty."""
    alike = [peer for peer in stands if peer != rank and stands[peer] == stands[rank]]
    return f"{sentence(spoken([rank]))} {stands[rank]}, like {spoken(alike)}." if alike else ""


def _calls(report: Report) -> Asked | None:
    if report.verdict.outcome != "hang":
        return None
    views = by_number(report.snapshot.ranks)
    calls = {view.rank: one_line(doing(view.process)) for view in views if view.rank is not None}
    odd = frozenset(calls[rank] for rank in report.verdict.culprits if rank in calls)
    ranks = {call: spoken([rank for rank in calls if calls[rank] == call]) for call in calls.values()}
    return Asked(
        "What does the odd one do while the others wait?",
        tuple(sorted(ranks)),
        odd,
        report.verdict.detail,
        instead={call: f"There you find {who}." for call, who in ranks.items() if call not in odd},
    )


def _cause(report: Report) -> Asked:
    """The cause, the commonest one and others that chance chooses, for each hang in its own way."""
    causes: list[Cause] = [report.verdict.cause, COMMONEST]
    causes += sorted(HANGS, key=lambda cause: crc32(f"{cause}, {report.verdict.summary}".encode()))
    offered = [*dict.fromkeys(cause for cause in causes if cause in HANGS)][:CAUSES]
    labels = {cause: f"{cause}: {HANGS[cause]}" for cause in HANGS if cause in offered}
    right = labels.get(report.verdict.cause)
    return Asked(
        "What is the cause?",
        tuple(labels.values()),
        frozenset([right] if right else []),
        report.verdict.detail,
        instead={text: f"Then {SEEN[cause]}." for cause, text in labels.items() if text != right},
    )


def _errors(report: Report) -> Asked | None:
    first = Facts(report.snapshot).first
    if report.verdict.outcome != "error" or first is None or first.error is None:
        return None
    types = {process.error.type for process in _processes(report) if process.error}
    types |= {text.partition(":")[0] for text in report.verdict.masked if ":" in text}
    return Asked(
        "Which error came first, so that the others follow from it?",
        tuple(sorted(types)),
        frozenset([first.error.type] if first.where == report.verdict.where else []),
        first.text,
    )


def _line(report: Report, source: Callable[[Frame], str]) -> Asked | None:
    """The statement that decided where one is named, else the line of the first cause."""
    return deciding(report) or _first_line(report, source)


def _first_line(report: Report, source: Callable[[Frame], str]) -> Asked | None:
    verdict = report.verdict
    if verdict.where is None:
        return None
    right, text = {verdict.where}, "Which line is the first cause?"
    if verdict.outcome == "hang":
        text = "Which line is the odd one out at?"
        culprits = (view.process for view in report.snapshot.ranks if view.rank in verdict.culprits)
        alive = [process for process in culprits if process and process.ended is None]
        places = {where for process in alive if (where := where_of(process))}
        if not places:  # it has ended or never started: the line is of a rank that waits for it
            return None
        right |= places
    frames = {*right, *(frame for process in _processes(report) for frame in _frames(process))}
    ordered = sorted(frames, key=lambda frame: (frame.file, frame.line))
    names = {frame: one_line(f"{frame.file}:{frame.line}: {source(frame)}") for frame in ordered}
    return Asked(
        text,
        tuple(dict.fromkeys(names.values())),
        frozenset(names[frame] for frame in right),
        verdict.detail,
    )


def _frames(process: ProcessView) -> Iterable[Frame]:
    frames = [frame for frame in stack_of(process) if frame.user and not frame.file.startswith("<")]
    return frames[:LINES]


def _processes(report: Report) -> Iterator[ProcessView]:
    """The processes of the ranks, and their children that add something to the report."""
    for view in report.snapshot.ranks:
        if view.process is not None:
            yield view.process
        yield from (child.process for child in view.children if matters(child))
