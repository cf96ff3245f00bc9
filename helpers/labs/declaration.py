"""What a `lab.toml` says: programs, knobs, expected reports and texts, checked when it is read.

Each class is one table of the file and refuses keys that it does not have. A ValueError that a class
raises reaches the reader with the place of the table (see `helpers.labs.toml_file`).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, get_args

from msgspec import Meta, Struct

from ..model.facts import EXIT_CODES, Cause, Outcome
from .by_hand import ByHand
from .questions import Claim, Question
from .stage import Stage
from .toml_file import Text, Texts, one_of

Whole = Annotated[int, Meta(ge=1)]

Need = Literal[
    "one-gpu", "two-gpus", "gpu-per-rank", "compiler", "deepspeed", "transformers", "oom-stall"
]
"""What a run may take that a machine may lack. `gpu-per-rank` is what NCCL needs; `compiler` is a C++
compiler and ninja, for torch's extensions; `oom-stall` is a memory control group in which the kernel
stalls a process that finds no memory instead of killing one."""

Hardware = Literal["cpu", "one-gpu", "multi-gpu"]

MINE = "mine"
"""Name of the program that is the learner's copy of the broken one; further turns have other names."""

BY_CHANCE: Literal["by chance"] = "by chance"
"""As the culprits of an expected report: chance chooses, as when the kernel kills for memory."""

BY_HAND = "by hand"
"""The step that is done in a terminal; no turn has this name."""

AT_ONCE, ANSWERED = "run", "answered"
"""The steps of `Shows` that are no turn."""

BEST = "best"
"""As a knob's default: the last of its values that this machine can run."""

Choices = Mapping[str, Text | Texts]
"""Values of some knobs: one, or any of several."""


class _Table(Struct, frozen=True, forbid_unknown_fields=True):
    """A table of the file."""


class Program(_Table, frozen=True):
    """One program of a lab: a file next to `lab.toml`, and what it is, in a few words.

    Attributes:
        knobs: names of the knobs that apply to it; all when None.
        needs: what it takes that a machine may lack.
    """

    file: Text
    text: Text
    knobs: tuple[Text, ...] | None = None
    needs: tuple[Need, ...] = ()


class Value(_Table, frozen=True):
    """One value of a knob, and what it does to the command.

    Attributes:
        text: what a person reads; the value's name when empty.
        launcher: the words before the program's file.
        arguments: the words after it.
        environment: variables of the job.
        ranks: the world size, where it differs from the lab's.
        needs: what it takes that a machine may lack.
        memory_limit_mb: megabytes that the job may have, where `at_limit` of another value asks for a
            limit.
        at_limit: what the kernel does to the job's processes at that limit.
    """

    text: str = ""
    launcher: tuple[Text, ...] = ()
    arguments: tuple[Text, ...] = ()
    environment: dict[str, str] = {}
    ranks: Whole | None = None
    needs: tuple[Need, ...] = ()
    memory_limit_mb: Whole | None = None
    at_limit: Literal["kill", "stall"] | None = None


class Knob(_Table, frozen=True):
    """Something that a learner can turn: a label and values.

    Attributes:
        default: one of the values, or `BEST`.
    """

    label: Text
    default: Text
    values: Annotated[dict[str, Value], Meta(min_length=1)]

    def __post_init__(self) -> None:
        one_of("default", self.default, (*self.values, BEST))


class Expected(_Table, frozen=True):
    """What the instrument has to say about a program with some values of the knobs.

    Attributes:
        knobs: the values it holds for; a knob that is not named may have any.
    """

    program: Text
    outcome: Outcome
    cause: Cause
    culprits: tuple[int, ...] | Literal["by chance"]
    knobs: Choices = {}

    @property
    def exit_code(self) -> int:
        """Exit code of the command line."""
        return EXIT_CODES[self.outcome]

    def covers(self, program: str, settings: Mapping[str, str]) -> bool:
        """True when it is about this program with these values."""
        return program == self.program and _within(settings, self.knobs)


class Refused(_Table, frozen=True):
    """Values of the knobs that do not go together, and why, as a sentence."""

    knobs: Choices
    why: Text

    def covers(self, settings: Mapping[str, str]) -> bool:
        """True when it is about these values."""
        return _within(settings, self.knobs)


class Results(_Table, frozen=True):
    """Where a program leaves what it ended with.

    Attributes:
        environment: the variable that names the folder.
        file: name of the file of each rank; `{rank}` stands for its number.
        equal: keys whose values must be equal on all ranks.
        finite: keys whose values must be finite numbers.
    """

    environment: Text
    file: Text
    equal: Texts
    finite: Texts

    def __post_init__(self) -> None:
        if "{rank}" not in self.file:
            raise ValueError("{rank} is missing in `file`, so all ranks would write one file")


class Answer(_Table, frozen=True):
    """One answer to a prediction, and the value that the report's field has when it is right."""

    text: Text
    value: Any


