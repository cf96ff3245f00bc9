"""Asks the package index, before anything is downloaded, which versions of each pin it has.

Run by tools/setup_env.py with the pip of .venv, which reads the user's own settings of the index:
`python tools/ask_index.py REQUIREMENT ...` prints {requirement: [versions]} for those that this Python
and this system need. pip shows its list of files in no other way (`pip index` takes one name, 0.5 s
each), so this uses two of its inner names, those of `pip/_internal/commands/index.py` of pip 26.
"""

from __future__ import annotations

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from optparse import Values

from pip._internal.cli.cmdoptions import make_target_python
from pip._internal.commands.index import IndexCommand
from pip._vendor.packaging.requirements import Requirement

AT_ONCE = 8
"""Questions on their way at a time."""


class Ask(IndexCommand):
    """`pip index`, for many packages."""

    def run(self, options: Values, args: list[str]) -> int:
        """Print what the index has; raise what pip raises when it cannot be asked."""
        wanted = [Requirement(text) for text in args]
        wanted = [one for one in wanted if one.marker is None or one.marker.evaluate()]
        with self._build_session(options) as session:
            target = make_target_python(options)
            finder = self._build_package_finder(options, session, target_python=target)

            def versions(one: Requirement) -> list[str]:
                found = {candidate.version for candidate in finder.find_all_candidates(one.name)}
                return sorted(str(version) for version in found if one.specifier.contains(version))

            with ThreadPoolExecutor(AT_ONCE) as pool:
                answers = list(pool.map(versions, wanted))
        print(json.dumps({str(one): found for one, found in zip(wanted, answers, strict=True)}))
        return 0


if __name__ == "__main__":
    raise SystemExit(Ask("index", "Ask for many packages.").main(sys.argv[1:]))
