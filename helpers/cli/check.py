"""`check`: what this machine has, and how each lab runs on it."""

from __future__ import annotations

import argparse

from .arguments import guide


def add(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> argparse.ArgumentParser:
    """Declare the verb; it takes no options."""
    return verbs.add_parser("check", help="what is there on this machine, and what runs how")


def run(_: argparse.Namespace) -> int:
    """Print it; return 0 when everything required is there."""
    with guide():
        from ..labs import check
    return check.main()
