"""Notice when this process joins the job, however briefly, and when it makes a group.

torch counts the time of `init_process_group` and `new_group` with a `_WaitCounter` that its wrapper
makes by name (`torch.distributed.c10d_logger`, torch 2.11 to 2.15). The counter is made through a
function of ours, which returns before the call begins: no frame of the beacon is in any traceback.
"""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any, Callable, Optional

from . import torch_names


def watch(
    joins: Callable[[Optional[FrameType]], None], makes_group: Callable[[FrameType], None]
) -> bool:
    """Have two calls noticed, once torch is loaded.

    torch loads that module in the first half of its own import, so a look at every tick is in time.

    Args:
        joins: is called with the frame that calls `init_process_group`.
        makes_group: is called with torch's frame around `new_group`.

    Returns:
        True when the watch is set, False while torch has not come so far.
    """
    module = sys.modules.get(torch_names.CALL_LOGGER)
    counter = torch_names.name_in(torch_names.CALL_LOGGER, torch_names.WAIT_COUNTER)
    if counter is None:
        return False

    def noting_counter(key: str) -> Any:
        if key.endswith(".init_process_group"):
            joins(sys._getframe(1))
        elif key.endswith(".new_group"):
            makes_group(sys._getframe(1))
        return counter(key)

    setattr(module, torch_names.WAIT_COUNTER, noting_counter)
    return True
