"""What `multiprocessing` knows of this process."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Optional

from . import torch_names

if TYPE_CHECKING:
    from .record import Child


def own_part() -> Optional[Child]:
    """The part of this process when `multiprocessing` has made it, else None."""
    module = sys.modules.get("multiprocessing.process")
    current = getattr(module, "_current_process", None)
    if current is None or getattr(current, "_parent_pid", None) is None:
        return None
    function = getattr(current, "_target", None)
    target = f"{getattr(function, '__module__', '')}.{getattr(function, '__qualname__', '')}"
    place = torch_names.INDEX_ARGUMENT.get(target)
    args = getattr(current, "_args", ())
    index = args[place] if place is not None and len(args) > place else None
    last = args[-1] if args else None
    return {
        "target": target,
        "index": index if isinstance(index, int) else None,
        "error_file": last if target == torch_names.MP_SPAWN and isinstance(last, str) else None,
    }
