"""What a job with a stand-in device takes from it (see site-packages/stand_in_device)."""

import importlib
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).with_name("site-packages")))

from stand_in_device import Scalar, kernel, set_device, synchronize  # noqa: F401


def recorded() -> None:
    """Add the backend `nccl_stand_in`, whose calls a recorder notes as NCCL's."""
    importlib.import_module("stand_in_device.recorded")
