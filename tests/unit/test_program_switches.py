"""What decides whether a backward pass runs in a block in which it exchanges nothing."""

from __future__ import annotations

import textwrap

import pytest

from helpers.model.frames import Frame
from helpers.program.blocks import function_of
from helpers.program.switches import switches

CASES = {
    "by what the rank has counted": (
        """
        def step(self, ids):
            self.tokens += len(ids)
            with nullcontext() if self.tokens > self.wanted else self.model.no_sync():
                backward()  # <-
        """,
        [3],
    ),
    "by what its caller says": (
        """
        def around(model, last):
            return nullcontext() if last else model.no_sync()
        def step(model, last):
            with around(model, last):
                backward()  # <-
        """,
        [2],
    ),
    "in a context manager of the program": (
        """
        @contextmanager
        def window(model, tally):
            if tally.pending < tally.target:
                with model.no_sync():
                    yield
            else:
                yield
                tally.pending = 0
        def step(model, tally):
            with window(model, tally):
                backward()  # <-
        """,
        [3],
    ),
    "by a name that was bound before": (
        """
        def step(fabric, model, batch):
            manager = fabric.no_backward_sync(model) if batch.short else nullcontext()
            with manager:
                backward(batch)  # <-
        """,
        [2],
    ),
    "by the iteration and a setting": (
        """
        def train(model, cfg, loader):
            for i, batch in enumerate(loader):
                last = i + 1 == cfg.accumulate
                with nullcontext() if last else model.no_sync():
                    backward()  # <-
        """,
        [],
    ),
    "outside of the block": (
        """
        def step(model, last):
            with nullcontext() if last else model.no_sync():
                forward()
            backward()  # <-
        """,
        [],
    ),
    "a block that switches nothing off": (
        """
        def step(model, last):
            with nullcontext() if last else autocast():
                backward()  # <-
        """,
        [],
    ),
    "both ways lead into such a block": (
        """
        def step(model, head, last):
            with model.no_sync() if last else head.no_sync():
                backward()  # <-
        """,
        [],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_what_decides_is_told_unless_all_ranks_answer_it_alike(case: str) -> None:
    source, lines = CASES[case]
    text = textwrap.dedent(source).lstrip("\n")
    line = next(n for n, row in enumerate(text.splitlines(), start=1) if "# <-" in row)
    name = "train" if "def train" in text else "step"
    function = function_of(Frame("train.py", line, name, text=text))
    assert function is not None
    assert [chosen.statement.lineno for chosen in switches(function, line, text)] == lines
