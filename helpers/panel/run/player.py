"""Plays through the seconds of a recorded run: a button, its speed, and a slider."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from ipywidgets import Dropdown, HBox

from ..widgets.controls import button
from ..widgets.native import Scrubber

TICK = 0.25
"""Seconds between two updates while it plays."""

SPEEDS = (0.25, 0.5, 1.0, 2.0, 5.0, 10.0)

Wait = Callable[[threading.Event, float], bool]


class Player(HBox):
    """Play, Speed and Second; stands at the last moment.

    Args:
        times: the seconds of the run at which there is something to show, in their order.
        lock: held while a moment is shown.
        show: called when another second is chosen.
        wait: called with seconds between two updates; returns True when it is to stop playing.
    """

    def __init__(
        self,
        times: Sequence[float],
        lock: threading.RLock,
        show: Callable[[], None],
        wait: Wait | None = None,
    ) -> None:
        self._first, self._last = times[0], times[-1]
        self._lock, self._wait = lock, wait or threading.Event.wait
        self._pause = threading.Event()
        self._pause.set()
        self._play = button("Play", "play", "Play the recording, or pause it", self._toggle)
        self._speed = Dropdown(
            options=[(f"{speed:g} times", speed) for speed in SPEEDS],
            value=1.0,
            description="Speed",
            style={"description_width": "initial"},
            layout={"width": "auto"},
        )
        most = max(self._last, self._first + TICK)
        self._second = Scrubber("Second", self._last, self._first, most)
        self._second.observe(lambda _: show(), "value")
        super().__init__([self._play, self._speed, self._second])
        self.add_class("sr-controls")

    @property
    def second(self) -> float:
        """The second of the run that is shown."""
        return float(self._second.value)

    def seek(self, second: float) -> None:
        """Show the run as it was at a second of it."""
        self._second.value = min(max(second, self._second.min), self._second.max)

    def play(self) -> None:
        """Play from here, or from the start when it is at the end. Returns at once."""
        with self._lock:
            if not self._pause.is_set():
                return
            if self.second >= self._last:
                self.seek(self._first)
            self._pause = threading.Event()
            self._play.description, self._play.icon = "Pause", "pause"
            threading.Thread(target=self._go_on, args=(self._pause,), name="replay", daemon=True).start()

    def pause(self) -> None:
        """Stay where it is."""
        with self._lock:
            self._pause.set()
            self._play.description, self._play.icon = "Play", "play"

    def _toggle(self) -> None:
        self.play() if self._pause.is_set() else self.pause()

    def _go_on(self, pause: threading.Event) -> None:
        while not self._wait(pause, TICK):
            with self._lock:
                if pause.is_set():
                    return
                self.seek(self.second + TICK * self._speed.value)
                if self.second >= self._last:
                    self.pause()
                    return
