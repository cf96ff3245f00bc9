"""A link to a file, which JupyterLab opens in a tab of its own."""

from __future__ import annotations

import os
from html import escape
from pathlib import Path
from urllib.parse import quote

from ipywidgets import Output


class FileLink(Output):
    """A sentence that ends with a link, or nothing.

    JupyterLab resolves links in the outputs of an `Output` widget, but not in an `HTML` widget.
    """

    def show(self, text: str, file: Path) -> None:
        """Show `text`, and the file's name as a link relative to the notebook's folder."""
        target = quote(os.path.relpath(file).replace(os.sep, "/"))
        html = f'<p>{escape(text)} <a href="{target}">{escape(file.name)}</a></p>'
        self._fill({"output_type": "display_data", "data": {"text/html": html}, "metadata": {}})

    def hide(self) -> None:
        """Show nothing."""
        self._fill()

    def _fill(self, *outputs: dict[str, object]) -> None:
        self.outputs, self.layout.display = outputs, None if outputs else "none"