class Predict(_Table, frozen=True):
    """A question that the report of the broken program answers.

    Attributes:
        field: the key of the report's JSON that holds the truth.
        explanation: shown after the answer.
    """

    question: Text
    field: Text
    answers: Annotated[tuple[Answer, ...], Meta(min_length=1)]
    explanation: Text

    def truth(self, report: Mapping[str, object]) -> str | None:
        """The answer that a report (as JSON) shows to be right, None when it is none of them."""
        value = report.get(self.field)
        return next((answer.text for answer in self.answers if answer.value == value), None)


class Document(_Table, frozen=True):
    """The source document of a lab.

    Attributes:
        title: in the document's own language.
        translated: the title in English.
        language: of the document, in English.
        published: where or when, and by whom; as much as is known.
    """

    title: Text
    translated: Text
    language: Text
    published: Text


class _Condition(_Table, frozen=True, kw_only=True, tag_field="of"):
    """What the task asks of a run that ends well.

    Attributes:
        what: the condition, as a short sentence.
        otherwise: what to say where it does not hold.
        knobs: the runs that it is about; all when empty.
    """

    what: Text
    otherwise: Text
    knobs: Choices = {}

    def covers(self, settings: Mapping[str, str]) -> bool:
        """True when it is about a run with these values."""
        return _within(settings, self.knobs)


class ResultIs(_Condition, frozen=True, kw_only=True, tag="result"):
    """Each rank has left this value under a key of its result.

    Attributes:
        within: how far a number may be from it, as a share of it.
    """

    key: Text
    value: bool | int | float | str
    within: float = 0.0


class Printed(_Condition, frozen=True, kw_only=True, tag="output"):
    """These ranks, and no others, have printed a line with this text in it."""

    text: Text
    ranks: tuple[int, ...]


class HasWorkers(_Condition, frozen=True, kw_only=True, tag="workers"):
    """Each rank has had a DataLoader worker with this text in its command line, which made its batches.

    Attributes:
        batches: how many the workers of a rank have to make at least; the rank itself may make none.
    """

    command: Text
    batches: Whole = 1


class Outside(_Condition, frozen=True, kw_only=True, tag="outside"):
    """A function has been called, and never while a context was open.

    Attributes:
        function, block: the function, and the one that makes the context, as `module:Class.name`.
    """

    function: Text
    block: Text


class Called(_Condition, frozen=True, kw_only=True, tag="called"):
    """Each rank has called some functions, all together, so many times.

    Attributes:
        functions: as `module:Class.name`; a call by way of another of them counts once more.
    """

    functions: Texts
    times: Whole = 1


class Checkpoints(_Condition, frozen=True, kw_only=True, tag="checkpoints"):
    """The run has left these files of `torch.save`: complete, finite, and each with another state.

    Attributes:
        files: in the order in which they were saved, as named in the folder of the run.
        tensors: how many each of them holds.
        sum_is: key of the result that has the sum of all values of the last one; any when empty.
    """

    files: Texts
    tensors: Whole
    sum_is: str = ""


class Private(_Condition, frozen=True, kw_only=True, tag="memory"):
    """No look at a rank has found more private memory: what is neither of a file nor shared.

    Attributes:
        most_mb: megabytes that a rank may have, beyond what importing torch takes on this machine.
    """

    most_mb: Whole


Condition = ResultIs | Printed | HasWorkers | Outside | Called | Checkpoints | Private


class Turn(_Table, frozen=True):
    """What the learner is asked to do with a copy of a program.

    Attributes:
        file: the learner's copy.
        copy_of: the program that it starts from.
        solution: a program that does what the task asks.
        conditions: what the task says beyond a run that ends well.
    """

    file: Text
    copy_of: Text
    solution: Text
    task: Text
    conditions: tuple[Condition, ...] = ()


class Shows(_Table, frozen=True):
    """At which step the report of a program may show what, where the program hangs or fails.

    A step is `run` (at once), `answered` (the questions on the run) or the name of a turn (its check
    has passed).

    Attributes:
        culprits: the odd ones out and the cause.
        statement: the line and the statement that decided.
        fix: what to do.
    """

    culprits: Text = ANSWERED
    statement: Text = ANSWERED
    fix: Text = ANSWERED

    @property
    def steps(self) -> dict[Stage, str]:
        """The step of each stage, in their order."""
        return {Stage.CULPRITS: self.culprits, Stage.STATEMENT: self.statement, Stage.FIX: self.fix}


