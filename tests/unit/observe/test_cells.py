"""The cells of a notebook: by which hash, number and name they are known; what was compiled of them."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from beacon_records import record, site, thread
from ipykernel.compiler import get_tmp_hash_seed, murmur2_x86
from IPython.core.inputtransformer2 import TransformerManager

from helpers.beacon.record import FrameEntry
from helpers.observe.cells import Cells, compiled, files, index, merged, murmur2, shown

A, B, C = (f"/tmp/ipykernel_7/{number}.py" for number in (11, 22, 33))
TIMED = "<timed exec>"


def notebook(*cells: tuple[str, int | None], **more: Any) -> bytes:
    """A notebook's file with these cells of code: source and saved count."""
    code = [
        {"cell_type": "code", "source": text.splitlines(keepends=True), "execution_count": count}
        for text, count in cells
    ]
    return json.dumps({"cells": [{"cell_type": "markdown", "source": "x"}, *code], **more}).encode()


def test_the_hash_is_that_of_the_kernel() -> None:
    letters = random.Random(5)
    texts = ["".join(letters.choices("ab \n%é😀", k=length)) for length in range(70)]
    assert [murmur2(text) for text in texts] == [
        murmur2_x86(text, get_tmp_hash_seed()) for text in texts
    ]


SOURCES = [
    "x = 1\nstep(x)\n",
    "\n  \nx = 1\n\n%time step(x)\n",
    "%matplotlib inline\nimport os",
    "!ls -l\nx = !ls\nstep?\ny = %pwd\nif x:\n    %time x\n    !ls {x}",
    "x = 5 \\\n  % 3",
    "text = '''\n%no magic\n'''\n%time step()",
    "?step",
    "x = 1\n\n\n",
    "%%time\n\nx = 1\nstep(x)",
    "%%capture out\nx = 1\n%time step()",
    "%%capture\n%%time\nstep()",
    "%%bash\nls | wc",
]


@pytest.mark.parametrize("source", SOURCES)
def test_a_source_is_the_same_from_the_file_and_from_the_kernel(source: str) -> None:
    transformed = TransformerManager().transform_cell(source)
    seen = Cells({A: ([1], transformed)}).texts
    assert seen == {"cell [1]": compiled(source)}


def test_a_cell_is_numbered_by_its_count_else_by_its_place() -> None:
    found = index(notebook(("a", 7), ("b", None), ("c", None), ("d", 3)))
    numbers = {text: numbers for numbers, text in found.values()}
    assert numbers == {"a": [7], "b": [2], "c": [], "d": [3]}, "another cell has the place of `c`"


def test_of_cells_that_are_alike_nothing_tells_which_one_runs() -> None:
    found = index(notebook(("step()", 2), ("x = 1", 3), ("step()", 5)))
    assert found[murmur2("step()")] == ([2, 5], "step()")
    assert Cells({A: found[murmur2("step()")]}).texts == {"cell [2 or 5]": "step()\n"}
    assert merged([([2], "x"), ([], "x")]) == ([], "x"), "one of them has no known number"
    assert merged([([n], "x") for n in range(1, 9)]) == ([], "x")


def test_what_a_cell_magic_hands_on_is_known_as_well() -> None:
    found = index(notebook(("%%capture\nstep()", 4)))
    assert found[murmur2("step()\n")] == ([4], "step()\n")


@pytest.mark.parametrize(
    "content", [b"", b"[]", b'{"cells": 3}', b'{"worksheets": []}', b"\xff", b"[" * 99999]
)
def test_what_is_no_notebook_has_no_cells(content: bytes) -> None:
    assert index(content) == {}


def test_of_a_notebook_with_endless_cells_others_are_known() -> None:
    assert list(index(notebook(("x" * (1 << 20), 1), ("y", 2)))) == [murmur2("y")]
    assert len(index(notebook(*((f"{number:65536}", number) for number in range(1, 20))))) == 16


def test_a_cell_magic_that_the_cell_calls_by_itself_is_a_call() -> None:
    text = "get_ipython().run_cell_magic('time', '', source)\n"
    assert Cells({A: ([1], text)}).texts == {"cell [1]": text}


def test_a_cell_of_nothing_but_empty_lines_and_magics_ends() -> None:
    assert compiled(" \n" * 20000) == ""
    assert compiled("%%time\n" * 20000).count("\n") == 20000


def names(known: Any, *entries: tuple[str, int, str]) -> list[tuple[str, int, str]]:
    """A stack, innermost frame first, with cells by their names: file, line and function."""
    frames: list[FrameEntry] = [(*entry, True) for entry in entries]
    told = Cells(known).in_record(record(thread(frames=frames)))
    return [entry[:3] for entry in told["threads"][0]["frames"]]


