"""What a lab is: its programs, knobs, expected reports and text, as frozen dataclasses."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ..model.facts import EXIT_CODES, Cause, Outcome

"""Exit code of the command line by outcome."""

VERDICTS = ("confirmed here", "refuted here", "not established", "needs a GPU")
"""What can have become of a claim."""

MINE = "mine"
"""Name of the program that is the learner's own copy."""

AT_LIMIT = ("kill", "freeze")
"""What becomes of a job's processes at its limit of memory."""

BY_CHANCE = "by chance"
"""As the culprits of an expected report: ranks that may be others next time."""

BEST = "best"
"""As a knob's default: the last of its values that this machine can run."""


@dataclass(frozen=True)
class Program:
    """One program of a lab: a file beside `lab.toml`, and what it is, in a few words.

    Attributes:
        knobs: names of the knobs that apply to it.
        needs: what it takes that a machine may lack, of `helpers.labs.requirements.NEEDS`.
    """

    name: str
    file: str
    text: str
    knobs: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Value:
    """One value of a knob, and what it does to the command.

    Attributes:
        text: what a person reads; the name, unless the lab says more.
        launcher: the words before the program's file.
        arguments: the words after it.
        environment: variables of the job.
        ranks: the world size, where it differs from the lab's.
        needs: what it takes that a machine may lack, of `helpers.labs.requirements.NEEDS`.
        memory: megabytes that the job may have, where `at_limit` of another value asks for a limit.
        at_limit: `kill` or `freeze` the job's processes at that limit.
    """

    name: str
    text: str
    launcher: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    ranks: int | None = None
    needs: tuple[str, ...] = ()
    memory: int | None = None
    at_limit: str = ""


@dataclass(frozen=True)
class Knob:
    """Something that a learner can turn: a name, a label and values.

    Attributes:
        default: one of the values, or `BEST`.
    """

    name: str
    label: str
    default: str
    values: Mapping[str, Value]


@dataclass(frozen=True)
class Expected:
    """What the instrument is to say of a program with some values of the knobs.

    Attributes:
        knobs: the values it holds for; a knob that is not named may have any.
        culprits: None where chance chooses them, as the kernel does when it kills for memory.
    """

    program: str
    knobs: Mapping[str, tuple[str, ...]]
    outcome: Outcome
    cause: Cause
    culprits: tuple[int, ...] | None

    @property
    def exit_code(self) -> int:
        """Exit code of the command line."""
        return EXIT_CODES[self.outcome]

    def covers(self, program: str, settings: Mapping[str, str]) -> bool:
        """True when it is about this program with these values."""
        return program == self.program and _within(settings, self.knobs)


@dataclass(frozen=True)
class Refused:
    """Values of the knobs that do not go together, and why, as a sentence."""

    knobs: Mapping[str, tuple[str, ...]]
    why: str

    def covers(self, settings: Mapping[str, str]) -> bool:
        """True when it is about these values."""
        return _within(settings, self.knobs)


@dataclass(frozen=True)
class Results:
    """Where a program leaves what it ended with.

    Attributes:
        environment: the variable that names the folder.
        file: name of the file of each rank; `{rank}` stands for its number.
        equal: keys whose values must be equal on all ranks.
        finite: keys whose values must be finite numbers.
    """

    environment: str
    file: str
    equal: tuple[str, ...]
    finite: tuple[str, ...]


@dataclass(frozen=True)
class Answer:
    """One answer to a prediction, and the value that the report's field has when it is right."""

    text: str
    value: object


@dataclass(frozen=True)
class Predict:
    """A question that the report of the broken program answers.

    Attributes:
        field: the key of the report's JSON that holds the truth.
        explanation: shown after the answer.
    """

    question: str
    field: str
    answers: tuple[Answer, ...]
    explanation: str

    def truth(self, report: Mapping[str, object]) -> str | None:
        """The answer that a report (as JSON) shows to be right, None when it is none of them."""
        found = report.get(self.field)
        return next((answer.text for answer in self.answers if answer.value == found), None)


@dataclass(frozen=True)
class Question:
    """One question of the quiz.

    Attributes:
        right: index of the right answer.
        explanation: why it is right.
        wrong: why each of the other answers is wrong, in their order; none where nothing is said.
    """

    question: str
    answers: tuple[str, ...]
    right: int
    explanation: str
    wrong: tuple[str, ...] = ()

    def said(self, answer: str) -> str:
        """What to make of an answer: a sentence that begins with right or no."""
        at = self.answers.index(answer)
        if at == self.right:
            return f"Right. {self.explanation}"
        why = self.wrong[at - (at > self.right)] if self.wrong else "Look again."
        return f"No. {why} Try another answer."


@dataclass(frozen=True)
class Claim:
    """One claim of the source document, what became of it, and what shows that."""

    claim: str
    verdict: str
    shown_by: str


@dataclass(frozen=True)
class LabFile:
    """A `lab.toml`, read and checked.

    Attributes:
        name: the lab's folder.
        minutes: how long a learner needs.
        ranks: the world size of every program, unless the value of a knob says another.
        max_seconds: how long a run may take.
        memory: megabytes that must be free before a run.
        disk: megabytes that must be free where its results go.
        environment: variables of every run; `{folder}` stands for the folder of the run.
        programs: by name, the learner's own copy (`mine`) last.
        copy_of: the program that the learner starts from.
        task: what the learner is asked to do.
    """

    name: str
    folder: Path
    title: str
    minutes: int
    needs: str
    ranks: int
    max_seconds: float
    memory: int
    disk: int
    environment: tuple[tuple[str, str], ...]
    programs: Mapping[str, Program]
    knobs: Mapping[str, Knob]
    expected: tuple[Expected, ...]
    refused: tuple[Refused, ...]
    results: Results
    predict: Predict
    hints: tuple[str, ...]
    quiz: tuple[Question, ...]
    claims: tuple[Claim, ...]
    references: tuple[str, ...]
    task: str
    copy_of: str


def combinations(lab: LabFile, program: str) -> Iterator[dict[str, str]]:
    """Every combination of values of the knobs that apply to a program, but those that are refused."""
    names = [name for name in lab.knobs if name in lab.programs[program].knobs]
    for values in itertools.product(*(lab.knobs[name].values for name in names)):
        settings = dict(zip(names, values, strict=True))
        if not any(one.covers(settings) for one in lab.refused):
            yield settings


def _within(settings: Mapping[str, str], knobs: Mapping[str, tuple[str, ...]]) -> bool:
    return all(settings.get(name) in values for name, values in knobs.items())
