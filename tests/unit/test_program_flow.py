"""Where the steps of a function lead, and what a program tells those that call it back."""

from __future__ import annotations

import ast
import textwrap

import pytest

from helpers.program.flow import EXIT, RAISED, UNHANDLED, Flow
from helpers.program.hooks import callees, exits, hooks


def flow(body: str) -> Flow:
    """That of a function `f`, whose first line is line 2."""
    tree = ast.parse("def f():\n" + textwrap.indent(textwrap.dedent(body).strip("\n"), "    "))
    (function,) = tree.body
    assert isinstance(function, ast.FunctionDef)
    return Flow(function)


def merge(made: Flow, line: int, raised: bool = False) -> int:
    """The first line of the step at which the ways of a choice come together; 0 for the end."""
    (step,) = (n for n, one in enumerate(made.steps) if one.choice is not None and one.first == line)
    return made.steps[made.merge(step, raised)].first


MERGES = [
    ("an `if`", "if a:\n    b()\nc()", 2, 4),
    ("an `elif` is asked after the first", "if a:\n    b()\nelif c:\n    d()\ne()", 4, 6),
    ("a loop", "for a in b:\n    c()\nd()", 2, 4),
    ("a `continue` leads to the loop's head", "for a in b:\n    if c:\n        continue\n    d()", 3, 2),
    ("a `break` leads behind the loop", "while a:\n    if b:\n        break\n    c()\nd()", 3, 6),
    ("a `return` leads to the end", "if a:\n    return\nb()", 2, 0),
    ("what raises comes together with nothing", "if a:\n    raise B\nc()", 2, 4),
    ("a conditional expression", "a() if b else c()\nd()", 2, 2),
    ("`and` asks the second part only after the first", "a() and b()\nc()", 2, 2),
]


@pytest.mark.parametrize(("title", "body", "line", "comes_to"), MERGES, ids=[row[0] for row in MERGES])
def test_ways_come_together(title: str, body: str, line: int, comes_to: int) -> None:
    assert merge(flow(body), line) == comes_to


def leads(made: Flow, start: int, without: frozenset[int] = frozenset()) -> set[int]:
    """The first lines of the steps to which a line may lead."""
    return {
        step.first
        for n, step in enumerate(made.steps)
        if n not in (EXIT, UNHANDLED) and any(made.leads(one, {n}, without) for one in made.at(start))
    }


def test_an_exception_leads_to_the_handlers_and_out() -> None:
    made = flow("try:\n    a()\nexcept ValueError:\n    b()\nc()")
    assert 5 in leads(made, 3) and 6 in leads(made, 3)
    assert any(made.leads(one, {UNHANDLED}) for one in made.at(3)), "another exception leaves it"
    made = flow("try:\n    a()\nexcept Exception:\n    pass\nc()")
    raised = [to for n in made.at(3) for label, to in made.steps[n].edges if label == RAISED]
    assert raised and UNHANDLED not in raised


def test_what_is_left_goes_through_finally() -> None:
    made = flow("try:\n    return a()\nfinally:\n    b()\nc()")
    assert 5 in leads(made, 3) and 6 not in leads(made, 3)


def test_suppressed_exceptions_lead_behind_the_statement() -> None:
    assert 4 in leads(flow("with suppress(OSError):\n    a()\nb()"), 3)


def test_the_step_of_a_line_is_the_call_that_is_known() -> None:
    made = flow("a(b(), c())")
    called = {name: {made.steps[n].name for n in made.at(2, [name])} for name in ("a", "b", "c", "x")}
    assert called == {"a": {"a"}, "b": {"b"}, "c": {"c"}, "x": {"a"}}


def test_names_that_are_bound_on_a_way() -> None:
    made = flow("a = 1\nif a:\n    b = 2\nc = 3\nd()")
    ((start,), (end,)) = made.at(3), made.at(6)
    assert made.bound_between(start, frozenset({end})) == {"b", "c"}


CALLBACKS = """\
class Stop(Callback):
    def on_step_end(self, args, state, control):
        if state.step > 3:
            control.should_stop = True
        if state.step > 5:
            self.late = True
    def on_end(self, trainer):
        if self.done():
            self.trainer.should_stop = True
    def done(self):
        if self.late:
            return True
        return False
    def on_batch_start(self, batch):
        if not batch:
            return -1
    def on_batch_end(self, trainer, batch):
        if batch.last:
            self._stop(trainer, "now")
            self._note(batch)
    def _stop(self, trainer, reason):
        if reason:
            trainer.should_stop = True
    def _note(self, batch):
        if batch:
            self.noted = True
"""

GENERATOR = """\
def records(lines):
    for line in lines:
        if line is None:
            return
        yield line
for record in enumerate(records(read())):
    train(record)
"""


def test_what_is_told_to_a_library() -> None:
    """By functions that the program calls only what they are handed; not what one keeps for itself."""
    assert [one.statement.lineno for one in hooks(CALLBACKS, callees(CALLBACKS))] == [3, 8, 15, 18, 22]
    assert hooks("no Python at all (", frozenset()) == ()


def test_what_may_end_a_generator() -> None:
    loop = ast.parse(GENERATOR).body[1]
    assert isinstance(loop, ast.For)
    assert [one.statement.lineno for one in exits(GENERATOR, loop.iter)] == [3]
    assert exits(GENERATOR, ast.Name("lines")) == ()
