"""Shows a panel beside its notebook where JupyterLab can, and below its cell elsewhere."""

from __future__ import annotations

from importlib.resources import files

from anywidget import AnyWidget
from ipywidgets import HTML
from sidecar import Sidecar

from .controls import Framed, button, row

BESIDE = "The panel is open beside this notebook."

_docked: dict[str, Dock] = {}
"""By title, what is beside a notebook of this kernel: a cell that runs again replaces it."""


class Spot(AnyWidget):
    """Sends a message from a page that has room beside its notebook."""

    _esm = files(__package__).joinpath("spot.js").read_text(encoding="utf-8")


class Dock(Framed):
    """What a cell shows of a panel. The page that shows it decides where the panel goes.

    Until a page has spoken the panel is in the cell, and so it stays where nothing can be beside it.

    Args:
        panel: shown in one place at a time.
        title: of its tab.
    """

    def __init__(self, panel: Framed, title: str) -> None:
        self._panel, self._title = panel, title
        self._tab: Sidecar | None = None
        self._spot = Spot()
        self._spot.on_msg(lambda *_: self.beside())
        super().__init__([self._spot, panel])

    def beside(self) -> None:
        """Move the panel into a tab of its own, right of the notebook."""
        if earlier := _docked.get(self._title):
            earlier.here()
        _docked[self._title] = self
        shown = {"output_type": "display_data", "data": self._panel._repr_mimebundle_(), "metadata": {}}
        self._tab = Sidecar(title=self._title, anchor="split-right", outputs=(shown,))
        move = button("Show it here", "level-down", "Move the panel below this cell", self.here)
        self.lay_out(row([HTML(BESIDE), move]))

    def here(self) -> None:
        """Move the panel below the cell."""
        if self._tab is not None:
            self._tab.close()
        self._tab = None
        _docked.pop(self._title, None)
        self.lay_out(self._panel)

    def __repr__(self) -> str:
        return repr(self._panel)