def test_each_frame_is_shown_by_its_own_cell() -> None:
    known = {A: ([1], "def enter():\n    lock.acquire()\n"), B: ([3], "enter()\n")}
    found = names(known, (A, 2, "enter"), (B, 1, "<module>"), ("/job/train.py", 4, "main"))
    assert found == [
        ("cell [1]", 2, "enter"),
        ("cell [3]", 1, "<module>"),
        ("/job/train.py", 4, "main"),
    ]


def test_what_runs_under_a_timing_magic_is_in_the_cell_below_that_line() -> None:
    text = "get_ipython().run_cell_magic('time', '', 'def enter():\\n    step()\\n\\nenter()\\n')\n"
    stack = (TIMED, 2, "enter"), (TIMED, 4, "<module>"), (A, 1, "<module>")
    assert names({A: ([2], text)}, *stack) == [
        ("cell [2]", 3, "enter"),
        ("cell [2]", 5, "<module>"),
        ("cell [2]", 1, "<module>"),
    ]


def test_what_runs_under_a_timing_magic_of_one_line_is_in_that_line() -> None:
    text = "x = 1\nget_ipython().run_line_magic('time', 'step()')\n"
    found = names({A: ([2], text)}, ("<timed eval>", 1, "<module>"), (A, 2, "<module>"))
    assert found == [("cell [2]", 2, "<module>"), ("cell [2]", 2, "<module>")]


def test_a_function_that_an_earlier_cell_has_defined_under_a_timing_magic_is_in_an_unknown_cell() -> (
    None
):
    found = names({A: ([3], "enter()\n")}, (TIMED, 2, "enter"), (A, 1, "<module>"))
    assert found == [("cell [?]", 2, "enter"), ("cell [3]", 1, "<module>")]


def test_what_a_cell_magic_runs_as_a_cell_is_a_part_of_its_own() -> None:
    """IPython gives it the number of the next cell."""
    text = "get_ipython().run_cell_magic('capture', '', 'x = 1\\nstep()\\n')\n"
    known = {A: ([2], text), B: ([3], "x = 1\nstep()\n")}
    found = names(known, (B, 2, "<module>"), (A, 1, "<module>"))
    assert found == [("cell [2]", 3, "<module>"), ("cell [2]", 1, "<module>")]
    inner = thread(frames=[(B, 2, "<module>", True)], site=site(B, [2, 2, 0, 6]))
    told = Cells(known).in_record(record(inner))
    assert told["threads"][0]["site"] == site("cell [2]", [3, 3, 0, 6])


def test_two_sources_with_one_number_are_shown_by_it_and_read_by_none() -> None:
    assert Cells({A: ([3], "x = 1\n"), B: ([3], "y = 2\n")}).texts == {"cell [3]": ""}


def test_sites_locks_and_texts_name_the_cell() -> None:
    frames = [("/lib/threading.py", 9, "wait", False), (A, 2, "enter", True)]
    lock = {"file": A, "line": 2, "names": {"lock": 1}, "owners": {}}
    error = {
        "type": "E",
        "message": f'File "{A}", line 3, in enter',
        "frames": [(A, 3, "enter", True)],
        "time": 1.0,
        "masked": [],
    }
    one = thread(frames=frames, site=site(A, [2, 2, 4, 18]), locks=[lock])
    told = Cells({A: ([5], "")}).in_record(record(one, error=error, left=[(A, 1, "f", True)]))
    assert A not in repr(told)
    assert told["threads"][0]["site"] == site("cell [5]", [2, 2, 4, 18])
    assert told["threads"][0]["locks"][0]["file"] == "cell [5]"
    assert told["error"] is not None
    assert told["error"]["message"] == 'File "cell [5]", line 3, in enter'
    assert told["left"] == [("cell [5]", 1, "f", True)]


FILES = [
    ("of a kernel", A, "cell [?]"),
    ("of IPython in a terminal, or of an old kernel", "<ipython-input-3-0123456789ab>", "cell [3]"),
    ("of what runs under %%time", TIMED, "cell [?]"),
    ("a file of the user's with such a name", "/tmp/ipykernel_notes/train.py", None),
    ("a file", "/job/12345.py", None),
]


@pytest.mark.parametrize(("title", "file", "name"), FILES, ids=[row[0] for row in FILES])
def test_a_temporary_file_is_never_named(title: str, file: str, name: str | None) -> None:
    assert shown(file) == (name or file)


def test_a_notebook_is_asked_only_for_cells_of_a_kernel() -> None:
    stack = [(A, 1, "f", True), ("/job/train.py", 1, "f", True), ("<ipython-input-3-0a>", 1, "f", True)]
    assert files(record(thread(frames=stack), thread(frames=[(C, 1, "g", True)]))) == {A, C}
