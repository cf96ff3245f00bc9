"""Installed in place, by `pip install -e`, the package can be imported as `helpers`, too."""

from setuptools import setup
from setuptools.command.editable_wheel import editable_wheel


class InPlace(editable_wheel):
    """Adds the name that the package has in the checkout to those of pyproject.toml."""

    def run(self) -> None:
        """Build the wheel that points to the checkout."""
        self.distribution.packages.append("helpers")
        super().run()


setup(cmdclass={"editable_wheel": InPlace})
