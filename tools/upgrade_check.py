"""Says whether the package index has releases that the guide has not run with: `make upgrade-check`.

What has run is a table of benchmarks/torch.md. No test runs this: what is released is no fault of a
commit. Standard library only. Exit codes: 0 none, 1 there are some, 64 the index does not tell.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable

from setup_env import ROOT, offered, reason

PAGE = ROOT / "benchmarks" / "torch.md"
WATCHED = ("torch", "lightning", "jupyterlab", "ipywidgets")
"""What the lessons rest on most, down to lines of their sources."""


def ran(page: str, package: str) -> list[str]:
    """Return the versions of a package with which a page says that something has run."""
    (row,) = re.findall(rf"^\| {package} \| ([^|]+) \|", page, re.MULTILINE)
    return [word.strip() for word in row.split(",")]


def newer(offers: Iterable[str], than: Iterable[str]) -> list[str]:
    """Return the final releases that are newer than all those that have run, the newest first."""
    newest = max(map(_release, than))
    finals = {version.partition("+")[0] for version in offers}
    return sorted((v for v in finals if _release(v) > newest), key=_release, reverse=True)


def _release(version: str) -> tuple[int, ...]:
    """The numbers of a final release; nothing, which sorts first, for any other."""
    return tuple(map(int, version.split("."))) if re.fullmatch(r"[\d.]+", version) else ()


def main() -> int:
    """Run from the command line; return the exit code."""
    page, found = PAGE.read_text(), 0
    for package in WATCHED:
        offers, said = offered((sys.executable, "-m", "pip"), package)
        if not offers:
            print(f"The releases of {package} cannot be listed{reason(said)}.", file=sys.stderr)
            return 64
        new = newer(offers, ran(page, package))
        found += len(new)
        print(f"{package}: {', '.join(new) or 'nothing'} newer than {', '.join(ran(page, package))}")
    if found:
        print("Next: make upgrade, and CONTRIBUTING.md, A new Lightning or torch is out.")
    return int(found > 0)


if __name__ == "__main__":
    raise SystemExit(main())
