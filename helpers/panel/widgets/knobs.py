"""One control for each knob of a lab."""

from __future__ import annotations

from collections.abc import Mapping

from ipywidgets import Dropdown

from ...labs.declaration import Knob
from .native import Choices

FEW = 4
"""Up to this many values are shown side by side, more in a drop-down list."""


class Knobs:
    """The controls of a lab's knobs, and what they say.

    Attributes:
        controls: by the knob's name.
    """

    def __init__(self, knobs: Mapping[str, Knob]) -> None:
        self.controls = {name: _control(knob) for name, knob in knobs.items()}

    def values(self) -> dict[str, str]:
        """What the controls say now."""
        return {name: str(control.value) for name, control in self.controls.items()}

    def show(self, values: Mapping[str, str]) -> None:
        """Set the controls to these values, which they must have."""
        for name, value in values.items():
            self.controls[name].value = value

    def __repr__(self) -> str:
        return ", ".join(f"{name}={value}" for name, value in self.values().items())


def _control(knob: Knob) -> Choices | Dropdown:
    texts = [value.text for value in knob.values.values()]
    if len(texts) <= FEW:
        choices = Choices(knob.label, texts, tuple(knob.values))
        choices.value = knob.default
        return choices
    return Dropdown(
        options=list(zip(texts, knob.values, strict=True)),
        value=knob.default,
        description=knob.label,
        style={"description_width": "initial"},
        layout={"width": "auto"},
    )
