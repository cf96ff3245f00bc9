"""What pyproject.toml cannot say.

Installed in place, by `pip install -e`, the package can be imported as `helpers`, too. A build leaves
nothing in the checkout: what it copies would be found by tools, and by the next build when it is old.
"""

from tempfile import TemporaryDirectory

from setuptools import setup
from setuptools.command.editable_wheel import editable_wheel


class InPlace(editable_wheel):
    """Adds the name that the package has in the checkout to those of pyproject.toml."""

    def run(self) -> None:
        """Build the wheel that points to the checkout."""
        self.distribution.packages.append("helpers")
        super().run()


with TemporaryDirectory(prefix="stuck-ranks-build-") as folder:
    setup(cmdclass={"editable_wheel": InPlace}, options={"build": {"build_base": folder}})
