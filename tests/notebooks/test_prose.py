"""What the lessons say of the guide's own programs and runs is what these are: line, number, cause."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import nbformat
import prose
import pytest
from lessons import outputs_of
from prose import Lesson

from helpers.diagnose.pages import explained
from helpers.labs import pages
from helpers.labs.lab import all_labs, labs_folder
from helpers.model.terms import TERMS

NOTEBOOKS = sorted(
    path for path in labs_folder().rglob("*.ipynb") if ".ipynb_checkpoints" not in path.parts
)
ON_TRIAL = [path for path in NOTEBOOKS if path.with_name("lab.toml").is_file() or path.stem == "method"]
SAYS_AGAIN = re.compile(r"\brecall\(|lab\.(quiz|predict|claims)\b")
"""Cells whose output is text of a lab.toml, which is on trial itself."""

FIELDS = ("where", "parted", "masked", "culprits")
SHOWN_FIRST = ("question", "dump", "least")
ASKED = ("hints", "predict", "quiz", "claims", "turns")
RULES = [
    prose.wrong_lines,
    prose.wrong_listings,
    prose.wrong_frames,
    prose.wrong_verdicts,
    prose.wrong_numbers,
    prose.wrong_causes,
]


def programs_of(notebook: Path, text: str) -> dict[str, list[str]]:
    """The programs beside a notebook, and those that its text saves under another name."""
    own = {turn.file for lab in all_labs() for turn in lab.file.turns.values()}
    files = {path.name: path for path in notebook.parent.glob("*.py") if path.name not in own}
    saved = re.findall(r"\]\((\S+\.py)\), saved as `(\w+\.py)`", text)
    files |= {name: notebook.parent / target for target, name in saved}
    return {name: path.read_text(encoding="utf-8").splitlines() for name, path in files.items()}


def outputs(cell: Any) -> Iterator[str]:
    for output in cell.get("outputs", []):
        yield output.get("text", "") + output.get("data", {}).get("text/plain", "")


def lesson_of(notebook: Path) -> Lesson:
    """A notebook as its reader has it in the end, code and outputs in fenced blocks."""
    parts = []
    for cell in nbformat.read(outputs_of(notebook), as_version=4).cells:
        if cell.cell_type == "markdown":
            parts.append(cell.source)
        elif not SAYS_AGAIN.search(cell.source):
            parts += [f"```\n{shown.strip()}\n```" for shown in (cell.source, *outputs(cell))]
    text = "\n\n".join(parts)
    return Lesson(text, programs_of(notebook, text))


def texts_of(item: Any, key: str = "") -> Iterator[str]:
    """The texts of a part of a lab.toml; in blocks what a question shows, and the number it asks for."""
    if isinstance(item, dict):
        for name, value in item.items():
            yield from texts_of(value, name)
    elif isinstance(item, list):
        for value in item:
            yield from texts_of(value)
    elif key == "dump":
        yield f"```\n{item.strip()}\n```"
    elif key == "least":
        yield f"```\n#{item}\n```"
    elif isinstance(item, str):
        yield item


@cache
def lessons_of(notebook: Path) -> list[Lesson]:
    """A notebook, then each question, claim, hint and task of its lab, with what the notebook shows."""
    lesson, declared = lesson_of(notebook), notebook.with_name("lab.toml")
    page = notebook.with_name(pages.FILE)
    if page.is_file() and notebook.stem == notebook.parent.name:
        questions = tomllib.loads(page.read_text(encoding="utf-8"))["questions"]
        return [lesson, *(text for item in questions for text in asked(item, lesson, "train.py"))]
    if not declared.is_file():
        return [lesson]
    table = tomllib.loads(declared.read_text(encoding="utf-8"))
    # Runs of the lab hold these, also for settings that no cell runs.
    ends = "".join(f"cause: {run['cause']}\n" for run in table["expected"])
    lesson = replace(lesson, before=Lesson(f"```\n{ends}```", lesson.programs))
    parts = [table[name] for name in ASKED]
    items = [item for part in parts for item in (part if isinstance(part, list) else [part])]
    return [lesson, *(text for item in items for text in asked(item, lesson))]


def asked(item: Any, lesson: Lesson, program: str = "broken.py") -> Iterator[Lesson]:
    """A question and what it shows, then each of its other texts, which its reader sees one by one."""
    first = {key: item.pop(key) for key in SHOWN_FIRST if key in item} if isinstance(item, dict) else {}
    question = replace(lesson, text="\n\n".join([f"`{program}`", *texts_of(first)]), before=lesson)
    yield question
    for text in texts_of(item):
        yield replace(lesson, text=text, before=question)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_what_a_lesson_says_is_what_it_shows(
    notebook: Path, rule: Callable[[Lesson], list[str]]
) -> None:
    assert [wrong for lesson in lessons_of(notebook) for wrong in rule(lesson)] == []


@pytest.mark.parametrize("notebook", ON_TRIAL, ids=lambda path: path.stem)
def test_a_lesson_lists_the_lines_on_trial_and_names_some(notebook: Path) -> None:
    lesson = lesson_of(notebook)
    program = re.split(r"^## The (?:program|example)$", lesson.text, flags=re.M)[1].partition("\n## ")[0]
    assert re.search(r"^```python\n *\d+  ", program, re.M)
    assert list(prose.mentions(lesson))


@pytest.mark.parametrize("field", FIELDS)
def test_a_field_of_the_report_is_in_the_glossary(field: str) -> None:
    lessons = {path.stem: lesson_of(path) for path in NOTEBOOKS}
    said = re.compile(rf"[`*]{field}[`*]", re.I)
    assert any(said.search(lesson.prose) for lesson in lessons.values())
    assert re.search(rf"^### {field.removesuffix('s')}s?$", lessons["glossary"].text, re.M)
    assert any(re.search(rf"^{field}: ", lesson.shown, re.M) for lesson in lessons.values())


@pytest.mark.parametrize("term", TERMS)
def test_a_word_of_the_report_means_the_same_everywhere(term: str) -> None:
    glossary = next(lesson_of(path) for path in NOTEBOOKS if path.stem == "glossary")
    assert f"### {term}\n\n{TERMS[term]}" in glossary.text
    assert TERMS[term] in explained(term)


JOB = """\
def save():
    if rank == 0:
        write(path)  # <- rank 0

