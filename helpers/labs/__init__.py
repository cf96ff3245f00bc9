"""A lab: its lab.toml, its programs, whether they run here, whether they are right."""

from . import check
from .lab import all_labs
from .tables import labs_table

__all__ = ["all_labs", "check", "labs_table"]
