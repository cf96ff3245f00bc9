"""What foreign software writes into logs, as patterns.

Versions are those whose released libraries were found to hold the text, of 1.13.1 to 2.15.0 for torch.
"""

from __future__ import annotations

from . import exit_lines, failure_lines, kill_lines, line_heads, watchdog_lines
from .pattern import Pattern

PATTERNS = {
    name: value
    for module in (line_heads, watchdog_lines, exit_lines, kill_lines, failure_lines)
    for name, value in vars(module).items()
    if isinstance(value, Pattern)
}
"""All of them, by name."""
