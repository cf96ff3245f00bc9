"""Tracebacks read back from text: the first cause, and what hides it."""

from __future__ import annotations

import os
import pickle
import struct
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.model.frames import Frame
from helpers.observe.tracebacks import NEAR, NO_SCRIPT, first_error, pickled_text

BOUNDED = settings(max_examples=100, deadline=None, derandomize=True, database=None)


def printed(program: str) -> str:
    """What Python prints when a program ends with an exception."""
    command = [sys.executable, "-I", "-S", "-c", textwrap.dedent(program)]
    return subprocess.run(command, capture_output=True, text=True, check=False).stderr


PLAIN = """\
Traceback (most recent call last):
  File "/job/train.py", line 90, in <module>
    main()
  File "/job/data.py", line 9, in __getitem__
    raise ValueError("bad sample 7")
ValueError: bad sample 7
"""


def test_the_frames_of_a_traceback_stand_innermost_first() -> None:
    found = first_error(PLAIN)
    assert found is not None
    assert found.text == "ValueError: bad sample 7"
    assert found.stack == (
        Frame("/job/data.py", 9, "__getitem__"),
        Frame("/job/train.py", 90, "<module>"),
    )
    assert found.masked == ()


def test_the_type_is_shortened() -> None:
    text = PLAIN.replace("ValueError: bad", "torch.distributed.DistNetworkError: bad")
    found = first_error(text)
    assert found is not None and found.type == "DistNetworkError"


def test_an_error_without_a_message() -> None:
    found = first_error(PLAIN.replace("ValueError: bad sample 7", "KeyboardInterrupt"))
    assert found is not None and found.text == "KeyboardInterrupt"


@pytest.mark.parametrize("text", ["", "hello\n", "Traceback of a hike\n", "ValueError: bad\n"])
def test_a_text_without_a_traceback_has_no_error(text: str) -> None:
    assert first_error(text) is None


def test_a_traceback_that_is_cut_off_is_none() -> None:
    assert first_error(PLAIN.rpartition("ValueError")[0]) is None


def test_what_is_printed_around_it_does_not_matter() -> None:
    found = first_error(f"epoch 1: loss 3.4\n{PLAIN}bye: all done\n")
    assert found is not None and found.text == "ValueError: bad sample 7"


def test_an_exception_that_is_called_otherwise_is_one_where_nothing_of_the_traceback_follows() -> None:
    found = first_error(PLAIN.replace("ValueError: bad sample 7", "queue.Empty") + "bye: all done\n")
    assert found is not None and found.text == "Empty"


def test_an_exception_far_from_its_frames_is_another_ones() -> None:
    far = "epoch 1\n" * (NEAR + 1)
    assert first_error(PLAIN.replace("ValueError", far + "ValueError")) is None


def test_the_last_of_several_unrelated_ones_counts() -> None:
    found = first_error(PLAIN.replace("ValueError", "KeyError") + "retrying\n" + PLAIN)
    assert found is not None
    assert (found.type, found.masked) == ("ValueError", ())


def test_an_accident_on_the_way_out_hides_the_first_error() -> None:
    text = printed(
        """
        def teardown():
            raise RuntimeError("please call iter first")
        def fit():
            raise ValueError("bad batch")
        try:
            fit()
        except ValueError:
            teardown()
        """
    )
    found = first_error(text)
    assert found is not None
    assert found.text == "ValueError: bad batch"
    assert found.masked == ("RuntimeError: please call iter first",)


def test_two_accidents() -> None:
    text = printed(
        """
        def close():
            raise OSError("disk")
        def teardown():
            try:
                stop()
            except RuntimeError:
                close()
        def stop():
            raise RuntimeError("stop")
        def fit():
            raise ValueError("bad batch")
        try:
            fit()
        except ValueError:
            teardown()
        """
    )
    found = first_error(text)
    assert found is not None
    assert found.text == "ValueError: bad batch"
    assert set(found.masked) == {"OSError: disk", "RuntimeError: stop"}
    assert found.caused_by == ""


def test_a_translation_is_what_its_author_meant() -> None:
    text = printed(
        """
        def load():
            try:
                {}["x"]
            except KeyError:
                raise ValueError("no x in the config")
        load()
        """
    )
    found = first_error(text)
    assert found is not None
    assert (found.text, found.masked) == ("ValueError: no x in the config", ())
    assert found.caused_by == "KeyError: 'x'"


def test_raise_from_is_what_its_author_meant() -> None:
    text = printed(
        """
        def inner():
            {}["x"]
        def wrap(error):
            raise ValueError("no x") from error
        try:
            inner()
        except KeyError as error:
            wrap(error)
        """
    )
    found = first_error(text)
    assert found is not None
    assert (found.text, found.masked) == ("ValueError: no x", ())
    assert found.caused_by == "KeyError: 'x'"


