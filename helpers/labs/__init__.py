"""A lab: its lab.toml, its programs, whether they run here, whether they are right."""

from . import check

__all__ = ["check"]
