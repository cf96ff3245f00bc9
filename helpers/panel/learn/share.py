"""The button that tells the leader of a workshop where a learner stands."""

from __future__ import annotations

from collections.abc import Callable

from ipywidgets import VBox

from ...labs import sharing
from ...labs.progress import Progress
from ..widgets.controls import button, row
from ..widgets.native import Spoken, Typed
from . import learn_view


class ShareBar(VBox):
    """A field for a name, and a button; empty where no folder is named to share in.

    Args:
        progress: returns where the learner stands.
    """

    def __init__(self, progress: Callable[[], Progress]) -> None:
        self._progress, self._status = progress, Spoken()
        self._name = Typed("Your name for the leader", self._share, "text")
        super().__init__()
        if sharing.folder() is None:
            return
        self._name.value = sharing.own_name()
        tooltip = "Tell the leader which steps are done; nothing else is told"
        self.children = [self._name, row([button("Share", "share", tooltip, self._share)]), self._status]

    def _share(self) -> None:
        try:
            sharing.share(self._name.value or "", self._progress())
        except sharing.ShareError as problem:
            self._status.value = learn_view.note(f"Not shared: {problem}.")
        else:
            self._status.value = learn_view.note(f"Shared as **{self._name.value}**.")
