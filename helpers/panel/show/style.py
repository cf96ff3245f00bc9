"""How a state looks: a glyph, a word and a tone; the tone never replaces the word."""

from __future__ import annotations

from importlib.resources import files

import msgspec

from ...model.facts import Outcome, ProcessView, State
from ...model.wording import signal_name

STATE_GLYPHS: dict[State, str] = {
    "starting": "○",
    "importing": "◔",
    "rendezvous": "◑",
    "running": "▶",
    "waiting": "◆",
    "stopped": "■",
    "exited": "✓",
    "missing": "◌",
    "unseen": "?",
}
STATE_TONES: dict[State, str] = {
    "running": "good",
    "waiting": "warn",
    "stopped": "bad",
    "missing": "bad",
}
OUTCOMES: dict[Outcome, tuple[str, str]] = {
    "ok": ("✓", "good"),
    "error": ("✕", "bad"),
    "hang": ("◆", "bad"),
    "running": ("▶", "plain"),
}
INLINE = {
    "good": "var(--jp-success-color1, #1b7f3b)",
    "bad": "var(--jp-error-color1, #b3261e)",
}
"""Colours of tones where the stylesheets are not: in an output of a cell."""


class Mark(msgspec.Struct, frozen=True):
    """What precedes the name of a state.

    Attributes:
        glyph: one character, hidden from screen readers.
        word: the state in words; it is enough on its own.
        tone: `good`, `warn`, `bad` or `plain`: the colour beside the word.
    """

    glyph: str
    word: str
    tone: str


def mark(state: State, process: ProcessView | None = None) -> Mark:
    """Return how a rank or a child in `state` looks.

    Args:
        state: its state.
        process: its process, for how it ended; None where there is none.
    """
    if state != "exited" or process is None:
        return Mark(STATE_GLYPHS[state], state, STATE_TONES.get(state, "plain"))
    if process.signal is not None:
        return Mark("✕", f"ended by {signal_name(process.signal)}", "bad")
    if process.exit_code:
        return Mark("✕", f"exited with code {process.exit_code}", "bad")
    return Mark("✓", "exited", "plain")


def style_tag() -> str:
    """Return the panel's stylesheets as a `<style>` element."""
    sheets = [files(__package__).joinpath(f"{name}.css") for name in ("panel", "learn", "page")]
    return f"<style>{''.join(sheet.read_text(encoding='utf-8') for sheet in sheets)}</style>"
