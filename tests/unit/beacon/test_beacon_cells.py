"""What the beacon tells of cells, in a process in which IPython runs some as a kernel does."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from repository import ROOT

HEAD = """
import json, sys
from IPython.core.interactiveshell import InteractiveShell
from ipykernel.compiler import XCachingCompiler
from helpers.beacon import cells, exits, stacks
shell = InteractiveShell.instance()
shell.compile = XCachingCompiler()
def look():
    told.append([stacks.entries(sys._getframe(1)), cells.cells(stacks.entries(sys._getframe(1)))])
told = []
shell.user_ns["look"] = look
"""


def tell(script: str) -> Any:
    """What a program prints that runs cells in a shell of its own."""
    program = f"{HEAD}{script}\nprint('\\n' + json.dumps(told))"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout.splitlines()[-1])


def test_a_function_and_its_caller_are_each_told_with_their_own_cell() -> None:
    [(stack, told)] = tell(
        'shell.run_cell("\\ndef enter():\\n    look()", store_history=True)\n'
        'shell.run_cell("x = 1", store_history=True)\n'
        'shell.run_cell("%precision 3\\nenter()", store_history=True)\n'
    )
    inner, outer = stack[:2]
    assert (inner[1:], outer[1:]) == ([2, "enter", True], [2, "<module>", True])
    assert told == {
        inner[0]: [1, "def enter():\n    look()\n"],
        outer[0]: [3, "get_ipython().run_line_magic('precision', '3')\nenter()\n"],
    }
    assert not any(user for file, _, _, user in stack if "/IPython/" in file)


def test_a_cell_that_runs_again_has_the_newest_number() -> None:
    told = tell('for _ in range(2):\n    shell.run_cell("look()", store_history=True)\n')
    assert [[number for number, _ in known.values()] for _, known in told] == [[1], [2]]


def test_a_source_that_is_too_long_is_left_out() -> None:
    [(_, told)] = tell('shell.run_cell("look()\\n" + "# long\\n" * 20000, store_history=True)\n')
    assert list(told.values()) == [[1, ""]]


@pytest.mark.parametrize(("then", "error"), [("", "ZeroDivisionError"), ("x = 1", None)])
def test_an_exception_of_a_cell_counts_while_no_other_one_has_run(then: str, error: str | None) -> None:
    told = tell(
        'shell.run_cell("x = 0", store_history=True)\n'
        'shell.run_cell("1 / x", store_history=True)\n'
        f"shell.run_cell({then!r}, store_history=True)\n"
        "told = [(exits.uncaught(ended) or {}).get('type') for ended in (True, False)]"
    )
    assert told == [error, None]


def test_what_a_rank_tells_its_parent_counts_in_a_process_with_a_shell() -> None:
    told = tell(
        'shell.run_cell("1 / 0", store_history=True)\n'
        "exits.handed_over.append({'type': 'ValueError'})\n"
        "told = exits.uncaught()['type']"
    )
    assert told == "ValueError"


def test_without_ipython_there_are_no_cells() -> None:
    program = (
        "from helpers.beacon import cells; import sys; "
        "print(cells.cells([('a.py', 1, 'f', True)]), cells.outlives(KeyError(), False), "
        "'IPython' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout == "{} False False\n"
