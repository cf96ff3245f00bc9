"""A healthy job of three: rank 2 imports from a file system that is far away and slow."""

import os
import sys
import types
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from time import sleep


class FarAway(MetaPathFinder, Loader):
    def find_spec(self, name: str, path: object, target: object = None) -> ModuleSpec | None:
        return ModuleSpec(name, self) if name == "far_away" else None

    def exec_module(self, module: types.ModuleType) -> None:
        sleep(9 if os.environ["RANK"] == "2" else 0)


sys.meta_path.append(FarAway())

import far_away  # type: ignore[import-not-found]  # noqa: E402, F401
import torch.distributed as dist  # noqa: E402

dist.init_process_group("gloo")
dist.barrier()
dist.destroy_process_group()
