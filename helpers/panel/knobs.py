"""One control for each knob of a lab."""

from __future__ import annotations

from collections.abc import Mapping

from ipywidgets import Dropdown, RadioButtons

from helpers.lab_model import Knob

FEW = 4
"""Up to this many values stand side by side; more go into a list that opens."""


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
        """Turn the controls to these values, which must be ones they have."""
        for name, value in values.items():
            self.controls[name].value = value

    def __repr__(self) -> str:
        return ", ".join(f"{name}={value}" for name, value in self.values().items())


def _control(knob: Knob) -> RadioButtons | Dropdown:
    """Radio buttons say to everybody which one is chosen; a key reaches each of them."""
    settings = {
        "options": [(value.text, name) for name, value in knob.values.items()],
        "value": knob.default,
        "description": knob.label,
        "style": {"description_width": "initial"},
        "layout": {"width": "auto"},
    }
    if len(knob.values) > FEW:
        return Dropdown(**settings)
    return RadioButtons(orientation="horizontal", **settings)
