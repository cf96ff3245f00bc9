"""Snapshots become a verdict. Nothing here reads a file, a clock or a process."""
