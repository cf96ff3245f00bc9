"""The live view in a notebook: `open_lab` for a lab, `open_job` for a command of your own.

`open_recording` shows a run again that was saved from either, `open_artifacts` what is left of a job
that is dead or elsewhere; `open_practice` has hangs to practise on, `recall` questions of earlier labs,
`open_board` what the learners of a workshop share. `open_first_hang`, `open_path` and `ask` are what the
start page and the method show.
"""

from .waiting import waiting

with waiting("Loading the panel, which takes a few seconds, or many on a busy machine."):
    from .lab_panel import open_lab
    from .learn.ask import ask
    from .learn.board import open_board
    from .learn.first_hang import open_first_hang
    from .learn.path import open_path
    from .learn.quiz import recall
    from .practice_panel import open_practice
    from .run.aftermath import open_artifacts
    from .run.job_panel import open_job
    from .run.replay import open_recording

__all__ = [
    "ask",
    "open_artifacts",
    "open_board",
    "open_first_hang",
    "open_job",
    "open_lab",
    "open_path",
    "open_practice",
    "open_recording",
    "recall",
]
