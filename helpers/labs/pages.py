"""The questions of a page that is no lab: `questions.toml` beside it."""

from __future__ import annotations

from msgspec import Struct

from . import toml_file
from .lab import LabError, labs_folder
from .questions import Question

FILE = "questions.toml"


class Page(Struct, frozen=True, forbid_unknown_fields=True):
    """What a questions.toml holds: one question for each step, in the order of the page."""

    questions: tuple[Question, ...]


def read_page(name: str) -> Page:
    """The questions of the page in a folder of the guide.

    Args:
        name: of the folder: `method`.

    Raises:
        LabError: they are not there, or the file is wrong.
    """
    try:
        return toml_file.read(labs_folder() / name / FILE, Page)
    except toml_file.TomlError as problem:
        raise LabError(str(problem)) from None
