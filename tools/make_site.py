"""Makes the site: the guide as static pages, in `site/` unless another folder is named.

    python tools/make_site.py
    python tools/make_site.py FOLDER

Every page works without a server: open `site/index.html`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from website.places import ROOT
from website.publish import contents, files, write


def main(arguments: Sequence[str]) -> int:
    """Make all pages and say how large they are."""
    folder = Path(arguments[0]) if arguments else ROOT / "site"
    made = files(contents())
    write(folder, made)
    megabytes = sum(map(len, made.values())) / 1e6
    print(f"{folder}/index.html: {len(made)} files, {megabytes:.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