save()
""".splitlines()
RAN = """\
[`job.py`](job.py):

```python
  1  def save():
  2      if rank == 0:
...
  5  save()
```

```
cause: missing-rank
where: job.py:3 save
parted: job.py:2, if rank == 0:
job: python, world size 2
rank 0: waiting, barrier #7 in group default, at job.py:3 save
$ py-spy dump --pid 41
Process 41: python job.py
    write (lib/files.py:9)
    save (job.py:3)
    <module> (job.py:5)
  File "/home/job.py", line 5, in <module>
    save()
```

"""


@pytest.mark.parametrize(
    "said",
    [
        "It waits in line 3.",
        "It is called in line 5, `save()`, and waits at `job.py:3`.",
        "The `if` in line 2 decides: `parted` is line 2.",
        "Number 7 is a `barrier`. If number 8 were one too, it would hang in number 9.",
        "> Number 8 is quoted from a report.",
        "Process 41 is one of a job of world size 2. `PORT=99 python job.py` takes port 99.",
        "It ends with the cause `missing-rank`.",
        "Lightning waits at `fabric.py:99`.",
    ],
)
def test_what_is_right_is_let_through(said: str) -> None:
    assert [wrong for rule in RULES for wrong in rule(Lesson(RAN + said, {"job.py": JOB}))] == []


WRONG = {
    prose.wrong_lines: [
        "It waits in line 1, of which nothing is shown.",
        "It waits at `job.py:1`.",
        "It waits in line 99, `save()`.",
        "It is in line 4, `save`.",
        "The `while` in line 2 decides.",
        "It is called in line 3, `save()`.",
        "Read lines 2 to 3, from `if` to `save`.",
        "| `job.py` | |\n|---|---|\n| 3, `save()` | it writes |",
    ],
    prose.wrong_listings: [
        "```python\n  1  def load():\n```",
        "```python\n  2  def save():\n```",
        "```python\n  9  save()\n```",
    ],
    prose.wrong_frames: [
        "```\n    load (lib/files.py:9)\n    save (job.py:3)\n```",
        "```\n    save (job.py:3)\n    <module> (job.py:6)\n```",
        '```\n  File "job.py", line 5, in <module>\n    load()\n```',
    ],
    prose.wrong_verdicts: [
        "`where` is line 2.",
        "The ranks parted at line 3.",
        "It is not line 3, where the ranks parted.",
        "Your report names line 3 as the place where the ranks parted.",
    ],
    prose.wrong_numbers: [
        "Number 8 is a `barrier`.",
        "Both wait in `barrier` #8.",
        "Process 42 waits.",
        "A job of world size 3 has three.",
        "The store listens on port 99.",
    ],
    prose.wrong_causes: [
        "It ends with the cause `rank-exited`.",
        "It is a hang, `no-such-cause`.",
    ],
}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_what_is_wrong_is_found(rule: Callable[[Lesson], list[str]]) -> None:
    for said in WRONG[rule]:
        assert rule(Lesson(RAN + said, {"job.py": JOB})), said
