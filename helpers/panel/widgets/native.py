"""Seven widgets that ipywidgets lacks, each a few lines of the browser's own HTML.

A live region has to stay in the page while its text changes; a group of radio buttons and a slider
need a name and the arrow keys; a field needs a name with `code` in it; a button has to open a file, and
another one to tell what is chosen beside it; a picture has to be drawn for the room it has.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from importlib.resources import files
from typing import Any

from anywidget import AnyWidget
from traitlets import Bool, Float, Int, List, Unicode

from ...report.markdown import inline


def _script(name: str) -> str:
    return files(__package__).joinpath(f"{name}.js").read_text(encoding="utf-8")


class Spoken(AnyWidget):
    """HTML that is read out when it changes.

    Attributes:
        value: the HTML.
    """

    _esm = _script("spoken")
    value: Any = Unicode().tag(sync=True)


class Picture(AnyWidget):
    """A picture, drawn anew when the page has another room for it.

    Args:
        lock: held by whoever calls a method: no two threads may draw at once.

    Attributes:
        value: the HTML.
        room: pixels that the page has for it; until a page has told, `ROOM`.
    """

    ROOM = 520
    _esm = _script("picture")
    value: Any = Unicode().tag(sync=True)
    room: Any = Int(ROOM).tag(sync=True)

    def __init__(self, lock: threading.RLock) -> None:
        super().__init__()
        self.add_class("sr-picture")
        self._lock = lock
        self._draw: Callable[[int], str] = lambda _: ""
        self.observe(lambda _: self._again(), "room")

    def show(self, draw: Callable[[int], str]) -> None:
        """Show what `draw` makes of the room in pixels."""
        self._draw = draw
        self.value = draw(self.room)

    def clear(self) -> None:
        """Show nothing."""
        self.show(lambda _: "")

    def _again(self) -> None:
        with self._lock:
            self.show(self._draw)


class Choices(AnyWidget):
    """A question and its possible answers.

    Args:
        label: the question; `code` in backticks, here as in the answers.
        emphasis: whether all these texts are a lesson's own, and may have *emphasised* words.
        texts: the answers.
        values: what each answer means, where that is not its text.
        several: whether more than one may be chosen.
    """

    _esm = _script("choices")
    label: Any = Unicode().tag(sync=True)
    texts: Any = List(Unicode()).tag(sync=True)
    several: Any = Bool().tag(sync=True)
    chosen: Any = List(Int()).tag(sync=True)

    def __init__(
        self,
        label: str,
        texts: Sequence[str],
        values: Sequence[str] = (),
        *,
        several: bool = False,
        emphasis: bool = False,
    ) -> None:
        self._values = tuple(values or texts)
        question, *html = [inline(text, strong=emphasis) for text in (label, *texts)]
        super().__init__(label=question, texts=html, several=several)
        self.add_class("sr-choices")
        self._newest: Sequence[int] | None = None
        self.on_msg(lambda _, content, __: self.take(content))

    def take(self, content: Mapping[str, Any]) -> None:
        """Take in the newest choice.

        The browser holds a change of `chosen` back while the one before it is on its way, but no click
        (`_msg_buffer` in @jupyter-widgets/base 6): a click may come before the choice it is about.
        """
        self._newest = content["chosen"]

    @property
    def selection(self) -> tuple[str, ...]:
        """The values of the chosen answers."""
        chosen = self.chosen if self._newest is None else self._newest
        return tuple(self._values[index] for index in sorted(chosen))

    @property
    def value(self) -> str | None:
        """The value of the first chosen answer; setting it chooses that answer alone, or none."""
        return next(iter(self.selection), None)

    @value.setter
    def value(self, value: str | None) -> None:
        self._newest = None
        self.chosen = [] if value is None else [self._values.index(value)]


class Typed(AnyWidget):
    """A question, and a field for its answer.

    Args:
        label: the question, a lesson's own text.
        on_enter: called when the Enter key was pressed in the field.
        keyboard: what a touch screen shows, as HTML's `inputmode` names it.
    """

    _esm = _script("typed")
    label: Any = Unicode().tag(sync=True)
    typed: Any = Unicode().tag(sync=True)
    keyboard: Any = Unicode().tag(sync=True)

    def __init__(self, label: str, on_enter: Callable[[], None], keyboard: str = "decimal") -> None:
        super().__init__(label=inline(label, strong=True), keyboard=keyboard)
        self.add_class("sr-typed")
        self._on_enter = on_enter
        self.on_msg(self._enter)

    def take(self, content: Mapping[str, Any]) -> None:
        """Take in what is in the field; see `Choices` on messages that overtake a change."""
        self.typed = content["given"]

    def _enter(self, _: object, content: Mapping[str, Any], __: object) -> None:
        self.take(content)
        self._on_enter()

    @property
    def value(self) -> str | None:
        """What is in the field, without spaces around it; None for an empty one."""
        return self.typed.strip() or None

    @value.setter
    def value(self, value: str | None) -> None:
        self.typed = value or ""


class Answer(AnyWidget):
    """A button, and with its click what is chosen in the questions around it.

    A kernel may take in the messages of two widgets in another order than they were sent in: ipykernel
    7.4 hands those of a widget to the thread that has last sent some for it (`_reply_subshell_for`).

    Args:
        questions: all that are around it, in their order on the page.
        on_answer: called when it was pressed.
        purpose: what it does, shown beside the pointer.
    """

    _esm = _script("answer")
    purpose: Any = Unicode().tag(sync=True)
    description = "Answer"

    def __init__(
        self, questions: Sequence[Choices | Typed], on_answer: Callable[[], None], purpose: str
    ) -> None:
        super().__init__(purpose=purpose)
        self._questions, self._on_answer = tuple(questions), on_answer
        self.on_msg(self._press)

    def click(self) -> None:
        """Answer with what the kernel knows to be chosen."""
        self._on_answer()

    def _press(self, _: object, content: Mapping[str, Any], __: object) -> None:
        for question, choice in zip(self._questions, content["given"], strict=True):
            question.take(choice)
        self._on_answer()


class Scrubber(AnyWidget):
    """A slider over the seconds of a run.

    Attributes:
        value: the second that is chosen, between `min` and `max`.
    """

    _esm = _script("scrubber")
    label: Any = Unicode().tag(sync=True)
    value: Any = Float().tag(sync=True)
    min: Any = Float().tag(sync=True)
    max: Any = Float().tag(sync=True)

    def __init__(self, label: str, value: float, least: float, most: float) -> None:
        super().__init__(label=label, value=value, min=least, max=most)
        self.add_class("sr-scrubber")


class Opener(AnyWidget):
    """Opens the file that the link beside it, in a `.sr-turn`, leads to."""

    _esm = _script("opener")

    def follow(self) -> None:
        """Open the file in JupyterLab; elsewhere nothing happens, and the link stays."""
        self.send({})