def test_the_text_of_a_traceback_from_another_process_is_no_cause_of_it() -> None:
    text = textwrap.dedent(
        """\
        multiprocessing.pool.RemoteTraceback:
        \"\"\"
        Traceback (most recent call last):
          File "/job/train.py", line 2, in parse
            return int("x")
        ValueError: bad
        \"\"\"

        The above exception was the direct cause of the following exception:

        Traceback (most recent call last):
          File "/job/train.py", line 9, in <module>
            pool.map(parse, ["x"])
        ValueError: bad
        """
    )
    found = first_error(text)
    assert found is not None
    assert (found.text, found.caused_by) == ("ValueError: bad", "")


def test_a_syntax_error_stands_at_its_line() -> None:
    text = textwrap.dedent(
        """\
        Traceback (most recent call last):
          File "/job/train.py", line 2, in <module>
            import broken
          File "/job/broken.py", line 7
            def f(:
                  ^
        SyntaxError: invalid syntax
        """
    )
    found = first_error(text)
    assert found is not None
    assert found.type == "SyntaxError"
    assert found.stack[0] == Frame("/job/broken.py", 7, "<module>")


def test_markers_below_a_line_are_no_frames() -> None:
    text = printed("def f():\n    return 1 / 0\n\nx = [f() for n in range(1)]\n")
    found = first_error(text)
    assert found is not None and found.type == "ZeroDivisionError"
    assert found.stack[0].function == "f"


def test_the_rank_that_torch_writes_before_each_line_is_left_out() -> None:
    text = "".join(f"[rank1]: {line}\n" for line in PLAIN.splitlines())
    found = first_error(text)
    assert found is not None
    assert found.text == "ValueError: bad sample 7"
    assert found.stack[0] == Frame("/job/data.py", 9, "__getitem__")


WRAPPED = [
    (
        "a DataLoader worker",
        "Caught ValueError in DataLoader worker process 0.\nOriginal " + PLAIN,
    ),
    ("mp.spawn", "\n\n-- Process 1 terminated with the following error:\n" + PLAIN),
    ("multiprocessing", "Process SpawnProcess-1:\n" + PLAIN),
]


@pytest.mark.parametrize("text", [row[1] for row in WRAPPED], ids=[row[0] for row in WRAPPED])
def test_a_parents_words_hold_the_childs_error(text: str) -> None:
    found = first_error(text)
    assert found is not None
    assert found.text == "ValueError: bad sample 7"
    assert found.stack[0].file == "/job/data.py"


@BOUNDED
@given(st.text(alphabet=' \nTraceback(mostrecentcallast):File"x.py",line1inf', max_size=300))
def test_no_text_makes_it_raise(text: str) -> None:
    first_error(text)
    first_error("Traceback (most recent call last):\n" + text)


NO_SCRIPTS = [
    "python: can't open file '/job/nowhere.py': [Errno 2] No such file or directory",
    "/env/bin/python: No module named nowhere",
    "/env/bin/python: can't find '__main__' module in '/job'",
    "/env/bin/python: Error while finding module specification for 'a.b' (ModuleNotFoundError: ...)",
]


@pytest.mark.parametrize("text", NO_SCRIPTS)
def test_pythons_words_for_a_script_that_it_cannot_run(text: str) -> None:
    assert NO_SCRIPT.search(text)


def test_python_still_uses_these_words(tmp_path: Path) -> None:
    for arguments in (["nowhere.py"], ["-m", "nowhere_at_all"], [str(tmp_path)]):
        command = [sys.executable, "-I", *arguments]
        run = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
        assert run.returncode
        assert NO_SCRIPT.search(run.stderr), run.stderr


def test_an_import_that_fails_inside_the_job_is_no_missing_script() -> None:
    text = printed("import nowhere_at_all")
    found = first_error(text)
    assert found is not None and found.type == "ModuleNotFoundError"


# What a child of mp.spawn leaves for its parent


def test_a_pickled_text() -> None:
    assert pickled_text(pickle.dumps(PLAIN)) == PLAIN


class Hostile:
    """Runs a command when it is unpickled."""

    def __reduce__(self) -> tuple[object, tuple[str, ...]]:
        return os.mkdir, ("unpickled",)


HOSTILE = [
    ("a call", pickle.dumps(Hostile())),
    ("a call, in the oldest form", pickle.dumps(Hostile(), protocol=0)),
    ("an object", pickle.dumps(Path("x"))),
    ("a number", pickle.dumps(7)),
    ("bytes", pickle.dumps(b"text")),
    ("nothing", b""),
    ("half a text", pickle.dumps(PLAIN)[:20]),
    ("no pickle", b"Traceback (most recent call last):\n"),
    ("a number that is called", b"K\x01)R."),
    ("a number with attributes", b"K\x01}b."),
    ("an empty stack", b"."),
    ("a text of another length", b"\x8d" + struct.pack("<Q", 2**62) + b"x."),
    ("a text that is no text", b"\x8c\x02\xff\xff."),
    ("a key that cannot be one", b"}](K\x01u."),
    ("something foreign", b"\x82\x01."),
]


@pytest.mark.parametrize("data", [row[1] for row in HOSTILE], ids=[row[0] for row in HOSTILE])
def test_anything_but_a_text_is_refused(
    data: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert pickled_text(data) == ""
    assert not (tmp_path / "unpickled").exists()
