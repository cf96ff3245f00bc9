"""A lab of two letters whose programs are sessions that follow a script."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Callable, Mapping
from pathlib import Path

import histories
from histories import ended
from msgspec.structs import replace
from panel_fakes import (
    DEADLINE,
    FakeSession,
    click,
    html_of,
    snapshot,
    text_of,
    visible,
    wait_for_threads,
)

from helpers.labs.lab import Lab, read_lab
from helpers.model.facts import Report, Verdict
from helpers.panel.lab_panel import LabPanel
from helpers.panel.widgets.native import Choices

LAB = """
title = "Two letters"
place = 9
minutes = 5
needs = "nothing"
ranks = 2
max_seconds = 20
hints = ["Look at a.", "Look at `b`."]
references = ["https://docs.python.org/3/"]

[programs.broken]
file = "broken.py"
text = "the letter a"

[programs.fixed]
file = "fixed.py"
text = "the letter b"

[turns.mine]
file = "your_turn.py"
copy_of = "broken"
solution = "fixed"
task = "Write b."

[knobs.few]
label = "A few"
default = "one"

[knobs.few.values]
one = { arguments = ["--few", "one"] }
two = { arguments = ["--few", "two"] }

[knobs.many]
label = "Many"
default = "1"

[knobs.many.values]
1 = { arguments = ["--many", "1"] }
2 = { arguments = ["--many", "2"] }
3 = { arguments = ["--many", "3"] }
4 = { arguments = ["--many", "4"] }
5 = { arguments = ["--many", "5"] }

[[expected]]
program = "broken"
outcome = "error"
cause = "error"
culprits = [1]

[[expected]]
program = "fixed"
outcome = "ok"
cause = "none"
culprits = []

[results]
environment = "RESULTS_DIR"
file = "result-rank{rank}.json"
finite = ["loss"]
equal = ["loss"]

[predict]
question = "Which rank fails?"
field = "culprits"
explanation = "It is `rank 1`."

[[predict.answers]]
text = "rank 0"
value = [0]

[[predict.answers]]
text = "rank 1"
value = [1]

[by_hand]
program = "broken"
question = "Who is odd?"
rank = 1
calls = ["print"]
lines = ["broken.py:1"]
explanation = "It prints."

[[quiz]]
kind = "choice"
question = "Which letter?"
answers = ["a", "b"]
right = "b"
explanation = "a is broken."
wrong = ["It is the first, and it is broken."]

[document]
title = "Titel"
translated = "Title"
language = "German"
published = "2025"

[[claims]]
claim = "a is fine"
verdict = "refuted here"
shown_by = "`broken`"
asked = true

[[claims]]
claim = "b is fine"
verdict = "confirmed here"
shown_by = "`fixed`"
"""


class LabBench:
    """A lab's panel whose programs are sessions that follow a script."""

    def __init__(self, folder: Path, *, keep: bool = False) -> None:
        folder = folder / "07_two_letters"
        folder.mkdir(exist_ok=True)
        (folder / "lab.toml").write_text(LAB)
        (folder / "broken.py").write_text("print('a')\n")
        (folder / "fixed.py").write_text("print('b')\n")
        self.lab = read_lab(folder)
        self.made: list[tuple[str, dict[str, str]]] = []
        self.folders: list[Path] = []
        self.sessions: list[FakeSession] = []
        self.session_made = threading.Event()
        self.culprits: tuple[int, ...] = (1,)
        self.ranks_write = ""
        self.panel = LabPanel(self.lab, self.make, keep=keep)

    def make(self, lab: Lab, program: str, folder: Path, knobs: Mapping[str, str]) -> FakeSession:
        self.made.append((program, dict(knobs)))
        self.folders.append(folder)
        session = FakeSession()
        if program == "broken":
            verdict = Verdict(
                "error",
                "error",
                detail="a tensor is lost",
                masked=("RuntimeError: gone (rank 0)",),
                culprits=self.culprits,
                summary="Rank 1 fails.",
            )
            session.report = Report(verdict, snapshot())
        if self.ranks_write:
            session.report = replace(
                session.report, snapshot=histories.snapshot(ended(0), ended(1), code=0)
            )
        for rank in (0, 1) if self.ranks_write else ():
            result = self.ranks_write.replace("RANK", str(rank))
            (folder / f"result-rank{rank}.json").write_text(result)
        self.sessions.append(session)
        self.session_made.set()
        return session

    def finish(self, run: Callable[[], object]) -> object:
        """Start a run with `run`, end it, and return what it gives."""

        async def to_the_end() -> object:
            self.session_made.clear()
            cell = asyncio.ensure_future(run())  # type: ignore[call-overload]
            await asyncio.to_thread(self.session_made.wait, DEADLINE)
            await asyncio.to_thread(self.sessions[-1].started.wait, DEADLINE)
            self.sessions[-1].end()
            return await cell

        return asyncio.run(to_the_end())

    def press(self, text: str, *, stop: bool = False) -> None:
        """Press a button that starts a run, and see that run to its end."""
        self.session_made.clear()
        click(self.panel, text)
        assert self.session_made.wait(DEADLINE)
        assert self.sessions[-1].started.wait(DEADLINE)
        if stop:
            self.sessions[-1].report = replace(self.sessions[-1].report, interrupted=True)
            self.panel.stop()
        self.sessions[-1].end()
        wait_for_threads("panel run")

    def choose(self, text: str) -> None:
        """Choose an answer of the form that asks for a prediction."""
        for widget in visible(self.panel):
            if isinstance(widget, Choices) and text in widget.texts:
                index = widget.texts.index(text)
                widget.chosen = [*widget.chosen, index] if widget.several else [index]

    def come_to_your_turn(self) -> None:
        """Run the broken program and have its run explained."""
        self.press("Run broken")
        self.reveal()

    def reveal(self) -> None:
        """Reveal a run as far as its questions would have opened it."""
        click(self.panel, "Reveal the odd one out and the cause")
        click(self.panel, "Reveal the line and the statement that decided")

    @property
    def shown(self) -> str:
        """All that the panel shows."""
        return html_of(self.panel)

    @property
    def done(self) -> list[str]:
        """The steps that the panel shows as done."""
        return re.findall(r"✓ ([\w ]+) : done", text_of(self.shown))
