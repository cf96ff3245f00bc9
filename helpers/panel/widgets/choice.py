"""A drop-down list of processes, which come and go."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ipywidgets import Dropdown


class Choice(Dropdown):
    """Offers the latest names, and keeps what a person has chosen.

    Args:
        label: in front of the list.
        on_choice: called when a person chooses.
    """

    options: Any
    value: Any

    def __init__(self, label: str, on_choice: Callable[[], None]) -> None:
        super().__init__(options=[], description=label, style={"description_width": "initial"})
        self._on_choice, self._offering, self._chosen = on_choice, False, False
        self.observe(self._choose, "value")

    def offer(self, names: Sequence[str], preferred: str | None = None) -> None:
        """Offer these names; `preferred` is chosen unless a person has chosen another."""
        keep = self.value if self._chosen and self.value in names else preferred
        value = keep if keep in names else next(iter(names), None)
        if (tuple(names), value) == (tuple(self.options), self.value):
            return
        self._offering = True
        try:
            with self.hold_sync():
                if tuple(names) != tuple(self.options):
                    self.options = tuple(names)
                self.value = value
        finally:
            self._offering = False

    def forget(self) -> None:
        """Offer nothing, as before the first run."""
        self._chosen = False
        self.offer(())

    def _choose(self, _: object) -> None:
        if not self._offering:
            self._chosen = True
            self._on_choice()
