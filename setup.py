"""What pyproject.toml cannot say.

Installed in place, by `pip install -e`, the package can be imported as `helpers`, too. A wheel has the
guide in an archive. A build leaves no folder in the checkout: tools, and the next build, would find in
it what is old.
"""

import gzip
import lzma
import tarfile
from io import BytesIO
from pathlib import Path
from runpy import run_path
from tempfile import TemporaryDirectory

from setuptools import setup
from setuptools.command.build_py import build_py
from setuptools.command.editable_wheel import editable_wheel

OF_TEXT = {"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "lc": 4, "lp": 0, "pb": 0}
"""How text packs best: by the four highest bits of the letter before, wherever a letter stands."""


class WithGuide(build_py):
    """Adds the archive of the guide to the files of the package."""

    def run(self) -> None:
        """Copy the modules, then pack the guide: recordings unpacked, since together they take half."""
        super().run()
        if self.editable_mode:
            return
        guide = run_path("helpers/labs/guide_copy.py")
        archive = Path(self.build_lib, "stuck_ranks", guide["ARCHIVE"].name)
        files = sorted(guide["guide_files"](), key=lambda entry: (entry[0].suffix, entry[0]))
        with (
            lzma.open(archive, "w", filters=[OF_TEXT]) as xz,
            tarfile.open(fileobj=xz, mode="w") as packed,
        ):
            for place, content in files:
                plain = gzip.decompress(content) if place.suffix == ".gz" else content
                entry = tarfile.TarInfo(place.as_posix())  # without a date: each build is the same
                entry.size = len(plain)
                packed.addfile(entry, BytesIO(plain))


class InPlace(editable_wheel):
    """Adds the name that the package has in the checkout to those of pyproject.toml."""

    def run(self) -> None:
        """Build the wheel that points to the checkout."""
        self.distribution.packages.append("helpers")
        super().run()


with TemporaryDirectory(prefix="stuck-ranks-build-") as folder:
    setup(
        cmdclass={"build_py": WithGuide, "editable_wheel": InPlace},
        options={"build": {"build_base": folder}},
    )
