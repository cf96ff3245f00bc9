"""A picture of lanes in which a click chooses a rank."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from anywidget import AnyWidget
from traitlets import Int, Unicode


class Wall(AnyWidget):
    """The picture that `helpers.report.wall` draws.

    Attributes:
        value: the SVG.
        chosen: the rank of the lane that is marked; None before there is one.
    """

    _esm = files(__package__).joinpath("wall.js").read_text(encoding="utf-8")
    value: Any = Unicode().tag(sync=True)
    chosen: Any = Int(None, allow_none=True).tag(sync=True)

    def __init__(self) -> None:
        super().__init__()
        self.add_class("sr-wall")
