"""What decides what a library is given, through names, functions and what is stored in objects."""

from __future__ import annotations

import textwrap

import pytest

from helpers.model.frames import Frame
from helpers.program.blocks import function_of
from helpers.program.handed import handed

CASES = {
    "an argument": (
        """
        def export(model, rank):
            save(model, full=rank == 0)  # <-
        """,
        [(2, "rank == 0")],
    ),
    "what its name is bound to, and what that calls": (
        """
        def make_options(rank):
            return Options(full=(rank == 0))
        def export(model, rank):
            options = make_options(rank)
            save(model, options=options)  # <-
        """,
        [(2, "rank == 0")],
    ),
    "what the object was made with": (
        """
        def export(cfg, rank):
            steps = 5 if rank == 0 else 500
            trainer = Trainer(Settings(steps=steps))
            trainer.train()  # <-
        """,
        [(2, "rank == 0"), (2, "rank == 0")],
    ),
    "what is stored in it under a condition": (
        """
        def settings(rank):
            options = {"steps": 5}
            if rank != 0:
                options["steps"] = 500
            return options
        def export(rank):
            trainer = Trainer(**settings(rank))
            trainer.train()  # <-
        """,
        [(3, "rank != 0")],
    ),
    "what is added to it under a condition": (
        """
        def export(rank):
            callbacks = []
            if rank == 0:
                callbacks.append(Saver())
            fit(callbacks=callbacks)  # <-
        """,
        [(3, "rank == 0")],
    ),
    "what is only printed": (
        """
        def export(rank):
            fit(disable_tqdm=rank != 0, log_level=10 if rank == 0 else 40)  # <-
        """,
        [],
    ),
    "what another call is given": (
        """
        def export(model, rank):
            log(model, only=rank == 0)
            save(model)  # <-
        """,
        [],
    ),
    "names that are bound to each other": (
        """
        def export(first, second):
            first = second
            second = first
            save(first)  # <-
        """,
        [],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_what_decides_what_a_call_is_given(case: str) -> None:
    source, conditions = CASES[case]
    text = textwrap.dedent(source).lstrip("\n")
    line = next(n for n, row in enumerate(text.splitlines(), start=1) if "# <-" in row)
    function = function_of(Frame("train.py", line, "export", text=text))
    assert function is not None
    lines = text.splitlines()
    tests = [
        (condition.statement.lineno, lines[condition.test.lineno - 1])
        for condition in handed(function, line, text)
    ]
    assert [number for number, _ in tests] == [number for number, _ in conditions]
    assert all(test in row for (_, row), (_, test) in zip(tests, conditions, strict=True))
