"""A lab: its lab.toml, its programs, whether they run here, whether they are right."""

from helpers.labs import check
from helpers.labs.lab import all_labs
from helpers.labs.tables import labs_table

__all__ = ["all_labs", "check", "labs_table"]
