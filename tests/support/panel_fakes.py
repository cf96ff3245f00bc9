"""Sessions that follow a script, and ways to read and press what a panel shows."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Callable
from html import unescape
from pathlib import Path

from ipywidgets import Button, Widget

from helpers.model.facts import Job, ProcessView, RankView, Report, Snapshot, Verdict
from helpers.observe.recording import Keeper
from helpers.panel.widgets.native import Answer
from helpers.session import Ended, Event, Sample

DEADLINE = 10.0
"""Seconds after which a test has failed; nothing waits this long when all is well."""


class FakeLogs:
    """Two ranks that have each written what they were told."""

    def __init__(self) -> None:
        self.lines = {"rank 0": ["hello"], "rank 1": ["world"]}

    def labels(self) -> list[str]:
        return list(self.lines)

    def tail(self, label: str, lines: int = 200) -> list[str]:
        return self.lines[label][-lines:]


class FakeSession:
    """A session whose events the test sends; it ends when it is stopped or told to."""

    def __init__(self, fails: Exception | None = None) -> None:
        self.logs = FakeLogs()
        self.cwd = Path("nowhere")
        self.started = threading.Event()
        self.stop_asked = threading.Event()
        self.over = threading.Event()
        self.ends_on_stop = True
        self.report = Report(Verdict("ok", "none", summary="All is well."), snapshot())
        self.fault: Exception | None = None
        self._fails = fails
        self._listeners: list[Callable[[Event], None]] = []

    def record(self, keeper: Keeper) -> None:
        pass

    def subscribe(self, listener: Callable[[Event], None]) -> None:
        self._listeners.append(listener)

    def start(self) -> FakeSession:
        if self._fails:
            raise self._fails
        self.started.set()
        return self

    def stop(self) -> None:
        self.stop_asked.set()
        if self.ends_on_stop:
            self.end()

    def wait(self, timeout: float | None = None) -> Report:
        assert self.over.wait(DEADLINE)
        if self.fault:
            raise self.fault
        return self.report

    async def result(self) -> Report:
        return await asyncio.to_thread(self.wait)

    def send(self, event: Event) -> None:
        for listener in self._listeners:
            listener(event)

    def sample(self, time: float = 1.0, **verdict: str) -> None:
        self.send(Sample(snapshot(time), Verdict("running", "none", **verdict)))  # type: ignore[arg-type]

    def end(self) -> None:
        if not self.over.is_set():
            self.send(Ended(self.report))
            self.over.set()


def snapshot(time: float = 1.0) -> Snapshot:
    ranks = tuple(
        RankView(rank, state="running", process=ProcessView(100 + rank, "rank", state="running"))
        for rank in (0, 1)
    )
    return Snapshot(time, Job(("python", "x.py"), world_size=2, backends=("gloo",)), ranks=ranks)


class Clock:
    """A clock that stands still until the test moves it."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def every_widget(widget: Widget) -> list[Widget]:
    """A widget and everything in it, hidden or not."""
    below = [found for child in getattr(widget, "children", ()) for found in every_widget(child)]
    return [widget, *below]


def visible(widget: Widget) -> list[Widget]:
    """A widget and everything in it that a person can see."""
    if getattr(getattr(widget, "layout", None), "display", None) == "none":
        return []
    return [widget, *(found for child in getattr(widget, "children", ()) for found in visible(child))]


def html_of(widget: Widget) -> str:
    """Everything a panel shows, as one text."""
    texts = [getattr(found, name, "") for found in visible(widget) for name in ("label", "value")]
    return "".join(map(str, texts))


def control(panel: Widget, label: str) -> Widget:
    """The button, field, list or question with this label."""
    [found] = [
        widget
        for widget in visible(panel)
        if label in (getattr(widget, "description", None), getattr(widget, "label", None))
    ]
    return found


def buttons(panel: Widget) -> set[str]:
    """The labels of the buttons that a person can see."""
    return {found.description for found in visible(panel) if isinstance(found, Button | Answer)}


def click(panel: Widget, text: str) -> None:
    """Press the button with this text, as the kernel does when a click arrives."""
    [button] = [
        found
        for found in visible(panel)
        if isinstance(found, Button | Answer) and found.description == text
    ]
    button.click()


def wait_until(panel: Widget, shown: Callable[[], bool]) -> None:
    """Return when a panel shows something: its widgets tell of each change."""
    changed = threading.Event()
    for widget in every_widget(panel):
        widget.observe(lambda _: changed.set())
    while True:
        changed.clear()
        if shown():
            return
        assert changed.wait(DEADLINE)


def wait_for_threads(name: str) -> None:
    """Return when no thread of this name is left: `panel run` or `replay`."""
    for thread in threading.enumerate():
        if thread.name == name:
            thread.join(DEADLINE)
            assert not thread.is_alive()


def count_updates(panel: Widget) -> list[str]:
    """Collects the name of every trait that changes anywhere in a panel from now on."""
    seen: list[str] = []
    for widget in every_widget(panel):
        widget.observe(lambda change: seen.append(change["name"]))
    return seen


def text_of(html: str) -> str:
    """What a person reads: tags taken out."""
    return unescape(" ".join(re.sub(r"<[^>]+>", " ", html).split()))
