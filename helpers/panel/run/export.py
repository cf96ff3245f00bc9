"""A run that is over, as a file to keep: a web page to read, or a recording to open again.

`stuck-ranks read` makes the text and the JSON of a report from a recording.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
from ipywidgets import HTML, VBox
from markupsafe import Markup
from msgspec.structs import replace

from ...model.facts import Report, Snapshot
from ...model.frames import Frame
from ...observe.recording import Recording, pack, provenance
from ...report.files import write_atomically
from ...report.page import to_html
from ...report.slow import shares
from ...report.source_lines import Sources
from ..show.templates import html
from ..widgets.controls import button, row
from ..widgets.native import Spoken
from .log_view import LINES, Lines

FOLDER = "stuck-ranks-saved"
"""Where files go, beside the notebook."""

LARGEST = 4_000_000
"""Bytes up to which a saved file is also offered for download."""


class Finished(msgspec.Struct, frozen=True):
    """A run that is over, with all that its files need.

    Attributes:
        name: what ran, for people.
        recording: makes one, without name, logs and sources.
        provenance: machine, versions and date.
    """

    name: str
    report: Report
    snapshots: tuple[Snapshot, ...]
    logs: Lines
    sources: Sources
    recording: Callable[[], Recording]
    provenance: dict[str, str] = msgspec.field(default_factory=provenance)

    @property
    def stem(self) -> str:
        """The name of its files without the suffix: what ran, and when, in safe characters."""
        when = re.sub(r"[^0-9T]", "", self.provenance.get("date", "").partition("+")[0])
        name = re.sub(r"[^a-z0-9]+", "-", self.name.lower()).strip("-")[:60]
        return "-".join(filter(None, (name, when))) or "run"


def page(run: Finished) -> bytes:
    """The report as one web page with the picture."""
    return to_html(run.report, run.snapshots).encode()


def recording(run: Finished) -> bytes:
    """The run for a replay, with the last lines that each process printed."""
    for frame in _frames(run):
        run.sources.line(frame)
    logs = {label: run.logs.tail(label, LINES) for label in run.logs.labels()}
    return pack(replace(run.recording(), name=run.name, logs=logs, sources=run.sources.lines()))


def _frames(run: Finished) -> Iterator[Frame]:
    """Lines that a replay shows: of the stacks at the end, and where ranks wait or are waited for."""
    for snapshot in run.snapshots[-1:]:
        for view in snapshot.ranks:
            for process in [view.process, *(child.process for child in view.children)]:
                yield from process.stack if process else ()
    for share in shares(run.report.verdict):
        yield from filter(None, (share.where, share.waits_at))


class Kind(msgspec.Struct, frozen=True):
    """One kind of file: its button, its suffix and how it is made."""

    title: str
    tooltip: str
    suffix: str
    mime: str
    make: Callable[[Finished], bytes]


KINDS = (
    Kind("Web page", "Save the report with its picture as one file", ".html", "text/html", page),
    Kind("Recording", "Save the run for a replay", ".jsonl.gz", "application/gzip", recording),
)


class ExportBar(VBox):
    """A button for each kind of file, and where the last one was saved; empty without a run.

    Attributes:
        run: what is offered.
    """

    def __init__(self) -> None:
        self.run: Finished | None = None
        self._status = Spoken()
        self._buttons = row(
            [
                HTML('<span class="sr-note">Save as</span>'),
                *(button(kind.title, "download", kind.tooltip, self._saver(kind)) for kind in KINDS),
            ]
        )
        super().__init__([self._buttons, self._status])
        self.offer(None)

    def offer(self, run: Finished | None) -> None:
        """Offer the files of a run; None offers nothing."""
        self.run = run
        self._status.value = ""
        self._buttons.layout.display = None if run else "none"

    def save(self, kind: Kind) -> Path:
        """Write one file of the run into `FOLDER` in the current directory.

        Raises:
            OSError: it cannot be written.
        """
        assert self.run is not None, "the buttons are hidden without a run"
        content = kind.make(self.run)
        path = Path.cwd() / FOLDER / (self.run.stem + kind.suffix)
        path.parent.mkdir(exist_ok=True)
        write_atomically(path, content)
        self._status.value = saved(path, kind.mime, content)
        return path

    def _saver(self, kind: Kind) -> Callable[[], None]:
        def save() -> None:
            try:
                self.save(kind)
            except OSError as error:
                self._status.value = Markup("<p>It cannot be saved: {}</p>").format(error)

        return save


def saved(path: Path, mime: str, content: bytes) -> str:
    """Where a file is, and a link that downloads it to the reader's own machine."""
    link = ""
    if len(content) <= LARGEST:
        link = Markup(f"data:{mime};base64,{base64.b64encode(content).decode()}")
    place = f"{path.parent.name}/{path.name}"
    return html("saved", place, path.name, max(1, len(content) // 1000), link)
