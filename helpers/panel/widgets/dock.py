"""Shows a panel beside its notebook where JupyterLab can, and below its cell elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.resources import files
from typing import Any

from anywidget import AnyWidget
from ipywidgets import HTML
from sidecar import Sidecar

from .controls import Framed, button, row

BESIDE = "The panel is open beside this notebook."
ELSEWHERE = "The panel was opened again, by another cell."

_docks: dict[str, Dock] = {}
"""By title, what shows a panel in a notebook of this kernel: there is one of each."""


class Spot(AnyWidget):
    """Tells whether its page has room beside the notebook, and when it has none any more."""

    _esm = files(__package__).joinpath("spot.js").read_text(encoding="utf-8")


class Dock(Framed):
    """What a cell shows of a panel. The page that shows it decides where the panel goes.

    Until a page has spoken the panel is in the cell, and so it stays where nothing can be beside it. A
    panel that is opened again leaves the place where it was.

    Args:
        panel: shown in one place at a time.
        title: of the panel.
        tab: what its tab says.
        leave: called when another panel of this title takes its place.
    """

    def __init__(
        self, panel: Framed, title: str, tab: str = "", leave: Callable[[], object] = lambda: None
    ) -> None:
        self._panel, self._name, self._leave = panel, tab or title, leave
        self._tab: Sidecar | None = None
        self._moved = False
        self._spot, self._bar = Spot(), row([])
        self._spot.on_msg(lambda _, content, __: self._on_message(content))
        earlier, _docks[title] = _docks.get(title), self
        super().__init__([self._spot, self._bar, panel])
        if earlier is not None:
            earlier._give_way(panel)

    def move_below(self) -> None:
        """Move the panel below the cell, where it stays whatever the page has room for."""
        self._moved = True
        self._below()

    def _on_message(self, content: Mapping[str, Any]) -> None:
        if self._moved:
            return
        if not content["room"]:
            self._below()
        elif self._tab is None:
            self.beside()

    def beside(self) -> None:
        """Move the panel into a tab of its own, right of the notebook."""
        self._moved = False
        move = button("Show it here", "level-down", "Move the panel below this cell", self.move_below)
        self._bar.children = HTML(BESIDE), move
        self.lay_out(self._spot, self._bar)
        shown = {"output_type": "display_data", "data": self._panel._repr_mimebundle_(), "metadata": {}}
        self._tab = Sidecar(title=self._name, anchor="split-right", outputs=(shown,))

    def _below(self) -> None:
        """Show the panel below the cell; one that is there already is not drawn again by the page."""
        self._close_tab()
        move = button("Show it beside", "columns", "Move the panel beside the notebook", self.beside)
        self._bar.children = (move,)
        self.lay_out(self._spot, self._bar, self._panel)

    def _give_way(self, panel: Framed) -> None:
        """A cell shows a panel of the same title: this one, or one that takes its place."""
        self._moved = True
        self._close_tab()
        self.lay_out(HTML(ELSEWHERE))
        if panel is not self._panel:
            self._leave()

    def _close_tab(self) -> None:
        if self._tab is not None:
            self._tab.close()
        self._tab = None

    def __repr__(self) -> str:
        return repr(self._panel)
