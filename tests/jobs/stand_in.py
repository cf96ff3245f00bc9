"""What a job with a stand-in device takes from it (see site-packages/stand_in_device)."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).with_name("site-packages")))

from stand_in_device import Scalar, kernel, set_device, synchronize  # noqa: F401
