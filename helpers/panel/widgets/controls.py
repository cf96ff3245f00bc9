"""What every panel is built from: a frame, buttons, rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from IPython.display import display
from ipywidgets import HTML, Button, DOMWidget, HBox, VBox, Widget

from ..show.style import style_tag

ENDED = (
    "The kernel behind this view has ended, and with it everything that it had started. "
    "Run this cell to have it live again."
)
"""Shown where a live view was: in a notebook that is opened again, after a restart, on a web page."""

_HIDE_BROKEN = (
    ".jp-OutputArea:not(:has(.stuck-ranks)):has(.sr-ended) .jupyter-widgets { display: none; }"
)
"""JupyterLab's own text for a widget without a kernel says nothing to a learner."""


class Framed(VBox):
    """Widgets in the project's style, whose text form is its `repr`: the same in every run.

    A cell shows it with a sentence beside it that the style hides as long as the kernel lives.
    """

    def __init__(self, parts: Sequence[Widget] = ()) -> None:
        super().__init__()
        self._sheet = HTML(style_tag())
        self.add_class("stuck-ranks")
        self.lay_out(*parts)

    def lay_out(self, *parts: Widget) -> None:
        """Show these parts, one below the other."""
        self.children = (self._sheet, *parts)

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, Any]:
        bundle: dict[str, Any] = super()._repr_mimebundle_(**kwargs)
        return {**bundle, "text/plain": repr(self)}

    def _ipython_display_(self) -> None:
        display(self._repr_mimebundle_(), raw=True)
        ended = f'<style>{_HIDE_BROKEN}</style><p class="sr-ended">{ENDED}</p>'
        display({"text/plain": ENDED, "text/html": ended}, raw=True)


def button(text: str, icon: str, tooltip: str, action: Callable[[], object]) -> Button:
    """A button that calls `action`, which must return at once."""
    widget = Button(description=text, icon=icon, tooltip=tooltip)
    widget.on_click(lambda _: action())
    return widget


def show(widget: DOMWidget, shown: bool) -> None:
    """Show a widget, or take it out of the page."""
    widget.layout.display = None if shown else "none"


def row(widgets: Sequence[Widget]) -> HBox:
    """Widgets side by side, on further lines where the page is narrow."""
    box = HBox(widgets)
    box.add_class("sr-controls")
    return box
