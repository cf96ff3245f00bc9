"""Beacon records and the system's process table -> a stream of `Snapshot`."""

from .observer import Observer, Running

__all__ = ["Observer", "Running"]
