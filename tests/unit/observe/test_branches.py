"""The statements around a line."""

from __future__ import annotations

import pytest

from helpers.observe.branches import around

PROGRAM = """\
def fit(step):
    if step == 3:
        save()
    elif step == 4:
        check()
    else:
        rest()
    for batch in batches:
        with lock:
            train(batch)
    try:
        load()
    except OSError:
        again()
    finally:
        close()
    def inner():
        call()
    match step:
        case 1: one()
        case _:
            other()
    while True: wait()

if main:
    fit(1)
"""
LINES = {
    "save": [("if", 2, "in its body")],
    "check": [("if", 2, "in its else"), ("if", 4, "in its body")],
    "rest": [("if", 2, "in its else"), ("if", 4, "in its else")],
    "train": [("for", 8, "in its body"), ("with", 9, "in its body")],
    "load": [("try", 11, "in its body")],
    "again": [("try", 11, "in a handler")],
    "close": [("try", 11, "in its finally")],
    "call": [],
    "one": [("match", 19, "in case 1")],
    "other": [("match", 19, "in case 2")],
    "wait": [("while", 23, "in its body")],
    "fit(1)": [("if", 25, "in its body")],
}


@pytest.mark.parametrize("text", LINES)
def test_the_statements_around_a_line(text: str) -> None:
    line = next(n for n, one in enumerate(PROGRAM.splitlines(), 1) if text in one and "def" not in one)
    found = around(PROGRAM, line)
    assert [(one.kind, one.line, one.label) for one in found] == LINES[text]


def test_what_is_no_python_has_no_statements() -> None:
    assert around("def", 1) == ()
    assert around("\0", 1) == ()
    assert around("", 7) == ()
