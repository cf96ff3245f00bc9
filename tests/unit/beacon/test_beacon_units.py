"""The parts of the beacon, each by itself: what is user code, how a process ends, what it calls."""

from __future__ import annotations

import ctypes
import gc
import json
import os
import pickle
import select
import subprocess
import sys
import textwrap
import threading
import time
import weakref
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from types import FrameType, ModuleType, SimpleNamespace
from typing import Any

import psutil
import pytest
from on_disk import sources
from repository import ROOT

from helpers.beacon import (
    beacon,
    calls,
    crashes,
    exits,
    flight,
    locks,
    native,
    output,
    process,
    sites,
    stacks,
    threads,
    torch_names,
    tracer,
    variables,
)
from helpers.beacon.files import read, record_path, write
from helpers.beacon.membership import MOST_LISTED, MOST_RANKS, members, ranks_of
from helpers.beacon.record import Members, Record
from helpers.launch import run_folder
from helpers.observe import polling
from helpers.observe.called import called_at
from helpers.observe.records import parsed

# What is the user's own code


LIBRARY = os.path.dirname(os.path.abspath(os.__file__))

FILES = [
    ("a script", "/job/train.py", "__main__", True),
    ("a module beside it", "/job/sub/data.py", "sub.data", True),
    ("the standard library", os.path.join(LIBRARY, "threading.py"), "threading", False),
    ("below it", os.path.join(LIBRARY, "concurrent", "futures", "_base.py"), "x", False),
    ("an installed package", "/env/lib/python3.11/site-packages/numpy/x.py", "numpy.x", False),
    ("a distribution's package", "/usr/lib/python3/dist-packages/yaml/x.py", "yaml.x", False),
    ("the beacon", os.path.join(os.path.dirname(stacks.__file__), "beacon.py"), "x", False),
    ("what Python imports at its start", "/tool/sitecustomize.py", "sitecustomize", False),
    ("a name that only ends alike", "/job/my_sitecustomize.py", "my_sitecustomize", True),
    ("python -c", "<string>", "__main__", True),
    ("python -", "<stdin>", "__main__", True),
    ("a cell in a terminal, or of an old kernel", "<ipython-input-3-0a1b>", "__main__", True),
    ("a cell under %%time", "<timed exec>", "__main__", True),
    ("a cell of a kernel", "/tmp/ipykernel_7/123.py", "__main__", True),
    ("code made by a library", "<string>", "torch._ops", False),
    ("the frozen importer", "<frozen importlib._bootstrap>", "importlib._bootstrap", False),
    ("generated code", "<eval_with_key>.3", "__main__", False),
]


@pytest.mark.parametrize(("file", "module", "user"), [f[1:] for f in FILES], ids=[f[0] for f in FILES])
def test_what_is_the_users_own_code(file: str, module: str, user: bool) -> None:
    assert stacks.is_user(file, module) is user


def test_the_text_that_starts_a_spawned_child_is_multiprocessings(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "orig_argv", ["python", "-c", "spawn_main()", "--multiprocessing-fork"])
    assert not stacks.is_user("<string>", "__main__")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_before_python_3_10_the_kernel_tells_that_a_child_was_spawned() -> None:
    program = (
        "import sys; del sys.orig_argv; from helpers.beacon import stacks; "
        "print(stacks.is_user('<string>', '__main__'))"
    )
    for more, user in (([], "True"), (["--multiprocessing-fork"], "False")):
        done = subprocess.run(
            [sys.executable, "-c", program, *more], cwd=ROOT, capture_output=True, text=True, check=False
        )
        assert done.stdout.strip() == user, done.stderr