class LabFile(_Table, frozen=True):
    """A `lab.toml`.

    Attributes:
        place: where the lab stands on the path through the guide; the first is 1.
        minutes: how long a learner needs.
        needs: what a learner's machine needs, in words.
        ranks: the world size of every program, unless the value of a knob says another.
        max_seconds: how long a run may take.
        memory_mb: megabytes that must be free before a run.
        disk_mb: megabytes that must be free where its results go.
        environment: variables of every run; `{folder}` stands for the folder of the run.
        turns: what the learner is asked to do, by the name of the copy; `MINE` first.
        by_hand: what the learner finds out in a terminal.
        quiz: asked at the end of the lab; those with a dump or a number come back in later labs.
        shows: by program, at which step its report may show what; of others all once the questions are
            answered.
        notes_on: what differs, on this hardware, from a machine that has everything; for `check`.
    """

    title: Text
    place: Whole
    minutes: Whole
    needs: Text
    ranks: Whole
    max_seconds: Whole
    hints: Texts
    references: Texts
    programs: Annotated[dict[str, Program], Meta(min_length=1)]
    turns: dict[str, Turn]
    knobs: Annotated[dict[str, Knob], Meta(min_length=1)]
    expected: Annotated[tuple[Expected, ...], Meta(min_length=1)]
    results: Results
    predict: Predict
    by_hand: ByHand
    quiz: Annotated[tuple[Question, ...], Meta(min_length=1)]
    document: Document
    claims: Annotated[tuple[Claim, ...], Meta(min_length=1)]
    refused: tuple[Refused, ...] = ()
    environment: dict[str, str] = {}
    memory_mb: Whole = 1
    disk_mb: Whole = 1
    notes_on: dict[str, Text] = {}
    shows: dict[str, Shows] = {}

    def __post_init__(self) -> None:
        one_of("turns", MINE, self.turns)
        one_of("by_hand.program", self.by_hand.program, self.programs)
        applying = self.applying(self.by_hand.program)
        self._check_choices("by_hand.knobs", self.by_hand.knobs, applying)
        for name in self.knobs:
            if not name.isidentifier() or name in ("self", "program", "folder"):
                raise ValueError(f"knobs.{name}: this cannot be the name of a knob")
        for name, program in self.programs.items():
            for knob in program.knobs or ():
                one_of(f"programs.{name}.knobs", knob, self.knobs)
        for name in self.notes_on:
            one_of("notes_on", name, get_args(Hardware))
        for name, turn in self.turns.items():
            self._check_turn(name, turn)
        for name, shows in self.shows.items():
            one_of("shows", name, self.programs)
            for stage, step in shows.steps.items():
                place = f"shows.{name}.{stage.name.lower()}"
                one_of(place, step, (AT_ONCE, ANSWERED, *self.turns))
        for number, refused in enumerate(self.refused):
            self._check_choices(f"refused[{number}].knobs", refused.knobs, tuple(self.knobs))
        for number, expected in enumerate(self.expected):
            one_of(f"expected[{number}].program", expected.program, self.programs)
            applying = self.applying(expected.program)
            self._check_choices(f"expected[{number}].knobs", expected.knobs, applying)
        for name in self.programs:
            self._check_expected_once(name)

    def applying(self, program: str) -> tuple[str, ...]:
        """Names of the knobs that apply to a program."""
        knobs = self.programs[program].knobs
        return tuple(self.knobs) if knobs is None else knobs

    def shows_of(self, program: str) -> Shows:
        """At which step a program's report may show what; of the learner's copy, as of the original.

        Where nothing else is said, the fix that a turn asks for is shown once its check has passed.
        """
        original = self.turns[program].copy_of if program in self.turns else program
        asking = (name for name, turn in self.turns.items() if turn.copy_of == original)
        return self.shows.get(original, Shows(fix=next(asking, ANSWERED)))

    def combinations(self, program: str) -> Iterator[dict[str, str]]:
        """Every combination of values of a program's knobs, except those that are refused."""
        names = [name for name in self.knobs if name in self.applying(program)]
        for values in itertools.product(*(self.knobs[name].values for name in names)):
            settings = dict(zip(names, values, strict=True))
            if not any(refused.covers(settings) for refused in self.refused):
                yield settings

    def _check_turn(self, name: str, turn: Turn) -> None:
        if name in self.programs:
            raise ValueError(f"turns.{name}: there is a program of this name")
        one_of(f"turns.{name}.copy_of", turn.copy_of, self.programs)
        one_of(f"turns.{name}.solution", turn.solution, self.programs)
        applying = self.applying(turn.copy_of)
        for number, condition in enumerate(turn.conditions):
            place = f"turns.{name}.conditions[{number}].knobs"
            self._check_choices(place, condition.knobs, applying)

    def _check_choices(self, place: str, choices: Choices, applying: tuple[str, ...]) -> None:
        for name, values in choices.items():
            one_of(place, name, applying)
            for value in _several(values):
                one_of(f"{place}.{name}", value, self.knobs[name].values)

    def _check_expected_once(self, program: str) -> None:
        for settings in self.combinations(program):
            times = sum(expected.covers(program, settings) for expected in self.expected)
            if times != 1:
                shown = ", ".join(f"{name} {value}" for name, value in settings.items())
                count = "no report is" if times == 0 else f"{times} reports are"
                raise ValueError(f"expected: {count} expected of {program} with {shown or 'no knobs'}")


def _several(values: str | tuple[str, ...]) -> tuple[str, ...]:
    return (values,) if isinstance(values, str) else values


def _within(settings: Mapping[str, str], knobs: Choices) -> bool:
    return all(settings.get(name) in _several(values) for name, values in knobs.items())
