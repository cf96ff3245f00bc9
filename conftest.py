"""Keeps every lab on the CPU, in tests and in the notebooks that nbval runs."""

import os

os.environ["STUCK_RANKS_HARDWARE"] = "cpu"
