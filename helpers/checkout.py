"""In a checkout the package is the folder `helpers`: by that name, each module is that of `stuck_ranks`.

Whoever imports both names would have two copies of every class without it. An installed package has one
name, and none of this happens; where `helpers` is a package of the user's, nothing asks for it.
"""

from __future__ import annotations

import importlib.util
import sys
from importlib.abc import InspectLoader, Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import CodeType, ModuleType

NAME, FOLDER = "stuck_ranks", "helpers"


def rename(init: str) -> None:
    """Make the package whose `__init__.py` is `init` that of both names. Called by it, as `helpers`.

    Raises:
        ImportError: `stuck_ranks` has been imported from another place.
    """
    if NAME not in sys.modules:
        folder = [str(Path(init).parent)]
        _load(importlib.util.spec_from_file_location(NAME, init, submodule_search_locations=folder))
    package = sys.modules[NAME]
    if not Path(str(package.__file__)).samefile(init):
        raise ImportError(f"{NAME} has been imported from {package.__file__}, and {FOLDER} is {init}")
    for name in [name for name in sys.modules if f"{name}.".startswith(f"{FOLDER}.")]:
        del sys.modules[name]
    for name in [name for name in sys.modules if f"{name}.".startswith(f"{NAME}.")]:
        sys.modules[FOLDER + name.removeprefix(NAME)] = sys.modules[name]
    sys.meta_path.insert(0, _OtherName())


def _load(spec: ModuleSpec | None) -> None:
    assert spec is not None and spec.loader is not None, "the file is there: it runs"
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)


class _OtherName(MetaPathFinder, Loader):
    """Finds modules of `helpers`: those of `stuck_ranks`."""

    def find_spec(self, name: str, *_: object) -> ModuleSpec | None:
        """The spec of a module of `helpers`; None for any other."""
        spec = importlib.util.find_spec(_name(name)) if name.startswith(f"{FOLDER}.") else None
        if spec is None:
            return None
        return importlib.util.spec_from_loader(
            name, self, origin=spec.origin, is_package=spec.submodule_search_locations is not None
        )

    def exec_module(self, module: ModuleType) -> None:
        """Put the module of the other name in the place of a new one, which an import may do."""
        sys.modules[module.__name__] = importlib.import_module(_name(module.__name__))

    def get_code(self, name: str) -> CodeType | None:
        """What `python -m helpers` runs."""
        spec = importlib.util.find_spec(_name(name))
        assert spec is not None and isinstance(spec.loader, InspectLoader)
        return spec.loader.get_code(_name(name))


def _name(name: str) -> str:
    return NAME + name.removeprefix(FOLDER)