@pytest.mark.parametrize("name", ["torch", "lightning", "lightning_fabric", "deepspeed", "accelerate"])
def test_a_library_that_is_worked_on_in_place_is_no_user_code(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = ModuleType(name)
    package.__path__ = [f"/home/me/src/{name}"]
    monkeypatch.setitem(sys.modules, name, package)
    assert not stacks.is_user(f"/home/me/src/{name}/core.py", f"{name}.core")
    assert stacks.is_user(f"/home/me/src/{name}_study/train.py", "train")


def test_the_target_of_m_is_user_code_wherever_it_lies(monkeypatch: pytest.MonkeyPatch) -> None:
    file = "/env/lib/python3.11/site-packages/recipes/train.py"
    main = ModuleType("__main__")
    main.__file__ = file
    monkeypatch.setitem(sys.modules, "__main__", main)
    assert stacks.is_user(file, "__main__")
    assert not stacks.is_user(file.replace("train", "data"), "recipes.data")


@pytest.mark.parametrize("file", ["ray/_private/workers/default_worker.py", "ipykernel_launcher.py"])
def test_the_program_of_a_framework_is_no_user_code(monkeypatch: pytest.MonkeyPatch, file: str) -> None:
    main = ModuleType("__main__")
    main.__file__ = f"/env/lib/python3.11/site-packages/{file}"
    monkeypatch.setitem(sys.modules, "__main__", main)
    assert not stacks.is_user(main.__file__, "__main__")


def here() -> FrameType:
    return sys._getframe(1)


def test_a_stack_is_innermost_first() -> None:
    frame = here()
    found = stacks.entries(frame)
    assert found[0][0].endswith("test_beacon_units.py")
    assert found[0][2:] == ("test_a_stack_is_innermost_first", True)
    assert any(entry[3] is False for entry in found)


def test_a_deep_stack_is_cut() -> None:
    def down(depth: int) -> int:
        return down(depth - 1) if depth else len(stacks.entries(sys._getframe()))

    assert down(stacks.MAX_FRAMES + 50) == stacks.MAX_FRAMES


def test_a_signature_changes_when_a_thread_moves() -> None:
    frame = sys._getframe()
    first = stacks.signature(frame)
    second = stacks.signature(frame)
    assert first != second
    assert [code for code, _ in first] == [code for code, _ in second]


def test_a_thread_is_in_its_place_as_long_as_it_is_in_the_same_expression() -> None:
    frame = sys._getframe()
    here = stacks.signature(frame)
    assert not stacks.in_place(frame, here), "the call of `in_place` is another expression"
    assert not stacks.in_place(frame, ())
    assert not stacks.in_place(None, here)


@pytest.mark.skipif(sys.version_info < (3, 11), reason="instructions have no columns")
def test_an_instruction_that_python_has_specialised_is_the_same_place() -> None:
    code = compile("f(x)", "train.py", "eval")
    offsets = [2 * index for index, place in enumerate(code.co_positions()) if place == (1, 1, 0, 4)]
    assert len(offsets) > 1
    assert stacks._one_place(code, offsets[0], offsets[-1])
    elsewhere = [2 * index for index, place in enumerate(code.co_positions()) if place == (1, 1, 2, 3)]
    assert not stacks._one_place(code, offsets[0], elsewhere[0])


# How a process ends


def ending(monkeypatch: pytest.MonkeyPatch, program: str) -> dict[str, Any] | None:
    """What `uncaught` says of a program that ends with an exception."""
    code = compile(textwrap.dedent(program), "/job/train.py", "exec")
    try:
        exec(code, {"__name__": "__main__"})
    except BaseException as error:
        error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next
        monkeypatch.setattr(sys, "last_value", error, raising=False)
        monkeypatch.setattr(sys, "last_exc", error, raising=False)
    return exits.uncaught()


def test_nothing_ends_a_process_that_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(sys, "last_value", raising=False)
    monkeypatch.delattr(sys, "last_exc", raising=False)
    assert exits.uncaught() is None


def test_an_uncaught_exception(monkeypatch: pytest.MonkeyPatch) -> None:
    found = ending(monkeypatch, "def f():\n    raise ValueError('bad')\nf()\n")
    assert found is not None
    assert (found["type"], found["message"], found["masked"]) == ("ValueError", "bad", [])
    assert [entry[1:3] for entry in found["frames"]] == [(2, "f"), (3, "<module>")]


def test_what_the_frames_of_an_uncaught_exception_held(monkeypatch: pytest.MonkeyPatch) -> None:
    own = "def f(step):\n    api_key = 'hf_0123456789'\n    raise ValueError('bad')\nf(3)\n"
    found = ending(monkeypatch, own)
    assert found is not None
    assert found["values"][0] == {"step": "3"}


def test_the_ranks_that_a_failed_call_had_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    source = "def recv(src): raise RuntimeError('Connection closed by peer')"
    c10d = "/env/lib/python3.11/site-packages/torch/distributed/distributed_c10d.py"
    program = f"space = {{}}; exec(compile({source!r}, {c10d!r}, 'exec'), space); space['recv'](2)\n"
    found = ending(monkeypatch, program)
    assert found is not None and found["needed"] == [2]
    found = ending(monkeypatch, "raise RuntimeError('bad')\n")
    assert found is not None and found["needed"] == []


MASKS = [
    (
        "an accident in a teardown hides the first error",
        """
        def close():
            raise RuntimeError("please call iter first")
        def fit():
            raise ValueError("bad")
        try:
            fit()
        finally:
            close()
        """,
        ("ValueError", ["RuntimeError: please call iter first"], ""),
    ),
    (
        "two accidents",
        """
        def stop():
            raise OSError("disk")
        def close():
            try:
                raise_it()
            finally:
                stop()
        def raise_it():
            raise RuntimeError("stop")
        def fit():
            raise ValueError("bad")
        try:
            fit()
        except ValueError:
            close()
        """,
        ("ValueError", ["OSError: disk", "RuntimeError: stop"], ""),
    ),
    (
        "a handler that raises is a translation",
        """
        def load():
            try:
                {}["x"]
            except KeyError:
                raise ValueError("no x in the config")
        load()
        """,
        ("ValueError", [], "KeyError: 'x'"),
    ),
    (
        "raise from",
        """
        def wrap(error):
            raise ValueError("no x") from error
        def load():
            {}["x"]
        try:
            load()
        except KeyError as error:
            wrap(error)
        """,
        ("ValueError", [], "KeyError: 'x'"),
    ),
    (
        "the reason of a reason",
        """
        try:
            try:
                open("/no/such/file")
            except OSError as error:
                raise KeyError("x") from error
        except KeyError:
            raise ValueError("no x in the config")
        """,
        ("ValueError", [], "FileNotFoundError: [Errno 2] No such file or directory: '/no/such/file'"),
    ),
    (
        "what a process of a pool raised",
        """
        import multiprocessing
        with multiprocessing.get_context("fork").Pool(1) as pool:
            pool.map(int, ["x"])
        """,
        ("ValueError", [], ""),
    ),
    (
        "raise from None",
        """
        def wrap():
            raise ValueError("no x") from None
        def load():
            {}["x"]
        try:
            load()
        except KeyError:
            wrap()
        """,
        ("ValueError", [], ""),
    ),
    (
        "what sys.exit unwinds is no cause",
        """
        import sys
        def close():
            raise RuntimeError("busy")
        try:
            sys.exit(3)
        finally:
            close()
        """,
        ("RuntimeError", [], ""),
    ),
]


@pytest.mark.parametrize(("program", "expected"), [m[1:] for m in MASKS], ids=[m[0] for m in MASKS])
def test_which_of_several_errors_is_the_first(
    program: str, expected: tuple[str, list[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = ending(monkeypatch, program)
    assert found is not None
    assert (found["type"], found["masked"], found["caused_by"]) == expected


@pytest.mark.parametrize("program", ["raise SystemExit(3)", "import sys; sys.exit('bye')"])
def test_sys_exit_is_no_exception(program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert ending(monkeypatch, program) is None


def put_back_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """The functions that `exits.watch` replaces."""
    for name in ("waitpid", "_exit", "kill"):
        for module in (os, sys.modules[os.name]):
            monkeypatch.setattr(module, name, getattr(os, name))
    monkeypatch.setattr(sys, "exit", sys.exit)


def test_a_thread_that_calls_os_exit_says_where(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[Any] = []
    put_back_at_the_end(monkeypatch)
    monkeypatch.setattr(os, "_exit", lambda _: None)
    monkeypatch.setattr(exits, "cut_off", [])
    exits.watch(lambda: said.append(list(exits.cut_off)))
    thread = threading.Thread(target=lambda: os._exit(7), name="watchdog")
    thread.start()
    thread.join()
    assert [stack[0][2] for stack in said] == ["<lambda>"]


HANDS_OVER = """
def _wrap(fn, error_queue):
    try:
        fn()
    except Exception:
        error_queue.append("told")
        sys.exit(1)
"""


@pytest.mark.parametrize(("file", "told"), [("torch/multiprocessing/spawn.py", True), ("x.py", False)])
def test_an_exception_that_only_the_parent_is_told(
    file: str, told: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `mp.spawn` of torch 2.0 hands it over, by a queue."""

    def train() -> None:
        raise KeyError("lr")

    put_back_at_the_end(monkeypatch)
    monkeypatch.setattr(exits, "handed_over", [])
    for name in ("last_value", "last_exc"):
        monkeypatch.delattr(sys, name, raising=False)
    names: dict[str, Any] = {"sys": sys}
    exec(compile(HANDS_OVER, f"/env/{file}", "exec"), names)
    exits.watch(lambda: None)
    with pytest.raises(SystemExit):
        names["_wrap"](train, [])
    found = exits.uncaught()
    assert told is (found is not None)
    assert found is None or (found["type"], found["frames"][0][2]) == ("KeyError", "train")


def test_a_syntax_error_stands_at_its_own_line(monkeypatch: pytest.MonkeyPatch) -> None:
    error = SyntaxError("invalid syntax", ("/job/train.py", 7, 3, "def f(:", 7, 4))
    monkeypatch.setattr(sys, "last_value", error, raising=False)
    monkeypatch.setattr(sys, "last_exc", error, raising=False)
    found = exits.uncaught()
    assert found is not None
    assert found["frames"] == [("/job/train.py", 7, "<module>", True)]


def test_an_exception_that_cannot_be_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    found = ending(
        monkeypatch,
        """
        class Odd(Exception):
            def __str__(self):
                raise RuntimeError("no words")
        raise Odd()
        """,
    )
    assert found is not None and (found["type"], found["message"]) == ("Odd", "")


def test_a_long_message_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    found = ending(monkeypatch, "raise ValueError('x' * 100_000)")
    assert found is not None and len(found["message"]) == exits.MESSAGE_LIMIT


def test_a_ring_of_contexts_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = ValueError("a"), KeyError("b")
    first.__context__, second.__context__ = second, first
    monkeypatch.setattr(sys, "last_value", first, raising=False)
    monkeypatch.setattr(sys, "last_exc", first, raising=False)
    assert exits.uncaught() is not None


# The variables of a frame


class Thing:
    """Something whose end can be seen."""


def test_a_look_keeps_nothing_alive() -> None:
    def work() -> weakref.ref[Thing]:
        thing = Thing()
        seen = weakref.ref(thing)
        assert variables.peek(sys._getframe())["thing"] is thing
        del thing
        assert seen() is None
        return seen

    assert work()() is None


def test_a_look_keeps_nothing_alive_after_the_function() -> None:
    gc.disable()
    try:

        def work() -> weakref.ref[Thing]:
            thing = Thing()
            variables.peek(sys._getframe())
            return weakref.ref(thing)

        assert work()() is None
    finally:
        gc.enable()


def test_a_dictionary_of_locals_that_the_program_holds_stays_as_it_is() -> None:
    thing = "mine"
    held = locals()
    before = dict(held)
    variables.peek(sys._getframe())
    assert {name: held[name] for name in before} == before
    assert held["thing"] == thing


def test_a_look_changes_no_variable() -> None:
    count = 1

    def inner() -> int:
        return count

    for _ in range(3):
        assert variables.peek(sys._getframe())["count"] == count
        count += 1
        assert inner() == count
    assert count == 4


def test_the_globals_of_a_module_are_not_emptied() -> None:
    space: dict[str, Any] = {"peek": variables.peek, "sys": sys, "name": "mine"}
    exec("found = peek(sys._getframe())['name']", space)
    assert space["name"] == space["found"] == "mine"


def test_the_body_of_a_class_is_not_emptied() -> None:
    class Made:
        name = "mine"
        found = variables.peek(sys._getframe())["name"]

    assert (Made.name, Made.found) == ("mine", "mine")


# Private names of torch, present and absent


class Group:
    """A process group as torch shows it."""

    def __init__(self, name: str, description: str) -> None:
        self.group_name, self.group_desc = name, description

    def rank(self) -> int:
        return 1

    def size(self) -> int:
        return 2


@pytest.fixture
def torch_modules(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Stand-ins for torch's two modules, as torch 2.11 to 2.15 fill them."""
    default, tensor_parallel = Group("0", "default_pg"), Group("5", "tp")
    world = SimpleNamespace(
        default_pg=default,
        pg_map={default: ("gloo", None), tensor_parallel: ("nccl", None)},
        pg_names={default: "0", tensor_parallel: "5"},
        pg_group_ranks={default: {0: 0, 1: 1}, tensor_parallel: {1: 0, 3: 1}},
    )
    c10d = ModuleType(torch_names.DISTRIBUTED)
    c10d.__dict__.update(destroy_process_group=lambda: None, _world=world)
    bindings = ModuleType(torch_names.BINDINGS)
    monkeypatch.setitem(sys.modules, torch_names.DISTRIBUTED, c10d)
    monkeypatch.setitem(sys.modules, torch_names.BINDINGS, bindings)
    return SimpleNamespace(
        c10d=c10d, bindings=bindings, world=world, default=default, tp=tensor_parallel
    )


def test_without_torch_there_is_nothing_to_say(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (torch_names.DISTRIBUTED, torch_names.BINDINGS, "torch.cuda"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    assert torch_names.c10d() is None
    assert torch_names.default_group() is None
    assert torch_names.process_groups() is None
    assert torch_names.flight_status() is None
    assert flight.read() == ([], [], [])
    assert torch_names.accelerator() == "cpu"
    assert torch_names.group_of(None)[1] == {"ranks": []}
    assert torch_names.global_rank(None, 0) is None


def test_a_module_that_is_half_imported_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    half = ModuleType(torch_names.DISTRIBUTED)
    monkeypatch.setitem(sys.modules, torch_names.DISTRIBUTED, half)
    assert torch_names.c10d() is None
    assert torch_names.process_groups() is None


def test_the_groups_of_a_process(torch_modules: SimpleNamespace) -> None:
    found = torch_names.process_groups()
    assert found is not None
    assert (found["rank"], found["world_size"]) == (1, 2)
    named = [(g["name"], g["id"], g["ranks"], g["backend"]) for g in found["groups"]]
    assert named == [("default", "0", [0, 1], "gloo"), ("tp", "5", [1, 3], "nccl")]


def test_a_group_that_does_not_know_its_name_has_it_from_torchs_table(
    torch_modules: SimpleNamespace,
) -> None:
    """In torch 2.0 a group has neither `group_name` nor `group_desc`."""
    del torch_modules.tp.group_name, torch_modules.tp.group_desc
    assert torch_names.group_of(torch_modules.tp) == ("5", {"ranks": [1, 3]})


@pytest.mark.parametrize(
    ("ranks", "told"),
    [
        (range(MOST_LISTED), {"ranks": [*range(MOST_LISTED)]}),
        (range(16384), {"ranks": [], "span": (0, 16384, 1)}),
        (range(3, 16384, 8), {"ranks": [], "span": (3, 16380, 8)}),
        (range(99, -1, -1), {"ranks": [], "span": (0, 100, 1)}),
        ((*range(99), 100), {"ranks": [*range(99), 100]}),
    ],
    ids=["few", "all", "one of each node", "out of order", "one left out"],
)
def test_many_members_are_told_in_few_words(ranks: Sequence[int], told: Members) -> None:
    assert members(ranks) == told
    assert ranks_of(members(ranks)) == sorted(ranks)


def test_no_more_ranks_are_made_of_a_record_than_any_job_has() -> None:
    assert len(ranks_of({"ranks": [], "span": (0, 10**12, 1)})) == MOST_RANKS


def test_a_group_by_its_members(torch_modules: SimpleNamespace) -> None:
    assert torch_names.group_of(None) == ("default", {"ranks": [0, 1]})
    assert torch_names.group_of(torch_modules.tp) == ("tp", {"ranks": [1, 3]})
    assert torch_names.global_rank(torch_modules.tp, 1) == 3
    assert torch_names.global_rank(None, 1) == 1
    assert torch_names.global_rank(torch_modules.tp, 7) is None
    assert torch_names.has_tags(None)
    assert not torch_names.has_tags(torch_modules.tp)


@pytest.mark.parametrize("name", ["pg_map", "pg_names", "pg_group_ranks"])
def test_a_table_of_the_world_that_is_gone(torch_modules: SimpleNamespace, name: str) -> None:
    delattr(torch_modules.world, name)
    assert torch_names.process_groups() is not None
    assert torch_names.group_of(None)[0] == "default"


@pytest.mark.parametrize("name", ["_world", "destroy_process_group"])
def test_a_name_of_the_module_that_is_gone(torch_modules: SimpleNamespace, name: str) -> None:
    delattr(torch_modules.c10d, name)
    assert torch_names.process_groups() is None
    assert torch_names.default_group() is None


def test_a_world_without_a_group(torch_modules: SimpleNamespace) -> None:
    torch_modules.world.default_pg = None
    assert torch_names.process_groups() is None


def trace(*entries: dict[str, Any], **facts: Any) -> bytes:
    return json.dumps({"entries": list(entries), **facts}).encode()


def recorded(seq: int, op: str = "gloo:all_reduce", **facts: Any) -> dict[str, Any]:
    usual = {
        "process_group": ["0", "default_pg"],
        "collective_seq_id": seq,
        "profiling_name": op,
        "input_sizes": [[4]],
        "retired": False,
        "state": "scheduled",
        "time_created_ns": seq,
        "is_p2p": False,
    }
    return {**usual, **facts}


def two_arguments(entries: bool, active: bool) -> bytes:
    """The signature of torch 2.11 to 2.14."""
    return trace(recorded(1, retired=True), recorded(2)) if entries else b"{}"


def three_arguments(entries: bool, active: bool, backend: str = "gloo") -> bytes:
    """The signature of torch 2.15."""
    return two_arguments(entries, active)


@pytest.mark.parametrize("dump", [two_arguments, three_arguments])
def test_the_flight_recorder(torch_modules: SimpleNamespace, dump: Callable[..., bytes]) -> None:
    torch_modules.bindings._dump_fr_trace_json = dump
    assert torch_names.flight_status() == b"{}"
    assert [(e["seq"], e["op"], e["done"]) for e in flight.read()[0]] == [
        (1, "all_reduce", True),
        (2, "all_reduce", False),
    ]


def test_no_flight_recorder(torch_modules: SimpleNamespace) -> None:
    assert torch_names.flight_status() is None
    assert flight.read() == ([], [], [])


@pytest.mark.parametrize("problem", [RuntimeError("off"), TypeError("takes no arguments")])
def test_a_flight_recorder_that_answers_no_more(
    torch_modules: SimpleNamespace, problem: Exception
) -> None:
    def dump(*_: bool) -> bytes:
        raise problem

    torch_modules.bindings._dump_fr_trace_json = dump
    assert torch_names.flight_status() is None
    assert flight.read() == ([], [], [])


def test_the_tail_of_each_group_holds_collectives_only(torch_modules: SimpleNamespace) -> None:
    many = [recorded(n, done=True) for n in range(1, 100)]
    other = recorded(1, "nccl:barrier", process_group=["5", "tp"], state="completed")
    message = recorded(0, "gloo:recv 0<-1", is_p2p=True)
    torch_modules.bindings._dump_fr_trace_json = lambda *_: trace(*many, other, message)
    tail = flight.read()[0]
    assert [e["seq"] for e in tail if e["group"] == "0"] == list(range(100 - flight.TAIL, 100))
    assert [(e["op"], e["done"]) for e in tail if e["group"] == "5"] == [("barrier", True)]


def frame(file: str, line: int, name: str) -> dict[str, object]:
    return {"filename": file, "line": line, "name": name}


def test_the_lines_that_issued_a_call(
    torch_modules: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Libraries between two of the user's lines are one entry, which tells ways through them apart."""
    library = "/x/site-packages/lib/fit.py"

    def made(line: int, within: int) -> list[dict[str, object]]:
        below = [
            frame("/x/site-packages/torch/c.py", 1, "all_reduce"),
            frame("/job/hook.py", line, "hook"),
        ]
        through = [frame(library, within, "call"), frame(library, 9, "fit")]
        return [*below, *through, frame("/job/train.py", 3, "main")]

    entries = [recorded(n, frames=made(5, 7 if n < 3 else 8)) for n in range(1, 5)]
    torch_modules.bindings._dump_fr_trace = lambda *_: pickle.dumps({"entries": entries})
    _, calls, (issued,) = flight.read()
    assert (issued["first"], issued["calls"]) == (1, [0, 0, 1, 1])
    one, other = ([(file, name) for file, _, name, _ in call["frames"]] for call in calls)
    called = ("/x/site-packages/torch/c.py", "all_reduce")
    users = [("/job/hook.py", "hook"), ("/job/train.py", "main")]
    assert one == other == [called, users[0], (library, "fit"), users[1]]
    assert calls[0]["frames"][2] != calls[1]["frames"][2]


def test_naming_the_lines_imports_nothing(
    torch_modules: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The recorder asks torch for `_inductor.codecache`, which torch would import."""
    torch = ModuleType("torch")
    asked: list[object] = []

    def lazily(name: str) -> object:
        asked.append(name)
        return ModuleType(name)

    vars(torch)["__getattr__"] = lazily
    monkeypatch.setitem(sys.modules, "torch", torch)

    def dump(*_: bool) -> bytes:
        inductor: Any = getattr(torch, "_inductor")  # noqa: B009 - as the recorder asks
        assert not hasattr(inductor, "codecache")
        return pickle.dumps({"entries": [recorded(1)]})

    torch_modules.bindings._dump_fr_trace = dump
    assert len(flight.read()[0]) == 1
    assert asked == [] and "_inductor" not in vars(torch)


def test_a_gap_in_the_numbers_begins_anew(torch_modules: SimpleNamespace) -> None:
    entries = [recorded(n) for n in (1, 2, 7, 8)]
    torch_modules.bindings._dump_fr_trace_json = lambda *_: trace(*entries)
    (issued,) = flight.read()[2]
    assert (issued["first"], issued["calls"]) == (7, [0, 0])


def test_fields_that_a_later_torch_leaves_out(torch_modules: SimpleNamespace) -> None:
    torch_modules.bindings._dump_fr_trace_json = lambda *_: trace({"collective_seq_id": 3})
    (entry,) = flight.read()[0]
    assert (entry["seq"], entry["sizes"], entry["done"]) == (3, [], False)


PENDING = [
    ({}, False),
    ({"pg_status": {}}, False),
    ({"pg_status": {"0": {"last_enqueued_collective": 7, "last_completed_collective": 7}}}, False),
    ({"pg_status": {"0": {"last_enqueued_collective": 7, "last_completed_collective": 6}}}, True),
]


@pytest.mark.parametrize(("status", "expected"), PENDING)
def test_whether_something_is_pending(status: dict[str, Any], expected: bool) -> None:
    assert torch_names.pending(torch_names.issued(json.dumps(status).encode())) is expected


def test_the_accelerator(monkeypatch: pytest.MonkeyPatch) -> None:
    for answer, name in ((True, "cuda"), (False, "cpu")):
        module = ModuleType("torch.cuda")
        module.__dict__["is_initialized"] = lambda answer=answer: answer
        monkeypatch.setitem(sys.modules, "torch.cuda", module)
        assert torch_names.accelerator() == name
    monkeypatch.setitem(sys.modules, "torch.cuda", ModuleType("torch.cuda"))
    assert torch_names.accelerator() == "cpu"


def made(name: str, module: str = torch_names.BINDINGS) -> type:
    return type(name, (), {"__module__": module})


def test_the_classes_of_torch() -> None:
    store = made("Store")
    tcp = type("TCPStore", (store,), {"__module__": torch_names.BINDINGS})
    assert torch_names.class_of(tcp()) == "Store"
    assert torch_names.class_of(made("Work")()) == "Work"
    assert torch_names.class_of(made("Store", "my.shop")()) is None
    assert torch_names.class_of(7) is None


def test_a_handle_tells_its_operation() -> None:
    work = type("Work", (made("Work"),), {"_get_op_type": lambda self: 13})()
    assert torch_names.operation_of(work) == "irecv"
    assert torch_names.operation_of(made("Work")()) is None
    unknown = type("Work", (made("Work"),), {"_get_op_type": lambda self: 100})()
    assert torch_names.operation_of(unknown) is None

    def fails(self: object) -> int:
        raise RuntimeError("not supported")

    assert torch_names.operation_of(type("Work", (made("Work"),), {"_get_op_type": fails})()) is None


# The call on a stack


DISTRIBUTED = """
def all_reduce(tensor, op=None, group=None, async_op=False):
    look()
def all_gather_object(object_list, obj, group=None):
    all_reduce(obj, group=group)
def broadcast(tensor, src=None, group=None, async_op=False, group_src=None):
    look()
def reduce(tensor, dst=None, op=None, group=None, async_op=False, group_dst=None):
    look()
def recv(tensor, src=None, group=None, tag=0, group_src=None):
    look()
def send(tensor, dst=None, group=None, tag=0, group_dst=None):
    look()
def recv_object_list(object_list, src=None, group=None):
    recv(object_list[0], src=src, group=group)
def init_process_group(backend=None, init_method=None, rank=-1, world_size=-1):
    look()
def new_group(ranks=None, use_local_synchronization=False, barrier=True):
    if not barrier:
        return look()
    _store_based_barrier(store_key="key/1", worker_count=1)
def _store_based_barrier(store_key, worker_count):
    look()
"""


C10D = "/env/site-packages/torch/distributed/distributed_c10d.py"


def call_of(frame: FrameType | None) -> Any:
    return calls.torch_call(calls.inside(frame))


def called(source: str, file: str = C10D, **names: Any) -> Any:
    """What `torch_call` says while the last line of a program runs inside `file`'s functions."""
    found: list[Any] = []
    library: dict[str, Any] = {"look": lambda: found.append(call_of(here().f_back))}
    body = DISTRIBUTED if file.endswith("c10d.py") else names.pop("body")
    exec(compile(body, file, "exec"), library)
    exec(compile(source, "/job/train.py", "exec"), {**library, **names})
    return found[0]


def test_a_collective_with_its_group_and_sizes(torch_modules: SimpleNamespace) -> None:
    tensor = SimpleNamespace(shape=(4, 2))
    found = called("all_reduce(tensor, group=tp)", tensor=tensor, tp=torch_modules.tp)
    assert (found["kind"], found["op"], found["group"]) == ("collective", "all_reduce", "tp")
    assert (found["ranks"], found["sizes"]) == ([1, 3], [[4, 2]])


def test_the_outermost_of_nested_calls_is_what_the_user_wrote(torch_modules: SimpleNamespace) -> None:
    assert called("all_gather_object([], 7)")["op"] == "all_gather_object"
    found = called("recv_object_list([7], src=1)")
    assert (found["op"], found["peers"]) == ("recv_object_list", [1])


def test_user_code_that_a_call_runs_is_not_in_that_call(torch_modules: SimpleNamespace) -> None:
    body = DISTRIBUTED.replace("all_reduce(obj, group=group)", "obj()")
    found: list[Any] = []
    library: dict[str, Any] = {}
    exec(compile(body, C10D, "exec"), library)
    library["all_gather_object"]([], lambda: found.append(call_of(here())))
    assert found == [None]


def test_point_to_point(torch_modules: SimpleNamespace) -> None:
    assert called("recv(7, src=1)")["peers"] == [1]
    assert called("recv(7)")["peers"] == []
    assert called("send(7, dst=0)")["peers"] == [0]
    assert called("send(7, group=tp, group_dst=1)", tp=torch_modules.tp)["peers"] == [3]


def test_the_root_of_a_collective(torch_modules: SimpleNamespace) -> None:
    assert called("broadcast(7, src=1)")["root"] == 1
    assert called("broadcast(7, group=tp, group_src=1)", tp=torch_modules.tp)["root"] == 3
    assert called("reduce(7, dst=0)")["root"] == 0
    assert called("all_reduce(7)")["root"] is None


def test_joining(torch_modules: SimpleNamespace) -> None:
    found = called("init_process_group('gloo', rank=1, world_size=2)")
    assert (found["kind"], found["rank"], found["world_size"]) == ("rendezvous", 1, 2)
    found = called("init_process_group('gloo', 'tcp://a:1')")
    assert (found["key"], found["rank"], found["world_size"]) == ("tcp://a:1", None, None)


def test_new_group_is_a_call_of_everybody(torch_modules: SimpleNamespace) -> None:
    found = called("new_group([0])")
    assert (found["kind"], found["op"], found["group"]) == ("collective", "new_group", "default")
    assert (found["ranks"], found["key"]) == ([0, 1], "key/1")


def test_without_a_barrier_new_group_is_a_call_of_its_members(torch_modules: SimpleNamespace) -> None:
    found = called("new_group([2, 1], barrier=False)")
    assert (found["ranks"], found["counted"]) == ([1, 2], True)
    assert called("new_group(barrier=False)")["ranks"] == [0, 1]
    assert not called("new_group([0], use_local_synchronization=True)")["counted"]


def test_lightnings_barrier_without_a_timeout(torch_modules: SimpleNamespace) -> None:
    file = "/env/site-packages/lightning/fabric/utilities/distributed.py"
    body = (
        "class Barrier:\n    def __init__(self, group):\n        self.group = group\n"
        "    def __call__(self):\n        look()\n"
    )
    found = called("Barrier(tp)()", file, body=body, tp=torch_modules.tp)
    assert (found["kind"], found["op"]) == ("collective", "monitored_barrier")
    assert (found["group"], found["ranks"]) == ("tp", [1, 3])
    assert called("Barrier(None)()", file, body=body) is None


def test_a_lock_file() -> None:
    baton = "/env/site-packages/torch/utils/file_baton.py"
    body = "class Baton:\n    lock_file_path = '/job/lock'\n    def wait(self):\n        look()\n"
    found = called("Baton().wait()", baton, body=body)
    assert (found["kind"], found["key"]) == ("lock", "/job/lock")
    assert called("Baton().wait()", "/job/my_file.py", body=body) is None


def test_a_data_loader() -> None:
    loader = "/env/site-packages/torch/utils/data/dataloader.py"
    body = (
        "class _MultiProcessingDataLoaderIter:\n"
        "    def __init__(self, workers):\n        self._workers = workers\n"
        "        if not workers: look()\n"
        "    def _get_data(self):\n        look()\n"
        "Iterator = _MultiProcessingDataLoaderIter\n"
    )
    workers = [SimpleNamespace(pid=7), SimpleNamespace(pid=8), SimpleNamespace(pid=None)]
    found = called("Iterator(workers)._get_data()", loader, body=body, workers=workers)
    assert (found["op"], found["workers"]) == ("DataLoader", {7: 0, 8: 1})
    assert called("Iterator([])", loader, body=body) is None, "of a worker that was forked there"


def test_code_of_the_users_is_no_call() -> None:
    assert call_of(here()) is None
    assert call_of(None) is None


def test_the_source_of_a_call_on_a_store(torch_modules: SimpleNamespace, tmp_path: Path) -> None:
    found: list[Any] = []

    def get(self: object, key: str) -> None:
        found.append(sites.site(sys._getframe(1)))

    store = type("TCPStore", (made("Store"),), {"__module__": torch_names.BINDINGS, "get": get})()
    source = textwrap.dedent(
        """
        def wait_for(step):
            store.get(f"ready/{step}")

        class Trainer:
            def __init__(self, store):
                self.store = store

            def run(self):
                key = "done"
                return self.store.get(
                    key,
                )

        wait_for(7)
        Trainer(store).run()
        """
    )
    file = tmp_path / "train.py"
    file.write_text(source)
    exec(compile(source, str(file), "exec"), {"store": store})
    assert [called_at(one, sources()) for one in found] == [
        ("Store", "get", "ready/7"),
        ("Store", "get", "done"),
    ]


def test_code_without_columns_tells_the_line(torch_modules: SimpleNamespace, tmp_path: Path) -> None:
    """As all code does before Python 3.11."""
    found: list[Any] = []

    def get(self: object, key: str) -> None:
        frame = sys._getframe(1)
        code = SimpleNamespace(**{name: getattr(frame.f_code, name) for name in CODE})
        facts = {name: getattr(frame, name) for name in dir(frame) if name.startswith("f_")}
        found.append(sites.site(SimpleNamespace(**{**facts, "f_code": code})))  # type: ignore[arg-type]

    store = type("TCPStore", (made("Store"),), {"__module__": torch_names.BINDINGS, "get": get})()
    file = tmp_path / "train.py"
    file.write_text("\nstore.get('ready')\n")
    exec(compile(file.read_text(), str(file), "exec"), {"store": store})
    assert found[0]["position"] == [2]
    assert called_at(found[0], sources()) == ("Store", "get", "ready")


CODE = ("co_names", "co_filename", "co_flags")


def test_how_long_a_store_waits(torch_modules: SimpleNamespace) -> None:
    def limits(store: object, span: object, text: str = "5") -> dict[str, float]:
        found = sites.site(sys._getframe(0))
        assert found is not None
        return found["limits"]

    class Broken(made("Store")):  # type: ignore[misc]
        @property
        def timeout(self) -> None:
            raise ValueError("of the job's own")

    store = made("Store")()
    store.timeout = timedelta(seconds=5)
    assert limits(store, timedelta(minutes=1)) == {"store": 5.0, "span": 60.0}
    assert limits(made("Store")(), 7) == {}
    assert limits(Broken(), None) == {}


def test_the_handles_that_a_line_may_wait_for(torch_modules: SimpleNamespace) -> None:
    class Handle(made("Work")):  # type: ignore[misc]
        def __init__(self, kind: int) -> None:
            self.kind = kind

        def _get_op_type(self) -> int:
            return self.kind

    def names(one: object, several: object) -> dict[str, str]:
        found = sites.site(sys._getframe(0))
        assert found is not None
        return found["names"]

    recv, send = Handle(13), Handle(12)
    assert names(recv, [send, send]) == {"one": "Work.irecv", "several[*]": "Work.isend"}
    assert names(recv, {"left": recv}) == {"one": "Work.irecv", "several[*]": "Work.irecv"}
    assert names(made("Work")(), (recv, send)) == {"one": "Work"}
    assert names(send, [recv] * 1000) == {"one": "Work.isend"}


def test_the_other_end_of_a_handle_from_a_batch(
    torch_modules: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    class P2POp:
        def __init__(self, name: str, peer: int) -> None:
            self.op, self.peer = SimpleNamespace(__name__=name), peer

    P2POp.__module__ = torch_names.DISTRIBUTED
    monkeypatch.setattr(torch_names, "operation_of", lambda handle: getattr(handle, "op", None))
    one, other = SimpleNamespace(op="irecv"), SimpleNamespace(op="irecv")
    both = [P2POp("irecv", 3), P2POp("irecv", 5)]
    assert calls.peer_of(other, [{"handles": [one, other], "batch": both}]) == 5
    assert calls.peer_of(one, [{}, {"handles": [one, other], "batch": both}]) == 3
    assert calls.peer_of(one, [{"batch": [P2POp("isend", 1), P2POp("irecv", 2)]}]) == 2
    assert calls.peer_of(one, [{"batch": both}]) is None
    assert calls.peer_of(one, [{"handles": [one], "batch": [1]}]) is None
    by_peer = [{"works": {4: [other], 6: [one]}}]
    assert calls.peer_of(one, by_peer, by_key=True) == 6
    assert calls.peer_of(one, by_peer) is None


def test_a_line_without_torch_objects_has_no_site(torch_modules: SimpleNamespace) -> None:
    assert sites.site(here()) is None
    assert sites.site(None) is None


def test_a_loop_that_looks_for_a_file_has_a_site_without_torch(tmp_path: Path) -> None:
    found: list[Any] = []
    source = textwrap.dedent(
        """
        def wait_for(lock):
            while lock.exists():
                sleep(1)
                break

        def write(lock):
            lock.exists()
            note()

        wait_for(path)
        write(path)
        """
    )
    file = tmp_path / "train.py"
    file.write_text(source)

    def note(seconds: int = 0) -> None:
        found.append(sites.site(sys._getframe(1)))

    exec(compile(source, str(file), "exec"), {"path": file, "sleep": note, "note": note})
    assert [one and one["strings"] for one in found] == [{"lock": str(file)}, None]
    assert found[0] is not None
    assert polling.lock_file(found[0], sources()) == str(file)


# Output, records, system calls


def test_whose_pipe_a_descriptor_leads_to(tmp_path: Path) -> None:
    (tmp_path / "output").mkdir()
    (tmp_path / "output-of-mine").mkdir()
    owners = {
        "output/job": "job",
        "output/4711-3": "4711",
        "output-of-mine/job": None,
        "job": None,
    }
    for name, owner in owners.items():
        with (tmp_path / name).open("w") as file:
            assert output._owner(file.fileno(), str(tmp_path / "output")) == owner
            path = output._path_of(file.fileno(), str(tmp_path / "output"))
            assert path == (str(tmp_path / name) if owner else "")
            closed = os.dup(file.fileno())
            os.close(closed)
    assert output._owner(closed, str(tmp_path / "output")) is None


def test_a_record_is_one_file_for_its_owner_alone(tmp_path: Path) -> None:
    (tmp_path / "records").mkdir()
    path = record_path(str(tmp_path), 7)
    for told in ("\udcff", "shorter than that", "longer than that", ""):
        write(path, {"failed": told})
        assert json.loads(read(path) or b"") == {"failed": told}
    assert os.stat(path).st_mode & 0o777 == 0o600
    assert os.listdir(tmp_path / "records") == ["7.record"]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_the_system_call_of_a_thread_that_reads_a_pipe() -> None:
    reading, writing = os.pipe()
    thread = threading.Thread(target=os.read, args=(reading, 1))
    thread.start()
    try:
        assert thread.native_id is not None
        found = None
        while found is None or found["call"] != "read":
            found = native.blocking_call(thread.native_id)
        assert found["fd"] == reading
        assert found["target"].startswith("pipe:")
    finally:
        os.write(writing, b"x")
        thread.join()
        os.close(reading)
        os.close(writing)
    assert native.blocking_call(2**22) is None


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.parametrize(("timeout", "limited"), [(-1, False), (3600, True)])
def test_a_thread_that_waits_for_another_for_some_time_only(timeout: int, limited: bool) -> None:
    lock = threading.Lock()
    lock.acquire()
    thread = threading.Thread(target=lock.acquire, kwargs={"timeout": timeout})
    thread.start()
    try:
        assert thread.native_id is not None
        found = None
        while found is None or found["call"] != "futex" or found["limited"] is not limited:
            found = native.blocking_call(thread.native_id)
    finally:
        lock.release()
        thread.join()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_a_select_on_no_file_is_a_sleep() -> None:
    """`time.sleep` before Python 3.11."""
    never, write = os.pipe()
    found = {}
    for files, call in (([], "nanosleep"), ([never], "select")):
        thread = threading.Thread(target=select.select, args=(files, [], [], 0.3))
        thread.start()
        assert thread.native_id is not None
        while thread.is_alive() and found.get(call) is None:
            seen = native.blocking_call(thread.native_id)
            found[call] = seen if seen is not None and seen["call"] == call else None
        thread.join()
    os.close(never)
    os.close(write)
    assert None not in found.values()


# Locks inside the process


class Waits:
    """A thread of the test's own code that blocks in a method, and ends with the test."""

    def __init__(self, run: Callable[[], object]) -> None:
        self.thread = threading.Thread(target=run, daemon=True)
        self.thread.start()

    def frame(self, function: str) -> FrameType:
        """Its innermost frame, once it is in a function of that name."""
        while True:
            frame = sys._current_frames()[self.thread.ident or 0]
            if frame.f_code.co_name == function:
                return frame


def test_the_locks_that_a_thread_can_name_and_who_holds_them() -> None:
    plain, reentrant = threading.Lock(), threading.RLock()
    condition = threading.Condition(plain)

    def asks() -> None:
        with reentrant:
            print(plain, condition)

    with reentrant:
        waits = Waits(asks)
        (here, *_) = locks.in_stack(waits.frame("asks"))
        assert here["names"] == {
            "plain": id(plain),
            "reentrant": id(reentrant),
            "condition": id(plain),
        }
        assert here["owners"] == {id(reentrant): threading.get_ident()}
    waits.thread.join()


def test_a_condition_asks_for_the_lock_that_it_has() -> None:
    lock = threading.Lock()
    condition = threading.Condition(lock)

    def asks() -> None:
        with condition:
            pass

    with lock:
        waits = Waits(asks)
        assert locks.wanted(waits.frame("__enter__")) == id(lock)
    waits.thread.join()
    assert locks.wanted(sys._getframe()) is None


def test_the_thread_for_whose_end_another_one_waits() -> None:
    held = threading.Event()
    long = threading.Thread(target=held.wait)
    long.start()

    def joins() -> None:
        long.join()

    waits = Waits(joins)
    while locks.joined(sys._current_frames()[waits.thread.ident or 0]) != long.ident:
        pass
    held.set()
    waits.thread.join()
    assert locks.joined(sys._getframe()) is None


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_a_thread_that_comes_to_the_same_line_for_another_thread() -> None:
    ends = threading.Event(), threading.Event()
    others = [threading.Thread(target=end.wait) for end in ends]
    for other in others:
        other.start()

    def joins() -> None:
        for other in others:
            other.join()

    waits, watched = Waits(joins), threads.Watched()
    ident, number = waits.thread.ident or 0, waits.thread.native_id
    now = 0.0
    for other, end in zip(others, ends, strict=True):
        while now == 0.0 or watched.entry.get("joins") != other.ident:
            now += 1.0
            watched.look(
                sys._current_frames()[ident], now, ident, "beside", number, main=False, due=True
            )
        end.set()
    waits.thread.join()


# The whole beacon, in a tiny process


@pytest.fixture
def watched(tmp_path: Path) -> Callable[..., subprocess.Popen[str]]:
    """Starts a small program with a beacon, below a guardian of its own choosing."""
    folder = tmp_path / "run"
    run_folder.make(folder, {})
    run_folder.furnish(folder)

    def start(program: str, guardian: int) -> subprocess.Popen[str]:
        more = run_folder.environment(folder, guardian, {})
        return subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(program)],
            env={**os.environ, **more},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    return start


@pytest.mark.real
def test_a_rank_ends_when_its_guardian_is_gone(watched: Callable[..., subprocess.Popen[str]]) -> None:
    guardian = subprocess.Popen(["sleep", "60"])
    rank = watched("print('up', flush=True)\ninput()\n", guardian.pid)
    try:
        assert rank.stdout is not None and rank.stdin is not None
        rank.stdout.readline()
        guardian.kill()
        guardian.wait()
        assert rank.wait(timeout=60) == -9
    finally:
        guardian.kill()
        guardian.wait()
        rank.kill()
        rank.communicate()


@pytest.mark.real
def test_a_job_may_fork_in_several_threads_at_once(
    watched: Callable[..., subprocess.Popen[str]],
) -> None:
    job = watched(
        """
        import os, threading

        def forks():
            for _ in range(10):
                pid = os.fork()
                if pid == 0:
                    os._exit(0)
                os.waitpid(pid, 0)

        threads = [threading.Thread(target=forks) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        """,
        os.getpid(),
    )
    try:
        assert job.wait(timeout=60) == 0
    finally:
        job.kill()
        job.communicate()


@pytest.mark.real
def test_a_program_that_replaces_itself_begins_a_new_record(
    watched: Callable[..., subprocess.Popen[str]], tmp_path: Path
) -> None:
    job = watched(
        """
        import os, sys
        input()
        os.execv(sys.executable, [sys.executable, "-c", "input()", "second"])
        """,
        0,
    )
    path = record_path(str(tmp_path / "run"), job.pid)

    def record_of(word: str) -> Record:
        end = time.monotonic() + 20
        while time.monotonic() < end:
            found = parsed(read(path) or b"" if Path(path).exists() else b"")
            assert not isinstance(found, str)
            if found is not None and (found["argv"][-1] == "second") == (word == "second"):
                return found
            time.sleep(0.02)
        raise AssertionError(f"no record of the {word} program")

    try:
        assert job.stdin is not None
        first = record_of("first")
        job.stdin.write("go\n")
        job.stdin.flush()
        second = record_of("second")
        assert second["started"] > first["started"]
        assert (second["error"], second["ended"]) == (None, False)
    finally:
        job.kill()
        job.communicate()


def test_many_threads_are_looked_up_in_turns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each look costs about the same, however many threads there are; every thread has its turn."""
    (tmp_path / "records").mkdir()
    asked: list[int] = []
    monkeypatch.setattr(native, "blocking_call", lambda thread: asked.append(thread))
    monkeypatch.setattr(threads, "CALL_AFTER", 0.0)
    held = threading.Event()
    many = [threading.Thread(target=held.wait) for _ in range(100)]
    for thread in many:
        thread.start()
    try:
        one = beacon.Beacon(str(tmp_path))
        ids = {thread.native_id for thread in many}
        until = time.monotonic() + 10
        while not ids <= set(asked):
            assert time.monotonic() < until
            one.look()
        asked.clear()
        one.look()
        assert len(asked) <= 2 * process.AT_ONCE
        for _ in range(10):
            one.look()
        assert ids <= set(asked)
    finally:
        held.set()
        for thread in many:
            thread.join()


def test_a_beacon_that_fails_says_so_in_its_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "records").mkdir()
    one = beacon.Beacon(str(tmp_path))
    monkeypatch.setattr(process.Process, "look", lambda *_: 1 / 0)
    one.look()
    assert "ZeroDivisionError" in str(parsed(read(one.path) or b""))


# The stacks of a crash

CRASHES = """
import faulthandler, os
from helpers.beacon.crashes import CrashFile
one = CrashFile()
one.keep("parent")
child = os.fork()
if child == 0:
    one.keep("child")
    faulthandler._sigsegv()
_, status = os.waitpid(child, 0)
print(os.WTERMSIG(status))
"""


def test_a_forked_child_leaves_its_stacks_in_a_file_of_its_own(tmp_path: Path) -> None:
    words = [sys.executable, "-c", CRASHES]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(words, cwd=tmp_path, env=env, capture_output=True, text=True, check=True)
    assert done.stdout == "11\n"
    assert (tmp_path / "parent").read_text() == ""
    assert "Current thread" in (tmp_path / "child").read_text()


def test_the_file_of_the_stacks_is_emptied_while_the_process_runs_on(tmp_path: Path) -> None:
    kept, path = crashes.CrashFile(), tmp_path / "1.stacks"
    kept.keep(str(path))
    path.write_text("Fatal Python error")
    kept.keep(str(path))
    assert path.read_text() == ""


def test_a_job_may_close_the_file_of_the_stacks_and_have_its_number(tmp_path: Path) -> None:
    def opened(path: Path) -> list[int]:
        return [file.fd for file in psutil.Process().open_files() if file.path == str(path)]

    kept, path, other = crashes.CrashFile(), tmp_path / "1.stacks", tmp_path / "data"
    kept.keep(str(path))
    (number,) = opened(path)
    assert number >= crashes.OUT_OF_THE_WAY
    with other.open("w") as file:
        os.dup2(file.fileno(), number)
    os.write(number, b"weights")
    kept.keep(str(path))
    assert number not in opened(path) and len(opened(path)) == 1
    assert other.read_text() == "weights"
    os.close(number)


# Who may read the memory of the process

YAMA = [
    ("0\n", True, []),
    ("1\n", False, []),
    ("1\n", True, [(tracer.PR_SET_PTRACER, os.getppid())]),
    ("2\n", True, []),
]


@pytest.mark.parametrize(("scope", "imported", "named"), YAMA)
def test_the_instrument_is_named_once_where_only_ancestors_may_read(
    scope: str,
    imported: bool,
    named: list[tuple[int, int]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The kernel's part is not tried: few machines of tests have Yama."""
    told: list[tuple[int, int]] = []
    library = SimpleNamespace(prctl=lambda option, pid, *_: told.append((option, pid.value)))
    stub = SimpleNamespace(CDLL=lambda name: library, c_ulong=ctypes.c_ulong, pythonapi=None)
    monkeypatch.setattr(tracer, "SCOPE", str(tmp_path / "ptrace_scope"))
    (tmp_path / "ptrace_scope").write_text(scope)
    named_by = tracer.Tracer(os.getpid())
    monkeypatch.setitem(sys.modules, "ctypes", stub if imported else ModuleType("ctypes"))
    named_by.admit()
    named_by.admit()
    assert told == named
