"""The tabs below the picture: ranks, ports, processes, memory, stacks, output, who is waited for."""

from __future__ import annotations

import threading
from typing import Any

from ipywidgets import HTML, Tab, VBox

from ..show import view, words
from ..show.family import family
from ..show.ports import port_map
from ..show.ranks import rank_table
from ..show.tabs import memory_bars, process_tree, stack
from ..widgets.choice import Choice
from .log_view import LogView
from .moment import Moment

TITLES = ("Ranks", "Ports", "Processes", "Memory", "Stacks", "Output")

SLOW = "Slow"
"""The last tab, there only while somebody is waited for."""


class Details(Tab):
    """Shows a run in tabs. Until the run is over only the open one is filled.

    Args:
        lock: held by whoever calls a method: no two threads may draw at once.
    """

    children: Any
    selected_index: Any

    def __init__(self, lock: threading.RLock) -> None:
        self._lock = lock
        self._moment: Moment | None = None
        self._reveal = True
        self._ranks, self._ports, self._tree, self._memory = _pane(), _pane(), _pane(), _pane()
        self._which, self._stack = Choice("Stack of", self._refresh), _pane()
        self._logs = LogView(self._refresh)
        self._ranking = _pane()
        self._always = (
            self._ranks,
            self._ports,
            self._tree,
            self._memory,
            VBox([self._which, self._stack]),
            self._logs,
        )
        super().__init__(self._always, titles=TITLES, selected_index=0)
        self.observe(lambda _: self._refresh(), "selected_index")

    def show(self, moment: Moment, slow: str = "", *, reveal: bool = True) -> None:
        """Show a run as it is now.

        Args:
            slow: who is waited for, as HTML; empty where that is nobody.
            reveal: False leaves out what gives the answer away.
        """
        self._moment, self._reveal = moment, reveal
        self.layout.display = None
        self._rank(slow)
        for index in range(len(TITLES)) if moment.report else (self.selected_index,):
            self._fill(index, moment)

    def clear(self) -> None:
        """Show nothing, not even the tabs."""
        self._moment = None
        self.layout.display = "none"
        self._rank("")
        self._which.forget()
        self._logs.clear()
        for part in (self._ranks, self._ports, self._tree, self._memory, self._stack):
            part.value = ""

    def _rank(self, slow: str) -> None:
        """Show the tab of who is waited for, or take it away."""
        self._ranking.value = slow
        if bool(slow) != (self._ranking in self.children):
            if self.selected_index == len(TITLES):
                self.selected_index = 0
            self.children = (*self._always, self._ranking) if slow else self._always
            self.titles = (*TITLES, SLOW) if slow else TITLES

    def _refresh(self) -> None:
        """Show what a person has chosen at once."""
        with self._lock:
            if self._moment is not None:
                self._fill(self.selected_index, self._moment)

    def _fill(self, index: int | None, moment: Moment) -> None:
        newest = moment.newest
        if index == 0:
            caption = "Ranks, as they were at the end" if moment.report else "Ranks"
            self._ranks.value = rank_table(newest, caption, self._culprits(moment), reveal=self._reveal)
        elif index == 1:
            joined = view.rendezvous(words.rendezvous_line(newest))
            self._ports.value = joined + port_map(newest, reveal=self._reveal)
        elif index == 2:
            self._tree.value = process_tree(newest)
        elif index == 3:
            self._memory.value = memory_bars(moment.snapshots)
        elif index == 4:
            self._fill_stack(moment)
        elif index == 5:
            self._logs.show(moment.logs)

    def _fill_stack(self, moment: Moment) -> None:
        members = dict(family(moment.newest))
        ranks = [name for name in members if name.startswith("rank")]
        culprits = self._culprits(moment)
        wanted = f"rank {culprits[0]}" if culprits else None
        self._which.offer([*ranks, *(name for name in members if name not in ranks)], wanted)
        name = self._which.value
        self._stack.value = stack(name, members[name], moment.sources) if name in members else ""

    def _culprits(self, moment: Moment) -> tuple[int, ...]:
        """Those that may be told."""
        return moment.verdict.culprits if self._reveal and moment.report else ()


def _pane() -> HTML:
    """A part that scrolls, with the keyboard too, and keeps its place when its content is replaced."""
    pane = HTML(tabbable=True)
    pane.add_class("sr-scroll")
    return pane
