"""What `multiprocessing` knows of this process."""

from __future__ import annotations

import sys
from typing import Any, Dict, Optional

from . import torch_names


def own_part() -> Optional[Dict[str, Any]]:
    """Name, target and index of this process when `multiprocessing` has made it.

    The index is the worker id of a DataLoader worker and the process index of `mp.spawn`.
    """
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
        "name": current.name,
        "target": target,
        "index": index,
        "error_file": last if target == torch_names.MP_SPAWN and isinstance(last, str) else None,
    }
