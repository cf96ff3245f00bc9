"""The live view in a notebook: `open_lab` for a lab, `open_job` for a command of your own.

`open_recording` shows a run again that was saved from either; `open_practice` has hangs to practise on.
"""

from .lab_panel import open_lab
from .practice_panel import open_practice
from .run.job_panel import open_job
from .run.replay import open_recording

__all__ = ["open_job", "open_lab", "open_practice", "open_recording"]
