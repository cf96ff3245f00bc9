"""What the prose of a lesson says of its programs and runs, and what of it these do not show.

A lesson is one Markdown text. Its fenced blocks are what it shows: listings, dumps and the outputs of
its runs. The rest is prose, and the rules below hold the one against the other.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple, get_args

from helpers.model.facts import Cause

BLOCK = re.compile(r"^```(.*)\n((?:.*\n)*?)^```", re.M)
QUOTATION = re.compile(r"^>.*", re.M)
SENTENCE_END = re.compile(r"(?<=[.?!])\s|\n\n|\n(?=[-|#])")
LINES = re.compile(
    r"`(?P<file>\w+\.py)(?P<at>:\d+`(?:, `:\d+`)*)"
    r"|\b[Ll]ines? (?P<lines>\d+(?: (?:and|to) \d+)?)"
    r"|^\| (?P<row>\d+)(?=, `)",
    re.M,
)
FRAGMENT = re.compile(r"`([^`]+)`")
JUST_BEFORE = re.compile(r"`([^`]+)`(?:,| in) $")
JUST_AFTER = re.compile(r"(?:[\w ]{0,14}:| \(|,| \|)? ?`([^`]+)`")
CALLED = re.compile(r"^ +(\S+) \(\S+\.py:\d+\)\n(?= +\S+ \((?:\S+/)?(\w+\.py):(\d+)\)$)", re.M)
IMPLICIT = re.compile(r"__\w+__$|\bforward$|<locals>")
"""Functions that a line calls without their names: special methods, and wrappers."""

RAISED = re.compile(r'File "(?:[^"]*/)?(\w+\.py)", line (\d+), in \S+\n(?:\[rank\d\]:)? *(.+)')
SHOWN = re.compile(r"\b(\w+\.py)(?::|\", line )(\d+)")
VERDICT = re.compile(
    r"`(where|parted)`(?:\]\([^)]*\))? is line (\d+)|\b(parted) at line (\d+)"
    r"|line (\d+), where the ranks (parted)|names line (\d+)[^.]* (parted)"
)
NUMBER = re.compile(r"(?:(?<![\w(])#|\b[Nn]umbers? )(\d+)")
HYPOTHESIS = re.compile(r"\bwould\b|\bIf\b")
PROCESS = re.compile(
    r"\b(?:[Pp]rocess(?:es)?|pids?|[Pp]orts?|(world size)(?: of)?) (\d+)(?: and (\d+))?"
)
CAUSE = re.compile(r"\b(?:cause|hang|error),? `([a-z]+(?:-[a-z]+)*)`")


def blanked(found: re.Match[str]) -> str:
    """As many characters, so that what is left keeps its place."""
    return re.sub(r"\S", " ", found[0])


@dataclass(frozen=True)
class Lesson:
    """A text, the lines of the programs that it is about, and what its reader has seen before it."""

    text: str
    programs: Mapping[str, Sequence[str]]
    before: Lesson | None = None

    @cached_property
    def prose(self) -> str:
        return QUOTATION.sub(blanked, BLOCK.sub(blanked, self.text))

    @cached_property
    def blocks(self) -> str:
        return "\n".join(block[2] for block in BLOCK.finditer(self.text))

    @cached_property
    def shown(self) -> str:
        """What all blocks so far show, and the values that commands in the prose set."""
        before = self.before.shown if self.before else ""
        return "\n".join([before, self.blocks, *re.findall("`[^`\n]*=[^`\n]*`", self.prose)])

    @cached_property
    def known(self) -> set[tuple[str, int]]:
        """The lines that a dump or an output shows, or of which the prose quotes a fragment."""
        known = {(program, int(number)) for program, number in SHOWN.findall(self.shown)}
        for named in mentions(self):
            if quoted(named.fragments, line_of(self, named.program, named.number)):
                known.add((named.program, named.number))
        return known | self.before.known if self.before else known

    def sentence(self, place: int, ends: re.Pattern[str] = SENTENCE_END) -> tuple[int, str]:
        """The sentence of a place in the prose, and where it begins."""
        starts = [0, *(end.end() for end in ends.finditer(self.prose)), len(self.prose) + 1]
        start, stop = next((a, b) for a, b in pairwise(starts) if a <= place < b)
        return start, self.prose[start:stop]

    def program_at(self, place: int) -> str:
        """The program that a place is about: one named in its sentence, or else the last before."""
        stems = "|".join(name.removesuffix(".py") for name in self.programs)
        named = re.compile(rf"(?<!\w)({stems})\.py\b|`({stems})`|lab\.run\(\"({stems})\"")
        start, sentence = self.sentence(place)
        nearest = min(
            named.finditer(self.text, 0, start + len(sentence)),
            key=lambda it: (it.start() < start, it.start() > place, abs(it.start() - place)),
            default=None,
        )
        if nearest:
            return f"{nearest[1] or nearest[2] or nearest[3]}.py"
        return self.before.program_at(len(self.before.text)) if self.before else ""


class Mention(NamedTuple):
    """A line that the prose names, the code in its sentence, and what of that is right beside it."""

    program: str
    number: int
    sentence: str
    fragments: list[str]
    beside: list[str]


def mentions(lesson: Lesson) -> Iterator[Mention]:
    """The lines of its programs that the prose names."""
    for found in LINES.finditer(lesson.prose):
        program = found["file"] or lesson.program_at(found.start())
        start, sentence = lesson.sentence(found.start())
        fragments = FRAGMENT.findall(sentence)
        beside = JUST_BEFORE.findall(lesson.prose[start : found.start()])
        if after := JUST_AFTER.match(lesson.prose, found.end()):
            beside.append(after[1])
        if " to " in (found["lines"] or ""):
            beside = fragments
        beside = [code for code in beside if code.removesuffix(".py") + ".py" not in lesson.programs]
        if not found["file"] or program in lesson.programs:
            for number in re.findall(r"\d+", found["at"] or found["lines"] or found["row"]):
                yield Mention(program, int(number), sentence, fragments, beside)


def line_of(lesson: Lesson, program: str, number: int) -> str:
    """The line without its indent and its mark; empty if the program has no such line, or a comment."""
    lines = lesson.programs.get(program, [])
    line = lines[number - 1].strip() if 0 < number <= len(lines) else ""
    return re.sub(r"(^|  )#.*", "", line)


def quoted(fragments: Iterable[str], line: str) -> bool:
    """Whether one of some fragments of code is on a line; `f(...)` leaves out what it likes."""
    for fragment in fragments:
        parts = ".*".join(re.escape(part) for part in fragment.split("..."))
        if line and (fragment.endswith(line) or re.search(rf"(?<!\w){parts}(?!\w)", line)):
            return True
    return False


def wrong_lines(lesson: Lesson) -> list[str]:
    """Lines of which the reader sees nothing, or that do not hold the code written right beside them."""
    wrong = []
    for named in mentions(lesson):
        line = line_of(lesson, named.program, named.number)
        seen = (named.program, named.number) in lesson.known
        if not (line and seen) or (named.beside and not quoted(named.beside, line)):
            wrong.append(f"{named.program}:{named.number} in: {named.sentence}")
    return wrong


def wrong_listings(lesson: Lesson) -> list[str]:
    """Lines of numbered listings that are not those of the program named last."""
    wrong = []
    for block in BLOCK.finditer(lesson.text):
        if block[1] == "python" and re.match(r" *\d+  ", block[2]):
            program = lesson.program_at(block.start())
            lines = [re.sub(r"  # <-.*", "", line) for line in lesson.programs.get(program, [])]
            numbered = {f"{number:3}  {line}".rstrip() for number, line in enumerate(lines, 1)}
            wrong += sorted({*block[2].splitlines()} - numbered - {"..."})
    return wrong


def wrong_frames(lesson: Lesson) -> list[str]:
    """Frames whose line is not the one that a traceback prints, or does not name what it calls."""
    called = [
        (program, number, callee.rpartition(".")[2])
        for callee, program, number in CALLED.findall(lesson.blocks)
        if not IMPLICIT.search(callee)
    ]
    return [
        f"{program}:{number} has no {code}"
        for program, number, code in [*called, *RAISED.findall(lesson.blocks)]
        if program in lesson.programs and code not in line_of(lesson, program, int(number))
    ]


def wrong_verdicts(lesson: Lesson) -> list[str]:
    """Lines said to be where a report says that the ranks parted, or that the cause shows."""
    wrong = []
    for found in VERDICT.finditer(lesson.prose):
        words = [group for group in found.groups() if group]
        field, number = sorted(words, key=str.isdigit)
        if not re.search(
            rf"^{field}: {lesson.program_at(found.start())}:{number}\b", lesson.shown, re.M
        ):
            wrong.append(found[0])
    return wrong


def sequence_numbers(shown: str) -> set[str]:
    """The sequence numbers in reports, logs and tables."""
    numbers = set(re.findall(r"(?:#|[Ss]eq\w*[Nn]um\w*=|sequence number: )(\d+)", shown))
    for head, rows in re.findall(r"^(.*\bseq\b.*)\n((?:\d.*\n)+)", shown, re.M):
        column = head.split().index("seq")
        numbers |= {row.split()[column] for row in rows.splitlines()}
    return numbers


def wrong_numbers(lesson: Lesson) -> list[str]:
    """Sequence numbers, process ids, ports and world sizes that nothing shows."""
    numbers, clause = sequence_numbers(lesson.shown), re.compile(rf"{SENTENCE_END.pattern}|; ")
    wrong = [
        found[0]
        for found in NUMBER.finditer(lesson.prose)
        if found[1] not in numbers and not HYPOTHESIS.search(lesson.sentence(found.start(), clause)[1])
    ]
    for found in PROCESS.finditer(lesson.prose):
        before = f"{found[1]} " if found[1] else r"\b"
        if not all(
            re.search(rf"{before}{number}\b", lesson.shown) for number in found.groups()[1:] if number
        ):
            wrong.append(found[0])
    return wrong


def wrong_causes(lesson: Lesson) -> list[str]:
    """Causes that do not exist, or that no run of the lesson ends with."""
    ended = set(re.findall(r"cause: (\S+)", lesson.shown)) & set(get_args(Cause))
    return [found[0] for found in CAUSE.finditer(lesson.prose) if found[1] not in ended]
